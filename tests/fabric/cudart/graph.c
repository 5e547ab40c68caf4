/* Stream capture, graphs, user objects. */
#include "common/export.h"
#include "cudart/runtime.h"

FABRIC_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                              enum cudaStreamCaptureMode mode)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc : cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

FABRIC_API cudaError_t cudaStreamBeginCaptureToGraph(
    cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
    const cudaGraphEdgeData *edges, size_t count,
    enum cudaStreamCaptureMode mode)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc
           : cuStreamBeginCaptureToGraph(stream, graph, dependencies,
                                         (const CUgraphEdgeData *)edges, count,
                                         (CUstreamCaptureMode)mode));
}

FABRIC_API cudaError_t cudaStreamEndCapture(cudaStream_t stream,
                                            cudaGraph_t *graph)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamEndCapture(stream, graph));
}

FABRIC_API cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    CUstreamCaptureStatus driver = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuStreamIsCapturing(stream, &driver);
    if (!rc)
        *status = (enum cudaStreamCaptureStatus)driver;
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, enum cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph,
    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
    size_t *count)
{
    CUstreamCaptureStatus driver = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t driver_id = 0;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = cuStreamGetCaptureInfo(stream, &driver, &driver_id, graph,
                                    dependencies,
                                    (const CUgraphEdgeData **)edges, count);
    if (rc)
        return runtime_result(rc);
    *status = (enum cudaStreamCaptureStatus)driver;
    if (id)
        *id = driver_id;
    return cudaSuccess;
}

FABRIC_API cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUstreamCaptureMode driver = (CUstreamCaptureMode)*mode;
    CUresult rc = cuThreadExchangeStreamCaptureMode(&driver);

    if (!rc)
        *mode = (enum cudaStreamCaptureMode)driver;
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return runtime_result(cuGraphCreate(graph, flags));
}

FABRIC_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec,
                                            cudaGraph_t graph,
                                            unsigned long long flags)
{
    return runtime_result(cuGraphInstantiateWithFlags(exec, graph, flags));
}

FABRIC_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec,
                                                     cudaGraph_t graph,
                                                     unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

FABRIC_API cudaError_t
cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                               cudaGraphInstantiateParams *params)
{
    return runtime_result(cuGraphInstantiateWithParams(
        exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params));
}

FABRIC_API cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original)
{
    return runtime_result(cuGraphClone(clone, original));
}

FABRIC_API cudaError_t cudaGraphAddChildGraphNode(
    cudaGraphNode_t *node, cudaGraph_t graph,
    const cudaGraphNode_t *dependencies, size_t count, cudaGraph_t child)
{
    return runtime_result(
        cuGraphAddChildGraphNode(node, graph, dependencies, count, child));
}

FABRIC_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec,
                                           cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo *info)
{
    return runtime_result(
        cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info));
}

FABRIC_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec,
                                       cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuGraphLaunch(exec, stream));
}

FABRIC_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return runtime_result(cuGraphExecDestroy(exec));
}

FABRIC_API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return runtime_result(cuGraphDestroy(graph));
}

FABRIC_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph,
                                         cudaGraphNode_t *nodes, size_t *count)
{
    return runtime_result(cuGraphGetNodes(graph, nodes, count));
}

FABRIC_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object,
                                            void *data, cudaHostFn_t destroy,
                                            unsigned int initialRefcount,
                                            unsigned int flags)
{
    return runtime_result(
        cuUserObjectCreate(object, data, destroy, initialRefcount, flags));
}

FABRIC_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object,
                                            unsigned int count)
{
    return runtime_result(cuUserObjectRetain(object, count));
}

FABRIC_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object,
                                             unsigned int count)
{
    return runtime_result(cuUserObjectRelease(object, count));
}

FABRIC_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph,
                                                 cudaUserObject_t object,
                                                 unsigned int count,
                                                 unsigned int flags)
{
    return runtime_result(cuGraphRetainUserObject(graph, object, count, flags));
}

FABRIC_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph,
                                                  cudaUserObject_t object,
                                                  unsigned int count)
{
    return runtime_result(cuGraphReleaseUserObject(graph, object, count));
}
