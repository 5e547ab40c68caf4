/*
 * What NCCL tells of calls, launches and kernels. A handle is what we make of
 * it: a kind and a number.
 */
#include "graphs.h"
#include "op_facts.h"
#include "profiler_parts.h"
#include "profiler_queue.h"
#include "record.h"
#include "told.h"

#include <errno.h>
#include <string.h>

/* What a handle is, in its lowest bits; none is 0. */
enum handle {
    HANDLE_CALL = 1,
    HANDLE_TASK,
    HANDLE_KERNEL,
    HANDLE_GROUP,
    HANDLE_TOLD,    /* a call that no hook sees, with its op */
    HANDLE_TRANSFER /* a send or receive of that kind, with its number */
};
enum { HANDLE_BITS = 3, CALL_CAPTURED = 1 << HANDLE_BITS };

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

static void copy_word(char *to, const char *from)
{
    int i = 0;
    for (; from && from[i] && i < PROFILER_WORD - 1; i++)
        to[i] = from[i];
    memset(to + i, 0, (size_t)(PROFILER_WORD - i));
}

static bool is_captured(const void *call)
{
    return ((uintptr_t)call & CALL_CAPTURED) != 0;
}

/* By the call, where it was told; else a graph is what runs outside of all
 * calls, on a thread of the driver's. */
static bool is_replay(const void *parent)
{
    if (is_handle(parent, HANDLE_CALL) || is_handle(parent, HANDLE_TOLD) ||
        is_handle(parent, HANDLE_TRANSFER))
        return is_captured(parent);
    return thread_state.depth == 0 && graphs_are_in_use();
}

struct task {
    uint64_t op; /* as profiler_event.op */
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
    int op = told_op(task->func);
    if (!comm || !init_has_begun() || comm->nranks == 1 || op < 0 ||
        !task->count)
        return NULL;
    uint64_t position;
    struct profiler_event *event = profiler_queue_reserve(&position);
    if (!event) {
        profiler_lose(PROFILER_FULL);
        return NULL;
    }
    bool all = op_facts[op].size == CT_ALL_SHARES;
    event->after =
        atomic_load_explicit(&recorder.ring.header->head, memory_order_relaxed);
    event->comm = comm;
    event->bytes = task->count * (uint64_t)type_bytes(told_type(task->type)) *
                   (all ? (uint64_t)comm->nranks : 1);
    event->op = task->op;
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
                        const void *parent, uint64_t op)
{
    return start_task(context,
                      &(struct task){.op = op,
                                     .func = coll->func,
                                     .type = coll->datatype,
                                     .count = coll->count,
                                     .peer = -1,
                                     .channels = coll->channels,
                                     .algorithm = coll->algorithm,
                                     .protocol = coll->protocol},
                      parent);
}

static void *start_p2p(void *context, const struct ct_profiler_p2p *p2p,
                       const void *parent, uint64_t op)
{
    return start_task(context,
                      &(struct task){.op = op,
                                     .func = p2p->func,
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
        profiler_lose(PROFILER_LATE);
        return NULL;
    }
    reach(&event->begin_ns, timer, false);
    atomic_fetch_add_explicit(&event->begun, 1, memory_order_relaxed);
    profiler_queue_let_go(event);
    return handle_of(value_of(parent), HANDLE_KERNEL);
}

int profiler_record(void *handle, int state, union ct_profiler_args *args)
{
    if (state == CT_PROFILER_GROUP_END_BEGINS &&
        is_handle(handle, HANDLE_GROUP))
        told_group_ends();
    if (state != CT_PROFILER_KERNEL_STOP || !is_handle(handle, HANDLE_KERNEL) ||
        !args)
        return ncclSuccess;
    struct profiler_event *event = profiler_queue_hold(value_of(handle));
    if (!event) {
        profiler_lose(PROFILER_LATE);
        return ncclSuccess;
    }
    reach(&event->end_ns, args->kernel.timer, true);
    atomic_fetch_add_explicit(&event->ended, 1, memory_order_relaxed);
    profiler_queue_let_go(event);
    return ncclSuccess;
}

/* ---- what no hook sees ---- */

static struct comm *told_of(const struct profiled *comm)
{
    return comm && init_has_begun() ? comm->told : NULL;
}

static struct told_call call_of_coll(const struct ct_profiler_coll *coll)
{
    return (struct told_call){.func = coll->func,
                              .type = coll->datatype,
                              .count = coll->count,
                              .peer = coll->root,
                              .stream = CT_NO_STREAM};
}

static struct told_call call_of_p2p(const struct ct_profiler_p2p *p2p)
{
    return (struct told_call){.func = p2p->func,
                              .type = p2p->datatype,
                              .count = p2p->count,
                              .peer = p2p->peer,
                              .stream = CT_NO_STREAM};
}

static void *start_group(const struct profiled *comm, int depth)
{
    if (!told_of(comm))
        return NULL;
    told_group(depth);
    return handle_of(0, HANDLE_GROUP);
}

static void *call_handle(enum handle what, uint64_t number, bool captured)
{
    return handle_of(number << 1 | captured, what);
}

/* Of a call, or a launch's parent: 0 where it is none of that kind. */
static uint64_t number_in(const void *handle, enum handle what)
{
    return is_handle(handle, what) ? value_of(handle) >> 1 : 0;
}

static void *start_coll_api(const struct profiled *comm,
                            const struct ct_profiler_event_v5 *event)
{
    bool captured = event->u.coll_api.captured;
    struct comm *told = told_of(comm);
    if (!told)
        return call_handle(HANDLE_CALL, 0, captured);
    const struct told_call call = {
        .func = event->u.coll_api.func,
        .type = event->u.coll_api.datatype,
        .count = event->u.coll_api.count,
        .peer = event->u.coll_api.root,
        .stream = (uintptr_t)event->u.coll_api.stream,
        .captured = captured,
    };
    return call_handle(HANDLE_TOLD, told_collective(told, &call), captured);
}

static void *start_p2p_api(const struct profiled *comm,
                           const struct ct_profiler_event_v5 *event)
{
    bool captured = event->u.p2p_api.captured;
    struct comm *told = told_of(comm);
    if (!told)
        return call_handle(HANDLE_CALL, 0, captured);
    const struct told_call call = {
        .stream = (uintptr_t)event->u.p2p_api.stream,
        .captured = captured,
    };
    return call_handle(HANDLE_TRANSFER, told_transfer(told, &call), captured);
}

/* Of what its call has told already. */
static void *start_told_p2p(struct profiled *comm,
                            const struct ct_profiler_event_v5 *event)
{
    const struct ct_profiler_p2p *p2p = &event->u.p2p.is;
    struct comm *told = told_of(comm);
    struct told_call call = call_of_p2p(p2p);
    call.captured = is_captured(event->parent);
    uint64_t op =
        told ? told_transfer_launched(
                   told, number_in(event->parent, HANDLE_TRANSFER), &call)
             : 0;
    return start_p2p(comm, p2p, event->parent, op);
}

/* ---- events ---- */

static uint64_t launched(const struct profiled *comm, struct told_call call)
{
    struct comm *told = told_of(comm);
    return told ? told_launched(told, &call) : 0;
}

int profiler_start_v4(void *context, void **handle,
                      struct ct_profiler_event_v4 *event)
{
    *handle = NULL;
    if (event->type == CT_PROFILER_COLL)
        *handle = start_coll(context, &event->u.coll, NULL,
                             launched(context, call_of_coll(&event->u.coll)));
    else if (event->type == CT_PROFILER_P2P)
        *handle = start_p2p(context, &event->u.p2p, NULL,
                            launched(context, call_of_p2p(&event->u.p2p)));
    else if (event->type == CT_PROFILER_KERNEL_CHANNEL)
        *handle = start_kernel(event->parent, event->u.kernel.timer);
    return ncclSuccess;
}

int profiler_start_v5(void *context, void **handle,
                      struct ct_profiler_event_v5 *event)
{
    int saved = errno;
    *handle = NULL;
    switch (event->type) {
    case CT_PROFILER_GROUP_API:
        *handle = start_group(context, event->u.group_api.depth);
        break;
    case CT_PROFILER_COLL_API:
        *handle = start_coll_api(context, event);
        break;
    case CT_PROFILER_P2P_API:
        *handle = start_p2p_api(context, event);
        break;
    case CT_PROFILER_COLL:
        *handle = start_coll(context, &event->u.coll.is, event->parent,
                             number_in(event->parent, HANDLE_TOLD));
        break;
    case CT_PROFILER_P2P:
        *handle = start_told_p2p(context, event);
        break;
    case CT_PROFILER_KERNEL_CHANNEL:
        *handle = start_kernel(event->parent, event->u.kernel.timer);
        break;
    default:
        break;
    }
    errno = saved;
    return ncclSuccess;
}

/* What a call asks for is launched when it ends, not done. */
int profiler_stop(void *handle)
{
    if (is_handle(handle, HANDLE_GROUP))
        told_group_over();
    else if (is_handle(handle, HANDLE_TRANSFER) && init_has_begun())
        told_transfer_returned(number_in(handle, HANDLE_TRANSFER));
    else if (is_handle(handle, HANDLE_TOLD) && init_has_begun())
        told_returned();
    return ncclSuccess;
}
