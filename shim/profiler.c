#include "profiler.h"

#include "commtrace/profiler_abi.h"
#include "graphs.h"
#include "lock.h"
#include "op_facts.h"
#include "profiler_queue.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
    _Atomic enum profiler_mode mode;
    _Atomic uint64_t full, memory, late;
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

bool profiler_times_kernels(void)
{
    return mode_now() == PROFILER_KERNEL;
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

struct profiler_losses profiler_losses(void)
{
    return (struct profiler_losses){
        .full = atomic_load_explicit(&heard.full, memory_order_relaxed),
        .memory = atomic_load_explicit(&heard.memory, memory_order_relaxed),
        .late = atomic_load_explicit(&heard.late, memory_order_relaxed),
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

/* Takes a lock and memory, as making a communicator does anyway. */
static struct profiled *meet(uint64_t hash, int nodes, int nranks, int rank)
{
    struct profiled *comm = NULL;
    lock_take(&heard.lock);
    if (profiler_queue_make())
        comm = obtain();
    if (comm) {
        *comm = (struct profiled){.hash = hash,
                                  .nodes = nodes,
                                  .nranks = nranks,
                                  .rank = rank,
                                  .at_ns = record_now()};
        comm->next = atomic_load_explicit(&heard.comms, memory_order_relaxed);
        /* Release: with what it says. */
        atomic_store_explicit(&heard.comms, comm, memory_order_release);
    }
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

/* ---- what NCCL calls ---- */

/* What a handle is, in its lowest bits; none is 0. */
enum handle { HANDLE_CALL = 1, HANDLE_TASK, HANDLE_KERNEL, HANDLE_BITS = 2 };
enum { CALL_CAPTURED = 1 << HANDLE_BITS };

static void *handle_of(uint64_t value, enum handle what)
{
    return (void *)(uintptr_t)(value << HANDLE_BITS | what);
}

static uint64_t value_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle >> HANDLE_BITS;
}

static bool is_handle(const void *handle, enum handle what)
{
    return ((uintptr_t)handle & ((1 << HANDLE_BITS) - 1)) == what;
}

static int init(void **context, int *mask, uint64_t hash, int nodes, int nranks,
                int rank)
{
    enum {
        LAUNCHED = CT_PROFILER_COLL | CT_PROFILER_P2P,
        KERNELS = LAUNCHED | CT_PROFILER_KERNEL_CHANNEL
    };
    int saved = errno;
    *context = NULL;
    if (init_recording() && profiler_is_on()) {
        *context = meet(hash, nodes, nranks, rank);
        if (!*context)
            count(&heard.memory);
        else
            atomic_fetch_add_explicit(&heard.told, 1, memory_order_relaxed);
        if (*context)
            /* Of all communicators: other threads may be looking. */
            __atomic_store_n(mask,
                             profiler_times_kernels() ? KERNELS : LAUNCHED,
                             __ATOMIC_RELAXED);
    }
    errno = saved;
    return ncclSuccess;
}

static int init_v4(void **context, int *mask, const char *comm_name,
                   uint64_t comm_hash, int nodes, int nranks, int rank,
                   ct_profiler_log *log)
{
    (void)comm_name, (void)log;
    return init(context, mask, comm_hash, nodes, nranks, rank);
}

static int init_v5(void **context, uint64_t comm_hash, int *mask,
                   const char *comm_name, int nodes, int nranks, int rank,
                   ct_profiler_log *log)
{
    (void)comm_name, (void)log;
    return init(context, mask, comm_hash, nodes, nranks, rank);
}

static int finalize(void *context)
{
    struct profiled *comm = context;
    if (!comm)
        return ncclSuccess;
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

static int op_of(const char *func)
{
    int op = 0;
    while (func && op < CT_OP_COUNT && strcmp(func, op_facts[op].name) != 0)
        op++;
    return func && op < CT_OP_COUNT ? op : -1;
}

/* ncclInt8, ncclFloat8e4m3, ...: the first number is that of bits. */
static uint64_t bytes_of_type(const char *type)
{
    uint64_t bits = 0;
    while (type && *type && (*type < '0' || *type > '9'))
        type++;
    for (; type && *type >= '0' && *type <= '9' && bits < 1000; type++)
        bits = 10 * bits + (uint64_t)(*type - '0');
    return bits / 8;
}

static void copy_word(char *to, const char *from)
{
    int i = 0;
    for (; from && from[i] && i < PROFILER_WORD - 1; i++)
        to[i] = from[i];
    memset(to + i, 0, (size_t)(PROFILER_WORD - i));
}

/* By the call, where it was told; else a graph is what runs outside of all
 * calls, on a thread of the driver's. */
static bool is_replay(const void *parent)
{
    if (is_handle(parent, HANDLE_CALL))
        return ((uintptr_t)parent & CALL_CAPTURED) != 0;
    return thread_state.depth == 0 && graphs_are_in_use();
}

struct task {
    const char *func;
    const char *type;
    uint64_t count;
    int peer;
    uint8_t channels;
    const char *algorithm, *protocol;
};

/* A rank alone has no choice, and what is empty moves nothing. */
static void *start_task(struct profiled *comm, const struct task *task,
                        const void *parent)
{
    int op = op_of(task->func);
    if (!comm || !init_has_begun() || comm->nranks == 1 || op < 0 ||
        !task->count)
        return NULL;
    uint64_t position;
    struct profiler_event *event = profiler_queue_reserve(&position);
    if (!event) {
        count(&heard.full);
        return NULL;
    }
    bool all = op_facts[op].size == CT_ALL_SHARES;
    event->after =
        atomic_load_explicit(&recorder.ring.header->head, memory_order_relaxed);
    event->comm = comm;
    event->bytes = task->count * bytes_of_type(task->type) *
                   (all ? (uint64_t)comm->nranks : 1);
    event->peer = task->peer;
    event->kind = (uint8_t)op_facts[op].base;
    event->channels = task->channels;
    event->replay = is_replay(parent);
    copy_word(event->algorithm, task->algorithm);
    copy_word(event->protocol, task->protocol);
    atomic_store_explicit(&event->begin_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&event->end_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&event->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&event->ended, 0, memory_order_relaxed);
    profiler_queue_publish(event, position);
    return handle_of(position, HANDLE_TASK);
}

static void *start_coll(void *context, const struct ct_profiler_coll *coll,
                        const void *parent)
{
    return start_task(context,
                      &(struct task){.func = coll->func,
                                     .type = coll->datatype,
                                     .count = coll->count,
                                     .peer = -1,
                                     .channels = coll->channels,
                                     .algorithm = coll->algorithm,
                                     .protocol = coll->protocol},
                      parent);
}

static void *start_p2p(void *context, const struct ct_profiler_p2p *p2p,
                       const void *parent)
{
    return start_task(context,
                      &(struct task){.func = p2p->func,
                                     .type = p2p->datatype,
                                     .count = p2p->count,
                                     .peer = p2p->peer,
                                     .channels = p2p->channels},
                      parent);
}

/* The earliest beginning, and the latest end. */
static void reach(_Atomic uint64_t *time, uint64_t to, bool latest)
{
    uint64_t is = atomic_load_explicit(time, memory_order_relaxed);
    while ((is == 0 || (latest ? is < to : is > to)) &&
           !atomic_compare_exchange_weak_explicit(
               time, &is, to, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void *start_kernel(const void *parent, uint64_t timer)
{
    if (!is_handle(parent, HANDLE_TASK))
        return NULL;
    struct profiler_event *event = profiler_queue_hold(value_of(parent));
    if (!event) {
        count(&heard.late);
        return NULL;
    }
    reach(&event->begin_ns, timer, false);
    atomic_fetch_add_explicit(&event->begun, 1, memory_order_relaxed);
    profiler_queue_let_go(event);
    return handle_of(value_of(parent), HANDLE_KERNEL);
}

static int record(void *handle, int state, union ct_profiler_args *args)
{
    if (state != CT_PROFILER_KERNEL_STOP || !is_handle(handle, HANDLE_KERNEL) ||
        !args)
        return ncclSuccess;
    struct profiler_event *event = profiler_queue_hold(value_of(handle));
    if (!event) {
        count(&heard.late);
        return ncclSuccess;
    }
    reach(&event->end_ns, args->kernel.timer, true);
    atomic_fetch_add_explicit(&event->ended, 1, memory_order_relaxed);
    profiler_queue_let_go(event);
    return ncclSuccess;
}

static int start_v4(void *context, void **handle,
                    struct ct_profiler_event_v4 *event)
{
    *handle = NULL;
    if (event->type == CT_PROFILER_COLL)
        *handle = start_coll(context, &event->u.coll, NULL);
    else if (event->type == CT_PROFILER_P2P)
        *handle = start_p2p(context, &event->u.p2p, NULL);
    else if (event->type == CT_PROFILER_KERNEL_CHANNEL)
        *handle = start_kernel(event->parent, event->u.kernel.timer);
    return ncclSuccess;
}

static int start_v5(void *context, void **handle,
                    struct ct_profiler_event_v5 *event)
{
    *handle = NULL;
    switch (event->type) {
    case CT_PROFILER_COLL_API:
        *handle = handle_of(event->u.coll_api.captured, HANDLE_CALL);
        break;
    case CT_PROFILER_P2P_API:
        *handle = handle_of(event->u.p2p_api.captured, HANDLE_CALL);
        break;
    case CT_PROFILER_COLL:
        *handle = start_coll(context, &event->u.coll.is, event->parent);
        break;
    case CT_PROFILER_P2P:
        *handle = start_p2p(context, &event->u.p2p.is, event->parent);
        break;
    case CT_PROFILER_KERNEL_CHANNEL:
        *handle = start_kernel(event->parent, event->u.kernel.timer);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

/* What a call asks for is launched when it ends, not done: nothing to learn. */
static int stop(void *handle)
{
    (void)handle;
    return ncclSuccess;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const struct ct_profiler_v4 ncclProfiler_v4 = {
    "commtrace", init_v4, start_v4, stop, record, finalize};

#define TABLE(version_)                                             \
    EXPORT const struct ct_profiler_v5 ncclProfiler_v##version_ = { \
        "commtrace", init_v5, start_v5, stop, record, finalize};
TABLE(5)
TABLE(6)
TABLE(7)
