/* What `env` makes of its words, as GNU's does. */
#ifndef COMMTRACE_DOCTOR_ENV_H
#define COMMTRACE_DOCTOR_ENV_H

#include "doctor/command.h"

/* words: those behind `env`. Returns the words of the command that it starts,
 * or NULL: none. */
char *const *env_starts(struct command *command, char *const *words);

/* The same, of words of which the first is to be split at blanks before. */
char *const *env_split(struct command *command, char *const *words);

#endif
