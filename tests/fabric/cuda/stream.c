#include "cuda/stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/export.h"
#include "cuda/capture.h"
#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/perthread.h"

struct task {
    struct task *next;
    const struct fabric_task *kind;
    void *arg;
    int kept; /* by its graph: not ours to drop */
    int64_t issued_ns;
};

struct CUstream_st {
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t idle;
    struct task *head;
    struct task **tail;
    int busy;
    int started;
    int destroyed;
    int device;
    unsigned flags;
    int priority;
    unsigned long long id;
    int64_t now_ns; /* the thread's own: when its last task ended */
    _Atomic(struct capture *) capture;
    struct CUstream_st *next;
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *streams;
static struct CUstream_st *default_stream[FABRIC_MAX_DEVICES];
static unsigned long long last_id;

static struct CUstream_st *stream_new(int device, unsigned flags, int priority)
{
    struct CUstream_st *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->idle, NULL);
    s->tail = &s->head;
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    return s;
}

static void stream_free(struct CUstream_st *s)
{
    pthread_cond_destroy(&s->idle);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* The caller holds the registry. */
static void enlist(struct CUstream_st *s)
{
    s->id = ++last_id;
    s->next = streams;
    streams = s;
}

static void delist(struct CUstream_st *s)
{
    for (struct CUstream_st **p = &streams; *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            return;
        }
    }
}

static int64_t start_time(const struct CUstream_st *s, const struct task *task)
{
    int64_t start = s->now_ns;
    int64_t now = fabric_now_ns();

    if (start < task->issued_ns)
        start = task->issued_ns;
    return now - start > fabric_config()->catch_up_ns ? now : start;
}

/* Takes the next task; NULL when the stream is destroyed and empty. */
static struct task *take(struct CUstream_st *s)
{
    struct task *task;

    while (!s->head && !s->destroyed)
        pthread_cond_wait(&s->work, &s->lock);
    task = s->head;
    if (!task)
        return NULL;
    s->head = task->next;
    if (!s->head)
        s->tail = &s->head;
    s->busy = 1;
    return task;
}

static void *work(void *arg)
{
    struct CUstream_st *s = arg;
    struct task *task;

    prctl(PR_SET_TIMERSLACK, 1UL);
    pthread_mutex_lock(&s->lock);
    while ((task = take(s))) {
        pthread_mutex_unlock(&s->lock);
        s->now_ns = task->kind->run(task->arg, start_time(s, task));
        if (!task->kept && task->kind->drop)
            task->kind->drop(task->arg);
        free(task);
        pthread_mutex_lock(&s->lock);
        s->busy = 0;
        if (!s->head)
            pthread_cond_broadcast(&s->idle);
    }
    pthread_mutex_unlock(&s->lock);
    stream_free(s);
    return NULL;
}

/* A program may create many streams that it never uses: start late. */
static int start(struct CUstream_st *s)
{
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    int rc;

    if (s->started)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, work, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return -1;
    pthread_detach(thread);
    s->started = 1;
    return 0;
}

static CUresult enqueue(CUstream s, const struct fabric_task *kind, void *arg,
                        int kept)
{
    struct task *task = malloc(sizeof(*task));
    int rc;

    if (!task)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *task = (struct task){.kind = kind, .arg = arg, .kept = kept};
    task->issued_ns = fabric_now_ns();
    pthread_mutex_lock(&s->lock);
    rc = start(s);
    if (!rc) {
        *s->tail = task;
        s->tail = &task->next;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    if (rc) {
        free(task);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult stream_push_plain(CUstream s, const struct fabric_task *task,
                           void *arg)
{
    return enqueue(s, task, arg, 0);
}

static int is_idle(CUstream s)
{
    int idle;

    pthread_mutex_lock(&s->lock);
    idle = !s->head && !s->busy;
    pthread_mutex_unlock(&s->lock);
    return idle;
}

static int is_blocking(const struct CUstream_st *s)
{
    return !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* The legacy rule: the default stream and the blocking ones take turns. */
static CUresult keep_legacy_order(CUstream s)
{
    CUresult rc = CUDA_SUCCESS;
    CUstream legacy;

    pthread_mutex_lock(&registry);
    legacy = default_stream[s->device];
    if (s == legacy) {
        for (CUstream t = streams; t && !rc; t = t->next) {
            if (t != s && t->device == s->device && is_blocking(t) &&
                !is_idle(t))
                rc = event_order(t, s);
        }
    } else if (legacy && is_blocking(s) && !is_idle(legacy)) {
        rc = event_order(legacy, s);
    }
    pthread_mutex_unlock(&registry);
    return rc;
}

static CUresult push(CUstream s, const struct fabric_task *task, void *arg,
                     int kept)
{
    struct capture *capture = stream_capture(s);
    CUresult rc;

    if (capture)
        return kept ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                    : capture_add(capture, task, arg);
    rc = keep_legacy_order(s);
    return rc ? rc : enqueue(s, task, arg, kept);
}

CUresult stream_push(CUstream s, const struct fabric_task *task, void *arg)
{
    return push(s, task, arg, 0);
}

struct capture *stream_capture(CUstream s)
{
    return atomic_load(&s->capture);
}

void stream_set_capture(CUstream s, struct capture *capture)
{
    atomic_store(&s->capture, capture);
}

void stream_leave_capture(struct capture *capture)
{
    pthread_mutex_lock(&registry);
    for (CUstream s = streams; s; s = s->next) {
        if (stream_capture(s) == capture)
            stream_set_capture(s, NULL);
    }
    pthread_mutex_unlock(&registry);
}

int stream_device(CUstream s)
{
    return s->device;
}

void stream_drain(CUstream s)
{
    pthread_mutex_lock(&s->lock);
    while (s->head || s->busy)
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* One busy stream of the device, or NULL; a stream may go while we wait. */
static CUstream find_busy(int device)
{
    CUstream found = NULL;

    pthread_mutex_lock(&registry);
    for (CUstream s = streams; s && !found; s = s->next) {
        if (s->device == device && !is_idle(s))
            found = s;
    }
    pthread_mutex_unlock(&registry);
    return found;
}

void stream_drain_device(int device)
{
    for (CUstream s; (s = find_busy(device));)
        stream_drain(s);
}

static CUstream default_of(int device)
{
    CUstream s;

    pthread_mutex_lock(&registry);
    if (!default_stream[device]) {
        default_stream[device] = stream_new(device, CU_STREAM_DEFAULT, 0);
        if (default_stream[device])
            enlist(default_stream[device]);
    }
    s = default_stream[device];
    pthread_mutex_unlock(&registry);
    return s;
}

CUresult stream_resolve(CUstream handle, CUstream *stream)
{
    CUcontext ctx;

    if (handle && handle != CU_STREAM_LEGACY &&
        handle != CU_STREAM_PER_THREAD) {
        *stream = handle;
        return CUDA_SUCCESS;
    }
    ctx = context_current();
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (handle == CU_STREAM_PER_THREAD)
        return perthread_stream(context_device(ctx), stream);
    *stream = default_of(context_device(ctx));
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

FABRIC_API CUresult fabric_launch(CUstream handle,
                                  const struct fabric_task *task, void *arg)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    return rc ? rc : push(s, task, arg, 0);
}

FABRIC_API CUresult fabric_relaunch(CUstream handle,
                                    const struct fabric_task *task, void *arg)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    return rc ? rc : push(s, task, arg, 1);
}

FABRIC_API CUresult cuStreamCreateWithPriority(CUstream *stream,
                                               unsigned int flags, int priority)
{
    CUcontext ctx = context_current();
    struct CUstream_st *s;

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    s = stream_new(context_device(ctx), flags, priority);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&registry);
    enlist(s);
    pthread_mutex_unlock(&registry);
    *stream = s;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* Work that is still queued is done; the thread then frees the stream. */
FABRIC_API CUresult cuStreamDestroy(CUstream s)
{
    int started;

    if (!s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&registry);
    delist(s);
    pthread_mutex_unlock(&registry);
    pthread_mutex_lock(&s->lock);
    started = s->started;
    s->destroyed = 1;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    if (!started)
        stream_free(s);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        rc = capture_forbid(s);
    if (rc)
        return rc;
    stream_drain(s);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuStreamQuery(CUstream handle)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        rc = capture_forbid(s);
    if (rc)
        return rc;
    return is_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

FABRIC_API CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *ctx = context_primary(s->device);
    return rc;
}

FABRIC_API CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *device = s->device;
    return rc;
}

FABRIC_API CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *flags = s->flags;
    return rc;
}

FABRIC_API CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *priority = s->priority;
    return rc;
}

FABRIC_API CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (!rc)
        *id = s->id;
    return rc;
}
