#include "cuda/memory.h"

#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* a tsearch tree of disjoint blocks */
static int64_t used[FABRIC_MAX_DEVICES];

/* Ranges that overlap are equal: so an address finds its block. */
static int by_place(const void *a, const void *b)
{
    const struct memory_block *x = a;
    const struct memory_block *y = b;

    if (x->start + x->bytes <= y->start)
        return -1;
    return y->start + y->bytes <= x->start;
}

CUresult memory_enlist(uintptr_t start, size_t bytes, int device,
                       enum memory_kind kind)
{
    struct memory_block *block = malloc(sizeof(*block));
    struct memory_block **node;
    CUresult rc = CUDA_SUCCESS;

    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *block = (struct memory_block){start, bytes, device, kind};
    pthread_mutex_lock(&lock);
    node = tsearch(block, &blocks, by_place);
    if (!node)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    else if (*node != block)
        rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else if (kind == MEMORY_DEVICE)
        used[device] += (int64_t)bytes;
    pthread_mutex_unlock(&lock);
    if (rc)
        free(block);
    return rc;
}

/* The caller holds the lock. */
static struct memory_block *find(uintptr_t address)
{
    struct memory_block key = {.start = address, .bytes = 1};
    void *node = tfind(&key, &blocks, by_place);

    return node ? *(struct memory_block **)node : NULL;
}

int memory_find(uintptr_t address, struct memory_block *block)
{
    const struct memory_block *found;

    pthread_mutex_lock(&lock);
    found = find(address);
    if (found)
        *block = *found;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

int memory_delist(uintptr_t start, enum memory_kind kind,
                  enum memory_kind or_kind, struct memory_block *was)
{
    struct memory_block *block;

    pthread_mutex_lock(&lock);
    block = find(start);
    if (block && (block->start != start ||
                  (block->kind != kind && block->kind != or_kind)))
        block = NULL;
    if (block) {
        tdelete(block, &blocks, by_place);
        if (block->kind == MEMORY_DEVICE)
            used[block->device] -= (int64_t)block->bytes;
        *was = *block;
    }
    pthread_mutex_unlock(&lock);
    free(block);
    return block != NULL;
}

void memory_use(int device, int64_t bytes)
{
    pthread_mutex_lock(&lock);
    used[device] += bytes;
    pthread_mutex_unlock(&lock);
}

static CUresult allocate(uintptr_t *out, size_t bytes, enum memory_kind kind)
{
    CUcontext ctx = context_current();
    CUresult rc = capture_forbid(NULL);
    void *p;

    if (rc)
        return rc;
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
    rc = memory_enlist((uintptr_t)p, bytes, context_device(ctx), kind);
    if (rc) {
        munmap(p, bytes);
        return rc;
    }
    *out = (uintptr_t)p;
    return CUDA_SUCCESS;
}

static CUresult release(uintptr_t start)
{
    struct memory_block was;

    if (!start)
        return CUDA_SUCCESS;
    if (!memory_delist(start, MEMORY_DEVICE, MEMORY_HOST, &was))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)was.start, was.bytes);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuMemAlloc(CUdeviceptr *ptr, size_t bytes)
{
    uintptr_t start;
    CUresult rc = allocate(&start, bytes, MEMORY_DEVICE);

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
    CUresult rc = allocate(&start, bytes, MEMORY_HOST);

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
    *available = MEMORY_TOTAL_BYTES - (size_t)used[context_device(ctx)];
    pthread_mutex_unlock(&lock);
    *total = MEMORY_TOTAL_BYTES;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuMemHostRegister(void *ptr, size_t bytes,
                                      unsigned int flags)
{
    CUcontext ctx = context_current();

    (void)flags;
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!ptr || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_enlist((uintptr_t)ptr, bytes, context_device(ctx),
                         MEMORY_REGISTERED);
}

FABRIC_API CUresult cuMemHostUnregister(void *ptr)
{
    struct memory_block was;

    return memory_delist((uintptr_t)ptr, MEMORY_REGISTERED, MEMORY_REGISTERED,
                         &was)
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

FABRIC_API CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *ptr,
                                              unsigned int flags)
{
    struct memory_block block;

    if (flags || !memory_find((uintptr_t)ptr, &block) ||
        (block.kind != MEMORY_HOST && block.kind != MEMORY_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (uintptr_t)ptr;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
    CUdeviceptr unused;

    *flags = 0;
    return cuMemHostGetDevicePointer(&unused, ptr, 0);
}
