/* The words that NCCL uses to plugins. */
#ifndef FABRIC_NCCL_PROFILER_WORDS_H
#define FABRIC_NCCL_PROFILER_WORDS_H

#include <nccl.h>

#include "nccl/op.h"

static inline const char *word_of_kind(enum op_kind kind)
{
    static const char *const words[] = {
        [OP_ALL_REDUCE] = "AllReduce",
        [OP_REDUCE_SCATTER] = "ReduceScatter",
        [OP_ALL_GATHER] = "AllGather",
        [OP_BROADCAST] = "Broadcast",
        [OP_REDUCE] = "Reduce",
        [OP_SEND] = "Send",
        [OP_RECV] = "Recv",
    };

    return words[kind];
}

/* NCCL forgets one, up to 2.30.7 at least (ncclDatatypeToString() in
 * src/collectives.cc). */
static inline const char *word_of_type(ncclDataType_t type)
{
    static const char *const words[] = {
        "ncclInt8",    "Unknown",      "ncclInt32",      "ncclUint32",
        "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
        "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

    return words[type];
}

#endif
