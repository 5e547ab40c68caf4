#include "nccl/redop.h"

#include <stdlib.h>

#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/op.h"
#include "nccl/reduce.h"
#include "nccl/release.h"

/* A free entry of the communicator's table, which grows; NULL: no memory. */
static struct premul *free_entry(struct ncclComm *comm)
{
    struct premul *grown;

    for (int i = 0; i < comm->premuls; i++) {
        if (!comm->premul[i].in_use)
            return &comm->premul[i];
    }
    grown = realloc(comm->premul, (size_t)(comm->premuls + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    comm->premul = grown;
    return &comm->premul[comm->premuls++];
}

static struct premul *entry_of(struct ncclComm *comm, ncclRedOp_t op)
{
    int index = (int)op - ncclNumOps;

    if (index < 0 || index >= comm->premuls || !comm->premul[index].in_use)
        return NULL;
    return &comm->premul[index];
}

NCCL_API(ncclResult_t, RedOpCreatePreMulSum,
         (ncclRedOp_t * op, void *scalar, ncclDataType_t datatype,
          ncclScalarResidence_t residence, ncclComm_t comm))
{
    ncclResult_t result = comm_check(comm);
    struct premul *entry;

    if (result)
        return result;
    if (!op || !scalar ||
        (unsigned)datatype >= (unsigned)nccl_release_types() ||
        (unsigned)residence > ncclScalarHostImmediate)
        return nccl_fail(ncclInvalidArgument, "RedOpCreatePreMulSum");
    pthread_mutex_lock(&comm->lock);
    entry = free_entry(comm);
    if (entry) {
        *entry = (struct premul){.in_use = 1, .type = datatype};
        if (residence == ncclScalarHostImmediate)
            entry->factor = number_read(scalar, datatype);
        else
            entry->scalar = scalar;
        *op = (ncclRedOp_t)(ncclNumOps + (int)(entry - comm->premul));
    }
    pthread_mutex_unlock(&comm->lock);
    return entry ? ncclSuccess : ncclSystemError;
}

NCCL_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))
{
    ncclResult_t result = comm_check(comm);
    struct premul *entry;

    if (result)
        return result;
    pthread_mutex_lock(&comm->lock);
    entry = entry_of(comm, op);
    if (entry)
        entry->in_use = 0;
    pthread_mutex_unlock(&comm->lock);
    return entry ? ncclSuccess
                 : nccl_fail(ncclInvalidArgument, "RedOpDestroy: operator %d",
                             (int)op);
}

ncclResult_t redop_resolve(struct op *op)
{
    struct premul *entry;

    if ((unsigned)op->redop < (unsigned)nccl_release_redops())
        return ncclSuccess;
    pthread_mutex_lock(&op->comm->lock);
    entry = entry_of(op->comm, op->redop);
    if (entry && entry->type == op->type) {
        op->premul = 1;
        op->factor = entry->factor;
        op->scalar = entry->scalar;
    }
    pthread_mutex_unlock(&op->comm->lock);
    return op->premul
               ? ncclSuccess
               : nccl_fail(ncclInvalidArgument, "operator %d", (int)op->redop);
}
