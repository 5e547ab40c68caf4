/* Graphs: lists of tasks that run again and again. */
#ifndef FABRIC_CUDA_GRAPH_H
#define FABRIC_CUDA_GRAPH_H

#include <stdint.h>

#include <cuda.h>

#include "common/engine.h"

CUgraph graph_new(void);
void graph_put(CUgraph graph);
uint64_t graph_id(CUgraph graph);
/* The graph then owns arg. */
CUresult graph_add(CUgraph graph, const struct fabric_task *task, void *arg);
/* Where the graph keeps its last node, NULL while it has none. */
const CUgraphNode *graph_last(CUgraph graph);

#endif
