/* Copies and fills: stream tasks that move host memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "common/clock.h"
#include "common/export.h"
#include "cuda/device.h"
#include "cuda/stream.h"

/* A copy takes 1 us plus this, about what a GPU's copy engine needs. */
#define COPY_START_NS 1000
#define COPY_BYTES_PER_NS 20

struct copy {
    void *dst;
    const void *src; /* NULL: fill with value */
    size_t bytes;
    uint32_t value;
    int width;
};

static void fill(const struct copy *copy)
{
    if (copy->width == 1) {
        memset(copy->dst, (int)copy->value, copy->bytes);
        return;
    }
    for (size_t i = 0; i < copy->bytes / sizeof(copy->value); i++)
        ((uint32_t *)copy->dst)[i] = copy->value;
}

static int64_t run_copy(void *arg, int64_t start_ns)
{
    struct copy *copy = arg;
    int64_t end_ns =
        start_ns + COPY_START_NS + (int64_t)(copy->bytes / COPY_BYTES_PER_NS);

    if (copy->src)
        memmove(copy->dst, copy->src, copy->bytes);
    else
        fill(copy);
    free(copy);
    fabric_sleep_until_ns(end_ns);
    return end_ns;
}

static CUresult push_copy(CUstream handle, struct copy given)
{
    struct copy *copy;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc || !given.bytes)
        return rc;
    if (!given.dst)
        return CUDA_ERROR_INVALID_VALUE;
    copy = malloc(sizeof(*copy));
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = given;
    rc = stream_push(s, run_copy, copy);
    if (rc)
        free(copy);
    return rc;
}

static CUresult copy_async(void *dst, const void *src, size_t bytes,
                           CUstream stream)
{
    if (bytes && !src)
        return CUDA_ERROR_INVALID_VALUE;
    return push_copy(stream, (struct copy){dst, src, bytes, 0, 1});
}

static CUresult copy_now(void *dst, const void *src, size_t bytes)
{
    CUresult rc = copy_async(dst, src, bytes, NULL);

    return rc ? rc : cuStreamSynchronize(NULL);
}

static CUresult fill_now(struct copy fill_copy)
{
    CUresult rc = push_copy(NULL, fill_copy);

    return rc ? rc : cuStreamSynchronize(NULL);
}

static void *at(CUdeviceptr ptr)
{
    return (void *)(uintptr_t)ptr;
}

FABRIC_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src,
                                  size_t bytes, CUstream stream)
{
    return copy_async(at(dst), at(src), bytes, stream);
}

FABRIC_API CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src,
                                      size_t bytes, CUstream stream)
{
    return copy_async(at(dst), src, bytes, stream);
}

FABRIC_API CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes,
                                      CUstream stream)
{
    return copy_async(dst, at(src), bytes, stream);
}

FABRIC_API CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src,
                                      size_t bytes, CUstream stream)
{
    return copy_async(at(dst), at(src), bytes, stream);
}

FABRIC_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(at(dst), at(src), bytes);
}

FABRIC_API CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes)
{
    return copy_now(at(dst), src, bytes);
}

FABRIC_API CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(dst, at(src), bytes);
}

FABRIC_API CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return copy_now(at(dst), at(src), bytes);
}

FABRIC_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value,
                                    size_t count, CUstream stream)
{
    return push_copy(stream, (struct copy){at(dst), NULL, count, value, 1});
}

FABRIC_API CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value,
                                     size_t count, CUstream stream)
{
    return push_copy(stream, (struct copy){at(dst), NULL, count * 4, value, 4});
}

FABRIC_API CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value,
                               size_t count)
{
    return fill_now((struct copy){at(dst), NULL, count, value, 1});
}

FABRIC_API CUresult cuMemsetD32(CUdeviceptr dst, unsigned int value,
                                size_t count)
{
    return fill_now((struct copy){at(dst), NULL, count * 4, value, 4});
}
