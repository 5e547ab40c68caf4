/* Reduction operators that a user made of a communicator: PreMulSum. */
#ifndef FABRIC_NCCL_REDOP_H
#define FABRIC_NCCL_REDOP_H

#include <nccl.h>

struct op;

struct premul {
    int in_use;
    ncclDataType_t type;
    double factor;
    const void *scalar; /* on the device, read when an op runs */
};

/* Checks the operator of an op and notes its factor in it. */
ncclResult_t redop_resolve(struct op *op);

#endif
