/* The COMMTRACE_* variables of the environment, checked as the recorder will
 * read them. */
#ifndef COMMTRACE_DOCTOR_OPTIONS_H
#define COMMTRACE_DOCTOR_OPTIONS_H

#include <stdint.h>

struct facts;

struct options {
#define CONFIG(id_, ...) const char *id_;
#include "commtrace/config.def"
};

/* Texts as they will be in force: the default for what is unset or wrong,
 * which is added to facts (may be NULL). */
void options_read(struct options *options, struct facts *facts);

int64_t options_number(const char *text);

#endif
