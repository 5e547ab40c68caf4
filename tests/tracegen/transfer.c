#include "tracegen.h"

#include <stdlib.h>

/* What the sender may have on the way without its receiver (NCCL: 8 slots). */
#define EAGER_BYTES ((uint64_t)4 << 20)

struct half { /* a send or a recv that its peer has not come to */
    int rank, stream;
    int64_t start_ns, ns;
    bool eager;
};

/* Messages of one (communicator, source, destination), in order. */
struct edge {
    int comm, source, target; /* ranks in comm */
    uint64_t sends, recvs;    /* so far */
    int head, n, capacity;
    struct half *waiting; /* of the side that is ahead */
};

struct wanted {
    const struct simulation *simulation;
    int comm, source, target;
};

static bool is_edge(const void *context, int number)
{
    const struct wanted *w = context;
    const struct edge *e = &w->simulation->edges[number];

    return e->comm == w->comm && e->source == w->source &&
           e->target == w->target;
}

static struct edge *edge_of(struct simulation *s, int comm, int source,
                            int target)
{
    struct wanted w = {s, comm, source, target};
    uint64_t hash = mix((uint64_t)(uint32_t)comm,
                        (uint64_t)(uint32_t)source << 32 | (uint32_t)target);
    int n = index_number(&s->edge_index, hash, is_edge, &w);

    if (n == s->nedges) {
        s->edges = grow(s->edges, &s->edge_capacity, n, sizeof(*s->edges));
        s->edges[n] =
            (struct edge){.comm = comm, .source = source, .target = target};
        s->nedges++;
    }
    return &s->edges[n];
}

void edges_release(struct simulation *s)
{
    int i;

    for (i = 0; i < s->nedges; i++)
        free(s->edges[i].waiting);
    free(s->edges);
    free(s->edge_index.slots);
}

static void push(struct edge *e, const struct half *half)
{
    e->waiting = grow(e->waiting, &e->capacity, e->n, sizeof(*e->waiting));
    e->waiting[e->n++] = *half;
}

static struct half pop(struct edge *e)
{
    struct half half = e->waiting[e->head++];

    if (e->head == e->n)
        e->head = e->n = 0;
    return half;
}

/* One message of what a stream has begun is over. */
static void end_message(struct simulation *s, const struct half *half,
                        int64_t end_ns)
{
    struct stream *stream = &s->ranks[half->rank].streams[half->stream];

    if (end_ns > stream->end_ns)
        stream->end_ns = end_ns;
    if (!--stream->missing)
        simulation_done(s, half->rank, half->stream, stream->end_ns);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool dies_before(const struct simulation *s, const struct half *half,
                        int64_t end_ns)
{
    return s->ranks[half->rank].dies_ns < end_ns;
}

/* An eager message that waits in the buffer is only copied. */
static void pass_message(struct simulation *s, const struct edge *e,
                         const struct half *send, const struct half *recv,
                         const struct instruction *in)
{
    const int64_t ns = later(send->ns, recv->ns);
    const struct instance instance = {
        .comm = e->comm,
        .op = CT_OP_SEND,
        .type = in->type,
        .count = in->count,
        .ordinal = (e->sends < e->recvs ? e->sends : e->recvs) - 1,
        .src = e->source,
        .dst = e->target,
        .start_ns = later(send->start_ns, recv->start_ns),
        .transfer_ns = ns};

    const int64_t end_ns =
        send->eager ? later(send->start_ns + ns, recv->start_ns + ns / 10)
                    : instance.start_ns + ns;

    if (dies_before(s, send, send->eager ? send->start_ns + ns : end_ns) ||
        dies_before(s, recv, end_ns))
        return;
    truth_instance(s, &instance);
    end_message(s, recv, end_ns);
    if (!send->eager)
        end_message(s, send, end_ns);
}

static void post(struct simulation *s, struct edge *e, const struct half *half,
                 const struct instruction *in)
{
    const bool sends = in->call == SEND;
    const bool first = sends ? e->recvs <= e->sends : e->sends <= e->recvs;
    struct half other;

    if (sends)
        e->sends++;
    else
        e->recvs++;
    if (first) {
        push(e, half);
    } else {
        other = pop(e);
        pass_message(s, e, sends ? half : &other, sends ? &other : half, in);
    }
    if (sends && half->eager &&
        !dies_before(s, half, half->start_ns + half->ns))
        end_message(s, half, half->start_ns + half->ns);
}

struct load { /* bytes of a bracket inside a host and between hosts */
    uint64_t out[2], in[2];
};

static int peer_of(const struct simulation *s, int r,
                   const struct instruction *in)
{
    return s->layout->comms[s->layout->comm_of[r][in->comm]].ranks[in->peer];
}

static uint64_t *load_of(const struct simulation *s, int r,
                         const struct instruction *in, struct load *load)
{
    const int link = layout_domain(s->layout, r) !=
                     layout_domain(s->layout, peer_of(s, r, in));

    return in->call == SEND ? &load->out[link] : &load->in[link];
}

static void post_message(struct simulation *s, int r, int stream,
                         const struct instruction *in, uint64_t load)
{
    const int me = s->layout->place_in[r][in->comm], peer = peer_of(s, r, in);
    const bool sends = in->call == SEND;
    struct edge *e = edge_of(s, s->layout->comm_of[r][in->comm],
                             sends ? me : in->peer, sends ? in->peer : me);
    struct half half = {.rank = r,
                        .stream = stream,
                        .start_ns = s->ranks[r].streams[stream].start_ns,
                        .eager = op_bytes(CT_OP_SEND, in->type, in->count, 2) <=
                                 EAGER_BYTES};

    half.ns = message_ns(s, sends ? r : peer, sends ? peer : r, load,
                         sends ? e->sends : e->recvs, half.start_ns);
    post(s, e, &half, in);
}

/* Messages of a bracket share their link. */
void transfer(struct simulation *s, int r, int stream)
{
    const struct instruction *in = stream_task(&s->ranks[r], stream);
    const int n = in->call == GROUP ? in->n : 1;
    struct load load = {{0}, {0}};
    int i;

    if (in->call == GROUP)
        in++;
    for (i = 0; i < n; i++)
        *load_of(s, r, &in[i], &load) +=
            op_bytes(CT_OP_SEND, in[i].type, in[i].count, 2);
    s->ranks[r].streams[stream].missing = n;
    for (i = 0; i < n; i++)
        post_message(s, r, stream, &in[i], *load_of(s, r, &in[i], &load));
}
