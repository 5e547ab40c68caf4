/*
 * Which calls get GPU times. The choice is a hash of what all ranks know of a
 * call, so they choose alike, and no period of the program matches it. A
 * larger shift chooses a subset of a smaller one's choice.
 */
#ifndef SHIM_POLICY_H
#define SHIM_POLICY_H

#include "config.h"
#include "hash.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define POLICY_OFF 64u

/* `auto` times at most so many calls a second, give or take a power of two:
 * two event records and their reading cost a few microseconds. */
#define POLICY_TIMED_PER_S 4000

extern _Atomic unsigned policy_shift; /* POLICY_OFF: none */

/* who: identity of the communicator, and what of it the ordinal counts. */
static inline bool policy_wants(uint64_t who, uint64_t ordinal)
{
    unsigned shift = atomic_load_explicit(&policy_shift, memory_order_relaxed);
    if (shift == 0)
        return true;
    if (shift >= POLICY_OFF)
        return false;
    return (hash_add(who, ordinal) & ((UINT64_C(1) << shift) - 1)) == 0;
}

void policy_set(struct timing timing);

/* Tells `auto` how many calls there were; true: the shift has changed. */
bool policy_adapt(struct timing timing, uint64_t calls, int64_t elapsed_ns);

#endif
