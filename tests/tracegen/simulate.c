#include "tracegen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the sender may have on the way without its receiver (NCCL: 8 slots). */
#define EAGER_BYTES ((uint64_t)4 << 20)

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

/* Transfers of one (communicator, source, destination), in order. */
struct edge {
    int nsends, nrecvs, send_capacity, recv_capacity;
    int64_t *sends, *recvs; /* when posted */
    int sent, received;     /* finished */
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

/* A lognormal factor around 1. */
static double jittered(const struct options *o, uint64_t a, uint64_t b)
{
    uint64_t bits = mix(mix(o->seed, a), b);
    double u = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double v = (double)(bits & 0xffffffffu) / 4294967296.0;

    return exp(o->jitter * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/* Edges of a source: up and down, in the world and in its pipeline. */
#define EDGES 4

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

static struct edge *edge_of(struct simulation *s, enum comm_kind kind,
                            int source, bool up)
{
    return &s->edges[source * EDGES + (kind == COMM_PP) * 2 + up];
}

static int rank_in_job(const struct simulation *s, int rank,
                       enum comm_kind kind, int place)
{
    return s->layout->comms[s->layout->comm_of[rank][kind]].ranks[place];
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

static struct record *add_record(struct rank *rank, enum ct_op op,
                                 const struct instruction *in, int peer,
                                 int64_t start, int64_t end)
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

static void post(int64_t **times, int *n, int *capacity, int64_t now)
{
    *times = grow(*times, capacity, *n, sizeof(**times));
    (*times)[(*n)++] = now;
}

/* One side of a transfer between neighbours in a communicator. */
struct side {
    struct edge *edge;
    double ns; /* of the next transfer on it */
    bool eager;
};

static struct side side_of(struct simulation *s, int r, int peer, bool sends,
                           const struct instruction *in)
{
    int other = rank_in_job(s, r, in->comm, peer);
    int source = sends ? r : other, target = sends ? other : r;
    uint64_t bytes = op_bytes(CT_OP_SEND, in->type, in->count, 2);
    struct side side = {.eager = bytes <= EAGER_BYTES};
    int n;

    side.edge = edge_of(s, in->comm, source, target > source);
    n = sends ? side.edge->sent : side.edge->received;
    side.ns =
        transfer_ns(s->layout->options,
                    layout_host(s->layout, r) != layout_host(s->layout, other),
                    CT_OP_SEND, 2, bytes) *
        jittered(s->layout->options, mix((uint64_t)source, (uint64_t)target),
                 (uint64_t)n);
    return side;
}

/* End of the send, -1 while it cannot be known. */
static int64_t send_end(const struct side *side)
{
    struct edge *e = side->edge;
    int64_t start = e->sends[e->sent];

    if (side->eager)
        return start + (int64_t)side->ns;
    if (e->nrecvs <= e->sent)
        return -1;
    if (e->recvs[e->sent] > start)
        start = e->recvs[e->sent];
    return start + (int64_t)side->ns;
}

/* An eager message that waits in the buffer is only copied. */
static int64_t recv_end(const struct side *side)
{
    struct edge *e = side->edge;
    int64_t start = e->recvs[e->received], sent, copied;

    if (e->nsends <= e->received)
        return -1;
    sent = e->sends[e->received];
    if (!side->eager)
        return (sent > start ? sent : start) + (int64_t)side->ns;
    copied = start + (int64_t)(side->ns / 10);
    sent += (int64_t)side->ns;
    return sent > copied ? sent : copied;
}

/* Both directions of an exchange begin together and end with the later. */
struct transfer {
    bool sends, receives;
    struct side out, back;
};

static struct transfer transfer_of(struct simulation *s, int r,
                                   const struct instruction *in)
{
    struct transfer t = {.sends = in->call != RECV,
                         .receives = in->call != SEND};

    if (t.sends)
        t.out = side_of(s, r, in->to, true, in);
    if (t.receives)
        t.back = side_of(s, r, in->from, false, in);
    return t;
}

static void post_transfer(struct rank *rank, const struct transfer *t)
{
    struct edge *out = t->out.edge, *back = t->back.edge;

    rank->posted = true;
    rank->posted_ns = rank->now_ns;
    if (t->sends)
        post(&out->sends, &out->nsends, &out->send_capacity, rank->now_ns);
    if (t->receives)
        post(&back->recvs, &back->nrecvs, &back->recv_capacity, rank->now_ns);
}

static int64_t transfer_end(const struct transfer *t)
{
    int64_t sent = t->sends ? send_end(&t->out) : 0;
    int64_t received = t->receives ? recv_end(&t->back) : 0;

    if (sent < 0 || received < 0)
        return -1;
    return sent > received ? sent : received;
}

static void record_transfer(struct rank *rank, const struct transfer *t,
                            const struct instruction *in, int group,
                            int64_t end)
{
    struct record *record = NULL;

    if (t->sends) {
        t->out.edge->sent++;
        record = add_record(rank, CT_OP_SEND, in, in->to, rank->posted_ns, end);
        record->group = group;
    }
    if (t->receives) {
        t->back.edge->received++;
        record =
            add_record(rank, CT_OP_RECV, in, in->from, rank->posted_ns, end);
        record->group = group;
    }
    record->last_of_group = group != 0;
}

static bool step_transfer(struct simulation *s, int r,
                          const struct instruction *in)
{
    struct rank *rank = &s->ranks[r];
    struct transfer transfer = transfer_of(s, r, in);
    bool grouped = in->call == EXCHANGE || s->layout->options->lone_groups;
    int64_t end;

    if (!rank->posted)
        post_transfer(rank, &transfer);
    end = transfer_end(&transfer);
    if (end < 0)
        return false;
    record_transfer(rank, &transfer, in, grouped ? ++rank->groups : 0, end);
    rank->now_ns = end;
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
