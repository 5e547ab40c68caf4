/*
 * NCCL's side of a profiler plugin: which one it loads, what it tells of
 * communicators, calls, launches and kernels, and in which order (NCCL's
 * profiler.cc, enqueue.cc and group.cc at the tags of releases.def).
 *
 * One plugin per process. Handles are the plugin's own: after the last stop of
 * an event NCCL has no more use for its handle, but the parent of a captured
 * op is passed again at each launch of its graph.
 */
#ifndef FABRIC_NCCL_PROFILER_H
#define FABRIC_NCCL_PROFILER_H

#include <stdint.h>

#include "commtrace/profiler_abi.h"

struct ncclComm;
struct op;

/* Of a communicator that the plugin was told of. */
struct profiled {
    int told;
    int nodes;
    int plans; /* launches whose kernels are not told yet */
    void *context;
    uint64_t number[8]; /* next of each kind of op */
};

/* All ranks are there; nobody uses it any more. */
void profiler_comm_begin(struct ncclComm *comm);
void profiler_comm_end(struct ncclComm *comm);
void profiler_comm_close(struct ncclComm *comm); /* no kernel is left to tell */

/* The plugin's mask; 0: nobody listens. */
int profiler_mask(void);

/* Ways to the plugin, in the words of version 5. */
void profiler_start(struct ncclComm *comm, void **handle,
                    struct ct_profiler_event_v5 *event);
void profiler_record(void *handle, int state, union ct_profiler_args *args);
void profiler_stop(void *handle);
/* It is told of calls, not of launches alone. */
int profiler_is_told_of_calls(void);

/* An op joins its thread's group; the outermost end of it, and after that. */
void profiler_call(struct op *op, int depth);
void profiler_group_ends(void);
void profiler_group_ended(void);

/*
 * What is launched together. A plan is held by the thread that launches and by
 * the stream that runs it. NULL, which all of these take: nobody listens.
 */
struct plan;
struct plan *profiler_plan(struct op *ops, int n);
void profiler_plan_drop(struct plan *plan); /* it was not launched */
void profiler_launching(struct plan *plan);
void profiler_launched(struct plan *plan); /* on the stream */
void profiler_captured(struct plan *plan); /* or in a graph */
/* The graph runs: on a thread of the driver's. */
struct plan *profiler_replay(struct op *ops, int n);

/* On the GPU: an op of the plan began, and ended; then the whole did. */
void profiler_began(struct plan *plan, int op, int64_t at_ns);
void profiler_ended(struct plan *plan, int op, int64_t at_ns);
void profiler_finished(struct plan *plan);

#endif
