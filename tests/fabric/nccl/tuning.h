/*
 * Which algorithm, protocol and channels NCCL would use for an op: what the log
 * prints and the profiler plugin is told. The data path is the ring's whatever
 * is chosen here.
 */
#ifndef FABRIC_NCCL_TUNING_H
#define FABRIC_NCCL_TUNING_H

#include "nccl/op.h"

enum algorithm {
    ALGORITHM_TREE,
    ALGORITHM_RING,
    ALGORITHM_COLLNET_DIRECT,
    ALGORITHM_COLLNET_CHAIN,
    ALGORITHM_NVLS,
    ALGORITHM_NVLS_TREE,
    ALGORITHM_PAT,
    ALGORITHMS
};

enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOLS };

struct fabric_choice {
    enum algorithm algorithm;
    enum protocol protocol;
    const char *algorithm_name; /* "RING"; NULL for send and recv */
    const char *protocol_name;  /* "SIMPLE" */
    int first_channel;
    int channels;
    int warps; /* of each channel's block */
    double us; /* what NCCL's model says it takes */
};

/* For an op of a communicator with more than one rank. */
struct fabric_choice fabric_choose(const struct op *op);

#endif
