#include "cuda/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/stream.h"

/* Queued records and waits hold references: an event may be destroyed early. */
struct CUevent_st {
    _Atomic int refs;
    int device;
    int life; /* of the device's context */
    unsigned flags;
    pthread_mutex_t lock;
    pthread_cond_t reached;
    uint64_t recorded; /* how often, and how many of those have been reached */
    uint64_t done;
    int64_t time_ns;
    uint64_t capture_id; /* it was last recorded in this capture; 0: in none */
};

/* The n-th record of an event, queued on a stream. */
struct visit {
    struct CUevent_st *event;
    uint64_t number;
};

static struct CUevent_st *event_new(int device, unsigned flags)
{
    struct CUevent_st *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->refs = 1;
    e->device = device;
    e->life = context_life(device);
    e->flags = flags;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->reached, NULL);
    return e;
}

static bool is_dead(const struct CUevent_st *e)
{
    return e->life != context_life(e->device);
}

static void event_put(struct CUevent_st *e)
{
    if (atomic_fetch_sub(&e->refs, 1) > 1)
        return;
    pthread_cond_destroy(&e->reached);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void visit_drop(void *arg)
{
    struct visit *visit = arg;

    event_put(visit->event);
    free(visit);
}

static int64_t reach(void *arg, int64_t start_ns)
{
    struct visit *visit = arg;
    struct CUevent_st *e = visit->event;

    pthread_mutex_lock(&e->lock);
    if (visit->number > e->done) {
        e->done = visit->number;
        e->time_ns = start_ns;
        pthread_cond_broadcast(&e->reached);
    }
    pthread_mutex_unlock(&e->lock);
    return start_ns;
}

static int64_t await(void *arg, int64_t start_ns)
{
    struct visit *visit = arg;
    struct CUevent_st *e = visit->event;

    pthread_mutex_lock(&e->lock);
    while (e->done < visit->number)
        pthread_cond_wait(&e->reached, &e->lock);
    /* A later record's time would be too late: then ours is long past. */
    if (e->done == visit->number && e->time_ns > start_ns)
        start_ns = e->time_ns;
    pthread_mutex_unlock(&e->lock);
    return start_ns;
}

static const struct fabric_task reach_task = {reach, visit_drop, NULL};
static const struct fabric_task await_task = {await, visit_drop, NULL};

typedef CUresult push_fn(CUstream stream, const struct fabric_task *task,
                         void *arg);

static CUresult push_visit(CUstream s, push_fn *push, struct CUevent_st *e,
                           uint64_t number, const struct fabric_task *task)
{
    struct visit *visit = malloc(sizeof(*visit));
    CUresult rc;

    if (!visit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *visit = (struct visit){e, number};
    atomic_fetch_add(&e->refs, 1);
    rc = push(s, task, visit);
    if (rc)
        visit_drop(visit);
    return rc;
}

static CUresult record(CUstream s, push_fn *push, struct CUevent_st *e)
{
    uint64_t number;

    pthread_mutex_lock(&e->lock);
    number = ++e->recorded;
    e->capture_id = 0;
    pthread_mutex_unlock(&e->lock);
    return push_visit(s, push, e, number, &reach_task);
}

CUresult event_order(CUstream first, CUstream second)
{
    struct CUevent_st *e = event_new(0, CU_EVENT_DISABLE_TIMING);
    CUresult rc;

    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = record(first, stream_push_plain, e);
    if (!rc)
        rc = push_visit(second, stream_push_plain, e, 1, &await_task);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): references are counted */
    event_put(e);
    return rc;
}

FABRIC_API CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    CUcontext ctx = context_current();

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!event || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    *event = event_new(context_device(ctx), flags);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

FABRIC_API CUresult cuEventDestroy(CUevent e)
{
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    event_put(e);
    return CUDA_SUCCESS;
}

/* In a capture an event is a mark of what was captured before it. */
static CUresult record_captured(struct capture *capture, CUevent e)
{
    uint64_t id = capture_id(capture);

    if (!id)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    pthread_mutex_lock(&e->lock);
    e->capture_id = id;
    pthread_mutex_unlock(&e->lock);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuEventRecord(CUevent e, CUstream handle)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    if (!e || is_dead(e) || e->device != stream_device(s))
        return CUDA_ERROR_INVALID_HANDLE;
    return stream_capture(s) ? record_captured(stream_capture(s), e)
                             : record(s, stream_push, e);
}

FABRIC_API CUresult cuEventRecordWithFlags(CUevent e, CUstream s,
                                           unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : cuEventRecord(e, s);
}

FABRIC_API CUresult cuStreamWaitEvent(CUstream handle, CUevent e,
                                      unsigned int flags)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);
    uint64_t captured;
    uint64_t number;

    if (rc)
        return rc;
    if (!e || flags > 1)
        return e ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&e->lock);
    number = e->recorded;
    captured = e->capture_id;
    pthread_mutex_unlock(&e->lock);
    if (captured || stream_capture(s))
        return capture_join(s, captured);
    if (!number)
        return CUDA_SUCCESS;
    return push_visit(s, stream_push, e, number, &await_task);
}

/* The host may not ask for an event of a capture, nor for any while a capture
 * forbids it. */
static CUresult check_wait(CUevent e)
{
    CUresult rc = CUDA_SUCCESS;

    if (!e || is_dead(e))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&e->lock);
    if (e->capture_id)
        rc = CUDA_ERROR_CAPTURED_EVENT;
    pthread_mutex_unlock(&e->lock);
    return rc ? rc : capture_forbid(NULL);
}

FABRIC_API CUresult cuEventQuery(CUevent e)
{
    CUresult rc = check_wait(e);
    int done;

    if (rc)
        return rc;
    pthread_mutex_lock(&e->lock);
    done = e->done >= e->recorded;
    pthread_mutex_unlock(&e->lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

FABRIC_API CUresult cuEventSynchronize(CUevent e)
{
    CUresult rc = check_wait(e);
    uint64_t number;

    if (rc)
        return rc;
    pthread_mutex_lock(&e->lock);
    number = e->recorded;
    while (e->done < number)
        pthread_cond_wait(&e->reached, &e->lock);
    pthread_mutex_unlock(&e->lock);
    return CUDA_SUCCESS;
}

static CUresult read_time(CUevent e, int64_t *time_ns)
{
    CUresult rc = CUDA_SUCCESS;

    if (!e || is_dead(e))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&e->lock);
    if (!e->recorded || e->flags & CU_EVENT_DISABLE_TIMING)
        rc = CUDA_ERROR_INVALID_HANDLE;
    else if (e->done < e->recorded)
        rc = CUDA_ERROR_NOT_READY;
    *time_ns = e->time_ns;
    pthread_mutex_unlock(&e->lock);
    return rc;
}

FABRIC_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    int64_t start_ns;
    int64_t end_ns;
    CUresult rc = read_time(start, &start_ns);

    if (!rc || rc == CUDA_ERROR_NOT_READY) {
        CUresult second = read_time(end, &end_ns);

        rc = second ? second : rc;
    }
    if (!rc)
        *ms = (float)((double)(end_ns - start_ns) * 1e-6);
    return rc;
}

#undef cuEventDestroy
#undef cuEventElapsedTime
FABRIC_API CUresult cuEventDestroy(CUevent e);
FABRIC_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);

CUresult cuEventDestroy(CUevent e)
{
    return cuEventDestroy_v2(e);
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(ms, start, end);
}
