/*
 * What a process that did not close its trace left in its ring: the positions
 * from meta.ring_tail on are what its database lacks. The GPU's events died
 * with the process, so nobody knows how far the GPU came with them: RUNNING.
 */
#include <stdlib.h>
#include <string.h>

#include "commtrace/ring.h"
#include "trace/load.h"

/* op.id and launch.id of the call at position. */
static int64_t id_of(uint64_t position)
{
    return (int64_t)position + 1;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static const char *const origins[] = {
#define X(id_, name_) (name_),
    CT_COMM_ORIGINS(X)
#undef X
};

static void add_comm(struct ct_loader *loader, const struct ct_slot *slot)
{
    const char *name = slot->u.comm.name;
    struct ct_comm_row *comm;

    if (slot->comm > INT32_MAX ||
        ct_ids_find(&loader->comm_ids, slot->comm) != CT_NONE)
        return;
    comm = ct_load_add_comm(loader, slot->comm);
    comm->uid = slot->u.comm.uid;
    comm->origin = "";
    if (slot->u.comm.origin < sizeof(origins) / sizeof(*origins))
        comm->origin = origins[slot->u.comm.origin];
    if (slot->u.comm.parent)
        comm->parent = ct_ids_find(&loader->comm_ids, slot->u.comm.parent);
    comm->color = slot->u.comm.color;
    comm->child = (int)(slot->u.comm.child & INT32_MAX);
    comm->nranks = slot->u.comm.nranks;
    comm->rank = slot->u.comm.rank;
    comm->device = slot->u.comm.device;
    comm->enter_ns = clamp(slot->enter_ns, -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    comm->ready_ns =
        clamp(atomic_load_explicit(&slot->leave_ns, memory_order_relaxed),
              -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    if (*name)
        comm->name = ct_arena_text(loader->arena, name,
                                   strnlen(name, sizeof(slot->u.comm.name)));
    ct_load_check_ranks(loader, comm);
}

static bool has_left(const struct ct_slot *slot)
{
    return (atomic_load_explicit(&slot->state, memory_order_relaxed) & 3) ==
           CT_SLOT_LEFT;
}

/* Host duration; CT_NO_TIME while the call had not returned. */
static int64_t host_time(const struct ct_slot *slot, int64_t enter_ns)
{
    if (!has_left(slot))
        return CT_NO_TIME;
    return clamp(atomic_load_explicit(&slot->leave_ns, memory_order_relaxed) -
                     enter_ns,
                 0, CT_MAX_DURATION_NS);
}

static const char *const events[] = {
#define X(id_, name_) (name_),
    CT_COMM_EVENTS(X)
#undef X
};

static void add_event(struct ct_loader *loader, const struct ct_slot *slot)
{
    int comm = ct_ids_find(&loader->comm_ids, slot->comm);
    struct ct_comm_event_row *event;

    if (comm == CT_NONE ||
        slot->u.event.what >= sizeof(events) / sizeof(*events))
        return;
    event = ct_load_add_event(loader);
    event->comm = comm;
    event->what = events[slot->u.event.what];
    event->at_ns = clamp(slot->enter_ns, -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    event->host_ns = host_time(slot, event->at_ns);
    if (has_left(slot))
        event->result =
            atomic_load_explicit(&slot->result, memory_order_relaxed);
    if (slot->u.event.what == CT_EVENT_DESTROY ||
        slot->u.event.what == CT_EVENT_ABORT)
        loader->process->comms[comm].end_ns = event->at_ns;
}

static uint32_t flags_of(const struct ct_loader *loader,
                         const struct ct_slot *slot)
{
    uint32_t flags = ct_load_flags(loader, slot->flags) &
                     ~(uint32_t)(CT_FLAG_TIME_MASK | CT_FLAG_IN_CALL);
    int32_t result;

    flags |= CT_FLAG_RECOVERED;
    if (!has_left(slot))
        return flags | CT_FLAG_IN_CALL;
    result = atomic_load_explicit(&slot->result, memory_order_relaxed);
    flags |= (uint32_t)(result & 0x7fff) << CT_FLAG_RESULT_SHIFT;
    if (!result && !(flags & (CT_FLAG_ZERO | CT_FLAG_CAPTURED)))
        flags |= CT_FLAG_RUNNING;
    return flags;
}

static void add_launch(struct ct_loader *loader, uint64_t position,
                       const struct ct_slot *slot)
{
    int comm = ct_ids_find(&loader->comm_ids, slot->comm);
    struct ct_launch_row *launch;

    if (comm == CT_NONE ||
        ct_ids_find(&loader->launch_ids, id_of(position)) != CT_NONE)
        return;
    launch = ct_load_add_launch(loader, id_of(position));
    launch->grp = (uint32_t)slot->grp;
    launch->comm = comm;
    launch->stream = ct_load_stream_of(loader, slot->u.launch.stream);
    launch->nops = (int)(slot->u.launch.nops & INT32_MAX);
    launch->enter_ns = clamp(slot->enter_ns, -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    launch->host = ct_shorten_ns(host_time(slot, launch->enter_ns));
    ct_launch_set_gpu(launch, CT_NO_TIME, CT_NO_TIME);
    launch->flags = flags_of(loader, slot);
}

/* The class of the call in slot; false where the slot makes no sense. */
static bool decode(struct ct_loader *loader, const struct ct_slot *slot,
                   struct ct_op_class_row *class)
{
    int kind = ct_code_of(&loader->kinds, slot->op);
    int comm = ct_ids_find(&loader->comm_ids, slot->comm);
    int type = slot->u.call.type;

    if (kind == CT_NONE || comm == CT_NONE ||
        slot->u.call.ordinal > UINT32_MAX ||
        slot->u.call.peer >= loader->process->comms[comm].nranks)
        return false;
    memset(class, 0, sizeof(*class));
    class->comm = comm;
    class->kind = (enum ct_op)kind;
    class->base = ct_op_infos[kind].base;
    class->type = ct_code_of(&loader->types, type);
    class->redop = ct_code_of(&loader->redops, slot->u.call.redop);
    if (class->redop == CT_NONE && slot->u.call.redop >= 0)
        class->redop = slot->u.call.redop;
    class->count =
        ct_load_count(slot->u.call.count, loader->process->comms[comm].nranks);
    class->peer = slot->u.call.peer < 0 ? CT_NONE : slot->u.call.peer;
    class->stream = slot->u.call.stream;
    class->site = slot->u.call.site;
    class->graph = CT_NONE;
    if (loader->ring.version >= 2)
        class->graph = ct_load_graph_of(loader, slot->u.call.graph);
    /* The newest stacks may not have been stored yet. */
    class->stack = loader->ring.version < 2
                       ? CT_NONE
                       : ct_ids_find(&loader->stack_ids, slot->u.call.stack);
    class->bytes = ct_load_bytes(
        loader, class->kind, comm, class->count,
        type >= 0 && type < CT_MAX_CODES ? loader->type_bytes[type] : 0);
    return !(ct_is_p2p(class->kind) && class->peer == CT_NONE);
}

/* Classes that recovered ops use, by content. */
struct classes {
    struct ct_intern keys;
    int *rows; /* by key */
    int capacity;
};

static int class_row(struct ct_loader *loader, struct classes *classes,
                     const struct ct_op_class_row *class)
{
    int before = classes->keys.n;
    int key = ct_intern_add(&classes->keys, class, sizeof(*class));

    if (key == before) {
        classes->rows = ct_grow(classes->rows, &classes->capacity, key,
                                sizeof(*classes->rows));
        classes->rows[key] = loader->process->nclasses;
        *ct_load_add_class(loader, INT64_MAX) = *class;
    }
    return classes->rows[key];
}

static void add_op(struct ct_loader *loader, struct classes *classes,
                   uint64_t position, const struct ct_slot *slot)
{
    struct ct_process *p = loader->process;
    struct ct_op_class_row class;
    struct ct_op_row *op;
    int64_t host_ns;

    if (ct_ids_find(&loader->op_ids, id_of(position)) != CT_NONE ||
        !decode(loader, slot, &class))
        return;
    op = ct_load_add_op(loader);
    ct_ids_add(&loader->op_ids, id_of(position));
    op->cls = class_row(loader, classes, &class);
    op->ordinal = (uint32_t)slot->u.call.ordinal;
    op->enter_ns = clamp(slot->enter_ns, -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    host_ns = host_time(slot, op->enter_ns);
    /* Nothing where its launch was told, not its call. */
    op->host = ct_shorten_ns(
        slot->flags & CT_FLAG_TOLD && host_ns == 0 ? CT_NO_TIME : host_ns);
    ct_op_set_gpu(op, CT_NO_TIME, CT_NO_TIME);
    op->flags = flags_of(loader, slot) & ~(uint32_t)CT_FLAG_SIMULATED;
    if (slot->grp) {
        op->launch =
            ct_load_launch_of(loader, slot->grp, class.comm, class.stream);
        if (op->launch != CT_NONE &&
            p->launches[op->launch].first_op == CT_NONE)
            p->launches[op->launch].first_op = p->nops - 1;
    }
    p->recovered++;
}

/* The row is the database's; only its end comes from the ring, and no time. */
static uint32_t finished_flags(const struct ct_loader *loader, uint32_t flags,
                               const struct ct_slot *slot)
{
    flags &= ~(uint32_t)(CT_FLAG_IN_CALL | CT_FLAG_TIME_MASK);
    return flags | (flags_of(loader, slot) & ~(uint32_t)CT_FLAG_RECOVERED);
}

static void add_graph_launch(struct ct_loader *loader, uint64_t position,
                             const struct ct_slot *slot)
{
    const struct ct_process *p = loader->process;
    struct ct_graph_launch_row *launch;

    if (p->ngraph_launches &&
        p->graph_launches[p->ngraph_launches - 1].id >= id_of(position))
        return;
    launch = ct_load_add_graph_launch(loader, id_of(position));
    launch->graph = ct_load_graph_of(loader, slot->u.graph_launch.graph);
    launch->stream = slot->u.graph_launch.stream;
    launch->enter_ns = clamp(slot->enter_ns, -CT_MAX_TIME_NS, CT_MAX_TIME_NS);
    launch->host_ns = host_time(slot, launch->enter_ns);
    if (has_left(slot))
        launch->result =
            atomic_load_explicit(&slot->result, memory_order_relaxed);
}

static void finish_graph_launch(struct ct_loader *loader,
                                const struct ct_slot *slot, int64_t id)
{
    const struct ct_process *p = loader->process;
    int low = 0, high = p->ngraph_launches;
    struct ct_graph_launch_row *launch;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (p->graph_launches[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    launch = &p->graph_launches[low];
    if (low == p->ngraph_launches || launch->id != id ||
        launch->host_ns != CT_NO_TIME)
        return;
    launch->host_ns = host_time(slot, launch->enter_ns);
    launch->result = atomic_load_explicit(&slot->result, memory_order_relaxed);
}

static void finish_launch(struct ct_loader *loader, const struct ct_slot *slot,
                          int64_t id)
{
    int i = ct_ids_find(&loader->launch_ids, id);
    struct ct_launch_row *launch;

    if (i == CT_NONE)
        return;
    launch = &loader->process->launches[i];
    if (ct_launch_host_ns(launch) != CT_NO_TIME)
        return;
    launch->host = ct_shorten_ns(host_time(slot, launch->enter_ns));
    launch->flags = finished_flags(loader, launch->flags, slot);
}

/* The call had been stored while it was open; this is how it ended. */
static void finish_op(struct ct_loader *loader, const struct ct_slot *slot)
{
    uint64_t position = slot->u.leave.position;
    struct ct_op_row *op;
    int i;

    if (position >= INT64_MAX || !has_left(slot))
        return;
    finish_launch(loader, slot, id_of(position));
    finish_graph_launch(loader, slot, id_of(position));
    i = ct_ids_find(&loader->op_ids, id_of(position));
    if (i == CT_NONE || ct_op_host_ns(&loader->process->ops[i]) != CT_NO_TIME)
        return;
    op = &loader->process->ops[i];
    op->host = ct_shorten_ns(host_time(slot, op->enter_ns));
    op->flags = finished_flags(loader, op->flags, slot);
}

/* Communicators and launches first: ops refer to them. */
static void load_referred(struct ct_loader *loader, uint64_t from)
{
    const struct ct_slot *slot;
    uint64_t p;

    for (p = from; p < loader->ring.head; p++) {
        slot = ct_ring_slot(&loader->ring, p);
        if (slot && slot->kind == CT_SLOT_COMM)
            add_comm(loader, slot);
        else if (slot && slot->kind == CT_SLOT_COMM_EVENT)
            add_event(loader, slot);
    }
    for (p = from; p < loader->ring.head; p++) {
        slot = ct_ring_slot(&loader->ring, p);
        if (slot && slot->kind == CT_SLOT_LAUNCH)
            add_launch(loader, p, slot);
    }
}

static void load_calls(struct ct_loader *loader, uint64_t from)
{
    struct classes classes = {0};
    uint64_t p;

    for (p = from; p < loader->ring.head && !loader->failed; p++) {
        const struct ct_slot *slot = ct_ring_slot(&loader->ring, p);

        if (slot && slot->kind == CT_SLOT_OP)
            add_op(loader, &classes, p, slot);
        else if (slot && slot->kind == CT_SLOT_GRAPH_LAUNCH)
            add_graph_launch(loader, p, slot);
        else if (slot && slot->kind == CT_SLOT_GRAPH)
            ct_load_add_graph(loader, slot->u.graph.id, slot->enter_ns,
                              slot->u.graph.first, slot->u.graph.second);
        else if (slot && slot->kind == CT_SLOT_LEAVE)
            finish_op(loader, slot);
    }
    ct_intern_release(&classes.keys);
    free(classes.rows);
}

void ct_load_ring(struct ct_loader *loader)
{
    struct ct_process *process = loader->process;
    struct ct_ring *ring = &loader->ring;
    uint64_t from = loader->ring_tail > 0 ? (uint64_t)loader->ring_tail : 0;

    if (ring->copy && strcmp(ring->uuid, process->uuid) != 0)
        ct_ring_release(ring); /* of a later process */
    process->dead = !(loader->db.live || ct_ring_alive(ring));
    process->ring_missing = !ring->copy;
    if (!ring->copy && *ring->refused)
        process->ring_refused =
            ct_arena_text(loader->arena, ring->refused, strlen(ring->refused));
    if (!ring->copy || ring->closed || ring->head < from)
        return;
    if (ring->head - from > ring->nslots)
        from = ring->head - ring->nslots;
    load_referred(loader, from);
    load_calls(loader, from);
}
