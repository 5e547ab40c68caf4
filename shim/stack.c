#include "stack.h"

#include "room.h"
#include "stack_table.h"
#include "thread.h"
#include "unwind.h"

#include <errno.h>
#include <stdio.h>

enum { DEPTH_MAX = 64 };

enum stacks_mode stack_mode;

void stack_init(enum stacks_mode mode, char *what, size_t size)
{
    snprintf(what, size, "off");
    stack_mode = STACKS_OFF;
    if (mode != STACKS_OFF && unwind_open(what, size))
        stack_mode = mode;
}

/* The frames are on the stack as well. */
static __attribute__((noinline)) uint32_t walk(const void *site, uintptr_t end)
{
    struct frame frames[DEPTH_MAX];
    bool cut;
    size_t n = unwind_walk(site, end, frames, DEPTH_MAX, &cut);
    if (!n)
        return CT_STACK_NO_ROOM;
    uint32_t number = stack_table_add(frames, n, cut);
    return number ? number : CT_STACK_NO_TABLE;
}

__attribute__((noinline)) uint32_t stack_take(const void *site)
{
    struct thread_hold hold;
    int saved = errno;
    thread_hold(&hold);
    uint32_t number = CT_STACK_NO_ROOM;
    uintptr_t end =
        room_end((uintptr_t)&saved,
                 UNWIND_STACK_BYTES + DEPTH_MAX * sizeof(struct frame));
    if (end)
        number = walk(site, end);
    thread_release(&hold);
    errno = saved;
    return number;
}

/* One of the communicator's stacks, before it is taken. */
static bool reserve(struct comm *comm)
{
    uint32_t n = atomic_load_explicit(&comm->nstacks, memory_order_relaxed);
    while (n < COMM_STACKS)
        if (atomic_compare_exchange_weak_explicit(&comm->nstacks, &n, n + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* False: another thread was first with the key. There is always a free place:
 * only who has reserved one comes here. */
static bool insert(struct comm *comm, uint64_t key, uint32_t number)
{
    for (unsigned i = 0; i < COMM_STACK_PLACES; i++) {
        _Atomic uint64_t *place =
            &comm->stacks[((key >> 57) + i) % COMM_STACK_PLACES];
        uint64_t known = 0;
        /* Release: the stack was written before its number appears. */
        if (atomic_compare_exchange_strong_explicit(place, &known, key | number,
                                                    memory_order_release,
                                                    memory_order_relaxed))
            return true;
        if ((known & ~(uint64_t)CT_STACK_MASK) == key)
            return false;
    }
    return false;
}

__attribute__((noinline)) uint32_t stack_first(struct comm *comm, uint64_t key,
                                               const void *site)
{
    if (!reserve(comm))
        return CT_STACK_NO_MORE;
    uint32_t number = stack_take(site);
    /* Another thread may have more room than this one. */
    if (number == CT_STACK_NO_ROOM || !insert(comm, key, number))
        atomic_fetch_sub_explicit(&comm->nstacks, 1, memory_order_relaxed);
    return number;
}
