/*
 * The names that programs call which are compiled with a default stream per
 * thread: to them no stream means the thread's own one. Those of captures and
 * graphs, and what belongs to them.
 */
#include "common/export.h"
#include "cudart/runtime.h"

static cudaStream_t mine(cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

/* PTSZ(NAME, PARAMETERS, ARGUMENTS) */
#define PTSZ(name_, params_, args_)              \
    FABRIC_API cudaError_t name_##_ptsz params_; \
    cudaError_t name_##_ptsz params_             \
    {                                            \
        return name_ args_;                      \
    }

PTSZ(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t s), (exec, mine(s)))
PTSZ(cudaGraphInstantiateWithParams,
     (cudaGraphExec_t * exec, cudaGraph_t graph,
      cudaGraphInstantiateParams *params),
     (exec, graph, params))
PTSZ(cudaStreamBeginCapture, (cudaStream_t s, enum cudaStreamCaptureMode mode),
     (mine(s), mode))
PTSZ(cudaStreamBeginCaptureToGraph,
     (cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
      const cudaGraphEdgeData *edges, size_t count,
      enum cudaStreamCaptureMode mode),
     (mine(s), graph, dependencies, edges, count, mode))
PTSZ(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t *graph),
     (mine(s), graph))
PTSZ(cudaStreamIsCapturing,
     (cudaStream_t s, enum cudaStreamCaptureStatus *status), (mine(s), status))
PTSZ(cudaStreamSynchronize, (cudaStream_t s), (mine(s)))
PTSZ(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t event, unsigned flags),
     (mine(s), event, flags))
PTSZ(cudaEventRecord, (cudaEvent_t event, cudaStream_t s), (event, mine(s)))
PTSZ(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t fn, void *data),
     (mine(s), fn, data))
PTSZ(cudaMemcpyAsync,
     (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
      cudaStream_t s),
     (dst, src, n, kind, mine(s)))
