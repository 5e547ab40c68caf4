/*
 * A small nccl.h in our own words: the names, values and signatures of the
 * public NCCL host API (2.4 up to 2.28) that the stand-in library offers and
 * the sample jobs use. Programs that compile with this header compile
 * unchanged with NVIDIA's and run on either library.
 */
#ifndef FABRIC_NCCL_H
#define FABRIC_NCCL_H

#include <limits.h>
#include <stddef.h>

#include <cuda_runtime.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION(X, Y, Z)                          \
    (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) \
                            : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 22809

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff >> (32 - 8 * (int)sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
    ncclScalarDevice = 0,
    ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01

/* Grows with nearly every release; size says how much the caller knows. */
typedef struct ncclConfig_v22800 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                               \
    {                                                         \
        sizeof(ncclConfig_t), 0xcafebeef,                     \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT      \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime;
} ncclSimInfo_t;

#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SIM_INFO_INITIALIZER                                              \
    {                                                                          \
        sizeof(ncclSimInfo_t), 0x74685283,                                     \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT \
    }

/* Every call exists twice: ncclX, which tools may replace, and pncclX. */
#define FABRIC_NCCL(ret_, name_, params_) \
    ret_ nccl##name_ params_;             \
    ret_ pnccl##name_ params_;

FABRIC_NCCL(ncclResult_t, GetVersion, (int *version))
FABRIC_NCCL(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId))
FABRIC_NCCL(const char *, GetErrorString, (ncclResult_t result))
FABRIC_NCCL(const char *, GetLastError, (ncclComm_t comm))
FABRIC_NCCL(ncclResult_t, MemAlloc, (void **ptr, size_t size))
FABRIC_NCCL(ncclResult_t, MemFree, (void *ptr))

FABRIC_NCCL(ncclResult_t, CommInitRank,
            (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank))
FABRIC_NCCL(ncclResult_t, CommInitRankConfig,
            (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
             ncclConfig_t *config))
FABRIC_NCCL(ncclResult_t, CommInitAll,
            (ncclComm_t * comm, int ndev, const int *devlist))
FABRIC_NCCL(ncclResult_t, CommSplit,
            (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
             ncclConfig_t *config))
FABRIC_NCCL(ncclResult_t, CommInitRankScalable,
            (ncclComm_t * newcomm, int nranks, int myrank, int nId,
             ncclUniqueId *commIds, ncclConfig_t *config))
FABRIC_NCCL(ncclResult_t, CommShrink,
            (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags))
FABRIC_NCCL(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags))
FABRIC_NCCL(ncclResult_t, CommFinalize, (ncclComm_t comm))
FABRIC_NCCL(ncclResult_t, CommDestroy, (ncclComm_t comm))
FABRIC_NCCL(ncclResult_t, CommAbort, (ncclComm_t comm))
FABRIC_NCCL(ncclResult_t, CommGetAsyncError,
            (ncclComm_t comm, ncclResult_t *asyncError))
FABRIC_NCCL(ncclResult_t, CommCount, (const ncclComm_t comm, int *count))
FABRIC_NCCL(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device))
FABRIC_NCCL(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank))
FABRIC_NCCL(ncclResult_t, CommRegister,
            (const ncclComm_t comm, void *buff, size_t size, void **handle))
FABRIC_NCCL(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))
FABRIC_NCCL(ncclResult_t, CommWindowRegister,
            (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
             int winFlags))
FABRIC_NCCL(ncclResult_t, CommWindowDeregister,
            (ncclComm_t comm, ncclWindow_t win))

FABRIC_NCCL(ncclResult_t, RedOpCreatePreMulSum,
            (ncclRedOp_t * op, void *scalar, ncclDataType_t datatype,
             ncclScalarResidence_t residence, ncclComm_t comm))
FABRIC_NCCL(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))

FABRIC_NCCL(ncclResult_t, Reduce,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Bcast,
            (void *buff, size_t count, ncclDataType_t datatype, int root,
             ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Broadcast,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, AllReduce,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, ReduceScatter,
            (const void *sendbuff, void *recvbuff, size_t recvcount,
             ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, AllGather,
            (const void *sendbuff, void *recvbuff, size_t sendcount,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, AlltoAll,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Gather,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Scatter,
            (const void *sendbuff, void *recvbuff, size_t count,
             ncclDataType_t datatype, int root, ncclComm_t comm,
             cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Send,
            (const void *sendbuff, size_t count, ncclDataType_t datatype,
             int peer, ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, Recv,
            (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
             ncclComm_t comm, cudaStream_t stream))
FABRIC_NCCL(ncclResult_t, GroupStart, (void))
FABRIC_NCCL(ncclResult_t, GroupEnd, (void))
FABRIC_NCCL(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo))

#undef FABRIC_NCCL

#ifdef __cplusplus
}
#endif
#endif
