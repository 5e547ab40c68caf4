/*
 * A lock that hooks take on their rare paths. While it is held the thread is
 * not cancelled, so it is given back, and no signal handler runs: one that uses
 * NCCL might wait for what its own thread holds.
 */
#ifndef SHIM_LOCK_H
#define SHIM_LOCK_H

#include "thread.h"

struct lock {
    pthread_mutex_t mutex;
    struct thread_hold before; /* of the thread that holds it */
};

/* clang-format off */
#define LOCK_INITIALIZER {.mutex = PTHREAD_MUTEX_INITIALIZER}
/* clang-format on */

static inline void lock_take(struct lock *lock)
{
    struct thread_hold before;
    thread_hold(&before);
    pthread_mutex_lock(&lock->mutex);
    lock->before = before;
}

static inline void lock_give(struct lock *lock)
{
    struct thread_hold before = lock->before;
    pthread_mutex_unlock(&lock->mutex);
    thread_release(&before);
}

#endif
