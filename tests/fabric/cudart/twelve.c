/*
 * What libcudart.so.12 has otherwise than 13: its version, and the names and
 * layouts that CUDA 13 took back (cuda_runtime_api.h of 12.9: properties as
 * _v2, a clock rate among them; capture info as _v2 and _v3).
 */
#include <string.h>

#include "common/export.h"
#include "cudart/runtime.h"

int runtime_version(void)
{
    return 12090;
}

/* struct cudaDeviceProp up to the number of multiprocessors, in its size. */
struct properties {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luid_mask;
    size_t total_memory;
    size_t shared_per_block;
    int regs_per_block;
    int warp_size;
    size_t pitch;
    int threads_per_block;
    int threads[3];
    int grid[3];
    int clock_rate;
    size_t constant_memory;
    int major;
    int minor;
    size_t texture_alignment;
    size_t texture_pitch_alignment;
    int overlap;
    int multiprocessors;
    char rest[640];
};

_Static_assert(sizeof(struct properties) == 1032, "as in CUDA 12");

FABRIC_API cudaError_t cudaGetDeviceProperties_v2(struct properties *prop,
                                                  int device);
FABRIC_API cudaError_t cudaGetDeviceProperties_v2(struct properties *prop,
                                                  int device)
{
    struct cudaDeviceProp now;
    cudaError_t error = cudaGetDeviceProperties(&now, device);

    memset(prop, 0, sizeof(*prop));
    memcpy(prop->name, now.name, sizeof(prop->name));
    prop->uuid = now.uuid;
    prop->total_memory = now.totalGlobalMem;
    prop->warp_size = now.warpSize;
    prop->threads_per_block = now.maxThreadsPerBlock;
    prop->major = now.major;
    prop->minor = now.minor;
    prop->multiprocessors = now.multiProcessorCount;
    return error;
}

FABRIC_API cudaError_t cudaStreamGetCaptureInfo_v2(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, size_t *count);
FABRIC_API cudaError_t cudaStreamGetCaptureInfo_v2(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies,
                                    NULL, count);
}

FABRIC_API cudaError_t cudaStreamGetCaptureInfo_v3(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
    size_t *count);
FABRIC_API cudaError_t cudaStreamGetCaptureInfo_v3(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
    size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies,
                                    edges, count);
}
