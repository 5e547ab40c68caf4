/* What NCCL's search of the topology says an algorithm can use. */
#ifndef FABRIC_NCCL_GRAPH_H
#define FABRIC_NCCL_GRAPH_H

#include "nccl/transport.h"
#include "nccl/tuning.h"

struct ncclComm;

/* As in NCCL's log. */
enum pattern { PATTERN_BALANCED_TREE = 1, PATTERN_RING = 4, PATTERN_NVLS = 5 };

struct graph {
    enum pattern pattern;
    int channels;
    double intra_GBps, inter_GBps; /* of a channel */
    enum path intra, inter;        /* worst ways: between GPUs, and to NICs */
};

struct graph graph_of(struct ncclComm *comm, enum algorithm algorithm);

#endif
