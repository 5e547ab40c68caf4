/*
 * Variables that NCCL is to find in the environment while it sets itself up,
 * and nobody afterwards. They come in by one store of a pointer to a copied
 * environment, since setenv() crashes threads that are in getenv(), and go out
 * by another: the old pointer where nobody has changed anything meanwhile, else
 * a copy of what is there then, without them. What was published once stays
 * allocated, as somebody may be reading it.
 *
 * A variable that the program has itself is never published over.
 */
#ifndef SHIM_PUBLISH_H
#define SHIM_PUBLISH_H

#include <stdbool.h>

enum { PUBLICATION_TEXTS = 4 };

/* Lasts for ever, as its texts do. */
struct publication {
    const char *texts[PUBLICATION_TEXTS]; /* "NAME=value"; then NULL */
    bool is_up;                           /* from here on publish.c's */
    char marker[160];
};

/* True: they are in the environment, maybe since before. False, and nothing has
 * changed: the program has set one of them itself, or there is no memory. May
 * allocate and wait for a lock, but never for long. */
bool publish(struct publication *publication);

/* Out again; without effect where it is not there. */
void publish_end(struct publication *publication);

/* A process that was started while something was published inherits it: takes
 * it out, before the process has threads. */
void publish_clean(void);

#endif
