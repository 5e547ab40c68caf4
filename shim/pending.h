/*
 * Calls on communicators that do not block: they return ncclInProgress, and
 * what they ask for happens later on a thread of NCCL's. Their end, and the
 * stop event of their GPU time, come when the communicator's state says so, on
 * whatever thread the program asks for it.
 */
#ifndef SHIM_PENDING_H
#define SHIM_PENDING_H

#include "comm.h"

struct pending {
    struct comm *comm;
    struct ct_slot *slot;
    uint64_t position;
    uint64_t stream;
    int32_t events; /* -1: no GPU time */
};

/* Keeps a call; false: there is no memory, it ends now. Takes a lock, and may
 * allocate: only for calls that NCCL has given to a thread. */
bool pending_keep(const struct pending *call);

/* Of blocking communicators this is all. */
static inline bool pending_any(const struct comm *comm)
{
    return atomic_load_explicit(&comm->pending, memory_order_relaxed) > 0;
}

/* comm has left ncclInProgress, and nothing was issued on it since. */
void pending_settle(struct comm *comm, ncclResult_t state);

/* Nobody asked in time: the calls kept so far end now, without GPU times. */
void pending_give_up(struct comm *comm);

#endif
