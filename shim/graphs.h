/*
 * Which ops a CUDA graph holds. A capture's ops carry CUDA's number of it; what
 * a graph or an executable graph holds is such a number, or a number of ours
 * for two of them together. Handles are CUDA's and used again, so each is
 * followed from its making to its end.
 */
#ifndef SHIM_GRAPHS_H
#define SHIM_GRAPHS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Handles for which there was no room: their launches are recorded without
 * their graph. */
extern _Atomic uint64_t graphs_untracked;

extern _Atomic bool graphs_in_use;

/* Some op has been captured. Before that no graph is of interest. */
static inline bool graphs_are_in_use(void)
{
    return atomic_load_explicit(&graphs_in_use, memory_order_acquire);
}

static inline void graphs_use(void)
{
    if (!atomic_load_explicit(&graphs_in_use, memory_order_relaxed))
        /* Release: with the driver's functions that told of the capture. */
        atomic_store_explicit(&graphs_in_use, true, memory_order_release);
}

/* What a graph or executable graph holds; 0: nothing known. Takes no lock. */
int64_t graphs_held(const void *handle);

/* The rest happens when graphs are made and takes a lock. */
void graphs_hold(const void *handle, int64_t graph); /* 0: forgets it */
void graphs_add(const void *handle, int64_t graph);

/* What a capture holds besides its own ops, and its end: all of it. */
void graphs_add_to_capture(int64_t capture, int64_t graph);
int64_t graphs_end_capture(int64_t capture);

#endif
