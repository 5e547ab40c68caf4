#include "cuda/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/export.h"
#include "cuda/object.h"
#include "cuda/stream.h"

struct CUgraphNode_st {
    const struct fabric_task *task;
    void *arg;
    struct CUgraphNode_st *next;
};

/* Executable graphs and launches that are under way hold references. */
struct CUgraph_st {
    _Atomic int refs;
    uint64_t id;
    pthread_mutex_t lock;
    struct CUgraphNode_st *first;
    struct CUgraphNode_st **end;
    CUgraphNode last;
    struct object_hold *objects;
};

struct CUgraphExec_st {
    CUgraph graph;
};

CUgraph graph_new(void)
{
    static _Atomic uint64_t last_id;
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return NULL;
    graph->refs = 1;
    graph->id = ++last_id;
    graph->end = &graph->first;
    pthread_mutex_init(&graph->lock, NULL);
    return graph;
}

void graph_put(CUgraph graph)
{
    struct CUgraphNode_st *next;

    if (atomic_fetch_sub(&graph->refs, 1) > 1)
        return;
    for (struct CUgraphNode_st *n = graph->first; n; n = next) {
        next = n->next;
        if (n->task->drop)
            n->task->drop(n->arg);
        free(n);
    }
    object_release_all(graph->objects);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

uint64_t graph_id(CUgraph graph)
{
    return graph->id;
}

CUresult graph_add(CUgraph graph, const struct fabric_task *task, void *arg)
{
    struct CUgraphNode_st *node = malloc(sizeof(*node));

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *node = (struct CUgraphNode_st){.task = task, .arg = arg};
    pthread_mutex_lock(&graph->lock);
    *graph->end = node;
    graph->end = &node->next;
    graph->last = node;
    pthread_mutex_unlock(&graph->lock);
    return CUDA_SUCCESS;
}

const CUgraphNode *graph_last(CUgraph graph)
{
    return &graph->last;
}

FABRIC_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_new();
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

FABRIC_API CUresult cuGraphDestroy(CUgraph graph)
{
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    graph_put(graph);
    return CUDA_SUCCESS;
}

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
    (*exec)->graph = graph;
    atomic_fetch_add(&graph->refs, 1);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    graph_put(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

static CUresult launch_nodes(CUgraph graph, CUstream s)
{
    CUresult rc = CUDA_SUCCESS;

    for (struct CUgraphNode_st *n = graph->first; n && !rc; n = n->next) {
        if (n->task->relaunch)
            rc = n->task->relaunch(s, n->arg);
        else
            rc = fabric_relaunch(s, n->task, n->arg);
    }
    return rc;
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
    atomic_fetch_add(&exec->graph->refs, 1);
    rc = launch_nodes(exec->graph, s);
    end = stream_push_plain(s, &end_task, exec->graph);
    if (end)
        graph_put(exec->graph);
    return rc ? rc : end;
}

FABRIC_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes,
                                    size_t *count)
{
    size_t n = 0;

    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&graph->lock);
    for (CUgraphNode node = graph->first; node; node = node->next) {
        if (nodes && n < *count)
            nodes[n] = node;
        n++;
    }
    pthread_mutex_unlock(&graph->lock);
    if (!nodes || n < *count)
        *count = n;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                            unsigned int count,
                                            unsigned int flags)
{
    CUresult rc;

    if (!graph || !object || !count || flags & ~CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&graph->lock);
    rc = object_hold(&graph->objects, object, count,
                     flags & CU_GRAPH_USER_OBJECT_MOVE);
    pthread_mutex_unlock(&graph->lock);
    return rc;
}

FABRIC_API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object,
                                             unsigned int count)
{
    CUresult rc;

    if (!graph || !object || !count)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&graph->lock);
    rc = object_let_go(graph->objects, object, count);
    pthread_mutex_unlock(&graph->lock);
    return rc ? rc : cuUserObjectRelease(object, count);
}
