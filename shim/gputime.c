#include "gputime.h"

#include "clock.h"
#include "driver.h"
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    GPUS = 64,          /* devices and contexts */
    PAIRS_FIRST = 1024, /* with the first communicator of a device */
    PAIRS_MORE = 128,   /* with each further one, up to PAIRS_MAX */
    PAIRS_MAX = 4096,
    PAIR_BITS = 16
};
#define TIE_EVERY_NS INT64_C(1000000000)
/* How much an anchor's uncertainty grows: 10 us a second covers the drift
 * between the clocks and the rounding of a float of milliseconds. */
#define DRIFT_PER_NS 1e-5

struct pair {
    void *start;
    void *stop;
    _Atomic uint32_t next; /* number + 1 in the free list */
};

struct gpu {
    int index;
    int device;
    void *ctx;
    struct pair *pairs;
    _Atomic uint32_t npairs;
    _Atomic uint32_t free_pairs;
    /* First free number + 1, below a count that makes each value new. */
    _Alignas(64) _Atomic uint64_t free;
    _Atomic bool broken;
    /* The writer's. */
    void *tie_stream;
    void *tie_event[2]; /* in force, and the next */
    int64_t tie_ns;     /* the middle of the bracket */
    int64_t tie_width_ns;
    int64_t tied_ns; /* when we last tried; 0: never */
};

static struct {
    pthread_mutex_t lock;
    struct gpu *gpus[GPUS];
    _Atomic int n;
    _Atomic bool ended;
    _Atomic uint64_t exhausted;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void push_free(struct gpu *gpu, uint32_t number)
{
    uint64_t old = atomic_load_explicit(&gpu->free, memory_order_relaxed);
    uint64_t new;
    do {
        atomic_store_explicit(&gpu->pairs[number].next, (uint32_t)old,
                              memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | (number + 1);
        /* Release: the next owner sees our last use of the events. */
    } while (!atomic_compare_exchange_weak_explicit(
        &gpu->free, &old, new, memory_order_release, memory_order_relaxed));
    atomic_fetch_add_explicit(&gpu->free_pairs, 1, memory_order_relaxed);
}

static int64_t pop_free(struct gpu *gpu)
{
    uint64_t old = atomic_load_explicit(&gpu->free, memory_order_acquire);
    uint64_t new;
    uint32_t number;
    do {
        number = (uint32_t)old;
        if (!number)
            return -1;
        uint32_t next = atomic_load_explicit(&gpu->pairs[number - 1].next,
                                             memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | next;
    } while (!atomic_compare_exchange_weak_explicit(
        &gpu->free, &old, new, memory_order_acquire, memory_order_acquire));
    atomic_fetch_sub_explicit(&gpu->free_pairs, 1, memory_order_relaxed);
    return number - 1;
}

static void give_up(struct gpu *gpu, const char *what, int error)
{
    atomic_store_explicit(&gpu->broken, true, memory_order_relaxed);
    log_line(LOG_GPU, "no more GPU times of device %d: %s gave CUDA error %d",
             gpu->device, what, error);
}

/* The current context must be the GPU's. */
static void make_pairs(struct gpu *gpu, uint32_t wanted)
{
    uint32_t n = atomic_load_explicit(&gpu->npairs, memory_order_relaxed);
    for (; n < wanted; n++) {
        struct pair *pair = &gpu->pairs[n];
        if (driver.event_create(&pair->start, 0) != DRIVER_OK ||
            driver.event_create(&pair->stop, 0) != DRIVER_OK)
            break;
        push_free(gpu, n);
    }
    atomic_store_explicit(&gpu->npairs, n, memory_order_relaxed);
}

static struct gpu *make_gpu(int device, void *ctx)
{
    int n = atomic_load_explicit(&state.n, memory_order_relaxed);
    if (n == GPUS)
        return NULL;
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    struct pair *pairs = calloc(PAIRS_MAX, sizeof(*pairs));
    if (!gpu || !pairs ||
        driver.stream_create(&gpu->tie_stream, DRIVER_STREAM_NON_BLOCKING) ||
        driver.event_create(&gpu->tie_event[0], 0) ||
        driver.event_create(&gpu->tie_event[1], 0)) {
        free(gpu);
        free(pairs);
        return NULL;
    }
    gpu->index = n;
    gpu->device = device;
    gpu->ctx = ctx;
    gpu->pairs = pairs;
    state.gpus[n] = gpu;
    atomic_store_explicit(&state.n, n + 1, memory_order_release);
    return gpu;
}

static struct gpu *find_gpu(int device, const void *ctx)
{
    int n = atomic_load_explicit(&state.n, memory_order_relaxed);
    for (int i = 0; i < n; i++)
        if (state.gpus[i]->device == device && state.gpus[i]->ctx == ctx)
            return state.gpus[i];
    return NULL;
}

/* The context that NCCL used: the current one if it is the device's, else the
 * device's primary one. */
static void *context_of(int device)
{
    void *ctx = NULL;
    int ordinal, active = 0;
    unsigned flags;
    if (driver.ctx_get_current(&ctx) == DRIVER_OK && ctx &&
        driver.ctx_get_device(&ordinal) == DRIVER_OK && ordinal == device)
        return ctx;
    if (!driver.primary_get_state || !driver.primary_retain ||
        driver.device_get(&ordinal, device) != DRIVER_OK ||
        driver.primary_get_state(ordinal, &flags, &active) != DRIVER_OK ||
        !active || driver.primary_retain(&ctx, ordinal) != DRIVER_OK)
        return NULL;
    return ctx;
}

static struct gpu *prepare(int device)
{
    void *ctx = context_of(device);
    if (!ctx || driver.ctx_push(ctx) != DRIVER_OK)
        return NULL;
    struct gpu *gpu = find_gpu(device, ctx);
    uint32_t wanted = PAIRS_FIRST;
    if (gpu)
        wanted = atomic_load_explicit(&gpu->npairs, memory_order_relaxed) +
                 PAIRS_MORE;
    else
        gpu = make_gpu(device, ctx);
    if (gpu)
        make_pairs(gpu, wanted < PAIRS_MAX ? wanted : PAIRS_MAX);
    driver.ctx_pop(&ctx);
    return gpu;
}

struct gpu *gpu_prepare(int device)
{
    struct gpu *gpu = NULL;
    pthread_mutex_lock(&state.lock);
    if (device >= 0 && !atomic_load(&state.ended) && driver_open())
        gpu = prepare(device);
    pthread_mutex_unlock(&state.lock);
    return gpu;
}

static bool usable(struct gpu *gpu)
{
    return !atomic_load_explicit(&gpu->broken, memory_order_relaxed) &&
           !atomic_load_explicit(&state.ended, memory_order_relaxed);
}

static bool is_capture_error(int error)
{
    return error >= DRIVER_CAPTURE_ERRORS && error <= DRIVER_CAPTURE_ERRORS_END;
}

/* The default streams are those of the current context. */
enum { LAST_DEFAULT_STREAM = 2 };

static int record(struct gpu *gpu, void *event, uint64_t stream)
{
    if (stream > LAST_DEFAULT_STREAM)
        return driver.event_record(event, (void *)(uintptr_t)stream);
    void *ctx = gpu->ctx;
    int error = driver.ctx_push(ctx);
    if (error)
        return error;
    error = driver.event_record(event, (void *)(uintptr_t)stream);
    driver.ctx_pop(&ctx);
    return error;
}

static struct gpu *gpu_of(int32_t pair)
{
    return state.gpus[pair >> PAIR_BITS];
}

static struct pair *pair_of(int32_t pair)
{
    return &gpu_of(pair)->pairs[pair & ((1 << PAIR_BITS) - 1)];
}

void gpu_drop(int32_t pair)
{
    if (pair >= 0)
        push_free(gpu_of(pair), (uint32_t)pair & ((1 << PAIR_BITS) - 1));
}

int32_t gpu_start(struct gpu *gpu, uint64_t stream)
{
    if (!usable(gpu))
        return -1;
    int64_t number = pop_free(gpu);
    if (number < 0) {
        atomic_fetch_add_explicit(&state.exhausted, 1, memory_order_relaxed);
        return -1;
    }
    int saved = errno;
    int error = record(gpu, gpu->pairs[number].start, stream);
    int32_t pair = gpu->index << PAIR_BITS | (int32_t)number;
    if (error) {
        if (!is_capture_error(error))
            give_up(gpu, "cuEventRecord", error);
        gpu_drop(pair);
        pair = -1;
    }
    errno = saved;
    return pair;
}

void gpu_stop(int32_t pair, uint64_t stream)
{
    if (pair < 0 || !usable(gpu_of(pair)))
        return;
    int saved = errno;
    int error = record(gpu_of(pair), pair_of(pair)->stop, stream);
    if (error && !is_capture_error(error))
        give_up(gpu_of(pair), "cuEventRecord", error);
    errno = saved;
}

static int capture_status(struct gpu *gpu, uint64_t stream, int *status)
{
    void *handle = (void *)(uintptr_t)stream;
    if (stream > LAST_DEFAULT_STREAM)
        return driver.stream_is_capturing(handle, status);
    void *ctx = gpu->ctx;
    int error = driver.ctx_push(ctx);
    if (error)
        return error;
    error = driver.stream_is_capturing(handle, status);
    driver.ctx_pop(&ctx);
    return error;
}

bool gpu_is_capturing(struct gpu *gpu, uint64_t stream)
{
    if (!driver.stream_is_capturing || !usable(gpu))
        return false;
    int saved = errno;
    int status = 0;
    /* Asking the legacy stream beside a capture is an error that says so. */
    int error = capture_status(gpu, stream, &status);
    errno = saved;
    return status || is_capture_error(error);
}

static enum gpu_read read_pair(struct gpu *gpu, struct pair *pair,
                               int64_t *start_ns, int64_t *gpu_ns)
{
    if (gpu->tie_width_ns == 0)
        return GPU_PENDING;
    int ready = driver.event_query(pair->stop);
    if (ready == DRIVER_NOT_READY)
        return GPU_PENDING;
    float duration_ms, offset_ms;
    if (ready || driver.event_elapsed(&duration_ms, pair->start, pair->stop) ||
        driver.event_elapsed(&offset_ms, gpu->tie_event[0], pair->start))
        return GPU_FAILED;
    *gpu_ns = (int64_t)(duration_ms * 1e6);
    *start_ns = gpu->tie_ns + (int64_t)(offset_ms * 1e6);
    return GPU_DONE;
}

enum gpu_read gpu_read(int32_t pair, int64_t *start_ns, int64_t *gpu_ns)
{
    struct gpu *gpu = gpu_of(pair);
    enum gpu_read result = GPU_FAILED;
    if (atomic_load_explicit(&state.ended, memory_order_relaxed))
        return GPU_PENDING; /* and for ever */
    if (usable(gpu) && driver.ctx_set_current(gpu->ctx) == DRIVER_OK)
        result = read_pair(gpu, pair_of(pair), start_ns, gpu_ns);
    if (result != GPU_PENDING)
        gpu_drop(pair);
    return result;
}

/* Records the next anchor and waits for it, briefly: the GPU takes the event
 * at some moment inside the bracket. */
static bool bracket(struct gpu *gpu, int64_t *at_ns, int64_t *width_ns)
{
    int64_t before = clock_ns();
    if (driver.event_record(gpu->tie_event[1], gpu->tie_stream) != DRIVER_OK)
        return false;
    int64_t after;
    int ready;
    do {
        ready = driver.event_query(gpu->tie_event[1]);
        after = clock_ns();
    } while (ready == DRIVER_NOT_READY && after - before < 5000000);
    *at_ns = before + (after - before) / 2;
    *width_ns = after - before + 1;
    return ready == DRIVER_OK;
}

static bool is_better(const struct gpu *gpu, int64_t at_ns, int64_t width_ns)
{
    double age = (double)(at_ns - gpu->tie_ns);
    return gpu->tie_width_ns == 0 ||
           (double)width_ns <= (double)gpu->tie_width_ns + age * DRIFT_PER_NS;
}

/* The narrowest of a few brackets replaces the anchor unless it is worse than
 * the old one has become. */
static bool tie(struct gpu *gpu, struct gpu_anchor *anchor)
{
    bool tied = false;
    gpu->tied_ns = clock_ns();
    if (!usable(gpu) || driver.ctx_set_current(gpu->ctx) != DRIVER_OK)
        return false;
    for (int i = 0; i < 4; i++) {
        int64_t at_ns, width_ns;
        if (!bracket(gpu, &at_ns, &width_ns))
            break;
        if (!is_better(gpu, at_ns, width_ns))
            continue;
        void *event = gpu->tie_event[0];
        gpu->tie_event[0] = gpu->tie_event[1];
        gpu->tie_event[1] = event;
        gpu->tie_ns = at_ns;
        gpu->tie_width_ns = width_ns;
        tied = true;
    }
    *anchor = (struct gpu_anchor){
        .device = gpu->device,
        .at_ns = gpu->tie_ns,
        .real_ns = clock_real_ns() - (clock_ns() - gpu->tie_ns),
        .width_ns = gpu->tie_width_ns,
    };
    return tied;
}

static bool is_due(const struct gpu *gpu)
{
    int64_t every = gpu->tie_width_ns ? TIE_EVERY_NS : TIE_EVERY_NS / 10;
    return gpu->tied_ns == 0 || clock_ns() - gpu->tied_ns >= every;
}

/* What this thread asks of the driver must not break a capture elsewhere. */
static void leave_captures_alone(void)
{
    static bool done;
    int mode = DRIVER_CAPTURE_RELAXED;
    if (!done && driver.exchange_capture_mode)
        driver.exchange_capture_mode(&mode);
    done = true;
}

int gpu_tie(struct gpu_anchor *anchors, int n)
{
    int filled = 0;
    int gpus = atomic_load_explicit(&state.n, memory_order_acquire);
    if (gpus)
        leave_captures_alone();
    for (int i = 0; i < gpus && filled < n; i++) {
        if (is_due(state.gpus[i]) && tie(state.gpus[i], &anchors[filled]))
            filled++;
    }
    return filled;
}

uint64_t gpu_exhausted(void)
{
    return atomic_load_explicit(&state.exhausted, memory_order_relaxed);
}

bool gpu_scarce(void)
{
    int gpus = atomic_load_explicit(&state.n, memory_order_acquire);
    for (int i = 0; i < gpus; i++) {
        struct gpu *gpu = state.gpus[i];
        uint32_t left =
            atomic_load_explicit(&gpu->free_pairs, memory_order_relaxed);
        uint32_t all = atomic_load_explicit(&gpu->npairs, memory_order_relaxed);
        if (left < all / 2)
            return true;
    }
    return false;
}

void gpu_end(void)
{
    atomic_store(&state.ended, true);
}
