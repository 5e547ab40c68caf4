/*
 * Rows that are stored before all of it is known: of calls that have not
 * returned, and of ops that the GPU has not finished. They are replaced later.
 */
#ifndef SHIM_UNFINISHED_H
#define SHIM_UNFINISHED_H

#include "batch.h"
#include "gputime.h"

struct unfinished { /* a stored row that will be replaced */
    struct row row;
    uint64_t position;
    uint64_t stream;
    int32_t events;
};

struct unfinished_list {
    struct unfinished *items;
    size_t n, room;
};

/* The columns that op and launch have in common. */
struct timing_columns {
    int64_t enter_ns;
    int64_t *host_ns;
    int64_t *gpu_off_ns;
    int64_t *gpu_ns;
    int64_t *flags;
};

struct timing_columns timing_of(struct row *row);

void unfinished_keep(struct unfinished_list *list,
                     const struct unfinished *item);

/* Fills in what the call's events say; t0_ns is where enter_ns counts from. */
enum gpu_read unfinished_read(struct unfinished *call, int64_t t0_ns);

/* Moves what the GPU has finished from the list into the batch. */
void unfinished_poll(struct unfinished_list *list, int64_t t0_ns,
                     struct batch *batch);

#endif
