/* Streams: a queue of tasks and a thread that works it off in order. */
#ifndef FABRIC_CUDA_STREAM_H
#define FABRIC_CUDA_STREAM_H

#include <stdint.h>

#include <cuda.h>

#include "common/engine.h"

/* The stream behind a handle: 0 is the current device's default stream. */
CUresult stream_resolve(CUstream handle, CUstream *stream);

/* Queues a task; keeps the legacy order with the default stream. */
CUresult stream_push(CUstream stream, fabric_task_fn *run, void *arg);
/* Queues a task with no regard to other streams. */
CUresult stream_push_plain(CUstream stream, fabric_task_fn *run, void *arg);

int stream_device(CUstream stream);
void stream_drain(CUstream stream);
void stream_drain_device(int device);

#endif
