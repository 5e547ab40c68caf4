/*
 * Copies and fills: stream tasks that move host memory. What comes from
 * pageable memory is taken at the call, as a GPU takes it into a staging
 * buffer; what goes there is there when the call returns.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "common/clock.h"
#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

/* A copy takes 1 us plus this, about what a GPU's copy engine needs. */
#define COPY_START_NS 1000
#define COPY_BYTES_PER_NS 20

struct copy {
    void *dst;
    const void *src; /* NULL: fill with value */
    size_t bytes;    /* of a row */
    size_t rows;
    size_t dst_pitch;
    size_t src_pitch;
    uint32_t value;
    int width;
    char staged[]; /* what was in pageable memory */
};

static void fill(const struct copy *copy)
{
    if (copy->width == 1) {
        memset(copy->dst, (int)copy->value, copy->bytes);
        return;
    }
    if (copy->width == 2) {
        for (size_t i = 0; i < copy->bytes / sizeof(uint16_t); i++)
            ((uint16_t *)copy->dst)[i] = (uint16_t)copy->value;
        return;
    }
    for (size_t i = 0; i < copy->bytes / sizeof(copy->value); i++)
        ((uint32_t *)copy->dst)[i] = copy->value;
}

static void move(const struct copy *copy)
{
    for (size_t i = 0; i < copy->rows; i++)
        memmove((char *)copy->dst + i * copy->dst_pitch,
                (const char *)copy->src + i * copy->src_pitch, copy->bytes);
}

static int64_t run_copy(void *arg, int64_t start_ns)
{
    const struct copy *copy = arg;
    int64_t end_ns = start_ns + COPY_START_NS +
                     (int64_t)(copy->bytes * copy->rows / COPY_BYTES_PER_NS);

    if (copy->src)
        move(copy);
    else
        fill(copy);
    fabric_sleep_until_ns(end_ns);
    return end_ns;
}

static const struct fabric_task copy_task = {run_copy, free, NULL};

static int is_pageable(const void *ptr)
{
    struct memory_block block;

    return !memory_find((uintptr_t)ptr, &block);
}

/* A copy of what is given, with the pageable source in it. */
static struct copy *stage(const struct copy *given)
{
    int pageable = given->src && is_pageable(given->src);
    size_t bytes = pageable ? given->bytes * given->rows : 0;
    struct copy *copy = malloc(sizeof(*copy) + bytes);

    if (!copy)
        return NULL;
    memcpy(copy, given, sizeof(*given));
    if (!pageable)
        return copy;
    copy->dst = copy->staged;
    copy->dst_pitch = given->bytes;
    move(copy);
    copy->src = copy->staged;
    copy->src_pitch = given->bytes;
    copy->dst = given->dst;
    copy->dst_pitch = given->dst_pitch;
    return copy;
}

static CUresult push_copy(CUstream handle, const struct copy *given)
{
    struct copy *copy;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc || !given->bytes || !given->rows)
        return rc;
    if (!given->dst)
        return CUDA_ERROR_INVALID_VALUE;
    copy = stage(given);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = stream_push(s, &copy_task, copy);
    if (rc)
        free(copy);
    else if (is_pageable(given->dst) && !stream_capture(s))
        stream_drain(s);
    return rc;
}

static CUresult copy_async(void *dst, const void *src, size_t bytes,
                           CUstream stream)
{
    if (bytes && !src)
        return CUDA_ERROR_INVALID_VALUE;
    return push_copy(
        stream,
        &(struct copy){.dst = dst, .src = src, .bytes = bytes, .rows = 1});
}

static CUresult fill_async(void *dst, uint32_t value, int width, size_t count,
                           CUstream stream)
{
    return push_copy(stream, &(struct copy){.dst = dst,
                                            .bytes = count * (size_t)width,
                                            .rows = 1,
                                            .value = value,
                                            .width = width});
}

/* What waits for the default stream would wait for the capture, too. */
static CUresult copy_now(void *dst, const void *src, size_t bytes)
{
    CUresult rc = capture_forbid(NULL);

    if (!rc)
        rc = copy_async(dst, src, bytes, NULL);
    return rc ? rc : cuStreamSynchronize(NULL);
}

static CUresult fill_now(void *dst, uint32_t value, int width, size_t count)
{
    CUresult rc = fill_async(dst, value, width, count, NULL);

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

FABRIC_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context,
                                      CUdeviceptr src, CUcontext src_context,
                                      size_t bytes, CUstream stream)
{
    if (!context_is_known(dst_context) || !context_is_known(src_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_async(at(dst), at(src), bytes, stream);
}

/* The side of a 2-D copy that is no CUDA array, and where its first row is. */
static char *side(CUmemorytype type, const void *host, CUdeviceptr device,
                  size_t pitch, size_t x, size_t y)
{
    char *base = type == CU_MEMORYTYPE_HOST ? (char *)host : at(device);

    return base + y * pitch + x;
}

FABRIC_API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *c, CUstream stream)
{
    struct copy copy = {.rows = c->Height, .bytes = c->WidthInBytes};

    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
        c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    copy.src_pitch = c->srcPitch;
    copy.dst_pitch = c->dstPitch;
    copy.src = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch,
                    c->srcXInBytes, c->srcY);
    copy.dst = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch,
                    c->dstXInBytes, c->dstY);
    return push_copy(stream, &copy);
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
    return fill_async(at(dst), value, 1, count, stream);
}

FABRIC_API CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value,
                                     size_t count, CUstream stream)
{
    return fill_async(at(dst), value, 4, count, stream);
}

FABRIC_API CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value,
                                     size_t count, CUstream stream)
{
    return fill_async(at(dst), value, 2, count, stream);
}

FABRIC_API CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value,
                               size_t count)
{
    return fill_now(at(dst), value, 1, count);
}

FABRIC_API CUresult cuMemsetD32(CUdeviceptr dst, unsigned int value,
                                size_t count)
{
    return fill_now(at(dst), value, 4, count);
}
