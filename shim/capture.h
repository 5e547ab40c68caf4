/*
 * Stream capture, as far as hooks ask about it. Nothing here disturbs one: the
 * driver allows these questions in every mode.
 */
#ifndef SHIM_CAPTURE_H
#define SHIM_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* True: what is launched on the stream now does not run but is captured, or
 * refused for a capture's sake. *graph is then CUDA's number of the capture,
 * or 0 where it has none to tell. */
bool capture_of(struct gpu *gpu, uint64_t stream, int64_t *graph);

/* The same for a stream of the thread's own context. */
int64_t capture_here(uint64_t stream);

/* The error of a call that a capture does not allow. */
bool capture_is_error(int error);

/* Between these, calls that a capture elsewhere would forbid do it no harm. */
int capture_relax(void);
void capture_restore(int mode);

#endif
