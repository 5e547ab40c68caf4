/*
 * The graph of send/recv between processes, whatever communicators carry it:
 * where its components are simple paths, they are pipelines.
 */
#ifndef COMMTRACE_CHAINS_H
#define COMMTRACE_CHAINS_H

#include "trace/trace.h"

/* The part of a process's ops that is looked at: a few steady steps, or the
 * head of everything where no step was found. Returns how many windows (at most
 * CT_WINDOWS). */
#define CT_WINDOWS 3
struct ct_window {
    int first, last;          /* ops, inclusive */
    int64_t start_ns, end_ns; /* CT_NO_TIME: not a step */
};
int ct_windows(const struct ct_process *process,
               struct ct_window windows[CT_WINDOWS]);

/* How often op ran per window, if one of windows has it; what graphs ran in
 * steps is not in these. */
double ct_window_runs(const struct ct_process *process,
                      const struct ct_window *window, int op);

/* The next ops from `from` on that were captured into one graph and ran in
 * steps, as a window with runs per step; returns where to go on, or CT_NONE. */
int ct_captured_window(const struct ct_process *process, int from,
                       struct ct_window *window, double *runs_p);

enum ct_chain_shape {
    CT_CHAIN_PATH,     /* stages in a row */
    CT_CHAIN_CYCLE,    /* every rank has two neighbours */
    CT_CHAIN_TOGETHER, /* two ranks that only ever exchange at once */
    CT_CHAIN_OTHER
};

struct ct_chain {
    enum ct_chain_shape shape;
    int nranks;
    bool both_ways; /* every boundary is crossed in both directions */
};

struct ct_chains {
    int nprocesses; /* of the trace */
    int *chain;     /* per process: index in chains; CT_NONE: no send/recv */
    int *stage;     /* per process: place in its path, 0 first; CT_NONE */
    int n;
    struct ct_chain *chains;
    int npaths, stages;   /* paths, and their usual length; 0: none */
    uint64_t payload;     /* bytes of the messages that carry most */
    double micro_batches; /* such messages per step, boundary and direction;
                             without steps: 0 */
};

/* Per communicator: its send/recv is an all-to-all in disguise (most brackets
 * reach every rank, or the own one). NULL without memory; the caller frees. */
bool *ct_exchanges(const struct ct_trace *trace, const struct ct_job *job);

/* Returns 0, or -1 without memory. */
int ct_chains_find(const struct ct_trace *trace, const struct ct_job *job,
                   const bool *exchanges, struct ct_chains *chains);
void ct_chains_release(struct ct_chains *chains);

#endif
