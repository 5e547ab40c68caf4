/* Numbers for what choices have in common: the rows of choice_class. */
#ifndef SHIM_CHOICE_CLASSES_H
#define SHIM_CHOICE_CLASSES_H

#include "batch.h"

enum { CHOICE_CLASSES = 1 << 12 };

struct choice_classes {
    struct row_choice_class entries[CHOICE_CLASSES]; /* id 0: free */
    unsigned used;
    int64_t last_id; /* every other number is given */
};

/* The number of a class, whose equal words are the same pointers; a new one is
 * added to the batch. Memory is bounded: a program with endlessly new classes
 * gets some of them twice. */
int64_t choice_classes_find(struct choice_classes *classes,
                            const struct row_choice_class *wanted,
                            struct batch *batch);

#endif
