/* Streams: a queue of tasks and a thread that works it off in order. */
#ifndef FABRIC_CUDA_STREAM_H
#define FABRIC_CUDA_STREAM_H

#include <stdint.h>

#include <cuda.h>

#include "common/engine.h"

struct capture;

/* The stream behind a handle: 0 is the current device's default stream. */
CUresult stream_resolve(CUstream handle, CUstream *stream);

/* Queues a task, or adds it to the stream's capture; keeps the legacy order
 * with the default stream. */
CUresult stream_push(CUstream stream, const struct fabric_task *task,
                     void *arg);
/* Queues a task with no regard to other streams or captures. */
CUresult stream_push_plain(CUstream stream, const struct fabric_task *task,
                           void *arg);

int stream_device(CUstream stream);
void stream_drain(CUstream stream);
void stream_drain_device(int device);

/* The capture that the stream takes part in, or NULL. */
struct capture *stream_capture(CUstream stream);
void stream_set_capture(CUstream stream, struct capture *capture);
/* All streams leave the capture. */
void stream_leave_capture(struct capture *capture);

#endif
