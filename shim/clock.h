/* Readings of the clocks in nanoseconds; both are vDSO calls. */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

static inline int64_t clock_real_ns(void)
{
    return clock_read(CLOCK_REALTIME);
}

#endif
