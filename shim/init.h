/*
 * Whether this process records. Nothing but the options of start.h exists
 * before its first NCCL call, and nothing of ours runs in a forked child: the
 * word asked here is on a page that fork() hands to the child as zeroes.
 */
#ifndef SHIM_INIT_H
#define SHIM_INIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic(_Atomic uint32_t *) init_live;

_Atomic uint32_t *init_begin(void);

/* Begins at the first question. */
static inline bool init_recording(void)
{
    _Atomic uint32_t *live =
        atomic_load_explicit(&init_live, memory_order_acquire);
    if (!live)
        live = init_begin();
    return atomic_load_explicit(live, memory_order_relaxed) != 0;
}

/* Does not begin. */
static inline bool init_has_begun(void)
{
    _Atomic uint32_t *live =
        atomic_load_explicit(&init_live, memory_order_acquire);
    return live && atomic_load_explicit(live, memory_order_relaxed) != 0;
}

/* Forward everything from now on. */
void init_stop(void);

#endif
