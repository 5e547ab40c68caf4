#include "gather.h"

#include "choices.h"
#include "commtrace/ops.h"
#include "gputime.h"
#include "stack_rows.h"
#include "told.h"

#include <string.h>

enum { BATCH_MAX = 1 << 15, IN_CALL_MAX = 1 << 14 };

int gather_init(struct gather *gather, struct ring *ring)
{
    *gather = (struct gather){.ring = ring};
    gather->next =
        atomic_load_explicit(&ring->header->tail, memory_order_relaxed);
    return classes_init(&gather->classes);
}

static void free_comms(struct comm_facts *list)
{
    while (list) {
        struct comm_facts *next = list->next;
        comm_free_facts(list);
        list = next;
    }
}

static int64_t end_of(struct comm_facts *facts)
{
    /* Acquire: the hook has let go of it. */
    return atomic_load_explicit(&facts->end_ns, memory_order_acquire);
}

/* Hooks of threads that still run may note the end of those that live. */
static void release_comms(struct comm_facts *list)
{
    while (list) {
        struct comm_facts *next = list->next;
        if (end_of(list) == CT_NULL)
            comm_give_back_facts(list);
        else
            comm_free_facts(list);
        list = next;
    }
}

void gather_release(struct gather *gather)
{
    release_comms(gather->comms);
    free_comms(gather->gone);
    free(gather->batch.rows);
    free(gather->in_call.items);
    free(gather->on_gpu.items);
    classes_release(&gather->classes);
    choices_close(gather->choices);
}

/* A call has returned. False: its GPU times are not there yet, and the caller
 * would rather wait. */
static bool finish_call(struct gather *gather, struct unfinished *call,
                        int64_t leave_ns, int32_t result, bool force)
{
    struct timing_columns columns = timing_of(&call->row);
    *columns.host_ns = leave_ns - columns.enter_ns;
    /* A launch that was told, and nothing of the call. */
    if (*columns.flags & CT_FLAG_TOLD && !*columns.host_ns)
        *columns.host_ns = CT_NULL;
    *columns.flags &= ~(int64_t)CT_FLAG_IN_CALL;
    *columns.flags |= (int64_t)result << CT_FLAG_RESULT_SHIFT;
    if (call->events < 0) {
        batch_add_row(&gather->batch, &call->row);
        return true;
    }
    if (result != 0) { /* ncclSuccess: only then is there a stop event */
        gpu_drop(call->events);
        *columns.flags &= ~(int64_t)CT_FLAG_EVENT;
    } else if (unfinished_read(call, gather->ring->header->t0_ns) ==
               GPU_PENDING) {
        if (!force)
            return false;
        unfinished_keep(&gather->on_gpu, call);
    }
    batch_add_row(&gather->batch, &call->row);
    return true;
}

static void store_comm(struct gather *gather, struct comm_facts *facts)
{
    struct row *row = batch_add(&gather->batch, ROW_comm);
    if (!row)
        return;
    row->u.comm = facts->row;
    if (!facts->stored && gather->new_device && facts->row.device != CT_NULL)
        gather->new_device(gather->context, facts->row.device, &gather->batch);
    if (!facts->stored && gather->new_comm)
        gather->new_comm(gather->context, facts);
    facts->stored = true;
}

/* The new ones, which go to the end of the list. */
static struct comm_facts *collect_comms(struct gather *gather)
{
    struct comm_facts **end = &gather->comms;
    struct comm_facts *new = comm_new_facts();
    while (new &&*end)
        end = &(*end)->next;
    if (new)
        *end = new;
    return new;
}

static void store_new_comms(struct gather *gather)
{
    for (struct comm_facts *new = collect_comms(gather); new; new = new->next) {
        store_comm(gather, new);
        if (gather->choices)
            choices_meet(gather->choices, new);
    }
}

/* Its row gets the time of its end, and its facts may go. */
static void end_comm(struct gather *gather, struct comm_facts **at,
                     int64_t end_ns)
{
    struct comm_facts *facts = *at;
    facts->row.end_ns = end_ns;
    store_comm(gather, facts);
    if (gather->choices)
        choices_forget(gather->choices, facts->row.id);
    *at = facts->next;
    facts->next = gather->gone;
    gather->gone = facts;
}

static void find_and_end_comm(struct gather *gather, int64_t id, int64_t end_ns)
{
    struct comm_facts **at = &gather->comms;
    while (*at && (*at)->row.id != id)
        at = &(*at)->next;
    if (*at)
        end_comm(gather, at, end_ns);
}

/* Those whose events may have found no room. */
static void end_comms(struct gather *gather)
{
    struct comm_facts **at = &gather->comms;
    while (*at) {
        int64_t end_ns = end_of(*at);
        if (end_ns == CT_NULL)
            at = &(*at)->next;
        else
            end_comm(gather, at, end_ns);
    }
}

static void finish_event(struct gather *gather, struct row *row, uint32_t what,
                         int64_t leave_ns, int32_t result)
{
    struct row_comm_event *event = &row->u.comm_event;
    event->host_ns = leave_ns - event->at_ns;
    event->result = result;
    batch_add_row(&gather->batch, row);
    bool ends = what == CT_EVENT_DESTROY || what == CT_EVENT_ABORT;
    if (ends && (result == ncclSuccess || result == ncclInProgress))
        find_and_end_comm(gather, event->comm, leave_ns);
}

static const char *const event_names[] = {
#define X(id_, name_) name_,
    CT_COMM_EVENTS(X)
#undef X
};

static uint32_t event_number(const char *name)
{
    uint32_t what = 0;
    while (event_names[what] != name)
        what++;
    return what;
}

static int64_t id_or_null(int64_t id)
{
    return id ? id : CT_NULL;
}

static void describe_op(struct gather *gather, const struct ct_slot *slot,
                        struct unfinished *call)
{
    call->row.table = ROW_op;
    call->row.u.op = (struct row_op){
        .id = (int64_t)call->position + 1,
        .class = classes_find(&gather->classes, slot, &gather->batch),
        .ordinal = (int64_t)slot->u.call.ordinal,
        .grp = slot->grp ? (int64_t)slot->grp : CT_NULL,
        .enter_ns = slot->enter_ns,
        .host_ns = CT_NULL,
        .gpu_off_ns = CT_NULL,
        .gpu_ns = CT_NULL,
        .flags = slot->flags,
    };
    call->events = slot->u.call.events;
    call->stream = slot->u.call.stream;
    if (slot->u.call.stack >= CT_STACK_NO_MORE &&
        slot->u.call.stack <= CT_STACK_NO_TABLE)
        gather->no_stack[slot->u.call.stack - CT_STACK_NO_MORE]++;
}

static void describe_launch(const struct ct_slot *slot, struct unfinished *call)
{
    call->row.table = ROW_launch;
    call->row.u.launch = (struct row_launch){
        .id = (int64_t)call->position + 1,
        .grp = (int64_t)slot->grp,
        .comm = slot->comm,
        .stream = (int64_t)slot->u.launch.stream,
        .ops = slot->u.launch.nops,
        .enter_ns = slot->enter_ns,
        .host_ns = CT_NULL,
        .gpu_off_ns = CT_NULL,
        .gpu_ns = CT_NULL,
        .flags = slot->flags,
    };
    call->events = slot->u.launch.events;
    call->stream = slot->u.launch.stream;
}

static void describe_event(const struct ct_slot *slot, struct unfinished *call)
{
    uint32_t what = slot->u.event.what;
    call->row.table = ROW_comm_event;
    call->row.rowid = (int64_t)call->position + 1;
    call->row.u.comm_event = (struct row_comm_event){
        .comm = slot->comm,
        .what = event_names[what],
        .at_ns = slot->enter_ns,
        .host_ns = CT_NULL,
        .result = CT_NULL,
    };
    call->events = -1;
}

static void describe_graph_launch(const struct ct_slot *slot,
                                  struct unfinished *call)
{
    call->row.table = ROW_graph_launch;
    call->row.u.graph_launch = (struct row_graph_launch){
        .id = (int64_t)call->position + 1,
        .graph = id_or_null(slot->u.graph_launch.graph),
        .stream = (int64_t)slot->u.graph_launch.stream,
        .enter_ns = slot->enter_ns,
        .host_ns = CT_NULL,
        .result = CT_NULL,
    };
    call->events = -1;
}

static void describe(struct gather *gather, const struct ct_slot *slot,
                     struct unfinished *call)
{
    call->row.rowid = CT_NULL;
    if (slot->kind == CT_SLOT_OP)
        describe_op(gather, slot, call);
    else if (slot->kind == CT_SLOT_LAUNCH)
        describe_launch(slot, call);
    else if (slot->kind == CT_SLOT_GRAPH_LAUNCH)
        describe_graph_launch(slot, call);
    else
        describe_event(slot, call);
}

static bool has_gpu_times(const struct row *row)
{
    return row->table == ROW_op || row->table == ROW_launch;
}

static void finish_graph_launch(struct gather *gather, struct row *row,
                                int64_t leave_ns, int32_t result)
{
    struct row_graph_launch *launch = &row->u.graph_launch;
    launch->host_ns = leave_ns - launch->enter_ns;
    launch->result = result;
    batch_add_row(&gather->batch, row);
}

static bool finish(struct gather *gather, struct unfinished *call,
                   int64_t leave_ns, int32_t result, bool force)
{
    if (has_gpu_times(&call->row))
        return finish_call(gather, call, leave_ns, result, force);
    if (call->row.table == ROW_graph_launch)
        finish_graph_launch(gather, &call->row, leave_ns, result);
    else
        finish_event(gather, &call->row,
                     event_number(call->row.u.comm_event.what), leave_ns,
                     result);
    return true;
}

/* The end of a call that was taken while it was open. */
static void gather_leave(struct gather *gather, const struct ct_slot *slot)
{
    struct unfinished_list *list = &gather->in_call;
    size_t i = 0;
    while (i < list->n && list->items[i].position != slot->u.leave.position)
        i++;
    if (i == list->n)
        return;
    struct unfinished call = list->items[i];
    list->items[i] = list->items[--list->n];
    finish(gather, &call,
           atomic_load_explicit(&slot->leave_ns, memory_order_relaxed),
           atomic_load_explicit(&slot->result, memory_order_relaxed), true);
}

static void mark_in_call(struct gather *gather, struct unfinished *call)
{
    if (has_gpu_times(&call->row))
        *timing_of(&call->row).flags |= CT_FLAG_IN_CALL;
    batch_add_row(&gather->batch, &call->row);
    /* More only where ends were lost; those will never be met. */
    if (gather->in_call.n == IN_CALL_MAX)
        gather->in_call.n = 0;
    unfinished_keep(&gather->in_call, call);
}

static void tell_choices(struct choices *choices, const struct ct_slot *slot,
                         uint64_t position, bool left)
{
    if (slot->kind == CT_SLOT_OP)
        choices_expect(choices, slot, left);
    else if (slot->kind == CT_SLOT_LAUNCH)
        choices_group(choices, slot, left);
    else if (slot->kind == CT_SLOT_GRAPH_LAUNCH)
        choices_launch(choices, slot, (int64_t)position + 1);
}

static bool gather_call(struct gather *gather, struct ct_slot *slot,
                        uint64_t position, bool left, bool force)
{
    struct unfinished call = {.position = position};
    describe(gather, slot, &call);
    if (!left)
        mark_in_call(gather, &call);
    else if (!finish(
                 gather, &call,
                 atomic_load_explicit(&slot->leave_ns, memory_order_relaxed),
                 atomic_load_explicit(&slot->result, memory_order_relaxed),
                 force))
        return false;
    if (gather->choices)
        tell_choices(gather->choices, slot, position, left);
    /* A grouped op launches with its bracket. */
    gather->launches +=
        slot->kind == CT_SLOT_LAUNCH ||
        (slot->kind == CT_SLOT_OP && !(slot->flags & CT_FLAG_GROUPED));
    return true;
}

static void add_graph(struct gather *gather, const struct ct_slot *slot)
{
    if (gather->choices)
        choices_graph(gather->choices, slot);
    struct row *row = batch_add(&gather->batch, ROW_graph);
    if (!row)
        return;
    row->u.graph = (struct row_graph){
        .id = slot->u.graph.id,
        .made_ns = slot->enter_ns,
        .first = id_or_null(slot->u.graph.first),
        .second = id_or_null(slot->u.graph.second),
    };
}

static bool gather_slot(struct gather *gather, struct ct_slot *slot,
                        uint64_t position, bool force)
{
    bool left = ct_slot_is(slot, position, CT_SLOT_LEFT);
    if (!left && !(force && ring_take(slot, position)))
        return false;
    switch (slot->kind) {
    case CT_SLOT_COMM:
        break; /* its facts came beside the ring, with the whole name */
    case CT_SLOT_LEAVE:
        gather_leave(gather, slot);
        break;
    case CT_SLOT_GRAPH:
        add_graph(gather, slot);
        break;
    default:
        return gather_call(gather, slot, position, left, force);
    }
    return true;
}

void gather_slots(struct gather *gather, bool force)
{
    struct ring *ring = gather->ring;
    uint64_t head =
        atomic_load_explicit(&ring->header->head, memory_order_acquire);
    store_new_comms(gather);
    if (force &&
        atomic_load_explicit(&ring->header->lost_comms, memory_order_relaxed))
        end_comms(gather);
    while (gather->next != head && gather->batch.n < BATCH_MAX &&
           gather_slot(gather, &ring->slots[gather->next & ring->mask],
                       gather->next, force))
        gather->next++;
    /* NCCL's profiler tells of an end beside the ring. */
    if (force && gather->next == head && told_absence())
        end_comms(gather);
    stack_rows_add(gather); /* after the ops that they belong to */
}

void gather_finished(struct gather *gather)
{
    unfinished_poll(&gather->on_gpu, gather->ring->header->t0_ns,
                    &gather->batch);
}

void gather_stored(struct gather *gather)
{
    gather->batch.n = 0;
    free_comms(gather->gone);
    gather->gone = NULL;
}

static int32_t events_of(const struct ct_slot *slot)
{
    if (slot->kind == CT_SLOT_OP)
        return slot->u.call.events;
    return slot->kind == CT_SLOT_LAUNCH ? slot->u.launch.events : -1;
}

/* Those that live are kept: their end will be noted there. */
static uint64_t discard_comms(struct gather *gather)
{
    uint64_t n = 0;
    for (struct comm_facts *new = collect_comms(gather); new; new = new->next)
        n++;
    struct comm_facts *all = gather->comms, *next;
    for (gather->comms = NULL; all; all = next) {
        next = all->next;
        if (end_of(all) != CT_NULL) {
            comm_free_facts(all);
            continue;
        }
        all->next = gather->comms;
        gather->comms = all;
    }
    return n;
}

struct discarded gather_discard(struct gather *gather)
{
    struct ring *ring = gather->ring;
    struct discarded n = {.comms = discard_comms(gather)};
    uint64_t head =
        atomic_load_explicit(&ring->header->head, memory_order_acquire);
    for (; gather->next != head; gather->next++) {
        struct ct_slot *slot = &ring->slots[gather->next & ring->mask];
        if (!ct_slot_is(slot, gather->next, CT_SLOT_LEFT) &&
            !ring_take(slot, gather->next))
            break;
        if (ct_slot_is(slot, gather->next, CT_SLOT_LEFT))
            gpu_drop(events_of(slot));
        n.ops += slot->kind == CT_SLOT_OP;
        n.graph_launches += slot->kind == CT_SLOT_GRAPH_LAUNCH;
    }
    return n;
}
