#include "tracegen.h"

#define LEAD_NS 10000 /* of the host before the GPU */

static bool is_p2p(enum ct_op op)
{
    return op == CT_OP_SEND || op == CT_OP_RECV;
}

struct wanted {
    const struct rank *rank;
    struct op_class class;
};

static bool is_class(const void *context, int number)
{
    const struct wanted *w = context;
    const struct op_class *a = &w->rank->classes[number], *b = &w->class;

    return a->op == b->op && a->comm == b->comm && a->type == b->type &&
           a->redop == b->redop && a->peer == b->peer &&
           a->stream == b->stream && a->count == b->count;
}

static uint64_t hash_of(const struct op_class *c)
{
    uint64_t a = (uint64_t)c->op << 32 | (uint64_t)c->comm << 24 |
                 (uint64_t)c->type << 16 | (uint64_t)(c->redop + 1) << 8 |
                 (uint64_t)c->stream;

    return mix(a ^ (uint64_t)(uint32_t)c->peer << 40, c->count);
}

static int lane_of(struct rank *rank, const struct op_class *class)
{
    struct lane lane = {.comm = class->comm,
                        .op = is_p2p(class->op) ? class->op : CT_OP_ALL_REDUCE,
                        .peer = is_p2p(class->op) ? class->peer : -1};
    int i;

    for (i = 0; i < rank->nlanes; i++)
        if (rank->lanes[i].comm == lane.comm && rank->lanes[i].op == lane.op &&
            rank->lanes[i].peer == lane.peer)
            return i;
    rank->lanes =
        grow(rank->lanes, &rank->lane_capacity, i, sizeof(*rank->lanes));
    rank->lanes[i] = lane;
    return rank->nlanes++;
}

static int class_of(struct rank *rank, const struct op_class *class)
{
    struct wanted w = {.rank = rank, .class = *class};
    int n = rank->nclasses ? rank->classes[rank->last_class].next : 0;

    /* Mostly calls follow each other as they did before. */
    if (n < rank->nclasses && is_class(&w, n))
        return n;
    n = index_number(&rank->class_index, hash_of(class), is_class, &w);
    if (n < rank->nclasses)
        return n;
    rank->classes =
        grow(rank->classes, &rank->class_capacity, n, sizeof(*rank->classes));
    rank->classes[n] = *class;
    rank->nclasses++;
    rank->classes[n].lane = lane_of(rank, class);
    return n;
}

/* The host is ahead of the GPU, never behind itself. */
static int64_t enter(struct rank *rank, int64_t host_ns)
{
    int64_t at = rank->streams[COMPUTE_STREAM].now_ns - LEAD_NS;

    if (at < rank->host_ns)
        at = rank->host_ns;
    rank->host_ns = at + host_ns;
    return at;
}

void record_add(struct rank *rank, const struct instruction *in,
                enum comm_kind comm, int stream, int group)
{
    struct op_class class = {.op = in->call == SEND   ? CT_OP_SEND
                                   : in->call == RECV ? CT_OP_RECV
                                                      : in->op,
                             .comm = comm,
                             .type = in->type,
                             .redop = in->redop,
                             .peer = in->peer,
                             .stream = stream,
                             .count = in->count};
    struct record *record;

    rank->records = grow(rank->records, &rank->capacity, rank->nrecords,
                         sizeof(*rank->records));
    record = &rank->records[rank->nrecords++];
    rank->nops++;
    *record = (struct record){.start_ns = NEVER,
                              .gpu_ns = NEVER,
                              .cls = class_of(rank, &class),
                              .group = group};
    rank->classes[rank->last_class].next = record->cls;
    rank->last_class = record->cls;
    record->ordinal = rank->lanes[rank->classes[record->cls].lane].n++;
    record->enter_ns = enter(rank, group ? HOST_GROUPED_NS : HOST_CALL_NS);
}
