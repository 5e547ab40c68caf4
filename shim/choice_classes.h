/* Numbers for what choices have in common: the rows of choice_class. */
#ifndef SHIM_CHOICE_CLASSES_H
#define SHIM_CHOICE_CLASSES_H

#include "batch.h"
#include "profiler.h"

enum { CHOICE_CLASSES = 1 << 12, CHOICE_WORDS = 64 };

struct choice_classes {
    struct row_choice_class entries[CHOICE_CLASSES]; /* id 0: free */
    unsigned used;
    int64_t last_id;
    char words[CHOICE_WORDS][PROFILER_WORD];
};

/* The class of an event; a new one is added to the batch. Memory is bounded: a
 * program with endlessly new classes gets some of them twice. */
int64_t choice_classes_find(struct choice_classes *classes, int64_t comm,
                            const struct profiler_event *event,
                            struct batch *batch);

#endif
