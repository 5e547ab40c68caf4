/* Numbers for what ops have in common: the rows of op_class. */
#ifndef SHIM_CLASSES_H
#define SHIM_CLASSES_H

#include "batch.h"
#include "commtrace/ring.h"

struct class_entry {
    int64_t id; /* 0: free */
    uint32_t comm;
    uint32_t op;
    int32_t type;
    int32_t redop;
    int32_t peer;
    uint32_t stack; /* 0: none */
    uint64_t count;
    uint64_t stream;
    uint64_t site;
    int64_t graph;
};

enum { CLASSES = 1 << 16 };

struct classes {
    struct class_entry *entries; /* CLASSES of them */
    unsigned used;
    int64_t last_id;
    int64_t last; /* entry found last: neighbours are often alike */
};

int classes_init(struct classes *classes);
void classes_release(struct classes *classes);

/* The class of an op's slot; a new one is added to the batch. Memory is
 * bounded: a program with endlessly new classes gets some of them twice. */
int64_t classes_find(struct classes *classes, const struct ct_slot *slot,
                     struct batch *batch);

#endif
