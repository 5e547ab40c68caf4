/* Which program a command comes down to: scripts are followed to their
 * interpreters, and `env` to what it starts. */
#ifndef COMMTRACE_DOCTOR_COMMAND_H
#define COMMTRACE_DOCTOR_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct command {
    char program[PATH_MAX]; /* the file that the kernel loads */
    char script[PATH_MAX];  /* the last script on the way; empty: none */
    char via[PATH_MAX];     /* "a -> b -> c", for people */
    /* LD_PRELOAD and COMMTRACE_DIR as `env` leaves them, empty where it takes
     * them away; NULL: as they are. They point into argv or text. */
    const char *preload, *dir;
    char *words[64]; /* of env -S */
    char text[1024];
    size_t used;
};

/* 0, or the errno of what stands in the way, with the file in program. What
 * `env` does to COMMTRACE_* is done to this process's environment. */
int command_resolve(struct command *command, char *const argv[]);

#endif
