/* Executable graphs: copies of graphs that are launched. */
#include <stdlib.h>

#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/graph.h"
#include "cuda/stream.h"

struct CUgraphExec_st {
    CUgraph graph;
};

FABRIC_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec,
                                                CUgraph graph,
                                                unsigned long long flags)
{
    (void)flags;
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *exec = malloc(sizeof(**exec));
    if (!*exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*exec)->graph = graph_copy(graph);
    if ((*exec)->graph)
        return CUDA_SUCCESS;
    free(*exec);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

FABRIC_API CUresult cuGraphInstantiateWithParams(
    CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult rc;

    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    rc = cuGraphInstantiateWithFlags(exec, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out =
        rc ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return rc;
}

/* The form of CUDA 11, which drivers keep for old programs. */
FABRIC_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph,
                                          CUgraphNode *errorNode,
                                          char *logBuffer, size_t bufferSize)
{
    if (errorNode)
        *errorNode = NULL;
    if (logBuffer && bufferSize)
        logBuffer[0] = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

FABRIC_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    graph_put(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

/* Launches that are under way keep what they run. */
FABRIC_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                                      CUgraphExecUpdateResultInfo *info)
{
    CUgraph copy;

    if (!exec || !graph || !info)
        return CUDA_ERROR_INVALID_VALUE;
    *info =
        (CUgraphExecUpdateResultInfo){CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL};
    if (!graph_is_alike(exec->graph, graph)) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    copy = graph_copy(graph);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph_put(exec->graph);
    exec->graph = copy;
    return CUDA_SUCCESS;
}

/* The last task of a launch: gives the launch's reference back. */
static int64_t end_launch(void *arg, int64_t start_ns)
{
    (void)arg;
    return start_ns;
}

static void drop_launch(void *arg)
{
    graph_put(arg);
}

static const struct fabric_task end_task = {end_launch, drop_launch, NULL};

FABRIC_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);
    CUresult end;

    if (rc)
        return rc;
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream_capture(s))
        return capture_add_graph(stream_capture(s), exec->graph);
    graph_get(exec->graph);
    rc = graph_queue(exec->graph, s);
    end = stream_push_plain(s, &end_task, exec->graph);
    if (end)
        graph_put(exec->graph);
    return rc ? rc : end;
}
