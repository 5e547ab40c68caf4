/*
 * Prints what a program's binary depends on in the CUDA and NCCL headers:
 * compiled with ours and with the toolkit's, it must print the same.
 */
#include <stddef.h>
#include <stdio.h>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nccl.h>

#define VALUE(value_)                \
    {                                \
#value_, (long long)(value_) \
    }

static const struct {
    const char *name;
    long long value;
} values[] = {
    VALUE(ncclNumResults),
    VALUE(ncclInProgress),
    VALUE(ncclInvalidUsage),
    VALUE(ncclAvg),
    VALUE(ncclNumOps),
    VALUE(ncclMaxRedOp),
    VALUE(ncclFloat16),
    VALUE(ncclBfloat16),
    VALUE(ncclFloat8e5m2),
    VALUE(ncclNumTypes),
    VALUE(ncclScalarHostImmediate),
    VALUE(sizeof(ncclUniqueId)),
    VALUE(sizeof(ncclRedOp_t)),
    VALUE(offsetof(ncclConfig_t, blocking)),
    VALUE(offsetof(ncclConfig_t, netName)),
    VALUE(offsetof(ncclConfig_t, splitShare)),
    VALUE(offsetof(ncclConfig_t, commName)),
    VALUE(offsetof(ncclConfig_t, shrinkShare)),
    VALUE(NCCL_SPLIT_NOCOLOR),
    VALUE(NCCL_CONFIG_UNDEF_INT),
    VALUE(NCCL_VERSION(2, 8, 4)),
    VALUE(NCCL_VERSION(2, 28, 9)),
    VALUE(cudaErrorInvalidValue),
    VALUE(cudaErrorMemoryAllocation),
    VALUE(cudaErrorNoDevice),
    VALUE(cudaErrorInvalidDevice),
    VALUE(cudaErrorInvalidResourceHandle),
    VALUE(cudaErrorNotReady),
    VALUE(cudaErrorNotSupported),
    VALUE(cudaMemcpyDefault),
    VALUE(cudaStreamNonBlocking),
    VALUE(cudaEventDisableTiming),
    VALUE(cudaDevAttrPciBusId),
    VALUE(cudaDevAttrPciDeviceId),
    VALUE(cudaDevAttrPciDomainId),
    VALUE(cudaStreamCaptureStatusActive),
    VALUE(CUDA_ERROR_NOT_INITIALIZED),
    VALUE(CUDA_ERROR_INVALID_CONTEXT),
    VALUE(CUDA_ERROR_INVALID_HANDLE),
    VALUE(CUDA_ERROR_NOT_FOUND),
    VALUE(CUDA_ERROR_NOT_READY),
    VALUE(CUDA_ERROR_NOT_SUPPORTED),
    VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
    VALUE(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED),
    VALUE(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED),
    VALUE(CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED),
    VALUE(CU_STREAM_NON_BLOCKING),
    VALUE(CU_EVENT_DISABLE_TIMING),
    VALUE(CU_STREAM_CAPTURE_MODE_RELAXED),
    VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE),
    VALUE(sizeof(CUuuid)),
    VALUE(sizeof(CUdevice)),
    VALUE(sizeof(CUdeviceptr)),
};

/* The functions' types: a mismatch is a compile error here. */
static CUresult (*const elapsed_time)(float *, CUevent,
                                      CUevent) = cuEventElapsedTime;
static CUresult (*const launch_host)(CUstream, CUhostFn,
                                     void *) = cuLaunchHostFunc;
static CUresult (*const p2p)(int *, CUdevice_P2PAttribute, CUdevice,
                             CUdevice) = cuDeviceGetP2PAttribute;
static ncclResult_t (*const init_config)(ncclComm_t *, int, ncclUniqueId, int,
                                         ncclConfig_t *) =
    ncclCommInitRankConfig;
static ncclResult_t (*const split)(ncclComm_t, int, int, ncclComm_t *,
                                   ncclConfig_t *) = ncclCommSplit;

int main(void)
{
    if (!elapsed_time || !launch_host || !p2p || !init_config || !split)
        return 1;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        printf("%s %lld\n", values[i].name, values[i].value);
    return 0;
}
