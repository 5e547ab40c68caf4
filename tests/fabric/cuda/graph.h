/* Graphs: lists of tasks that run again and again. */
#ifndef FABRIC_CUDA_GRAPH_H
#define FABRIC_CUDA_GRAPH_H

#include <cuda.h>

#include "common/engine.h"

CUgraph graph_new(void);
void graph_get(CUgraph graph);
void graph_put(CUgraph graph);
/* The same tasks, now; NULL without memory. */
CUgraph graph_copy(CUgraph graph);
/* A copy of child becomes part of the graph. */
CUresult graph_add_child(CUgraph graph, CUgraph child);
/* The same kinds of tasks in the same order. */
int graph_is_alike(CUgraph a, CUgraph b);
/* Queues all tasks on a stream that captures nothing. */
CUresult graph_queue(CUgraph graph, CUstream stream);
/* The graph then owns arg. */
CUresult graph_add(CUgraph graph, const struct fabric_task *task, void *arg);
/* Where the graph keeps its last node, NULL while it has none. */
const CUgraphNode *graph_last(CUgraph graph);

#endif
