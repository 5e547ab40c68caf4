/*
 * One slot of the ring per call. record_enter() and record_leave() stand
 * around the real call in every wrapper; what they do on the way is all that a
 * traced program pays: no lock, no allocation, no system call. Exceptions: the
 * first call from a place (ways.h), a communicator's first use, a thread's
 * first bracket, two event records where the policy wants GPU times, and calls
 * that return ncclInProgress.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include "clock.h"
#include "comm.h"
#include "commtrace/ops.h"
#include "init.h"
#include "real.h"
#include "ring.h"

#include <stddef.h>

struct recorder {
    struct ring ring;
    int64_t t0_ns;
    uint64_t process; /* random, for names that are local to it */
    _Atomic uint64_t groups;
};

extern struct recorder recorder; /* valid while init_recording() */

struct call {
    enum ct_op op;
    enum ct_op_class class;
    int type;
    int redop;
    int peer;
    size_t count;
    const void *send;
    const void *recv;
    ncclComm_t comm;
    cudaStream_t stream;
    struct nccl_copy *copy;
    struct hook_from from;
    /* Between enter and leave. */
    struct comm *known;
    bool overtakes;       /* calls of its communicator were in progress */
    struct ct_slot *slot; /* NULL: not recorded */
    uint64_t position;
    int32_t events;
    int64_t graph; /* that it is captured into; 0: none */
};

void record_enter(struct call *call);
void record_leave(struct call *call, ncclResult_t result);

static inline int64_t record_now(void)
{
    return clock_ns() - recorder.t0_ns;
}

/* Whether we are inside the outermost hook, or that one never reached its end,
 * since a handler jumped out of it or an exception left it. Then its place on
 * the stack has been used again. */
static inline bool hook_is_within(const struct thread *thread,
                                  void *const *frame)
{
    ptrdiff_t below = (const char *)thread->frame - (const char *)frame;
    enum { NEAR = 1 << 20 }; /* else it is another stack, maybe gone */
    return below > 0 && below < NEAR && thread->frame[1] == thread->link;
}

static inline bool hook_is_outermost(void *const *frame)
{
    struct thread *thread = &thread_state;
    if (__builtin_expect(thread->depth != 0, 0) &&
        !hook_is_within(thread, frame))
        thread->depth = 0;
    if (thread->depth++ != 0)
        return false;
    thread->frame = frame;
    thread->link = frame[1];
    return true;
}

/* Enters a hook. True: the program's own call in a process that records.
 * hook_leave() follows in either case. */
static inline bool hook_enter(struct hook_from from)
{
    return hook_is_outermost(from.frame) && !real_is_nccl(from.site) &&
           init_recording();
}

/* The same for calls that say nothing worth beginning for. */
static inline bool hook_enter_quietly(struct hook_from from)
{
    return hook_is_outermost(from.frame) && !real_is_nccl(from.site);
}

static inline void hook_leave(void)
{
    /* 0 already: a handler on another stack took us for left. */
    if (thread_state.depth > 0)
        thread_state.depth--;
}

/* Slots of other kinds than op. A NULL slot is one that found no room: it was
 * counted, and leaving it does nothing. */
struct ct_slot *record_open(enum ct_slot_kind kind, uint32_t comm,
                            uint64_t *position);
void record_close(struct ct_slot *slot, uint64_t position, int64_t leave_ns,
                  int32_t result, int32_t events);

/* A slot for what is over: it is open and left in one go. */
void record_comm(const struct row_comm *row, uint32_t origin);
void record_graph(int64_t id, int64_t first, int64_t second);

/* What happens to a communicator, around the real call. */
struct event {
    struct comm *comm;
    struct ct_slot *slot;
    uint64_t position;
};
void event_enter(struct event *event, struct comm *comm,
                 enum ct_comm_event what);
void event_leave(struct event *event, ncclResult_t result);

#endif
