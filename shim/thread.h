/*
 * What a thread carries between calls. The part in thread-local storage is
 * small and of the initial-exec model: no allocation at first use, and room in
 * the static block is scarce. The rest is a block of its own.
 */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include "real.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

struct comm;
struct ct_slot;
struct group;

/* Where a call comes from. */
struct hook_from {
    const void *site;   /* its return address */
    void *const *frame; /* of the function that it entered: the caller's frame,
                           where to return */
};

/* A group of an NCCL that no hook sees, see told.c. */
struct told_thread {
    struct ct_slot *slot; /* the op that is open; NULL: none */
    uint64_t position;
    uint64_t transfer; /* the first send or receive of the group; 0: none */
    int depth;         /* as NCCL says; 0: none is told */
};

struct thread {
    int depth; /* hooks entered and not left */
    /* Of the outermost of them: its frame, and where that returns to. */
    void *const *frame;
    void *link;
    struct comm *comm; /* the last one used: a cache, checked at each use */
    /* Per copy of NCCL, which knows nothing of the brackets of another. */
    int brackets[NCCL_COPIES]; /* ncclGroupStart not yet ended */
    /* Of the open one, obtained once; the last is told's. */
    struct group *group[NCCL_COPIES + 1];
    struct told_thread told;
    uintptr_t stack_start, stack_end; /* its own; 0: not asked for yet */
};

extern _Thread_local struct thread thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Around whatever of ours a thread might be cancelled in: the program's calls
 * are no cancellation points because of us, and our locks are given back. */
static inline int thread_hold_cancel(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void thread_allow_cancel(int before)
{
    pthread_setcancelstate(before, &before);
}

/* Around our locks: the same, and no handler that comes in and uses NCCL waits
 * for what its own thread holds. */
struct thread_hold {
    int cancel;
    sigset_t signals;
};

static inline void thread_hold(struct thread_hold *before)
{
    sigset_t all;
    sigfillset(&all);
    before->cancel = thread_hold_cancel();
    pthread_sigmask(SIG_SETMASK, &all, &before->signals);
}

static inline void thread_release(const struct thread_hold *before)
{
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
    thread_allow_cancel(before->cancel);
}

/* The calling thread's group block for a copy; NULL without memory. It goes
 * back to a list for the next thread when this one ends. */
struct group *thread_group(const struct nccl_copy *copy);
struct group *thread_told_group(void);

static inline int *thread_brackets(const struct nccl_copy *copy)
{
    return &thread_state.brackets[copy_number(copy)];
}

#endif
