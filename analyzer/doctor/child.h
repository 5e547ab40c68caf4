/* Questions that are better asked in a process of their own: a library or an
 * interpreter may crash, print or hang. */
#ifndef COMMTRACE_DOCTOR_CHILD_H
#define COMMTRACE_DOCTOR_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* Runs argv with more variables, "NAME=value" (NULL: none), and takes what it
 * prints: on stdout, or where both is set on stderr as well. Returns the exit
 * status, or -1. */
int child_read(const char *const argv[], const char *const env[], bool both,
               char *text, size_t size);

struct answer {
    bool loaded;
    bool has_symbol;
    int status;      /* what the function returned */
    int value;       /* what it wrote */
    int devices;     /* of a driver; -1: not asked, or it failed */
    char path[1024]; /* of the file that was loaded */
    char error[256]; /* why it was not */
};

/* Loads a library and calls its int function(int *), if it has it. */
void child_ask(const char *library, const char *function,
               struct answer *answer);

/* The same of a libcuda, which says how many devices it has. */
void child_ask_driver(const char *library, struct answer *answer);

#endif
