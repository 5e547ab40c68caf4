#include "tracegen.h"

#include <stddef.h>

/* What the sender may have on the way without its receiver (NCCL: 8 slots). */
#define EAGER_BYTES ((uint64_t)4 << 20)

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

bool step_transfer(struct simulation *s, int r, const struct instruction *in)
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
