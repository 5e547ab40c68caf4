/* Memory, copies and fills. */
#include <stdint.h>
#include <string.h>

#include "common/export.h"
#include "cudart/runtime.h"

static CUdeviceptr at(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

FABRIC_API cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    CUdeviceptr p = 0;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuMemAlloc(&p, bytes);
    if (!rc)
        *ptr = (void *)(uintptr_t)p;
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaFree(void *ptr)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemFree(at(ptr)));
}

FABRIC_API cudaError_t cudaHostAlloc(void **ptr, size_t bytes,
                                     unsigned int flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemHostAlloc(ptr, bytes, flags));
}

FABRIC_API cudaError_t cudaMallocHost(void **ptr, size_t bytes)
{
    return cudaHostAlloc(ptr, bytes, cudaHostAllocDefault);
}

FABRIC_API cudaError_t cudaFreeHost(void *ptr)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemFreeHost(ptr));
}

FABRIC_API cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemGetInfo(available, total));
}

FABRIC_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                                       enum cudaMemcpyKind kind,
                                       cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    if ((unsigned)kind > cudaMemcpyDefault)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    return runtime_result(rc ? rc
                             : cuMemcpyAsync(at(dst), at(src), bytes, stream));
}

FABRIC_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes,
                                  enum cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(dst, src, bytes, kind, NULL);

    return error ? error : runtime_result(cuStreamSynchronize(NULL));
}

FABRIC_API cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes,
                                       cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc
           : cuMemsetD8Async(at(dst), (unsigned char)value, bytes, stream));
}

FABRIC_API cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
    cudaError_t error = cudaMemsetAsync(dst, value, bytes, NULL);

    return error ? error : runtime_result(cuStreamSynchronize(NULL));
}

FABRIC_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice,
                                           const void *src, int srcDevice,
                                           size_t bytes, cudaStream_t stream)
{
    CUdevice device;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuDeviceGet(&device, dstDevice);
    if (!rc)
        rc = cuDeviceGet(&device, srcDevice);
    return runtime_result(rc ? rc
                             : cuMemcpyAsync(at(dst), at(src), bytes, stream));
}

FABRIC_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dstPitch,
                                         const void *src, size_t srcPitch,
                                         size_t width, size_t height,
                                         enum cudaMemcpyKind kind,
                                         cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = at(src),
        .srcPitch = srcPitch,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = at(dst),
        .dstPitch = dstPitch,
        .WidthInBytes = width,
        .Height = height,
    };
    CUresult rc = runtime_ready();

    if ((unsigned)kind > cudaMemcpyDefault || width > srcPitch ||
        width > dstPitch)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    return runtime_result(rc ? rc : cuMemcpy2DAsync(&copy, stream));
}

FABRIC_API cudaError_t cudaHostRegister(void *ptr, size_t bytes,
                                        unsigned int flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemHostRegister(ptr, bytes, flags));
}

FABRIC_API cudaError_t cudaHostUnregister(void *ptr)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemHostUnregister(ptr));
}

FABRIC_API cudaError_t cudaHostGetDevicePointer(void **device, void *ptr,
                                                unsigned int flags)
{
    CUdeviceptr p = 0;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuMemHostGetDevicePointer(&p, ptr, flags);
    if (!rc)
        *device = (void *)(uintptr_t)p;
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuMemHostGetFlags(flags, ptr));
}

/* An address that nobody knows is pageable memory, which is no error. */
FABRIC_API cudaError_t cudaPointerGetAttributes(
    struct cudaPointerAttributes *attributes, const void *ptr)
{
    unsigned type = 0;
    CUresult rc = runtime_ready();

    if (rc)
        return runtime_result(rc);
    memset(attributes, 0, sizeof(*attributes));
    attributes->device = -2;
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(ptr)))
        return cudaSuccess;
    cuPointerGetAttribute(&attributes->device,
                          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at(ptr));
    attributes->type = (enum cudaMemoryType)type;
    attributes->devicePointer = (void *)ptr;
    if (attributes->type == cudaMemoryTypeHost)
        attributes->hostPointer = (void *)ptr;
    return cudaSuccess;
}
