/*
 * What an ncclGroupStart/End bracket collects. NCCL launches nothing before
 * the outermost end, so the GPU times of its ops are those of the bracket: one
 * interval per communicator and stream.
 */
#ifndef SHIM_GROUP_H
#define SHIM_GROUP_H

#include "comm.h"

#include <stdbool.h>
#include <stdint.h>

struct group_target { /* a communicator and stream that the bracket uses */
    struct comm *comm;
    uint64_t stream;
    uint32_t comm_id; /* comm may be destroyed before the bracket ends */
    uint32_t nops;
    uint32_t flags;
    int32_t events;
    int64_t graph; /* that its ops are captured into; 0: none */
    struct ct_slot *slot;
    uint64_t position;
};

struct group_birth { /* a communicator asked for inside the bracket */
    ncclComm_t *made;
    ncclComm_t made_at_once; /* while it waits: what *made was, if set early */
    ncclComm_t parent;       /* that reports success; NULL: the new one does */
    struct comm_birth birth;
    uint64_t number; /* while it waits: which one it is */
    bool taken;      /* while it waits: a thread is entering it */
};

enum { GROUP_TARGETS = 128 };

/* Calls that were not timed since their bracket used more. */
extern _Atomic uint64_t group_untimed;

struct group {
    uint64_t id; /* op.grp; 0: no op yet */
    bool timed;  /* chosen by the policy for its first op */
    unsigned ntargets;
    unsigned last; /* target of the latest op */
    unsigned nbirths, births_room;
    struct group_birth *births;
    struct group *next; /* while unused */
    struct group_target targets[GROUP_TARGETS];
};

/* The bracket is over: the block is ready for the next one. */
static inline void group_reset(struct group *group)
{
    group->id = 0;
    group->ntargets = group->nbirths = 0;
}

/* The bracket's entry for a communicator and stream; NULL: too many. */
struct group_target *group_target(struct group *group, struct comm *comm,
                                  uint64_t stream);

/* Around the real outermost ncclGroupEnd; or the call that ends a group without
 * launching it. */
void group_launch_begin(struct group *group);
void group_simulate_begin(struct group *group);
void group_launch_end(struct group *group, ncclResult_t result);

#endif
