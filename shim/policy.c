#include "policy.h"

enum { SHIFT_MAX = 16 };

_Atomic unsigned policy_shift = POLICY_OFF;

void policy_set(struct timing timing)
{
    unsigned shift = timing.mode == TIMING_OFF ? POLICY_OFF : timing.shift;
    atomic_store_explicit(&policy_shift, shift, memory_order_relaxed);
}

bool policy_adapt(struct timing timing, uint64_t calls, int64_t elapsed_ns)
{
    if (timing.mode != TIMING_AUTO || elapsed_ns <= 0)
        return false;
    double rate = (double)calls * 1e9 / (double)elapsed_ns;
    unsigned before = atomic_load_explicit(&policy_shift, memory_order_relaxed);
    if (before >= POLICY_OFF)
        return false;
    unsigned shift = before;
    while (shift < SHIFT_MAX && rate / (1 << shift) > POLICY_TIMED_PER_S)
        shift++;
    /* Down only with a margin, or it would flip at the bound. */
    while (shift > 0 && 4 * rate / (1 << (shift - 1)) < POLICY_TIMED_PER_S)
        shift--;
    atomic_store_explicit(&policy_shift, shift, memory_order_relaxed);
    return shift != before;
}
