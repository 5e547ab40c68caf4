#include "cuda/capture.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/export.h"
#include "cuda/graph.h"
#include "cuda/stream.h"

struct capture {
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    int given; /* the graph is the program's already */
    int invalid;
    struct capture *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;
static _Atomic int running; /* how many: most calls look no further */
static _Thread_local CUstreamCaptureMode thread_mode;

/* The caller holds the lock. */
static struct capture *find(uint64_t id)
{
    struct capture *c = captures;

    while (c && c->id != id)
        c = c->next;
    return c;
}

static void enlist(struct capture *capture)
{
    pthread_mutex_lock(&lock);
    capture->next = captures;
    captures = capture;
    running++;
    pthread_mutex_unlock(&lock);
}

static void delist(struct capture *capture)
{
    struct capture **p = &captures;

    pthread_mutex_lock(&lock);
    while (*p != capture)
        p = &(*p)->next;
    *p = capture->next;
    running--;
    pthread_mutex_unlock(&lock);
}

static void invalidate(struct capture *capture)
{
    pthread_mutex_lock(&lock);
    capture->invalid = 1;
    pthread_mutex_unlock(&lock);
}

static int is_invalid(struct capture *capture)
{
    int invalid;

    pthread_mutex_lock(&lock);
    invalid = capture->invalid;
    pthread_mutex_unlock(&lock);
    return invalid;
}

uint64_t capture_id(struct capture *capture)
{
    return is_invalid(capture) ? 0 : capture->id;
}

CUresult capture_add(struct capture *capture, const struct fabric_task *task,
                     void *arg)
{
    if (is_invalid(capture))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return graph_add(capture->graph, task, arg);
}

CUresult capture_add_graph(struct capture *capture, CUgraph graph)
{
    if (is_invalid(capture))
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return graph_add_child(capture->graph, graph);
}

CUresult capture_join(CUstream stream, uint64_t id)
{
    struct capture *mine = stream_capture(stream);
    struct capture *other;

    pthread_mutex_lock(&lock);
    other = id ? find(id) : NULL;
    pthread_mutex_unlock(&lock);
    if (mine && mine != other) {
        invalidate(mine);
        return id ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                  : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    /* What was captured is past: there is nothing to wait for. */
    if (!other)
        return CUDA_ERROR_CAPTURED_EVENT;
    stream_set_capture(stream, other);
    return CUDA_SUCCESS;
}

/* A thread may relax what its own calls do, never what others forbid it. */
static int forbids(const struct capture *capture)
{
    int own = pthread_equal(capture->thread, pthread_self());

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return 0;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
        return own || thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    return capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own;
}

CUresult capture_forbid(CUstream stream)
{
    struct capture *waited_for = stream ? stream_capture(stream) : NULL;
    CUresult rc = CUDA_SUCCESS;

    if (!running)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct capture *c = captures; c; c = c->next) {
        if (c == waited_for || forbids(c)) {
            c->invalid = 1;
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Takes over the caller's reference to the graph. */
static struct capture *capture_new(CUstream origin, CUgraph graph,
                                   CUstreamCaptureMode mode)
{
    static _Atomic uint64_t last_id;
    struct capture *capture = graph ? calloc(1, sizeof(*capture)) : NULL;

    if (!capture) {
        if (graph)
            graph_put(graph);
        return NULL;
    }
    capture->graph = graph;
    capture->origin = origin;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->id = ++last_id;
    return capture;
}

static CUresult check_begin(CUstream handle, CUstreamCaptureMode mode,
                            CUstream *s)
{
    CUresult rc = stream_resolve(handle, s);

    if (rc)
        return rc;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle || handle == CU_STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return stream_capture(*s) ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

static CUresult begin(CUstream s, CUgraph graph, int given,
                      CUstreamCaptureMode mode)
{
    struct capture *capture = capture_new(s, graph, mode);

    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->given = given;
    enlist(capture);
    stream_set_capture(s, capture);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamBeginCapture(CUstream handle,
                                         CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult rc = check_begin(handle, mode, &s);

    return rc ? rc : begin(s, graph_new(), 0, mode);
}

/* What is captured comes behind what the graph holds. */
FABRIC_API CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                const CUgraphNode *dependencies,
                                                const CUgraphEdgeData *edges,
                                                size_t count,
                                                CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult rc = check_begin(handle, mode, &s);

    if (rc)
        return rc;
    if (!graph || edges || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    graph_get(graph);
    return begin(s, graph, 1, mode);
}

static CUresult check_end(const struct capture *capture, CUstream s)
{
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != s)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct capture *capture;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    capture = stream_capture(s);
    rc = check_end(capture, s);
    if (rc)
        return rc;
    stream_leave_capture(capture);
    delist(capture);
    *graph = capture->invalid ? NULL : capture->graph;
    if (capture->invalid)
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (capture->invalid || capture->given)
        graph_put(capture->graph);
    free(capture);
    return rc;
}

static CUstreamCaptureStatus status_of(struct capture *capture)
{
    if (!capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return is_invalid(capture) ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

FABRIC_API CUresult cuStreamIsCapturing(CUstream handle,
                                        CUstreamCaptureStatus *status)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *status = status_of(stream_capture(s));
    return rc;
}

/* Dependencies are those of a list: the last node is the only one. */
static CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status,
                             cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **last, size_t *count)
{
    struct capture *capture;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    capture = stream_capture(s);
    *status = status_of(capture);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = capture->id;
    if (graph)
        *graph = capture->graph;
    if (last)
        *last = graph_last(capture->graph);
    if (count)
        *count = *graph_last(capture->graph) ? 1 : 0;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamGetCaptureInfo_v2(CUstream handle,
                                              CUstreamCaptureStatus *status,
                                              cuuint64_t *id, CUgraph *graph,
                                              const CUgraphNode **dependencies,
                                              size_t *count)
{
    return capture_info(handle, status, id, graph, dependencies, count);
}

FABRIC_API CUresult cuStreamGetCaptureInfo(CUstream handle,
                                           CUstreamCaptureStatus *status,
                                           cuuint64_t *id, CUgraph *graph,
                                           const CUgraphNode **dependencies,
                                           const CUgraphEdgeData **edges,
                                           size_t *count)
{
    if (edges)
        *edges = NULL;
    return capture_info(handle, status, id, graph, dependencies, count);
}

FABRIC_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode given;

    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    given = *mode;
    *mode = thread_mode;
    thread_mode = given;
    return CUDA_SUCCESS;
}
