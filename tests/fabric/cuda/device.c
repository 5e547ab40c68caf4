#include "cuda/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/export.h"
#include "common/gpu.h"
#include "cuda/capture.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

#define STACK_DEPTH 16

struct CUctx_st {
    _Atomic int refs;
    _Atomic int life; /* how often it has been reset */
    unsigned flags;
};

static struct CUctx_st primary[FABRIC_MAX_DEVICES];
static _Thread_local CUcontext stack[STACK_DEPTH];
static _Thread_local int depth;
static _Atomic int initialized;

/* The host's GPUs that CUDA_VISIBLE_DEVICES shows, in its order. */
static int visible[FABRIC_MAX_DEVICES];
static int devices;
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

static void show_all(void)
{
    for (; devices < gpu_count(); devices++)
        visible[devices] = devices;
}

/* As CUDA does, the list ends at the first entry that names no device. */
static void show_listed(const char *list)
{
    while (*list && devices < FABRIC_MAX_DEVICES) {
        char *end;
        long index = strtol(list, &end, 10);

        if (end == list || index < 0 || index >= gpu_count())
            return;
        visible[devices++] = (int)index;
        list = *end == ',' ? end + 1 : end;
    }
}

static void find_devices(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");

    if (list)
        show_listed(list);
    else
        show_all();
}

static int device_count(void)
{
    pthread_once(&devices_once, find_devices);
    return devices;
}

static CUresult check_device(CUdevice device)
{
    if (!atomic_load(&initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    return device >= 0 && device < device_count() ? CUDA_SUCCESS
                                                  : CUDA_ERROR_INVALID_DEVICE;
}

CUcontext context_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUcontext context_primary(int device)
{
    return &primary[device];
}

int context_life(int device)
{
    return atomic_load(&primary[device].life);
}

int context_device(CUcontext ctx)
{
    return (int)(ctx - primary);
}

int context_is_known(CUcontext ctx)
{
    return ctx >= primary && ctx < primary + FABRIC_MAX_DEVICES;
}

FABRIC_API CUresult cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_count())
        return CUDA_ERROR_NO_DEVICE;
    atomic_store(&initialized, 1);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDeviceGetCount(int *count)
{
    if (!atomic_load(&initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    *count = device_count();
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult rc = check_device(ordinal);

    if (!rc)
        *device = ordinal;
    return rc;
}

FABRIC_API CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    CUresult rc = check_device(device);

    if (!rc)
        snprintf(name, (size_t)len, "%s", fabric_config()->gpu);
    return rc;
}

FABRIC_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult rc = check_device(device);

    if (!rc)
        gpu_uuid(visible[device], (unsigned char *)uuid->bytes);
    return rc;
}

FABRIC_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult rc = check_device(device);

    if (!rc)
        *bytes = MEMORY_TOTAL_BYTES;
    return rc;
}

static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
};

FABRIC_API CUresult cuDeviceGetAttribute(int *value,
                                         CUdevice_attribute attribute,
                                         CUdevice device)
{
    CUresult rc = check_device(device);

    if (rc)
        return rc;
    *value = 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = (int)FABRIC_PCI_BUS(visible[device]);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        if (attributes[i].attribute == attribute)
            *value = attributes[i].value;
    }
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDeviceGetPCIBusId(char *busId, int len, CUdevice device)
{
    CUresult rc = check_device(device);

    if (!rc)
        gpu_bus_id(visible[device], busId, len);
    return rc;
}

FABRIC_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *busId)
{
    int index = gpu_by_bus_id(busId);

    for (int i = 0; i < device_count(); i++) {
        if (visible[i] == index) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

static int peers_reach(void)
{
    const struct fabric_hardware *hardware = &fabric_config()->hardware;

    return hardware->nvlink != FABRIC_NVLINK_NONE || hardware->p2p;
}

FABRIC_API CUresult cuDeviceGetP2PAttribute(int *value,
                                            CUdevice_P2PAttribute attribute,
                                            CUdevice src, CUdevice dst)
{
    int nvlink = fabric_config()->hardware.nvlink != FABRIC_NVLINK_NONE;

    if (check_device(src) || check_device(dst))
        return CUDA_ERROR_INVALID_DEVICE;
    if (src == dst)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = nvlink ? 0 : 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        *value = peers_reach();
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = nvlink;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

FABRIC_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device,
                                          CUdevice peer)
{
    if (check_device(device) || check_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && peers_reach();
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
    CUresult rc = check_device(device);

    if (rc)
        return rc;
    atomic_fetch_add(&primary[device].refs, 1);
    *ctx = &primary[device];
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult rc = check_device(device);

    if (rc)
        return rc;
    if (atomic_fetch_sub(&primary[device].refs, 1) < 1) {
        atomic_fetch_add(&primary[device].refs, 1);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult rc = check_device(device);

    if (rc)
        return rc;
    stream_drain_device(device);
    atomic_fetch_add(&primary[device].life, 1);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device,
                                                  unsigned int flags)
{
    CUresult rc = check_device(device);

    if (!rc)
        primary[device].flags = flags;
    return rc;
}

FABRIC_API CUresult cuDevicePrimaryCtxGetState(CUdevice device,
                                               unsigned int *flags, int *active)
{
    CUresult rc = check_device(device);

    if (rc)
        return rc;
    *flags = primary[device].flags;
    *active = atomic_load(&primary[device].refs) > 0;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetCurrent(CUcontext *ctx)
{
    if (!atomic_load(&initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    *ctx = context_current();
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!context_is_known(ctx) || depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (ctx)
        *ctx = stack[depth];
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxSetCurrent(CUcontext ctx)
{
    if (ctx && !context_is_known(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth)
        depth--;
    return ctx ? cuCtxPushCurrent_v2(ctx) : CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext ctx = context_current();

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context_device(ctx);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    ctx = ctx ? ctx : context_current();
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = (unsigned long long)context_life(context_device(ctx)) *
              FABRIC_MAX_DEVICES +
          (unsigned long long)context_device(ctx) + 1;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext ctx = context_current();

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    *flags = ctx->flags;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    if (!ctx && !context_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

static _Atomic size_t limits[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
};

FABRIC_API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if (!value || (unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = limits[limit];
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    limits[limit] = value;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuCtxSynchronize(void)
{
    CUcontext ctx = context_current();
    CUresult rc = capture_forbid(NULL);

    if (rc)
        return rc;
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    stream_drain_device(context_device(ctx));
    return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
FABRIC_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}
