/* Which program a command comes down to: scripts are followed to their
 * interpreters, and `env` to what it starts. */
#ifndef COMMTRACE_DOCTOR_COMMAND_H
#define COMMTRACE_DOCTOR_COMMAND_H

#include <limits.h>
#include <stdbool.h>

struct command {
    char program[PATH_MAX]; /* the file that the kernel loads */
    char script[PATH_MAX];  /* the last script on the way; empty: none */
    char via[PATH_MAX];     /* "a -> b -> c", for people */
    const char *preload;    /* LD_PRELOAD that `env` sets; NULL: none */
};

/* 0, or the errno of what stands in the way, with the file in program. */
int command_resolve(struct command *command, char *const argv[]);

#endif
