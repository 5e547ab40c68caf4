#include "record.h"

#include "births.h"
#include "capture.h"
#include "gputime.h"
#include "graphs.h"
#include "group.h"
#include "pending.h"
#include "policy.h"
#include "stack.h"

#include <string.h>

struct recorder recorder;

static _Atomic uint64_t *lost_counter(enum ct_slot_kind kind)
{
    struct ct_ring_header *header = recorder.ring.header;
    switch (kind) {
    case CT_SLOT_OP:
        return &header->lost_ops;
    case CT_SLOT_LAUNCH:
        return &header->lost_launches;
    case CT_SLOT_LEAVE:
        return &header->lost_leaves;
    case CT_SLOT_GRAPH:
        return &header->lost_graphs;
    case CT_SLOT_GRAPH_LAUNCH:
        return &header->lost_graph_launches;
    default:
        return &header->lost_comms;
    }
}

static struct ct_slot *reserve(enum ct_slot_kind kind, uint64_t *position)
{
    struct ct_slot *slot = ring_reserve(&recorder.ring, position);
    if (__builtin_expect(!slot, 0))
        atomic_fetch_add_explicit(lost_counter(kind), 1, memory_order_relaxed);
    return slot;
}

/* The end of a slot that the writer has taken. Without room for it nobody
 * will read the events. */
static void emit_leave(uint64_t taken, int64_t leave_ns, int32_t result,
                       int32_t events)
{
    uint64_t position;
    struct ct_slot *slot = reserve(CT_SLOT_LEAVE, &position);
    if (!slot) {
        gpu_drop(events);
        return;
    }
    slot->enter_ns = leave_ns;
    atomic_store_explicit(&slot->leave_ns, leave_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->result, result, memory_order_relaxed);
    slot->flags = 0;
    slot->comm = 0;
    slot->kind = CT_SLOT_LEAVE;
    slot->op = 0;
    slot->grp = 0;
    slot->u.leave.position = taken;
    ring_publish(slot, position, CT_SLOT_LEFT);
}

void record_close(struct ct_slot *slot, uint64_t position, int64_t leave_ns,
                  int32_t result, int32_t events)
{
    if (slot && !ring_leave(slot, position, leave_ns, result))
        emit_leave(position, leave_ns, result, events);
}

struct ct_slot *record_open(enum ct_slot_kind kind, uint32_t comm,
                            uint64_t *position)
{
    struct ct_slot *slot = reserve(kind, position);
    if (!slot)
        return NULL;
    slot->kind = (uint16_t)kind;
    slot->op = 0;
    slot->comm = comm;
    slot->flags = 0;
    slot->grp = 0;
    return slot;
}

void record_comm(const struct row_comm *row, uint32_t origin)
{
    uint64_t position;
    struct ct_slot *slot =
        record_open(CT_SLOT_COMM, (uint32_t)row->id, &position);
    if (!slot)
        return;
    slot->enter_ns = row->enter_ns;
    slot->u.comm.uid = (uint64_t)row->uid;
    slot->u.comm.parent = row->parent == CT_NULL ? 0 : (uint32_t)row->parent;
    slot->u.comm.color = row->color == CT_NULL ? 0 : (int32_t)row->color;
    slot->u.comm.child = row->child == CT_NULL ? 0 : (uint32_t)row->child;
    slot->u.comm.nranks = (int32_t)row->nranks;
    slot->u.comm.rank = (int32_t)row->rank;
    slot->u.comm.device = row->device == CT_NULL ? -1 : (int32_t)row->device;
    slot->u.comm.origin = origin;
    slot->u.comm.library = row->library == CT_NULL ? 0 : (uint32_t)row->library;
    memset(slot->u.comm.name, 0, sizeof(slot->u.comm.name));
    if (row->name)
        strncpy(slot->u.comm.name, row->name, sizeof(slot->u.comm.name) - 1);
    ring_publish(slot, position, CT_SLOT_OPEN);
    record_close(slot, position, row->ready_ns, ncclSuccess, -1);
}

void record_graph(int64_t id, int64_t first, int64_t second)
{
    uint64_t position;
    struct ct_slot *slot = record_open(CT_SLOT_GRAPH, 0, &position);
    if (!slot)
        return;
    int64_t at_ns = record_now();
    slot->enter_ns = at_ns;
    slot->u.graph.id = id;
    slot->u.graph.first = first;
    slot->u.graph.second = second;
    ring_publish(slot, position, CT_SLOT_OPEN);
    record_close(slot, position, at_ns, 0, -1);
}

void event_enter(struct event *event, struct comm *comm,
                 enum ct_comm_event what)
{
    event->comm = comm;
    event->slot = record_open(CT_SLOT_COMM_EVENT, comm->id, &event->position);
    if (!event->slot)
        return;
    event->slot->enter_ns = record_now();
    event->slot->u.event.what = what;
    ring_publish(event->slot, event->position, CT_SLOT_OPEN);
}

void event_leave(struct event *event, ncclResult_t result)
{
    record_close(event->slot, event->position, record_now(), result, -1);
}

/* Both ends of a transfer count the same: sender, receiver, nth between them.
 */
static bool is_p2p(const struct call *call)
{
    return call->class == CT_SEND || call->class == CT_RECV;
}

/* Other calls without a count launch all the same. */
static bool is_empty(const struct call *call)
{
    return call->count == 0 && call->class != CT_ONE_SIDED;
}

static bool is_wanted(const struct call *call, const struct comm *comm,
                      uint64_t ordinal)
{
    uint64_t what = (uint64_t)call->op << 1;
    if (is_p2p(call)) {
        bool sends = call->class == CT_SEND;
        uint64_t from = (uint64_t)(sends ? comm->rank : call->peer);
        uint64_t to = (uint64_t)(sends ? call->peer : comm->rank);
        what = from << 32 | to << 1 | 1;
    }
    return policy_wants(comm->uid ^ hash_mix(what), ordinal);
}

/* GPU timing of an op that launches in its own call. */
static uint32_t time_alone(struct call *call, struct comm *comm,
                           uint64_t ordinal)
{
    uint64_t stream = (uint64_t)(uintptr_t)call->stream;
    if (capture_of(comm->gpu, stream, &call->graph))
        return CT_FLAG_CAPTURED;
    if (!is_wanted(call, comm, ordinal))
        return CT_FLAG_UNSAMPLED;
    call->events = gpu_start(comm->gpu, stream);
    return call->events < 0 ? 0 : CT_FLAG_EVENT;
}

/* Of an op that launches with its group: the bracket's end records events. */
static uint32_t time_grouped(struct call *call, struct group *group,
                             struct comm *comm, uint64_t ordinal, bool first)
{
    uint64_t stream = (uint64_t)(uintptr_t)call->stream;
    if (first)
        group->timed = comm->gpu && is_wanted(call, comm, ordinal);
    struct group_target *target = group_target(group, comm, stream);
    if (!target) {
        if (comm->gpu && capture_of(comm->gpu, stream, &call->graph))
            return CT_FLAG_CAPTURED;
        if (group->timed)
            atomic_fetch_add_explicit(&group_untimed, 1, memory_order_relaxed);
        return 0;
    }
    if (target->nops++ == 0 && comm->gpu &&
        capture_of(comm->gpu, stream, &target->graph))
        target->flags |= CT_FLAG_CAPTURED;
    call->graph = target->graph;
    if (target->flags & CT_FLAG_CAPTURED)
        return CT_FLAG_CAPTURED;
    if (!comm->gpu)
        return 0;
    return group->timed ? CT_FLAG_GROUP_TIME : CT_FLAG_UNSAMPLED;
}

static uint32_t enter_group(struct call *call, struct comm *comm,
                            uint64_t ordinal, uint64_t *grp)
{
    struct group *group = thread_group(call->copy);
    if (!group)
        return CT_FLAG_GROUPED;
    bool first = group->id == 0;
    if (first)
        group->id = 1 + atomic_fetch_add_explicit(&recorder.groups, 1,
                                                  memory_order_relaxed);
    *grp = group->id;
    if (is_empty(call))
        return CT_FLAG_GROUPED | CT_FLAG_ZERO;
    /* A lone rank's collective is a copy that NCCL launches inside the call. */
    if (comm->nranks == 1 &&
        (call->class == CT_COLL || call->class == CT_ROOTED))
        return CT_FLAG_GROUPED |
               (comm->gpu ? time_alone(call, comm, ordinal) : 0);
    return CT_FLAG_GROUPED | time_grouped(call, group, comm, ordinal, first);
}

static uint64_t next_ordinal(const struct call *call, struct comm *comm)
{
    if (is_p2p(call))
        return comm_next_p2p(comm, call->peer,
                             call->class == CT_RECV ? COMM_RECEIVES
                                                    : COMM_SENDS);
    if (call->class == CT_ONE_SIDED)
        return comm_next_p2p(comm, call->peer, COMM_REACHES);
    return comm_next_collective(comm);
}

static uint32_t begin(struct call *call, struct comm *comm, uint64_t ordinal,
                      uint64_t *grp)
{
    uint32_t flags = 0;
    if (*thread_brackets(call->copy))
        flags = enter_group(call, comm, ordinal, grp);
    else if (is_empty(call))
        flags = CT_FLAG_ZERO;
    else if (comm->gpu)
        flags = time_alone(call, comm, ordinal);
    if (call->send == call->recv && call->send)
        flags |= CT_FLAG_IN_PLACE;
    return flags;
}

void record_enter(struct call *call)
{
    call->slot = NULL;
    call->events = -1;
    call->graph = 0;
    if (!hook_enter(call->from))
        return;
    struct comm *comm = comm_find(call->comm);
    if (__builtin_expect(!comm, 0) &&
        !(comm = births_adopt(call->copy, call->comm)))
        return;
    call->known = comm;
    call->overtakes = pending_any(comm);
    uint32_t stack =
        stack_of(comm, call->from.site, (uint32_t)call->op, call->count);
    /* After what a first call costs more. */
    int64_t enter_ns = record_now();
    uint64_t ordinal = next_ordinal(call, comm);
    uint64_t grp = 0;
    uint32_t flags = begin(call, comm, ordinal, &grp);
    if (__builtin_expect(call->graph != 0, 0))
        graphs_use();

    struct ct_slot *slot = reserve(CT_SLOT_OP, &call->position);
    if (__builtin_expect(!slot, 0)) {
        gpu_drop(call->events);
        return;
    }
    slot->enter_ns = enter_ns;
    slot->flags = flags;
    slot->comm = comm->id;
    slot->kind = CT_SLOT_OP;
    slot->op = (uint16_t)call->op;
    slot->grp = grp;
    slot->u.call.ordinal = ordinal;
    slot->u.call.count = call->count;
    slot->u.call.stream = (uint64_t)(uintptr_t)call->stream;
    slot->u.call.site = (uint64_t)(uintptr_t)call->from.site;
    slot->u.call.type = call->type;
    slot->u.call.redop = call->redop;
    slot->u.call.peer = call->peer;
    slot->u.call.events = call->events;
    slot->u.call.graph = call->graph;
    slot->u.call.stack = stack;
    ring_publish(slot, call->position, CT_SLOT_OPEN);
    call->slot = slot;
}

/* NCCL does later what the call asked for. */
static bool stays_pending(const struct call *call, ncclResult_t result)
{
    return result == ncclInProgress &&
           /* Unless it was aborted meanwhile, by another thread. */
           atomic_load_explicit(&call->known->key, memory_order_relaxed) ==
               call->comm &&
           pending_keep(&(struct pending){
               .comm = call->known,
               .slot = call->slot,
               .position = call->position,
               .stream = (uint64_t)(uintptr_t)call->stream,
               .events = call->events,
           });
}

void record_leave(struct call *call, ncclResult_t result)
{
    if (call->slot && init_recording()) {
        /* This one was let in, so those before are over, since when ever. */
        if (__builtin_expect(call->overtakes, 0) &&
            (result == ncclSuccess || result == ncclInProgress))
            pending_give_up(call->known);
        if (call->events >= 0 && result == ncclSuccess)
            gpu_stop(call->events, (uint64_t)(uintptr_t)call->stream);
        if (!stays_pending(call, result))
            record_close(call->slot, call->position, record_now(), result,
                         call->events);
    }
    hook_leave();
}
