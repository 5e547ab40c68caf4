/*
 * Memory in stream order. There is one pool a device, and it keeps nothing:
 * an allocation is there at once, a release waits for its stream.
 */
#include <string.h>

#include "common/export.h"
#include "cudart/runtime.h"

struct CUmemPoolHandle_st {
    int device;
};

#define MAX_DEVICES 64

static struct CUmemPoolHandle_st pools[MAX_DEVICES];

static int is_pool(cudaMemPool_t pool)
{
    return pool >= pools && pool < pools + MAX_DEVICES;
}

static cudaError_t check(cudaMemPool_t pool)
{
    return runtime_result(is_pool(pool) ? CUDA_SUCCESS
                                        : CUDA_ERROR_INVALID_VALUE);
}

FABRIC_API cudaError_t cudaMallocAsync(void **ptr, size_t bytes,
                                       cudaStream_t stream)
{
    (void)stream;
    return cudaMalloc(ptr, bytes);
}

FABRIC_API cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    cudaError_t error = cudaStreamSynchronize(stream);

    return error ? error : cudaFree(ptr);
}

FABRIC_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool,
                                                   int device)
{
    CUdevice d;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuDeviceGet(&d, device);
    if (!rc)
        *pool = &pools[device];
    return runtime_result(rc);
}

/* Attributes up to the reuse rules are ints, the others 64 bits wide. */
FABRIC_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                               enum cudaMemPoolAttr attr,
                                               void *value)
{
    cudaError_t error = check(pool);

    if (!error)
        memset(value, 0, attr < cudaMemPoolAttrReleaseThreshold ? 4 : 8);
    return error;
}

FABRIC_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                               enum cudaMemPoolAttr attr,
                                               void *value)
{
    (void)attr;
    (void)value;
    return check(pool);
}

FABRIC_API cudaError_t cudaMemPoolSetAccess(
    cudaMemPool_t pool, const struct cudaMemAccessDesc *desc, size_t count)
{
    (void)desc;
    (void)count;
    return check(pool);
}

FABRIC_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool,
                                         size_t minBytesToKeep)
{
    (void)minBytesToKeep;
    return check(pool);
}
