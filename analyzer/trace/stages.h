/*
 * The stages of ct_trace_open, in order. Each reads what the former filled in.
 */
#ifndef COMMTRACE_STAGES_H
#define COMMTRACE_STAGES_H

#include "trace/trace.h"

struct ct_arena;

enum ct_load_result {
    CT_LOADED,
    CT_FAILED,    /* error says "FILE: reason" */
    CT_OTHER_FILE /* a database of commtrace that is no trace: job.db */
};

/* What is read of a file: the ops of some communicators and what belongs to
 * them, nothing that they run on. */
struct ct_load_only {
    bool comms; /* not even ops: the process and its communicators */
    int nuids;
    const uint64_t *uids;
};

/* Reads one trace file into process; only: NULL for all of it; rows of a ring
 * that its process left are included. Strings and arrays belong to arena. */
enum ct_load_result ct_trace_load(const char *path,
                                  const struct ct_load_only *only,
                                  struct ct_arena *arena,
                                  struct ct_process *process, char *error,
                                  size_t error_size);

/* The ranks of a process that holds several of one communicator, each as a
 * process of its own; NULL and 1 where it holds one. */
struct ct_process *ct_trace_parts(const struct ct_process *process,
                                  struct ct_arena *arena, int *n_p);

/* trace->processes -> trace->jobs: members, nodes, domains, links. */
void ct_trace_join(struct ct_trace *trace);

/* Sets links and evidence of every communicator of job. */
void ct_job_links(const struct ct_trace *trace, struct ct_job *job);

/* Takes their duration from ops that an abort of their communicator ended, and
 * marks them CUT and RUNNING. */
void ct_trace_cut(struct ct_trace *trace, struct ct_job *job);

/* Ops of all ranks of job -> job->instances, op.instance; transfer and wait
 * where they do not depend on other instances. job->usages gets the keys. */
void ct_trace_match(struct ct_trace *trace, struct ct_job *job);

/* job->choices from the ranks that were told. */
void ct_trace_choices(struct ct_trace *trace, struct ct_job *job);

/* Puts the transfers of collectives right where ranks disturb each other. */
void ct_trace_locate(struct ct_trace *trace, struct ct_job *job);

/* Transfers of collectives in CUDA graphs, run by run. */
void ct_trace_replays(struct ct_trace *trace, struct ct_job *job);

/* Clears RUNNING from ops that later ones show to have finished; counts
 * job->in_flight. */
void ct_trace_settle(struct ct_trace *trace, struct ct_job *job);

/* Step boundaries per process, and how many all processes agree on. */
void ct_trace_steps(struct ct_trace *trace, struct ct_job *job);

/* Sums and samples of job->usages. */
void ct_trace_usage(struct ct_trace *trace, struct ct_job *job);

/* a + b for times >= 0 that may come from a hostile file. */
static inline int64_t ct_add_time(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The same of waits, which may be negative where a rank was late. */
static inline int64_t ct_add_wait(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

#endif
