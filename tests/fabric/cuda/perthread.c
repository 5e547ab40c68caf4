#include "cuda/perthread.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/export.h"
#include "cuda/device.h"

struct own {
    CUstream stream[FABRIC_MAX_DEVICES];
};

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int key_result;

/* A thread's streams end with it, once their work is done. */
static void release(void *arg)
{
    struct own *own = arg;

    for (int i = 0; i < FABRIC_MAX_DEVICES; i++) {
        if (own->stream[i])
            cuStreamDestroy(own->stream[i]);
    }
    free(own);
}

static void create_key(void)
{
    key_result = pthread_key_create(&key, release);
}

CUresult perthread_stream(int device, CUstream *stream)
{
    struct own *own;

    pthread_once(&key_once, create_key);
    if (key_result)
        return CUDA_ERROR_OUT_OF_MEMORY;
    own = pthread_getspecific(key);
    if (!own) {
        own = calloc(1, sizeof(*own));
        if (!own || pthread_setspecific(key, own)) {
            free(own);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (!own->stream[device]) {
        CUresult rc = cuStreamCreate(&own->stream[device], CU_STREAM_DEFAULT);

        if (rc)
            return rc;
    }
    *stream = own->stream[device];
    return CUDA_SUCCESS;
}

/*
 * The names behind cuGetProcAddress with per-thread default streams: to them
 * no stream means the thread's own one.
 */
static CUstream mine(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

/* PTSZ(NAME, PARAMETERS, ARGUMENTS) */
#define PTSZ(name_, params_, args_) PTSZ_OF(name_, params_, args_)
#define PTSZ_OF(name_, params_, args_)        \
    FABRIC_API CUresult name_##_ptsz params_; \
    CUresult name_##_ptsz params_             \
    {                                         \
        return name_ args_;                   \
    }

PTSZ(cuStreamSynchronize, (CUstream s), (mine(s)))
PTSZ(cuStreamQuery, (CUstream s), (mine(s)))
PTSZ(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags),
     (mine(s), e, flags))
PTSZ(cuStreamGetCtx, (CUstream s, CUcontext *ctx), (mine(s), ctx))
PTSZ(cuStreamGetDevice, (CUstream s, CUdevice *device), (mine(s), device))
PTSZ(cuStreamGetFlags, (CUstream s, unsigned *flags), (mine(s), flags))
PTSZ(cuStreamGetPriority, (CUstream s, int *priority), (mine(s), priority))
PTSZ(cuStreamGetId, (CUstream s, unsigned long long *id), (mine(s), id))
PTSZ(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus *status),
     (mine(s), status))
PTSZ(cuStreamBeginCapture, (CUstream s, CUstreamCaptureMode mode),
     (mine(s), mode))
PTSZ(cuStreamBeginCaptureToGraph,
     (CUstream s, CUgraph graph, const CUgraphNode *dependencies,
      const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
     (mine(s), graph, dependencies, edges, count, mode))
PTSZ(cuStreamEndCapture, (CUstream s, CUgraph *graph), (mine(s), graph))
PTSZ(cuGraphInstantiateWithParams,
     (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
     (exec, graph, params))
PTSZ(cuStreamGetCaptureInfo_v2,
     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **dependencies, size_t *count),
     (mine(s), status, id, graph, dependencies, count))
PTSZ(cuStreamGetCaptureInfo,
     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **dependencies, const CUgraphEdgeData **edges,
      size_t *count),
     (mine(s), status, id, graph, dependencies, edges, count))
PTSZ(cuStreamWriteValue32,
     (CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags),
     (mine(s), at, value, flags))
PTSZ(cuStreamWriteValue64,
     (CUstream s, CUdeviceptr at, cuuint64_t value, unsigned flags),
     (mine(s), at, value, flags))
PTSZ(cuEventRecord, (CUevent e, CUstream s), (e, mine(s)))
PTSZ(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned flags),
     (e, mine(s), flags))
PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream s), (exec, mine(s)))
PTSZ(cuLaunchHostFunc, (CUstream s, CUhostFn fn, void *data),
     (mine(s), fn, data))
PTSZ(cuLaunchKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
      unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
      void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, mine(s), params, extra))
PTSZ(cuLaunchCooperativeKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
      unsigned by, unsigned bz, unsigned shared, CUstream s, void **params),
     (f, gx, gy, gz, bx, by, bz, shared, mine(s), params))
PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s),
     (dst, src, n, mine(s)))
PTSZ(cuMemcpyHtoDAsync,
     (CUdeviceptr dst, const void *src, size_t n, CUstream s),
     (dst, src, n, mine(s)))
PTSZ(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr src, size_t n, CUstream s),
     (dst, src, n, mine(s)))
PTSZ(cuMemcpyDtoDAsync,
     (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s),
     (dst, src, n, mine(s)))
PTSZ(cuMemcpy2DAsync, (const CUDA_MEMCPY2D *copy, CUstream s), (copy, mine(s)))
PTSZ(cuMemsetD8Async,
     (CUdeviceptr dst, unsigned char value, size_t n, CUstream s),
     (dst, value, n, mine(s)))
PTSZ(cuMemsetD16Async,
     (CUdeviceptr dst, unsigned short value, size_t n, CUstream s),
     (dst, value, n, mine(s)))
PTSZ(cuMemsetD32Async, (CUdeviceptr dst, unsigned value, size_t n, CUstream s),
     (dst, value, n, mine(s)))
