#include "cuda/memory.h"

#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cuda.h>

#include "common/export.h"
#include "cuda/device.h"

struct block {
    uintptr_t start;
    size_t bytes;
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* a tsearch tree by start */
static size_t used[FABRIC_MAX_DEVICES];

static int by_start(const void *a, const void *b)
{
    const struct block *x = a;
    const struct block *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int enlist(uintptr_t start, size_t bytes, int device)
{
    struct block *block = malloc(sizeof(*block));
    int found;

    if (!block)
        return -1;
    *block = (struct block){start, bytes, device};
    pthread_mutex_lock(&lock);
    found = tsearch(block, &blocks, by_start) != NULL;
    if (found)
        used[device] += bytes;
    pthread_mutex_unlock(&lock);
    if (!found)
        free(block);
    return found ? 0 : -1;
}

static struct block *delist(uintptr_t start)
{
    struct block key = {.start = start};
    struct block *block = NULL;
    void *node;

    pthread_mutex_lock(&lock);
    node = tfind(&key, &blocks, by_start);
    if (node) {
        block = *(struct block **)node;
        tdelete(&key, &blocks, by_start);
        used[block->device] -= block->bytes;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

static CUresult allocate(uintptr_t *out, size_t bytes)
{
    CUcontext ctx = context_current();
    void *p;

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > MEMORY_TOTAL_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (enlist((uintptr_t)p, bytes, context_device(ctx))) {
        munmap(p, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (uintptr_t)p;
    return CUDA_SUCCESS;
}

static CUresult release(uintptr_t start)
{
    struct block *block;

    if (!start)
        return CUDA_SUCCESS;
    block = delist(start);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)block->start, block->bytes);
    free(block);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuMemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    uintptr_t start;
    CUresult rc = allocate(&start, bytes);

    if (!rc)
        *ptr = start;
    return rc;
}

/* As cuMemFree does, waits for the work that may still use the memory. */
FABRIC_API CUresult cuMemFree(CUdeviceptr ptr)
{
    CUresult rc = cuCtxSynchronize();

    return rc ? rc : release((uintptr_t)ptr);
}

FABRIC_API CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
    uintptr_t start;
    CUresult rc = allocate(&start, bytes);

    (void)flags;
    if (!rc)
        *ptr = (void *)start;
    return rc;
}

FABRIC_API CUresult cuMemAllocHost(void **ptr, size_t bytes)
{
    return cuMemHostAlloc(ptr, bytes, 0);
}

FABRIC_API CUresult cuMemFreeHost(void *ptr)
{
    CUresult rc = cuCtxSynchronize();

    return rc ? rc : release((uintptr_t)ptr);
}

FABRIC_API CUresult cuMemGetInfo(size_t *available, size_t *total)
{
    CUcontext ctx = context_current();

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    *available = MEMORY_TOTAL_BYTES - used[context_device(ctx)];
    pthread_mutex_unlock(&lock);
    *total = MEMORY_TOTAL_BYTES;
    return CUDA_SUCCESS;
}
