#include "profiler.h"

#include "commtrace/profiler_abi.h"
#include "lock.h"
#include "profiler_parts.h"
#include "profiler_queue.h"
#include "record.h"
#include "told.h"

#include <errno.h>
#include <stdlib.h>

static struct {
    _Atomic enum profiler_mode mode;
    _Atomic uint64_t lost[PROFILER_LOSSES];
    _Atomic uint32_t told; /* communicators that are not over */
    struct lock lock;
    _Atomic(struct profiled *) comms; /* newest first */
    struct profiled *unused;
} heard = {.lock = LOCK_INITIALIZER};

void profiler_begin(enum profiler_mode mode)
{
    atomic_store_explicit(&heard.mode, mode, memory_order_relaxed);
}

static enum profiler_mode mode_now(void)
{
    return atomic_load_explicit(&heard.mode, memory_order_relaxed);
}

bool profiler_is_on(void)
{
    return mode_now() != PROFILER_OFF;
}

bool profiler_is_wanted(void)
{
    return atomic_load_explicit(&init_live, memory_order_acquire)
               ? profiler_is_on()
               : config_profiler() != PROFILER_OFF;
}

bool profiler_times_kernels(void)
{
    return mode_now() == PROFILER_KERNEL;
}

void profiler_lose(enum profiler_loss loss)
{
    atomic_fetch_add_explicit(&heard.lost[loss], 1, memory_order_relaxed);
}

static uint64_t lost(enum profiler_loss loss)
{
    return atomic_load_explicit(&heard.lost[loss], memory_order_relaxed);
}

struct profiler_losses profiler_losses(void)
{
    return (struct profiler_losses){
        .full = lost(PROFILER_FULL),
        .memory = lost(PROFILER_MEMORY),
        .late = lost(PROFILER_LATE),
    };
}

/* ---- communicators ---- */

static struct profiled *obtain(void)
{
    struct profiled *comm = heard.unused;
    if (comm)
        heard.unused = comm->next;
    else
        comm = malloc(sizeof(*comm));
    return comm;
}

void profiler_give_back(struct profiled *comm)
{
    lock_take(&heard.lock);
    comm->next = heard.unused;
    heard.unused = comm;
    lock_give(&heard.lock);
}

/* As NCCL tells of it. */
struct birth {
    struct told_birth told;
    int nodes;
};

/* The first events may come at once. */
static void show(struct profiled *comm)
{
    comm->next = atomic_load_explicit(&heard.comms, memory_order_relaxed);
    /* Release: with what it says. */
    atomic_store_explicit(&heard.comms, comm, memory_order_release);
}

/* Takes a lock and memory, as making a communicator does anyway. */
static struct profiled *meet(const struct birth *birth)
{
    struct profiled *comm = NULL;
    lock_take(&heard.lock);
    if (profiler_queue_make())
        comm = obtain();
    if (comm)
        *comm = (struct profiled){.hash = birth->told.hash,
                                  .nodes = birth->nodes,
                                  .nranks = birth->told.nranks,
                                  .rank = birth->told.rank,
                                  .at_ns = record_now()};
    if (comm && told_is_alone(birth->told.code)) {
        struct told_birth alone = birth->told;
        alone.key = comm;
        comm->told = told_comm(&alone);
        comm->told_id = comm->told ? comm->told->id : 0;
    }
    if (comm)
        show(comm);
    lock_give(&heard.lock);
    return comm;
}

struct profiled *profiler_new_comms(void)
{
    struct profiled *oldest_first = NULL;
    if (!atomic_load_explicit(&heard.comms, memory_order_relaxed))
        return NULL;
    lock_take(&heard.lock);
    struct profiled *list =
        atomic_exchange_explicit(&heard.comms, NULL, memory_order_acquire);
    lock_give(&heard.lock);
    while (list) {
        struct profiled *next = list->next;
        list->next = oldest_first;
        oldest_first = list;
        list = next;
    }
    return oldest_first;
}

static int init(void **context, int *mask, const struct birth *birth)
{
    enum {
        LAUNCHED = CT_PROFILER_COLL | CT_PROFILER_P2P,
        KERNELS = LAUNCHED | CT_PROFILER_KERNEL_CHANNEL
    };
    int saved = errno;
    *context = NULL;
    if (init_recording() && profiler_is_on()) {
        *context = meet(birth);
        if (*context) {
            atomic_fetch_add_explicit(&heard.told, 1, memory_order_relaxed);
            /* Of all communicators: other threads may be looking. */
            __atomic_store_n(mask,
                             profiler_times_kernels() ? KERNELS : LAUNCHED,
                             __ATOMIC_RELAXED);
        } else {
            profiler_lose(PROFILER_MEMORY);
        }
    }
    errno = saved;
    return ncclSuccess;
}

/* NCCL calls from where its code is. */
#define BIRTH(launches_only_)                                      \
    (&(struct birth){.told = {.code = __builtin_return_address(0), \
                              .name = comm_name,                   \
                              .hash = comm_hash,                   \
                              .nranks = nranks,                    \
                              .rank = rank,                        \
                              .launches_only = (launches_only_)},  \
                     .nodes = nodes})

static int init_v4(void **context, int *mask, const char *comm_name,
                   uint64_t comm_hash, int nodes, int nranks, int rank,
                   ct_profiler_log *log)
{
    (void)log;
    return init(context, mask, BIRTH(true));
}

static int init_v5(void **context, uint64_t comm_hash, int *mask,
                   const char *comm_name, int nodes, int nranks, int rank,
                   ct_profiler_log *log)
{
    (void)log;
    return init(context, mask, BIRTH(false));
}

static int finalize(void *context)
{
    struct profiled *comm = context;
    if (!comm)
        return ncclSuccess;
    if (comm->told && init_has_begun())
        told_end(comm->told);
    /* Release: its events are in the queue. */
    atomic_store_explicit(&comm->over, true, memory_order_release);
    if (atomic_fetch_sub_explicit(&heard.told, 1, memory_order_relaxed) == 1)
        profiler_unloaded();
    return ncclSuccess;
}

bool profiler_is_told(void)
{
    return atomic_load_explicit(&heard.told, memory_order_relaxed) > 0;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const struct ct_profiler_v4 ncclProfiler_v4 = {
    "commtrace",   init_v4,         profiler_start_v4,
    profiler_stop, profiler_record, finalize};

#define TABLE(version_)                                             \
    EXPORT const struct ct_profiler_v5 ncclProfiler_v##version_ = { \
        "commtrace",   init_v5,         profiler_start_v5,          \
        profiler_stop, profiler_record, finalize};
TABLE(5)
TABLE(6)
TABLE(7)
