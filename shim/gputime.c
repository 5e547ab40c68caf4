#include "gpu.h"

#include "capture.h"
#include "driver.h"
#include "lock.h"
#include "log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAIRS_FIRST = 1024, /* with the first communicator of a device */
    PAIRS_MORE = 128,   /* with each further one */
    PAIR_BITS = 16
};
static struct {
    struct lock lock;
    struct gpu *gpus[GPUS];
    _Atomic int n;
    _Atomic bool ended;
    _Atomic uint64_t exhausted;
    _Atomic uint64_t untimed;
} state = {.lock = LOCK_INITIALIZER};

static void give_up(struct gpu *gpu, const char *what, int error)
{
    atomic_store_explicit(&gpu->broken, true, memory_order_relaxed);
    log_line(LOG_GPU, "no more GPU times of device %d: %s gave CUDA error %d",
             gpu->device, what, error);
}

/* 0: the driver, before CUDA 12, does not tell. */
static unsigned long long life_of(void *ctx)
{
    unsigned long long id = 0;
    if (driver.ctx_get_id && driver.ctx_get_id(ctx, &id) != DRIVER_OK)
        return 0;
    return id;
}

bool gpu_lives(struct gpu *gpu)
{
    if (gpu->life && gpu_is_usable(gpu) && life_of(gpu->ctx) != gpu->life)
        atomic_store_explicit(&gpu->broken, true, memory_order_relaxed);
    return gpu_is_usable(gpu);
}

/* Not calloc: what threads contend for has cache lines of its own. */
static struct gpu *allocate(void)
{
    struct gpu *gpu = aligned_alloc(_Alignof(struct gpu), sizeof(*gpu));
    if (gpu)
        memset(gpu, 0, sizeof(*gpu));
    return gpu;
}

static struct gpu *make_gpu(int device, void *ctx)
{
    int n = atomic_load_explicit(&state.n, memory_order_relaxed);
    if (n == GPUS)
        return NULL;
    struct gpu *gpu = allocate();
    if (!gpu || pairs_init(&gpu->pairs) != 0 ||
        driver.stream_create(&gpu->tie_stream, DRIVER_STREAM_NON_BLOCKING) ||
        driver.event_create(&gpu->tie_event[0], 0) ||
        driver.event_create(&gpu->tie_event[1], 0)) {
        if (gpu)
            pairs_release(&gpu->pairs);
        free(gpu);
        return NULL;
    }
    gpu->index = n;
    gpu->device = device;
    gpu->ctx = ctx;
    gpu->life = life_of(ctx);
    gpu_tie_first(gpu);
    state.gpus[n] = gpu;
    atomic_store_explicit(&state.n, n + 1, memory_order_release);
    return gpu;
}

static struct gpu *find_gpu(int device, void *ctx)
{
    int n = atomic_load_explicit(&state.n, memory_order_relaxed);
    unsigned long long life = life_of(ctx);
    for (int i = 0; i < n; i++) {
        struct gpu *gpu = state.gpus[i];
        if (gpu->device == device && gpu->ctx == ctx && gpu->life == life)
            return gpu;
    }
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
    if (gpu)
        pairs_grow(&gpu->pairs, PAIRS_MORE);
    else if ((gpu = make_gpu(device, ctx)))
        pairs_grow(&gpu->pairs, PAIRS_FIRST);
    driver.ctx_pop(&ctx);
    return gpu;
}

struct gpu *gpu_prepare(int device)
{
    struct gpu *gpu = NULL;
    lock_take(&state.lock);
    if (device >= 0 && !atomic_load(&state.ended) && driver_open()) {
        int mode = capture_relax();
        gpu = prepare(device);
        capture_restore(mode);
        if (!gpu)
            atomic_fetch_add_explicit(&state.untimed, 1, memory_order_relaxed);
    }
    lock_give(&state.lock);
    return gpu;
}

int gpu_current(void)
{
    int device = -1;
    lock_take(&state.lock);
    if (gpu_is_there() && driver_open() &&
        driver.ctx_get_device(&device) != DRIVER_OK)
        device = -1;
    lock_give(&state.lock);
    return device;
}

bool gpu_is_there(void)
{
    return !atomic_load_explicit(&state.ended, memory_order_relaxed);
}

bool gpu_is_usable(struct gpu *gpu)
{
    return !atomic_load_explicit(&gpu->broken, memory_order_relaxed) &&
           gpu_is_there();
}

static int record(struct gpu *gpu, void *event, uint64_t stream)
{
    if (stream > DRIVER_LAST_DEFAULT_STREAM)
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
    return &gpu_of(pair)->pairs.all[pair & ((1 << PAIR_BITS) - 1)];
}

void gpu_drop(int32_t pair)
{
    if (pair >= 0)
        pairs_give(&gpu_of(pair)->pairs,
                   (uint32_t)pair & ((1 << PAIR_BITS) - 1));
}

int32_t gpu_start(struct gpu *gpu, uint64_t stream)
{
    if (!gpu_is_usable(gpu))
        return -1;
    int64_t number = pairs_take(&gpu->pairs);
    if (number < 0) {
        atomic_fetch_add_explicit(&state.exhausted, 1, memory_order_relaxed);
        return -1;
    }
    int saved = errno;
    int error = record(gpu, gpu->pairs.all[number].start, stream);
    int32_t pair = gpu->index << PAIR_BITS | (int32_t)number;
    if (error) {
        if (!capture_is_error(error))
            give_up(gpu, "cuEventRecord", error);
        gpu_drop(pair);
        pair = -1;
    }
    errno = saved;
    return pair;
}

void gpu_stop(int32_t pair, uint64_t stream)
{
    if (pair < 0 || !gpu_is_usable(gpu_of(pair)))
        return;
    int saved = errno;
    int error = record(gpu_of(pair), pair_of(pair)->stop, stream);
    if (error && !capture_is_error(error))
        give_up(gpu_of(pair), "cuEventRecord", error);
    errno = saved;
}

bool gpu_stop_elsewhere(int32_t pair, uint64_t stream)
{
    struct gpu *gpu = gpu_of(pair);
    void *ctx = gpu->ctx;
    if (!gpu_is_usable(gpu) || driver.ctx_push(ctx))
        return false;
    int error = record(gpu, pair_of(pair)->stop, stream);
    driver.ctx_pop(&ctx);
    return error == DRIVER_OK;
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
    /* A context that is reset meanwhile fails before it is known to be gone. */
    if (gpu_is_usable(gpu) && driver.ctx_set_current(gpu->ctx) == DRIVER_OK)
        result = read_pair(gpu, pair_of(pair), start_ns, gpu_ns);
    if (result == GPU_FAILED)
        atomic_fetch_add_explicit(&state.untimed, 1, memory_order_relaxed);
    if (result != GPU_PENDING)
        gpu_drop(pair);
    return result;
}

int gpu_all(struct gpu **gpus)
{
    int n = atomic_load_explicit(&state.n, memory_order_acquire);
    for (int i = 0; i < n; i++)
        gpus[i] = state.gpus[i];
    return n;
}

uint64_t gpu_exhausted(void)
{
    return atomic_load_explicit(&state.exhausted, memory_order_relaxed);
}

uint64_t gpu_untimed(void)
{
    return atomic_load_explicit(&state.untimed, memory_order_relaxed);
}

bool gpu_scarce(void)
{
    int gpus = atomic_load_explicit(&state.n, memory_order_acquire);
    for (int i = 0; i < gpus; i++) {
        struct gpu *gpu = state.gpus[i];
        if (pairs_are_scarce(&gpu->pairs))
            return true;
    }
    return false;
}

void gpu_end(void)
{
    atomic_store(&state.ended, true);
}
