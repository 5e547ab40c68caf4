#include "cuda/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/export.h"
#include "cuda/object.h"
#include "cuda/stream.h"

/* A task, or a whole graph. */
struct CUgraphNode_st {
    const struct fabric_task *task;
    void *arg;
    CUgraph child;
    struct CUgraphNode_st *next;
};

/* Copies, captures and launches that are under way hold references. */
struct CUgraph_st {
    _Atomic int refs;
    pthread_mutex_t lock;
    CUgraph original; /* whose tasks these are; NULL: its own */
    struct CUgraphNode_st *first;
    struct CUgraphNode_st **end;
    CUgraphNode last;
    struct object_hold *objects;
};

CUgraph graph_new(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return NULL;
    graph->refs = 1;
    graph->end = &graph->first;
    pthread_mutex_init(&graph->lock, NULL);
    return graph;
}

void graph_get(CUgraph graph)
{
    atomic_fetch_add(&graph->refs, 1);
}

static void drop_node(CUgraph graph, struct CUgraphNode_st *node)
{
    if (node->child)
        graph_put(node->child);
    else if (!graph->original && node->task->drop)
        node->task->drop(node->arg);
    free(node);
}

void graph_put(CUgraph graph)
{
    struct CUgraphNode_st *next;

    if (atomic_fetch_sub(&graph->refs, 1) > 1)
        return;
    for (struct CUgraphNode_st *n = graph->first; n; n = next) {
        next = n->next;
        drop_node(graph, n);
    }
    if (graph->original)
        graph_put(graph->original);
    object_release_all(graph->objects);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

static CUresult add_node(CUgraph graph, struct CUgraphNode_st content)
{
    struct CUgraphNode_st *node = malloc(sizeof(*node));

    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *node = content;
    node->next = NULL;
    pthread_mutex_lock(&graph->lock);
    *graph->end = node;
    graph->end = &node->next;
    graph->last = node;
    pthread_mutex_unlock(&graph->lock);
    return CUDA_SUCCESS;
}

CUresult graph_add(CUgraph graph, const struct fabric_task *task, void *arg)
{
    return add_node(graph, (struct CUgraphNode_st){.task = task, .arg = arg});
}

CUresult graph_add_child(CUgraph graph, CUgraph child)
{
    CUgraph copy = graph_copy(child);
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

    if (copy)
        rc = add_node(graph, (struct CUgraphNode_st){.child = copy});
    if (copy && rc)
        graph_put(copy);
    return rc;
}

/* Holds the graph that its tasks are of. Not where there are none: a graph of
 * children may get a copy of itself as a child, and would hold itself. */
static void borrow_tasks(CUgraph copy, CUgraph graph)
{
    for (CUgraphNode n = graph->first; n; n = n->next) {
        if (n->child || copy->original)
            continue;
        graph_get(graph);
        copy->original = graph;
    }
}

CUgraph graph_copy(CUgraph graph)
{
    CUgraph copy = graph_new();
    CUresult rc = CUDA_SUCCESS;

    if (!copy)
        return NULL;
    pthread_mutex_lock(&graph->lock);
    borrow_tasks(copy, graph);
    for (CUgraphNode n = graph->first; n && !rc; n = n->next) {
        rc = add_node(copy, *n);
        if (!rc && n->child)
            graph_get(n->child);
    }
    pthread_mutex_unlock(&graph->lock);
    if (!rc)
        return copy;
    graph_put(copy);
    return NULL;
}

int graph_is_alike(CUgraph a, CUgraph b)
{
    CUgraphNode m = a->first;
    CUgraphNode n = b->first;

    for (; m && n; m = m->next, n = n->next) {
        if (m->task != n->task || !m->child != !n->child ||
            (m->child && !graph_is_alike(m->child, n->child)))
            return 0;
    }
    return !m && !n;
}

CUresult graph_queue(CUgraph graph, CUstream s)
{
    CUresult rc = CUDA_SUCCESS;

    for (CUgraphNode n = graph->first; n && !rc; n = n->next) {
        if (n->child)
            rc = graph_queue(n->child, s);
        else if (n->task->relaunch)
            rc = n->task->relaunch(s, n->arg);
        else
            rc = fabric_relaunch(s, n->task, n->arg);
    }
    return rc;
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

FABRIC_API CUresult cuGraphClone(CUgraph *clone, CUgraph original)
{
    if (!clone || !original)
        return CUDA_ERROR_INVALID_VALUE;
    *clone = graph_copy(original);
    return *clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Nodes run in the order in which they come, which is one of those that any
 * dependencies allow. */
FABRIC_API CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                             const CUgraphNode *dependencies,
                                             size_t count, CUgraph child)
{
    CUresult rc;

    if (!node || !graph || !child || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->original)
        return CUDA_ERROR_NOT_SUPPORTED; /* would own some tasks, not others */
    rc = graph_add_child(graph, child);
    if (!rc)
        *node = graph->last;
    return rc;
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
