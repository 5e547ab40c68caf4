/*
 * What the stand-in NCCL needs of the stand-in driver beyond the public API:
 * a stream task that says itself when it ended.
 *
 * A stream keeps the time of an ideal GPU: a task starts when the one before
 * it ended, or when it was issued, whichever is later, however late the worker
 * thread wakes up. So measured times are those of the described machine, not
 * those of a busy little host. Only when a worker is later than catch_up_ms
 * (a stopped process, a host that cannot keep up) does the stream's time jump.
 */
#ifndef FABRIC_ENGINE_H
#define FABRIC_ENGINE_H

#include <stdint.h>

#include <cuda.h>

/* Called on the stream's thread; returns the time at which it ended. */
typedef int64_t fabric_task_fn(void *arg, int64_t start_ns);

CUresult fabric_launch(CUstream stream, fabric_task_fn *run, void *arg);

#endif
