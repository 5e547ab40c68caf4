/* Collectives with settings of their own (2.31), which change nothing here. */
#include <nccl_newer.h>

#include "nccl/api.h"

#define CONFIG_OP(name_, params_, args_)           \
    NCCL_API(ncclResult_t, name_##Config, params_) \
    {                                              \
        (void)config;                              \
        return pnccl##name_ args_;                 \
    }

CONFIG_OP(AllReduce,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, op, comm, stream))
CONFIG_OP(ReduceScatter,
          (const void *sendbuff, void *recvbuff, size_t recvcount,
           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, recvcount, datatype, op, comm, stream))
CONFIG_OP(AllGather,
          (const void *sendbuff, void *recvbuff, size_t sendcount,
           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
           const ncclCollConfig_t *config),
          (sendbuff, recvbuff, sendcount, datatype, comm, stream))
CONFIG_OP(Broadcast,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, root, comm, stream))
CONFIG_OP(Reduce,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, op, root, comm, stream))
CONFIG_OP(AlltoAll,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
           const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, comm, stream))
CONFIG_OP(Gather,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, root, comm, stream))
CONFIG_OP(Scatter,
          (const void *sendbuff, void *recvbuff, size_t count,
           ncclDataType_t datatype, int root, ncclComm_t comm,
           cudaStream_t stream, const ncclCollConfig_t *config),
          (sendbuff, recvbuff, count, datatype, root, comm, stream))
