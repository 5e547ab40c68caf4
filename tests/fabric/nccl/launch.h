/* Ops become stream tasks. */
#ifndef FABRIC_NCCL_LAUNCH_H
#define FABRIC_NCCL_LAUNCH_H

#include <nccl.h>

struct op;

/* All ops are of one communicator and stream; they are one launch. */
ncclResult_t launch_ops(const struct op *ops, int n);

#endif
