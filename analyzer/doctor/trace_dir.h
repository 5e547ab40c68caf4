/* The folder of the traces of a command that `commtrace run` starts. */
#ifndef COMMTRACE_DOCTOR_TRACE_DIR_H
#define COMMTRACE_DOCTOR_TRACE_DIR_H

#include <stddef.h>

/* Absolute, since the command may change its folder. wanted: COMMTRACE_DIR or
 * --dir; NULL or empty: what the library would choose, with launcher for the
 * process that starts the ranks. 0, or -1 with errno. */
int trace_dir_name(char *dir, size_t size, const char *wanted,
                   const char *launcher);

#endif
