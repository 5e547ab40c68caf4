/*
 * One process's trace: the ring's rows and what else belongs to them, flushed
 * to the database. Not a thread: the writer, tests and benchmarks drive it.
 */
#ifndef SHIM_TRACE_H
#define SHIM_TRACE_H

#include "config.h"
#include "gather.h"
#include "loss.h"
#include "nccl_rows.h"
#include "process.h"
#include "real.h"
#include "store.h"

struct trace {
    const struct config *config;
    const struct process *process;
    struct ring *ring;
    struct store store;
    struct gather gather;
    struct losses losses;
    struct nccl_rows *nccl; /* what NCCL's log says; NULL: no memory */
    bool failing;           /* the last write did not succeed */
    bool full;              /* the size limit is reached */
    bool removed;           /* somebody has deleted the database */
    int64_t looked_ns;      /* last look at the counters of lost slots */
    uint64_t seen_ops;      /* of those counters, what `losses` has */
    int64_t tied_ns;        /* last clock row without a device */
    int64_t rate_ns; /* since when gather.launches is counted for `auto` */
    uint64_t rate_launches;
    char tail[24];
    struct {
        bool told;
        char path[1024];
    } libraries[NCCL_COPIES];
    int told_libraries; /* so far, of those that no hook sees */
};

/* Opens the database and stores the first facts. 0 or -1, with nothing left. */
int trace_open(struct trace *trace, struct ring *ring,
               const struct config *config, const struct process *process,
               bool network);

/* Moves what is there into the database; force: calls in progress as well.
 * 0, or -1 when nothing could be written (it will be tried again). */
int trace_flush(struct trace *trace, bool force);

/* True while the GPU has not finished what was recorded. */
bool trace_waits(const struct trace *trace);

/* The last flush, the end of the process, a single file. The ring goes unless
 * something in it could not be stored. */
void trace_close(struct trace *trace);

#endif
