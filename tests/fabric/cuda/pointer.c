/* What the driver knows about an address. */
#include <stdint.h>

#include <cuda.h>

#include "common/export.h"
#include "cuda/device.h"
#include "cuda/memory.h"

static int is_host(const struct memory_block *block)
{
    return block->kind == MEMORY_HOST || block->kind == MEMORY_REGISTERED;
}

/* data is an int for every attribute below that is a yes or no. */
static CUresult tell(const struct memory_block *block, CUdeviceptr ptr,
                     CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = context_primary(block->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data =
            is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host(block))
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(uint64_t *)data = block->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = block->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = block->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(void **)data = NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(int *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        break;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

FABRIC_API CUresult cuPointerGetAttribute(void *data,
                                          CUpointer_attribute attribute,
                                          CUdeviceptr ptr)
{
    struct memory_block block;

    if (!data || !memory_find((uintptr_t)ptr, &block))
        return CUDA_ERROR_INVALID_VALUE;
    return tell(&block, ptr, attribute, data);
}

/* Of an unknown address every attribute is zero, and that is no error. */
FABRIC_API CUresult cuPointerGetAttributes(unsigned int count,
                                           CUpointer_attribute *attributes,
                                           void **data, CUdeviceptr ptr)
{
    struct memory_block block;
    int known = memory_find((uintptr_t)ptr, &block);

    for (unsigned i = 0; i < count; i++) {
        if (known && !tell(&block, ptr, attributes[i], data[i]))
            continue;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = -2;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED)
            *(int *)data[i] = 0;
        else
            *(void **)data[i] = NULL;
    }
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuPointerSetAttribute(const void *value,
                                          CUpointer_attribute attribute,
                                          CUdeviceptr ptr)
{
    struct memory_block block;

    if (!value || !memory_find((uintptr_t)ptr, &block))
        return CUDA_ERROR_INVALID_VALUE;
    return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

FABRIC_API CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size,
                                         CUdeviceptr ptr)
{
    struct memory_block block;

    if (!memory_find((uintptr_t)ptr, &block))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = block.start;
    if (size)
        *size = block.bytes;
    return CUDA_SUCCESS;
}
