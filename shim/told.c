#include "told.h"

#include "capture.h"
#include "gputime.h"
#include "graphs.h"
#include "group.h"
#include "op_facts.h"
#include "record.h"
#include "told_parts.h"

#include <string.h>
#include <strings.h>

static _Atomic uint64_t unknown;

/* ---- words ---- */

int told_op(const char *func)
{
    int op = 0;
    while (func && op < CT_OP_COUNT && strcmp(func, op_facts[op].name) != 0)
        op++;
    return func && op < CT_OP_COUNT ? op : -1;
}

/* As nccl.h spells them, in other letters than our rows; but NCCL has no word
 * for one of its types, up to 2.30.7 at least (ncclDatatypeToString() in
 * src/collectives.cc). */
int told_type(const char *type)
{
    static const char *const ids[] = {
#define TYPE(id_, value_, ...) [value_] = #id_,
#include "commtrace/nccl_types.def"
    };
    int i = 0, n = (int)(sizeof(ids) / sizeof(*ids));
    if (type && !strcmp(type, "Unknown"))
        return CT_TYPE_UINT8;
    if (!type || strncmp(type, "nccl", 4) != 0)
        return -1;
    while (i < n && strcasecmp(type + 4, ids[i]) != 0)
        i++;
    return i < n ? i : -1;
}

uint64_t told_unknown(void)
{
    return atomic_load_explicit(&unknown, memory_order_relaxed);
}

/* Not known, or one that a hook has seen all the same, since it was called
 * through an exported name. -1 then. */
static int op_to_record(const struct told_call *call)
{
    int op = told_op(call->func);
    if (op < 0)
        atomic_fetch_add_explicit(&unknown, 1, memory_order_relaxed);
    return thread_state.depth == 0 ? op : -1;
}

/* ---- ops ---- */

static uint64_t next_ordinal(struct comm *comm, int op, int peer)
{
    if (!op_is_transfer(op))
        return comm_next_collective(comm);
    return comm_next_p2p(
        comm, peer, op_facts[op].class == CT_RECV ? COMM_RECEIVES : COMM_SENDS);
}

static struct ct_slot *open_op(struct comm *comm, int op,
                               const struct told_call *call,
                               const struct told_place *place,
                               uint64_t *position)
{
    bool has_peer = op_facts[op].class != CT_COLL;
    int peer = has_peer && call->peer < comm->nranks ? call->peer : -1;
    uint64_t ordinal = next_ordinal(comm, op, peer);
    struct ct_slot *slot = record_open(CT_SLOT_OP, comm->id, position);
    if (!slot)
        return NULL;
    slot->enter_ns = place->enter_ns;
    slot->flags = place->flags | CT_FLAG_TOLD;
    slot->op = (uint16_t)op;
    slot->grp = place->grp;
    slot->u.call.ordinal = ordinal;
    slot->u.call.count = call->count;
    slot->u.call.stream = place->stream;
    slot->u.call.site = 0;
    slot->u.call.type = told_type(call->type);
    slot->u.call.redop = -1;
    slot->u.call.peer = peer;
    slot->u.call.events = -1;
    slot->u.call.graph = place->graph;
    slot->u.call.stack = CT_STACK_NONE;
    ring_publish(slot, *position, CT_SLOT_OPEN);
    return slot;
}

/* What is open on this thread ends now. */
static void close_op(void)
{
    struct told_thread *thread = &thread_state.told;
    struct ct_slot *slot = thread->slot;
    thread->slot = NULL;
    record_close(slot, thread->position, record_now(), ncclSuccess, -1);
}

static uint64_t id_of(const struct ct_slot *slot, uint64_t position)
{
    return slot ? position + 1 : 0;
}

static uint64_t open_here(struct comm *comm, int op,
                          const struct told_call *call,
                          const struct told_place *place)
{
    struct told_thread *thread = &thread_state.told;
    close_op();
    thread->slot = open_op(comm, op, call, place, &thread->position);
    return id_of(thread->slot, thread->position);
}

/* It is over at once. */
static uint64_t add_op(struct comm *comm, int op, const struct told_call *call,
                       const struct told_place *place, int64_t leave_ns)
{
    uint64_t position;
    struct ct_slot *slot = open_op(comm, op, call, place, &position);
    record_close(slot, position, leave_ns, ncclSuccess, -1);
    return id_of(slot, position);
}

/* ---- groups ---- */

static bool is_bracket(void)
{
    return thread_state.told.depth > 1;
}

static uint64_t group_number(struct group *group)
{
    if (!group->id)
        group->id = 1 + atomic_fetch_add_explicit(&recorder.groups, 1,
                                                  memory_order_relaxed);
    return group->id;
}

/* Counts a call in what the thread's group launches on its stream; gives the
 * group's number, or 0. */
static uint64_t join_group(struct comm *comm, const struct told_call *call)
{
    struct group *group = thread_told_group();
    if (!group)
        return 0;
    struct group_target *target = group_target(group, comm, call->stream);
    if (target && call->captured)
        target->flags |= CT_FLAG_CAPTURED;
    if (target)
        target->nops++;
    return group_number(group);
}

void told_group(int depth)
{
    close_op();
    thread_state.told.depth = depth;
    thread_state.told.transfer = 0;
    struct group *group = thread_state.group[NCCL_COPIES];
    if (group)
        group_reset(group);
}

void told_group_ends(void)
{
    struct group *group = thread_state.group[NCCL_COPIES];
    if (thread_state.told.depth && group && group->id && init_has_begun())
        group_launch_begin(group);
}

void told_group_over(void)
{
    struct group *group = thread_state.group[NCCL_COPIES];
    if (init_has_begun()) {
        close_op();
        if (group && group->id)
            group_launch_end(group, ncclSuccess);
    }
    if (group)
        group_reset(group);
    thread_state.told = (struct told_thread){0};
}

/* ---- calls ---- */

static int64_t graph_of(const struct told_call *call)
{
    int64_t graph = call->captured ? capture_here(call->stream) : 0;
    if (graph)
        graphs_use();
    return graph;
}

static struct told_place place_of(const struct told_call *call, uint64_t grp)
{
    return (struct told_place){
        .enter_ns = record_now(),
        .grp = grp,
        .stream = call->stream,
        .graph = graph_of(call),
        .flags = (grp ? CT_FLAG_GROUPED : 0) |
                 (call->captured ? CT_FLAG_CAPTURED : 0),
    };
}

/* Alone, it ends with the group that NCCL puts about it. */
uint64_t told_collective(struct comm *comm, const struct told_call *call)
{
    int op = op_to_record(call);
    if (op < 0)
        return 0;
    uint64_t grp = is_bracket() ? join_group(comm, call) : 0;
    struct told_place place = place_of(call, grp);
    return open_here(comm, op, call, &place);
}

void told_returned(void)
{
    if (thread_state.told.depth != 1)
        close_op();
}

/* Several at once, in a group of NCCL's own: an all-to-all or the like. The
 * first did not know. */
static uint64_t join_first(struct comm *comm, const struct told_call *call)
{
    struct told_thread *thread = &thread_state.told;
    struct told_transfer *first = told_transfer_at(thread->transfer);
    if (thread->depth != 1 || !first)
        return 0;
    uint64_t grp = join_group(comm, call);
    if (atomic_load_explicit(&first->number, memory_order_relaxed) ==
            thread->transfer &&
        !atomic_load_explicit(&first->grp, memory_order_relaxed)) {
        join_group(comm, call);
        atomic_store_explicit(&first->grp, grp, memory_order_relaxed);
        atomic_fetch_or_explicit(&first->flags, CT_FLAG_GROUPED,
                                 memory_order_relaxed);
    }
    return grp;
}

uint64_t told_transfer(struct comm *comm, const struct told_call *call)
{
    if (thread_state.depth != 0)
        return 0;
    uint64_t number;
    struct told_transfer *transfer = told_next_transfer(&number);
    if (!transfer)
        return 0;
    uint64_t grp =
        is_bracket() ? join_group(comm, call) : join_first(comm, call);
    struct told_place place = place_of(call, grp);
    told_write_transfer(transfer, number, &place);
    if (!thread_state.told.transfer)
        thread_state.told.transfer = number;
    return number;
}

void told_transfer_returned(uint64_t number)
{
    struct told_transfer *transfer = told_transfer_at(number);
    if (told_is_number(transfer, number))
        atomic_store_explicit(&transfer->leave_ns, record_now(),
                              memory_order_relaxed);
}

/* Its time is not told: it ends when it begins. */
uint64_t told_launched(struct comm *comm, const struct told_call *call)
{
    int op = op_to_record(call);
    if (op < 0)
        return 0;
    struct told_place place = {.enter_ns = record_now(),
                               .stream = CT_NO_STREAM};
    return add_op(comm, op, call, &place, place.enter_ns);
}

/* As a collective alone: the group is NCCL's own. */
static bool ends_with_group(uint64_t number, const struct told_place *place)
{
    return thread_state.told.depth == 1 && !place->grp &&
           thread_state.told.transfer == number;
}

uint64_t told_transfer_launched(struct comm *comm, uint64_t number,
                                const struct told_call *call)
{
    struct told_transfer *transfer = told_transfer_at(number);
    struct told_place place;
    int64_t leave_ns;
    if (!number)
        return told_launched(comm, call);
    /* Others have taken its place since. A graph's was met before. */
    if (!told_read_transfer(transfer, number, &place, &leave_ns))
        return call->captured ? 0 : told_launched(comm, call);
    int op = op_to_record(call);
    if (op < 0)
        return 0;
    if (atomic_exchange_explicit(&transfer->made, true, memory_order_relaxed))
        return atomic_load_explicit(&transfer->op, memory_order_relaxed);
    uint64_t id = ends_with_group(number, &place)
                      ? open_here(comm, op, call, &place)
                      : add_op(comm, op, call, &place,
                               leave_ns ? leave_ns : record_now());
    atomic_store_explicit(&transfer->op, id, memory_order_relaxed);
    return id;
}
