#include "tracegen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum ct_op_size size;
    enum ct_op_wire wire;
} ops[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {CT_##size_, CT_##wire_},
#include "commtrace/nccl_ops.def"
};

static const uint64_t type_bytes[] = {
#define TYPE(id_, value_, name_, bytes_) [value_] = (bytes_),
#include "commtrace/nccl_types.def"
};

/* The collective that a communicator's ranks are coming to. */
struct meeting {
    int arrived, left;
    int64_t last_ns, end_ns;
    uint64_t n; /* collectives so far */
};

uint64_t op_bytes(enum ct_op op, int type, uint64_t count, int nranks)
{
    return count * type_bytes[type] *
           (ops[op].size == CT_ALL_SHARES ? (uint64_t)nranks : 1);
}

double transfer_ns(const struct options *o, int link, enum ct_op op, int nranks,
                   uint64_t bytes)
{
    double n = nranks, wire = ops[op].wire == CT_UNIT   ? 1
                              : ops[op].wire == CT_RING ? (n - 1) / n
                                                        : 2 * (n - 1) / n;

    return 1e3 * o->alpha_us[link] + wire * (double)bytes / o->GBps[link];
}

double jittered(const struct options *o, uint64_t a, uint64_t b)
{
    uint64_t bits = mix(mix(o->seed, a), b);
    double u = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double v = (double)(bits & 0xffffffffu) / 4294967296.0;

    return exp(o->jitter * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

void simulation_init(struct simulation *s, const struct layout *layout)
{
    unsigned long n = (unsigned long)layout->nranks;
    int r;

    *s = (struct simulation){.layout = layout};
    s->ranks = zeros(n, sizeof(*s->ranks));
    s->edges = zeros(n * EDGES, sizeof(*s->edges));
    s->meetings = zeros((unsigned long)layout->ncomms, sizeof(*s->meetings));
    for (r = 0; r < layout->nranks; r++)
        s->ranks[r].ordinals = zeros(MAX_CLASSES, sizeof(uint32_t));
}

void simulation_release(struct simulation *s)
{
    int i;

    for (i = 0; i < s->layout->nranks * EDGES; i++) {
        free(s->edges[i].sends);
        free(s->edges[i].recvs);
    }
    for (i = 0; i < s->layout->nranks; i++) {
        free(s->ranks[i].program.code);
        free(s->ranks[i].records);
        free(s->ranks[i].ordinals);
        free(s->ranks[i].steps);
    }
    free(s->ranks);
    free(s->edges);
    free(s->meetings);
}

static bool same_class(const struct op_class *a, const struct op_class *b)
{
    return a->op == b->op && a->comm == b->comm && a->type == b->type &&
           a->redop == b->redop && a->peer == b->peer && a->count == b->count;
}

static bool same_lane(const struct op_class *a, const struct op_class *b)
{
    bool p2p = a->op == CT_OP_SEND || a->op == CT_OP_RECV;

    if (a->comm != b->comm)
        return false;
    if (p2p)
        return a->op == b->op && a->peer == b->peer;
    return b->op != CT_OP_SEND && b->op != CT_OP_RECV;
}

static int class_of(struct rank *rank, const struct op_class *class)
{
    int i;

    for (i = 0; i < rank->nclasses; i++)
        if (same_class(&rank->classes[i], class))
            return i;
    if (i == MAX_CLASSES)
        abort();
    rank->classes[i] = *class;
    return rank->nclasses++;
}

static uint32_t next_ordinal(struct rank *rank, int class)
{
    int i = 0; /* counted at the lane's first class */

    while (!same_lane(&rank->classes[class], &rank->classes[i]))
        i++;
    return rank->ordinals[i]++;
}

struct record *add_record(struct rank *rank, enum ct_op op,
                          const struct instruction *in, int peer, int64_t start,
                          int64_t end)
{
    struct op_class class = {.op = op,
                             .comm = in->comm,
                             .type = in->type,
                             .redop = op == CT_OP_ALL_REDUCE ? 0 : -1,
                             .peer = peer,
                             .count = in->count};
    struct record *record;

    rank->records = grow(rank->records, &rank->record_capacity, rank->nrecords,
                         sizeof(*rank->records));
    record = &rank->records[rank->nrecords++];
    *record = (struct record){.start_ns = start, .gpu_ns = end - start};
    record->cls = class_of(rank, &class);
    record->ordinal = next_ordinal(rank, record->cls);
    return record;
}

/* The last to come sets when all end. */
static void meet(struct simulation *s, const struct comm *c, struct meeting *m,
                 const struct instruction *in)
{
    const struct options *o = s->layout->options;
    double ns = transfer_ns(o, c->crosses, in->op, c->nranks,
                            op_bytes(in->op, in->type, in->count, c->nranks));

    m->end_ns = m->last_ns + (int64_t)(ns * jittered(o, c->uid, m->n++));
    m->left = c->nranks;
}

static bool arrive(struct simulation *s, const struct comm *c,
                   struct meeting *m, struct rank *rank,
                   const struct instruction *in)
{
    if (m->left) /* others still leave the one before */
        return false;
    rank->posted = true;
    rank->posted_ns = rank->now_ns;
    if (rank->now_ns > m->last_ns)
        m->last_ns = rank->now_ns;
    if (++m->arrived < c->nranks)
        return false;
    meet(s, c, m, in);
    return true;
}

static bool step_collective(struct simulation *s, int r,
                            const struct instruction *in)
{
    struct rank *rank = &s->ranks[r];
    int comm = s->layout->comm_of[r][in->comm];
    struct meeting *m = &s->meetings[comm];

    if (!rank->posted && !arrive(s, &s->layout->comms[comm], m, rank, in))
        return false;
    if (!m->left)
        return false;
    add_record(rank, in->op, in, in->op == CT_OP_BROADCAST ? 0 : -1,
               rank->posted_ns, m->end_ns);
    rank->now_ns = m->end_ns;
    if (!--m->left) {
        m->arrived = 0;
        m->last_ns = 0;
    }
    return true;
}

static void mark(struct rank *rank, int what)
{
    if (what == 1) {
        rank->steps = grow(rank->steps, &rank->step_capacity, rank->nsteps,
                           sizeof(*rank->steps));
        rank->steps[rank->nsteps++].first = rank->nrecords;
    } else {
        rank->steps[rank->nsteps - 1].last = rank->nrecords - 1;
    }
}

/* False: it has to wait for others. */
static bool step_rank(struct simulation *s, int r)
{
    struct rank *rank = &s->ranks[r];
    const struct instruction *in = &rank->program.code[rank->pc];

    switch (in->call) {
    case COMPUTE:
        rank->now_ns += (int64_t)(1e3 * in->compute_us *
                                  (r == s->layout->options->slow_rank
                                       ? s->layout->options->slow_factor
                                       : 1) *
                                  jittered(s->layout->options, (uint64_t)r + 1,
                                           rank->draws++));
        break;
    case MARK:
        mark(rank, in->mark);
        break;
    case COLLECTIVE:
        if (!step_collective(s, r, in))
            return false;
        break;
    default:
        if (!step_transfer(s, r, in))
            return false;
    }
    rank->posted = false;
    rank->pc++;
    return true;
}

void simulation_run(struct simulation *s)
{
    bool moved = true;
    int r;

    while (moved) {
        moved = false;
        for (r = 0; r < s->layout->nranks; r++)
            while (s->ranks[r].pc < s->ranks[r].program.n && step_rank(s, r))
                moved = true;
    }
    for (r = 0; r < s->layout->nranks; r++) {
        if (s->ranks[r].pc < s->ranks[r].program.n)
            abort(); /* a deadlock is a fault of the program above */
        s->ranks[r].program.n = s->ranks[r].pc = 0;
    }
}
