/* Devices: which there are, what they are like, which one is current. */
#include <string.h>

#include "common/export.h"
#include "cudart/runtime.h"

FABRIC_API cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult rc;

    *count = 0;
    rc = runtime_init();
    if (!rc)
        rc = cuDeviceGetCount(count);
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaGetDevice(int *device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxGetDevice(device));
}

FABRIC_API cudaError_t cudaSetDevice(int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : runtime_use_device(device));
}

FABRIC_API cudaError_t cudaDeviceGetAttribute(int *value,
                                              enum cudaDeviceAttr attr,
                                              int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc
           : cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

FABRIC_API cudaError_t cudaDeviceGetPCIBusId(char *busId, int len, int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuDeviceGetPCIBusId(busId, len, device));
}

FABRIC_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuDeviceCanAccessPeer(can, device, peer));
}

FABRIC_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    int device = 0;
    int can = 0;
    cudaError_t error = cudaGetDevice(&device);

    if (error)
        return error;
    if (flags)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    error = cudaDeviceCanAccessPeer(&can, device, peer);
    if (error || can)
        return error;
    return runtime_result(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

FABRIC_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least,
                                                        int *greatest)
{
    return runtime_result(cuCtxGetStreamPriorityRange(least, greatest));
}

FABRIC_API cudaError_t cudaDeviceSynchronize(void)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxSynchronize());
}

FABRIC_API cudaError_t cudaDeviceReset(void)
{
    CUdevice device;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuCtxGetDevice(&device);
    return runtime_result(rc ? rc : cuDevicePrimaryCtxReset(device));
}

FABRIC_API cudaError_t cudaInitDevice(int device, unsigned int deviceFlags,
                                      unsigned int flags)
{
    CUcontext ctx;
    CUresult rc = runtime_init();

    (void)deviceFlags;
    (void)flags;
    return runtime_result(rc ? rc : cuDevicePrimaryCtxRetain(&ctx, device));
}

FABRIC_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *busId)
{
    CUresult rc = runtime_init();

    return runtime_result(rc ? rc : cuDeviceGetByPCIBusId(device, busId));
}

FABRIC_API cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    (void)flags;
    return cudaSuccess;
}

FABRIC_API cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxGetFlags(flags));
}

FABRIC_API cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxGetLimit(value, (CUlimit)limit));
}

FABRIC_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxSetLimit((CUlimit)limit, value));
}

FABRIC_API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    (void)config;
    return cudaSuccess;
}

/* Where an attribute of the driver is found among the properties. */
#define INT_AT(member_, attribute_)               \
    {                                             \
        offsetof(struct cudaDeviceProp, member_), \
            CU_DEVICE_ATTRIBUTE_##attribute_, 0   \
    }
#define SIZE_AT(member_, attribute_)              \
    {                                             \
        offsetof(struct cudaDeviceProp, member_), \
            CU_DEVICE_ATTRIBUTE_##attribute_, 1   \
    }

static const struct {
    size_t offset;
    CUdevice_attribute attribute;
    int is_size;
} properties[] = {
    SIZE_AT(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    INT_AT(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    INT_AT(warpSize, WARP_SIZE),
    SIZE_AT(memPitch, MAX_PITCH),
    INT_AT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    INT_AT(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    INT_AT(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    INT_AT(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    INT_AT(maxGridSize[0], MAX_GRID_DIM_X),
    INT_AT(maxGridSize[1], MAX_GRID_DIM_Y),
    INT_AT(maxGridSize[2], MAX_GRID_DIM_Z),
    SIZE_AT(totalConstMem, TOTAL_CONSTANT_MEMORY),
    INT_AT(major, COMPUTE_CAPABILITY_MAJOR),
    INT_AT(minor, COMPUTE_CAPABILITY_MINOR),
    SIZE_AT(textureAlignment, TEXTURE_ALIGNMENT),
    INT_AT(multiProcessorCount, MULTIPROCESSOR_COUNT),
    INT_AT(integrated, INTEGRATED),
    INT_AT(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    INT_AT(concurrentKernels, CONCURRENT_KERNELS),
    INT_AT(pciBusID, PCI_BUS_ID),
    INT_AT(pciDeviceID, PCI_DEVICE_ID),
    INT_AT(pciDomainID, PCI_DOMAIN_ID),
    INT_AT(asyncEngineCount, ASYNC_ENGINE_COUNT),
    INT_AT(unifiedAddressing, UNIFIED_ADDRESSING),
    INT_AT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    INT_AT(l2CacheSize, L2_CACHE_SIZE),
    INT_AT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    INT_AT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    SIZE_AT(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    INT_AT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    INT_AT(managedMemory, MANAGED_MEMORY),
    INT_AT(cooperativeLaunch, COOPERATIVE_LAUNCH),
    SIZE_AT(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    INT_AT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    SIZE_AT(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    INT_AT(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
};

static CUresult fill_properties(struct cudaDeviceProp *prop, int device)
{
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        char *at = (char *)prop + properties[i].offset;
        int value = 0;

        if (!rc)
            rc = cuDeviceGetAttribute(&value, properties[i].attribute, device);
        if (properties[i].is_size)
            *(size_t *)at = (size_t)value;
        else
            *(int *)at = value;
    }
    return rc;
}

FABRIC_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop,
                                               int device)
{
    CUresult rc = runtime_ready();

    memset(prop, 0, sizeof(*prop));
    if (!rc)
        rc = cuDeviceGetName(prop->name, sizeof(prop->name), device);
    if (!rc)
        rc = cuDeviceGetUuid(&prop->uuid, device);
    if (!rc)
        rc = cuDeviceTotalMem(&prop->totalGlobalMem, device);
    return runtime_result(rc ? rc : fill_properties(prop, device));
}
