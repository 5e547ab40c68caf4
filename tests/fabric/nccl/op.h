/* One NCCL operation, from its call to its end on a stream. */
#ifndef FABRIC_NCCL_OP_H
#define FABRIC_NCCL_OP_H

#include <stddef.h>
#include <stdint.h>

#include <nccl.h>

enum op_kind {
    OP_ALL_REDUCE,
    OP_REDUCE_SCATTER,
    OP_ALL_GATHER,
    OP_BROADCAST,
    OP_REDUCE,
    OP_SEND,
    OP_RECV,
    OP_PUT, /* with or without bytes, and a signal */
    OP_WAIT
};

struct op {
    enum op_kind kind;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t redop;
    int peer; /* or root */
    ncclComm_t comm;
    cudaStream_t stream;
    double factor;      /* of a PreMulSum; multiplied in before the sum */
    const void *scalar; /* or where the factor will be when the op runs */
    int premul;
    struct {
        uint32_t window; /* its number; 0: none */
        uint64_t offset;
        int index, context;
        int times; /* signals to wait for */
    } signal;
    struct {
        int mask;           /* what a plugin wants to know of it */
        void *call, *group; /* the plugin's */
    } profiled;
};

static inline int op_is_p2p(const struct op *op)
{
    return op->kind == OP_SEND || op->kind == OP_RECV;
}

static inline int op_is_rma(const struct op *op)
{
    return op->kind == OP_PUT || op->kind == OP_WAIT;
}

/* Message size, as NCCL counts it. */
size_t op_bytes(const struct op *op);

/* In a launch of NCCL's: collectives by size, large ones first; then sends and
 * receives. */
int op_comes_before(const struct op *a, const struct op *b);

/* Whether its arguments, and its communicator's state, allow it. */
ncclResult_t op_check(struct op *op, const char *call);

/* Runs a collective; *time_ns is its start, then its end; -1 when aborted. */
int collective_run(const struct op *op, int64_t *time_ns);

#endif
