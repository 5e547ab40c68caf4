/*
 * GPU times from pairs of events around a call on its own stream. Events are
 * made when a communicator is, never beside a running NCCL kernel; hooks take
 * pairs from a free list without a lock, the writer reads and returns them.
 */
#ifndef SHIM_GPUTIME_H
#define SHIM_GPUTIME_H

#include <stdbool.h>
#include <stdint.h>

struct gpu; /* a device and context with its events */

enum gpu_read { GPU_DONE, GPU_PENDING, GPU_FAILED };

/* The events for the current communicator's device, made or enlarged now;
 * NULL: there is no driver, or the device cannot be timed. */
struct gpu *gpu_prepare(int device);

/* The device of the thread's context; -1: not known. */
int gpu_current(void);

/* Hooks. A pair is named by a number; -1: none was free. */
int32_t gpu_start(struct gpu *gpu, uint64_t stream);
void gpu_stop(int32_t pair, uint64_t stream);
/* From a thread that may have no context. False: the stream is gone. */
bool gpu_stop_elsewhere(int32_t pair, uint64_t stream);
void gpu_drop(int32_t pair);

/* The writer. Times are CLOCK_MONOTONIC. GPU_DONE and GPU_FAILED return the
 * pair. */
enum gpu_read gpu_read(int32_t pair, int64_t *start_ns, int64_t *gpu_ns);

struct gpu_anchor {
    int device;
    int64_t at_ns;
    int64_t real_ns;
    int64_t width_ns;
};

/* Ties the GPUs' clocks to the host's where the last tie is old; fills at most
 * n anchors and returns their number. */
int gpu_tie(struct gpu_anchor *anchors, int n);

/* Calls that found no free pair so far. */
uint64_t gpu_exhausted(void);

/* Communicators whose device could not be timed so far. */
uint64_t gpu_untimed(void);

/* True while a pool is nearly used up: the writer should look sooner. */
bool gpu_scarce(void);

/* No driver call after this: it is being torn down. */
void gpu_end(void);

#endif
