/*
 * Stream capture: what is pushed on a capturing stream joins a graph instead.
 *
 * A graph here is the list of its tasks in the order of capture, which is one
 * of the orders that its dependencies allow; a launch runs them in that order
 * on one stream.
 */
#ifndef FABRIC_CUDA_CAPTURE_H
#define FABRIC_CUDA_CAPTURE_H

#include <stdint.h>

#include <cuda.h>

#include "common/engine.h"

struct capture;

CUresult capture_add(struct capture *capture, const struct fabric_task *task,
                     void *arg);

/* A launch in a capture: a copy of the graph becomes part of it. */
CUresult capture_add_graph(struct capture *capture, CUgraph graph);

/* Unique in the process; 0 when the capture has been invalidated. */
uint64_t capture_id(struct capture *capture);

/* The stream waits for an event of capture id (0: of none): it joins that
 * capture, or the wait is an error that ends the one it is in. */
CUresult capture_join(CUstream stream, uint64_t id);

/* For calls that a running capture forbids, as an allocation or a wait: the
 * error, which invalidates the capture, or success. stream: the one that the
 * call waits for, or NULL. */
CUresult capture_forbid(CUstream stream);

#endif
