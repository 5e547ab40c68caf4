/*
 * The public calls of NCCL 2.29 to 2.32 that the stand-in offers, for programs
 * that compile with an older nccl.h, be it ours or a toolkit's.
 */
#ifndef FABRIC_NCCL_NEWER_H
#define FABRIC_NCCL_NEWER_H

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FABRIC_NCCL(ret_, name_, params_) \
    ret_ nccl##name_ params_;             \
    ret_ pnccl##name_ params_;

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
typedef struct {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;

FABRIC_NCCL(ncclResult_t, CommGetUniqueId,
            (ncclComm_t comm, ncclUniqueId *uniqueId))
FABRIC_NCCL(ncclResult_t, CommGrow,
            (ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
             int rank, ncclComm_t *newcomm, ncclConfig_t *config))
FABRIC_NCCL(ncclResult_t, PutSignal,
            (const void *localbuff, size_t count, ncclDataType_t datatype,
             int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx,
             int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Signal,
            (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, WaitSignal,
            (int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
             cudaStream_t stream))
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 7)
#define NCCL_SUSPEND_MEM 0x01

FABRIC_NCCL(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags))
FABRIC_NCCL(ncclResult_t, CommResume, (ncclComm_t comm))
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 2)
typedef struct ncclCollConfig ncclCollConfig_t;

FABRIC_NCCL(ncclResult_t, AllReduceConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, ReduceScatterConfig,
            (const void *sendbuff, void *recvbuff, size_t recvcount,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, AllGatherConfig,
            (const void *sendbuff, void *recvbuff, size_t sendcount,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
             const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, BroadcastConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, ReduceConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, AlltoAllConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
             const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, GatherConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
FABRIC_NCCL(ncclResult_t, ScatterConfig,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream, const ncclCollConfig_t *config))
#endif

#undef FABRIC_NCCL

#ifdef __cplusplus
}
#endif
#endif
