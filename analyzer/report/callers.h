/*
 * Who calls NCCL: the stacks of a job's ops. One that several ranks have is one
 * caller, told by the files and offsets of its frames.
 */
#ifndef COMMTRACE_REPORT_CALLERS_H
#define COMMTRACE_REPORT_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

struct caller {
    int process, stack; /* one of its ranks, and its stack there */
    int64_t calls;      /* over all ranks; replays of graphs included */
    uint64_t bytes;     /* sum of message sizes S */
    int64_t transfer_ns, wait_ns;
    int64_t timed;           /* ops that they are known of */
    bool kinds[CT_OP_COUNT]; /* operations, as called */
    int *ranks;              /* ascending */
    int nranks, capacity;
};

struct callers {
    struct caller *of; /* worst first: most time, then bytes, then calls */
    int n, capacity;
    int64_t unknown; /* calls whose stack was not taken, or not stored */
};

/* Of one rank of the job, or of all (CT_NONE). callers_release() takes a zeroed
 * one as well. */
void callers_find(struct callers *callers, const struct ct_trace *trace,
                  const struct ct_job *job, int rank);
void callers_release(struct callers *callers);

#endif
