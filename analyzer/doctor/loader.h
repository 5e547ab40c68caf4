/*
 * What the dynamic loader would load for a program: its own answer, as ldd
 * gives it. The loader maps files to find out, and runs nothing of them.
 */
#ifndef COMMTRACE_DOCTOR_LOADER_H
#define COMMTRACE_DOCTOR_LOADER_H

#include <stdbool.h>

#define LOADER_MOST 400

struct loader {
    char text[1 << 17];
    const char *paths[LOADER_MOST]; /* of libraries, the preloaded among them */
    int npaths;
    const char *missing; /* the first library that is not there; NULL: none */
    const char *trouble; /* what the loader complained of; NULL: nothing */
};

/* 0, or -1 where the loader could not be asked. preload may be NULL. */
int loader_list(struct loader *loader, const char *file, const char *preload);

/* The path of the first library whose file name starts so, or NULL. */
const char *loader_find(const struct loader *loader, const char *start);

#endif
