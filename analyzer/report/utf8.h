/* Strings of traces are bytes that a stranger chose: read them as UTF-8 and
 * take U+FFFD for what is not. */
#ifndef COMMTRACE_REPORT_UTF8_H
#define COMMTRACE_REPORT_UTF8_H

#include <stdio.h>

/* The code point at *s_p, which moves on; 0 at the end, where it stays. */
unsigned utf8_next(const char **s_p);
void utf8_put(FILE *file, unsigned code);

#endif
