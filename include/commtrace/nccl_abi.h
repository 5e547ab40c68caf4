/*
 * The part of NCCL's and CUDA's ABI that a wrapper has to know, in our own
 * words: handles are opaque, enumerations are int-sized, only the unique id
 * is passed by value. tests/unit/nccl_abi_check.c proves it against nccl.h
 * wherever one is found.
 */
#ifndef COMMTRACE_NCCL_ABI_H
#define COMMTRACE_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct ncclWindow *ncclWindow_t;
typedef struct ct_nccl_config ncclConfig_t;
typedef struct ct_nccl_coll_config ncclCollConfig_t;
typedef struct ct_nccl_sim_info ncclSimInfo_t;
typedef struct ct_nccl_wait_signal_desc ncclWaitSignalDesc_t;
typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;

#define CT_NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[CT_NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

#define CT_NCCL_SPLIT_NOCOLOR (-1)
#define CT_NCCL_SHRINK_ABORT 1
#define CT_NCCL_CONFIG_MAGIC 0xcafebeef

/* The head of ncclConfig_t up to the communicator's name (2.27). The struct
 * grows with releases and carries its own size: read no member that it is too
 * short for. */
struct ct_nccl_config {
    size_t size;
    unsigned int magic; /* CT_NCCL_CONFIG_MAGIC, or NCCL refuses it */
    unsigned int version;
    int blocking; /* 2.14 */
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share; /* 2.18 */
    int traffic_class;
    const char *comm_name; /* 2.27 */
};

#endif
