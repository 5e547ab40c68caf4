/*
 * Virtual memory management: addresses are reserved apart from memory, which
 * is mapped there later. Memory is a memfd, a mapping is an mmap of it, so
 * that a handle can be exported to another process as a file descriptor.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>

#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/memory.h"

#define GRANULARITY ((size_t)2 << 20)

struct allocation {
    int fd;
    _Atomic int refs;
    size_t bytes;
    CUmemAllocationProp prop;
};

/* A mapping holds its memory: the handle may be released before. */
struct mapping {
    uintptr_t start;
    size_t bytes;
    struct allocation *allocation;
    struct mapping *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

static struct allocation *allocation_of(CUmemGenericAllocationHandle handle)
{
    return (struct allocation *)(uintptr_t)handle;
}

static void allocation_put(struct allocation *a)
{
    if (atomic_fetch_sub(&a->refs, 1) > 1)
        return;
    memory_use(a->prop.location.id, -(int64_t)a->bytes);
    close(a->fd);
    free(a);
}

static CUresult allocation_new(int fd, size_t bytes,
                               const CUmemAllocationProp *prop,
                               CUmemGenericAllocationHandle *handle)
{
    struct allocation *a = malloc(sizeof(*a));

    if (!a) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *a = (struct allocation){fd, 1, bytes, *prop};
    memory_use(prop->location.id, (int64_t)bytes);
    *handle = (uintptr_t)a;
    return CUDA_SUCCESS;
}

static int is_whole(size_t bytes)
{
    return bytes && bytes % GRANULARITY == 0;
}

FABRIC_API CUresult cuMemGetAllocationGranularity(
    size_t *granularity, const CUmemAllocationProp *prop,
    CUmemAllocationGranularity_flags option)
{
    (void)option;
    if (!granularity || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

/* Maps some more than is asked for, and cuts an aligned range out of it. */
static uintptr_t reserve(size_t bytes, size_t alignment)
{
    size_t all = bytes + alignment;
    char *p = mmap(NULL, all, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;

    if (p == MAP_FAILED)
        return 0;
    before = (alignment - (uintptr_t)p % alignment) % alignment;
    if (before)
        munmap(p, before);
    if (alignment > before)
        munmap(p + before + bytes, alignment - before);
    return (uintptr_t)p + before;
}

FABRIC_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes,
                                        size_t alignment, CUdeviceptr address,
                                        unsigned long long flags)
{
    CUcontext ctx = context_current();
    uintptr_t start;
    CUresult rc;

    (void)address; /* a wish, which need not be met */
    if (!ptr || !is_whole(bytes) || flags || alignment & (alignment - 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < GRANULARITY)
        alignment = GRANULARITY;
    start = reserve(bytes, alignment);
    if (!start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = memory_enlist(start, bytes, ctx ? context_device(ctx) : 0,
                       MEMORY_RESERVED);
    if (rc)
        munmap((void *)start, bytes);
    else
        *ptr = start;
    return rc;
}

FABRIC_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
    struct memory_block was;

    if (!memory_delist((uintptr_t)ptr, MEMORY_RESERVED, MEMORY_RESERVED, &was))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)was.start, was.bytes);
    return was.bytes == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FABRIC_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle,
                                size_t bytes, const CUmemAllocationProp *prop,
                                unsigned long long flags)
{
    CUresult rc = capture_forbid(NULL);
    int fd;

    if (rc)
        return rc;
    if (!handle || !prop || !is_whole(bytes) || flags ||
        prop->location.id < 0 || prop->location.id >= FABRIC_MAX_DEVICES)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    fd = memfd_create("fabric", MFD_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ftruncate(fd, (off_t)bytes)) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return allocation_new(fd, bytes, prop, handle);
}

FABRIC_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    allocation_put(allocation_of(handle));
    return CUDA_SUCCESS;
}

static CUresult remember(uintptr_t start, size_t bytes, struct allocation *a)
{
    struct mapping *m = malloc(sizeof(*m));

    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&a->refs, 1);
    pthread_mutex_lock(&lock);
    *m = (struct mapping){start, bytes, a, mappings};
    mappings = m;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Takes one mapping that lies in the range off the list; NULL: none left. */
static struct mapping *forget_one(uintptr_t start, size_t bytes)
{
    struct mapping **p = &mappings;
    struct mapping *m;

    pthread_mutex_lock(&lock);
    while (*p &&
           ((*p)->start < start || (*p)->start + (*p)->bytes > start + bytes))
        p = &(*p)->next;
    m = *p;
    if (m)
        *p = m->next;
    pthread_mutex_unlock(&lock);
    return m;
}

static int is_reserved(CUdeviceptr ptr, size_t bytes)
{
    struct memory_block block;

    return memory_find((uintptr_t)ptr, &block) &&
           block.kind == MEMORY_RESERVED &&
           (uintptr_t)ptr + bytes <= block.start + block.bytes;
}

FABRIC_API CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle,
                             unsigned long long flags)
{
    struct allocation *a = allocation_of(handle);
    void *p;

    if (!a || flags || !is_whole(bytes) || !is_reserved(ptr, bytes) ||
        offset + bytes > a->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    p = mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
             a->fd, (off_t)offset);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return remember((uintptr_t)ptr, bytes, a);
}

FABRIC_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
    struct mapping *m;
    int found = 0;
    CUresult rc = context_current() ? cuCtxSynchronize() : CUDA_SUCCESS;

    if (rc)
        return rc;
    if (!is_reserved(ptr, bytes) ||
        mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return CUDA_ERROR_INVALID_VALUE;
    while ((m = forget_one((uintptr_t)ptr, bytes))) {
        allocation_put(m->allocation);
        free(m);
        found = 1;
    }
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* All devices are this host's memory: the widest of the rights holds. */
FABRIC_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes,
                                   const CUmemAccessDesc *desc, size_t count)
{
    int protection = PROT_NONE;

    if (!desc || !count || !is_reserved(ptr, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
            protection |= PROT_READ;
        if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            protection |= PROT_WRITE;
    }
    return mprotect((void *)(uintptr_t)ptr, bytes, protection)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

FABRIC_API CUresult cuMemExportToShareableHandle(
    void *shareable, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType type, unsigned long long flags)
{
    int fd;

    if (!shareable || !handle || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    fd = fcntl(allocation_of(handle)->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                               void *shareable, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = type,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    CUcontext ctx = context_current();
    off_t bytes;
    int fd;

    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (ctx)
        prop.location.id = context_device(ctx);
    fd = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    bytes = lseek(fd, 0, SEEK_END);
    if (bytes <= 0) {
        close(fd);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocation_new(fd, (size_t)bytes, &prop, handle);
}

FABRIC_API CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    if (!prop || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = allocation_of(handle)->prop;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct allocation *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct mapping *m = mappings; m && !found; m = m->next) {
        if ((uintptr_t)address >= m->start &&
            (uintptr_t)address < m->start + m->bytes)
            found = m->allocation;
    }
    if (found)
        atomic_fetch_add(&found->refs, 1);
    pthread_mutex_unlock(&lock);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = (uintptr_t)found;
    return CUDA_SUCCESS;
}
