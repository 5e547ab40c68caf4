/* The communication calls: arguments are checked as NCCL checks them, then the
 * op joins the thread's group. */
#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/fault.h"
#include "nccl/group.h"
#include "nccl/launch.h"
#include "nccl/op.h"
#include "nccl/redop.h"
#include "nccl/reduce.h"
#include "nccl/release.h"

static int has_root(const struct op *op)
{
    return op->kind == OP_BROADCAST || op->kind == OP_REDUCE || op_is_p2p(op) ||
           op_is_rma(op);
}

static int reduces(const struct op *op)
{
    return op->kind == OP_ALL_REDUCE || op->kind == OP_REDUCE_SCATTER ||
           op->kind == OP_REDUCE;
}

size_t op_bytes(const struct op *op)
{
    int all = op->kind == OP_ALL_GATHER || op->kind == OP_REDUCE_SCATTER;

    return op->count * type_bytes(op->type) *
           (all ? (size_t)op->comm->nranks : 1);
}

int op_comes_before(const struct op *a, const struct op *b)
{
    if (op_is_p2p(a) || op_is_p2p(b))
        return !op_is_p2p(a) && op_is_p2p(b);
    return op_bytes(a) > op_bytes(b);
}

ncclResult_t op_check(struct op *op, const char *call)
{
    ncclResult_t result = comm_check_ready(op->comm);

    if (result)
        return result;
    if (atomic_load(&op->comm->revoked))
        return nccl_fail(ncclInvalidUsage, "%s: communicator is revoked", call);
    if (op->comm->suspended)
        return nccl_fail(ncclInvalidUsage, "%s: communicator is suspended",
                         call);
    if (op->comm->finalized)
        return nccl_fail(ncclInvalidArgument, "%s: communicator is finalized",
                         call);
    if (has_root(op) && (op->peer < 0 || op->peer >= op->comm->nranks))
        return nccl_fail(ncclInvalidArgument, "%s: rank %d of %d", call,
                         op->peer, op->comm->nranks);
    if ((unsigned)op->type >= (unsigned)nccl_release_types())
        return nccl_fail(ncclInvalidArgument, "%s: data type %d", call,
                         (int)op->type);
    return reduces(op) ? redop_resolve(op) : ncclSuccess;
}

/* Empty collectives are dropped; those of one rank do not wait for the end of
 * the group. An empty send is a message like any other. */
static ncclResult_t enqueue(struct op *op, const char *call)
{
    ncclResult_t result = op_check(op, call);

    if (!result)
        result = fault_strike(op->comm);
    if (result)
        return group_fail(result);
    if (op_is_p2p(op))
        return group_add_op(op);
    if (!op->count)
        return ncclSuccess;
    if (op->comm->nranks == 1)
        return launch_ops(op, 1);
    return group_add_op(op);
}

/* Of a communicator that does not block NCCL asks its own public function. A
 * helper may be done by then, but the answer is to be the same every time. */
static ncclResult_t issue(struct op *op, const char *call)
{
    ncclResult_t result = enqueue(op, call), state = ncclSuccess;

    if ((result == ncclSuccess || result == ncclInProgress) &&
        !op->comm->blocking)
        ncclCommGetAsyncError(op->comm, &state);
    return result == ncclSuccess ? state : result;
}

NCCL_API(ncclResult_t, AllReduce,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
          cudaStream_t stream))
{
    return issue(&(struct op){.kind = OP_ALL_REDUCE,
                              .send = sendbuff,
                              .recv = recvbuff,
                              .count = count,
                              .type = datatype,
                              .redop = op,
                              .comm = comm,
                              .stream = stream},
                 "AllReduce");
}

NCCL_API(ncclResult_t, ReduceScatter,
         (const void *sendbuff, void *recvbuff, size_t recvcount,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
          cudaStream_t stream))
{
    return issue(&(struct op){.kind = OP_REDUCE_SCATTER,
                              .send = sendbuff,
                              .recv = recvbuff,
                              .count = recvcount,
                              .type = datatype,
                              .redop = op,
                              .comm = comm,
                              .stream = stream},
                 "ReduceScatter");
}

NCCL_API(ncclResult_t, AllGather,
         (const void *sendbuff, void *recvbuff, size_t sendcount,
          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))
{
    return issue(&(struct op){.kind = OP_ALL_GATHER,
                              .send = sendbuff,
                              .recv = recvbuff,
                              .count = sendcount,
                              .type = datatype,
                              .comm = comm,
                              .stream = stream},
                 "AllGather");
}

NCCL_API(ncclResult_t, Broadcast,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    return issue(&(struct op){.kind = OP_BROADCAST,
                              .send = sendbuff,
                              .recv = recvbuff,
                              .count = count,
                              .type = datatype,
                              .peer = root,
                              .comm = comm,
                              .stream = stream},
                 "Broadcast");
}

/* By its public name, as in the real library: a tool in front sees the inner
 * call as well. */
NCCL_API(ncclResult_t, Bcast,
         (void *buff, size_t count, ncclDataType_t datatype, int root,
          ncclComm_t comm, cudaStream_t stream))
{
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

NCCL_API(ncclResult_t, Reduce,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    return issue(&(struct op){.kind = OP_REDUCE,
                              .send = sendbuff,
                              .recv = recvbuff,
                              .count = count,
                              .type = datatype,
                              .redop = op,
                              .peer = root,
                              .comm = comm,
                              .stream = stream},
                 "Reduce");
}

/* Older releases put a group of their own about each, by its public name. */
static ncclResult_t issue_p2p(struct op *op, const char *call)
{
    ncclResult_t result, end;

    if (!nccl_release_groups_p2p())
        return issue(op, call);
    result = ncclGroupStart();
    if (result)
        return result;
    result = issue(op, call);
    end = ncclGroupEnd();
    return end ? end : result;
}

NCCL_API(ncclResult_t, Send,
         (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
          ncclComm_t comm, cudaStream_t stream))
{
    return issue_p2p(&(struct op){.kind = OP_SEND,
                                  .send = sendbuff,
                                  .count = count,
                                  .type = datatype,
                                  .peer = peer,
                                  .comm = comm,
                                  .stream = stream},
                     "Send");
}

NCCL_API(ncclResult_t, Recv,
         (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
          ncclComm_t comm, cudaStream_t stream))
{
    return issue_p2p(&(struct op){.kind = OP_RECV,
                                  .recv = recvbuff,
                                  .count = count,
                                  .type = datatype,
                                  .peer = peer,
                                  .comm = comm,
                                  .stream = stream},
                     "Recv");
}

/*
 * AlltoAll, Gather and Scatter are groups of sends and receives. They count as
 * one op: a fault strikes before the group, not inside it.
 */
struct exchange {
    const char *send;
    char *recv;
    size_t count;
    ncclDataType_t type;
    ncclComm_t comm;
    cudaStream_t stream;
};

static ncclResult_t exchange_check(const struct exchange *x, int root,
                                   const char *call)
{
    struct op op = {.kind = OP_BROADCAST,
                    .count = x->count,
                    .type = x->type,
                    .peer = root,
                    .comm = x->comm};
    ncclResult_t result = op_check(&op, call);

    if (!result)
        result = fault_strike(x->comm);
    return result ? group_fail(result) : ncclSuccess;
}

static void add_send(const struct exchange *x, int peer, int share)
{
    size_t bytes = x->count * type_bytes(x->type);

    group_add_op(&(struct op){.kind = OP_SEND,
                              .send = x->send + (size_t)share * bytes,
                              .count = x->count,
                              .type = x->type,
                              .peer = peer,
                              .comm = x->comm,
                              .stream = x->stream});
}

static void add_recv(const struct exchange *x, int peer, int share)
{
    size_t bytes = x->count * type_bytes(x->type);

    group_add_op(&(struct op){.kind = OP_RECV,
                              .recv = x->recv + (size_t)share * bytes,
                              .count = x->count,
                              .type = x->type,
                              .peer = peer,
                              .comm = x->comm,
                              .stream = x->stream});
}

NCCL_API(ncclResult_t, AlltoAll,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))
{
    struct exchange x = {sendbuff, recvbuff, count, datatype, comm, stream};
    ncclResult_t result = exchange_check(&x, 0, "AlltoAll");

    if (result || !count)
        return result;
    group_start();
    for (int i = 0; i < comm->nranks; i++) {
        add_send(&x, i, i);
        add_recv(&x, i, i);
    }
    return group_end();
}

NCCL_API(ncclResult_t, Gather,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    struct exchange x = {sendbuff, recvbuff, count, datatype, comm, stream};
    ncclResult_t result = exchange_check(&x, root, "Gather");

    if (result || !count)
        return result;
    group_start();
    add_send(&x, root, 0);
    for (int i = 0; i < comm->nranks && comm->rank == root; i++)
        add_recv(&x, i, i);
    return group_end();
}

NCCL_API(ncclResult_t, Scatter,
         (const void *sendbuff, void *recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    struct exchange x = {sendbuff, recvbuff, count, datatype, comm, stream};
    ncclResult_t result = exchange_check(&x, root, "Scatter");

    if (result || !count)
        return result;
    group_start();
    for (int i = 0; i < comm->nranks && comm->rank == root; i++)
        add_send(&x, i, i);
    add_recv(&x, root, 0);
    return group_end();
}
