/*
 * Call sites: which stack a call came from. With `first` a stack is taken once
 * per return address, communicator, operation and count, since a framework
 * calls NCCL from one address; later calls find it by a look-up. That first
 * time is an exception from the rule of what a hook may do: it walks the stack,
 * waits for others that do, and for those who load or unload modules (but not
 * for constructors in a dlopen(), which may wait for us).
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include "comm.h"
#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern enum stacks_mode stack_mode; /* in force; set before recording begins */

/* Makes ready for mode. what: the library in use, or why there is none. */
void stack_init(enum stacks_mode mode, char *what, size_t size);

uint32_t stack_take(const void *site);
uint32_t stack_first(struct comm *comm, uint64_t key, const void *site);

/* The stack of a call: its number, 0 where none is wanted, or a CT_STACK_*
 * where there is none although it is. comm->stacks holds keys with numbers. */
static inline uint32_t stack_of(struct comm *comm, const void *site,
                                uint32_t op, uint64_t count)
{
    if (stack_mode != STACKS_FIRST)
        return stack_mode == STACKS_OFF ? 0 : stack_take(site);
    /* Sums of odd multiples differ in their upper bits, which are what counts
     * here, for all pairs but those that were made to. */
    uint64_t key = ((uintptr_t)site * 0x9e3779b97f4a7c15u +
                    count * 0xc2b2ae3d27d4eb4fu + ((uint64_t)op << 57)) &
                   ~(uint64_t)CT_STACK_MASK;
    for (unsigned i = 0; i < COMM_STACK_PLACES; i++) {
        /* Acquire: who sees our slot, with this number, sees the stack. */
        uint64_t known = atomic_load_explicit(
            &comm->stacks[((key >> 57) + i) % COMM_STACK_PLACES],
            memory_order_acquire);
        if (!known)
            break;
        if ((known & ~(uint64_t)CT_STACK_MASK) == key)
            return (uint32_t)(known & CT_STACK_MASK);
    }
    return stack_first(comm, key, site);
}

#endif
