/* The program's calls, as NCCL will tell of them: by communicator, those that
 * wait for their choice; by graph, those that its launches repeat. */
#include "choices_parts.h"

#include "op_facts.h"

#include <stdlib.h>

enum { CALLS = 1 << 12, REPLAYS = 1 << 14 };

void choices_free_known(struct known *known)
{
    for (int i = 0; i < CT_OP_COUNT; i++)
        expected_release(&known->expected[i]);
    expected_release(&known->replays);
    free(known->transfers);
    free(known);
}

static struct known *find(const struct choices *choices, int64_t id)
{
    return id >= 0 && (size_t)id < choices->nknown ? choices->known[id] : NULL;
}

static bool make_room(struct choices *choices, size_t id)
{
    if (id < choices->nknown)
        return true;
    size_t n = 2 * id + 16;
    struct known **known = realloc((void *)choices->known, n * sizeof(*known));
    if (!known)
        return false;
    for (size_t i = choices->nknown; i < n; i++)
        known[i] = NULL;
    choices->known = known;
    choices->nknown = n;
    return true;
}

void choices_meet(struct choices *choices, const struct comm_facts *facts)
{
    const struct row_comm *row = &facts->row;
    struct known *known;
    if (!make_room(choices, (size_t)row->id) || choices->known[row->id] ||
        !(known = calloc(1, sizeof(*known))))
        return;
    *known = (struct known){
        .id = row->id,
        .told = facts->told,
        .has_hash = facts->nccl.known,
        .hash = facts->nccl.hash,
        .nranks = row->nranks,
        .rank = row->rank,
        .enter_ns = row->enter_ns,
        .ready_ns = row->ready_ns,
    };
    for (int i = 0; i < CT_OP_COUNT; i++)
        known->expected[i].most = CALLS;
    known->replays.most = REPLAYS;
    choices->known[row->id] = known;
}

/* Collectives count by kind; sends and recvs by peer, too. NULL: no memory. */
static uint32_t *counter_of(struct known *known, enum ct_op kind, int peer)
{
    if (!op_is_transfer(kind))
        return &known->calls[kind];
    if (!known->transfers)
        known->transfers =
            calloc(2 * (size_t)known->nranks, sizeof(*known->transfers));
    return known->transfers && peer >= 0 && peer < known->nranks
               ? &known->transfers[2 * peer + (op_facts[kind].class == CT_RECV)]
               : NULL;
}

static uint64_t bytes_of(const struct known *known, const struct ct_slot *slot)
{
    uint64_t bytes =
        slot->u.call.count * (uint64_t)type_bytes(slot->u.call.type);
    return op_facts[slot->op].size == CT_ALL_SHARES
               ? bytes * (uint64_t)known->nranks
               : bytes;
}

/* Of a call that NCCL's profiler told of, and tells the choice of: op.id. */
static uint64_t op_of(const struct ct_slot *slot)
{
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    return slot->flags & CT_FLAG_TOLD ? (state >> 2) + 1 : 0;
}

static bool has_failed(const struct ct_slot *slot)
{
    int32_t result = atomic_load_explicit(&slot->result, memory_order_relaxed);
    return result != ncclSuccess && result != ncclInProgress;
}

void choices_expect(struct choices *choices, const struct ct_slot *slot,
                    bool left)
{
    struct known *known = find(choices, slot->comm);
    if (!known || slot->flags & CT_FLAG_ZERO || known->nranks == 1 ||
        slot->op >= CT_OP_COUNT || op_facts[slot->op].size == CT_NO_SHARE ||
        (left && has_failed(slot)))
        return;
    enum ct_op kind = op_facts[slot->op].base;
    int peer = op_is_transfer(kind) ? slot->u.call.peer : -1;
    uint32_t *counter = counter_of(known, kind, peer);
    if (!counter)
        return;
    const struct expected call = {
        .bytes = bytes_of(known, slot),
        .grp = slot->grp,
        .op = op_of(slot),
        .n = (*counter)++,
        .peer = peer,
        .kind = (uint16_t)kind,
    };
    if (!(slot->flags & CT_FLAG_CAPTURED))
        expected_add(&known->expected[call.kind], &call);
    else if (slot->u.call.graph)
        captured_add(choices->captured, slot->u.call.graph,
                     &(struct captured_call){slot->comm, call});
}

struct uncounting {
    struct known *known;
    enum ct_op kind;
};

static void uncount(void *arg, int32_t peer)
{
    const struct uncounting *uncounting = arg;
    --*counter_of(uncounting->known, uncounting->kind, peer);
}

void choices_group(struct choices *choices, const struct ct_slot *slot,
                   bool left)
{
    struct known *known = find(choices, slot->comm);
    bool runs =
        !(slot->flags & CT_FLAG_SIMULATED) && !(left && has_failed(slot));
    for (int i = 0; known && !runs && i < CT_OP_COUNT; i++)
        expected_drop_group(&known->expected[i], slot->grp, uncount,
                            &(struct uncounting){known, (enum ct_op)i});
}

void choices_graph(struct choices *choices, const struct ct_slot *slot)
{
    captured_join(choices->captured, slot->u.graph.id, slot->u.graph.first,
                  slot->u.graph.second);
}

struct repeating {
    struct choices *choices;
    int64_t launch;
};

static void repeat(void *arg, const struct captured_call *captured)
{
    const struct repeating *repeating = arg;
    struct known *known = find(repeating->choices, captured->comm);
    struct expected call = captured->call;
    call.launch = repeating->launch;
    if (known)
        expected_add(&known->replays, &call);
}

void choices_launch(struct choices *choices, const struct ct_slot *slot,
                    int64_t id)
{
    captured_each(choices->captured, slot->u.graph_launch.graph, repeat,
                  &(struct repeating){choices, id});
}

void choices_forget(struct choices *choices, int64_t comm)
{
    struct known *known = find(choices, comm);
    if (known)
        known->forgotten = true;
}
