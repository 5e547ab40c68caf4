#include "tracegen.h"

/* Bytes that wait in buffers for ranks that have not come. */
#define BUFFER_BYTES ((uint64_t)4 << 20)

/* A bracket of collectives is one launch: it takes as long as one of their
 * bytes together, and each has its share of that. */
struct launch {
    const struct instruction *calls;
    int n;
    uint64_t bytes;
    int64_t ns;
};

static struct launch launch_of(struct simulation *s, int comm,
                               const struct instruction *in)
{
    const struct comm *c = &s->layout->comms[comm];
    const struct meeting *m = &s->meetings[comm];
    struct launch launch = {.calls = in, .n = 1};
    int i;

    if (in->call == GROUP)
        launch = (struct launch){.calls = in + 1, .n = in->n};
    in = launch.calls;
    for (i = 0; i < launch.n; i++)
        launch.bytes += op_bytes(in[i].op, in[i].type, in[i].count, c->nranks);
    launch.ns = collective_ns(s, comm, in->op, launch.bytes, m->n, m->last_ns);
    return launch;
}

static void tell(struct simulation *s, int comm, const struct launch *launch)
{
    const struct comm *c = &s->layout->comms[comm];
    const struct meeting *m = &s->meetings[comm];
    struct instance instance = {
        .comm = comm, .src = -1, .dst = -1, .start_ns = m->last_ns};
    int i;

    for (i = 0; i < launch->n; i++) {
        const struct instruction *in = &launch->calls[i];
        const uint64_t bytes = op_bytes(in->op, in->type, in->count, c->nranks);

        instance.op = in->op;
        instance.type = in->type;
        instance.count = in->count;
        instance.ordinal = m->n + (uint64_t)i;
        instance.transfer_ns =
            launch->n == 1 ? launch->ns
                           : (int64_t)((double)launch->ns * (double)bytes /
                                       (double)launch->bytes);
        truth_instance(s, &instance);
    }
}

/* The root of a broadcast only sends: it is done when its data are on the way,
 * whoever has come. */
static bool leaves_early(const struct simulation *s,
                         const struct launch *launch, int place)
{
    return s->layout->options->job.early_roots &&
           launch->calls->op == CT_OP_BROADCAST &&
           launch->calls->peer == place && launch->bytes <= BUFFER_BYTES;
}

/* Before all have ended. */
static bool somebody_dies(const struct simulation *s, const struct comm *c,
                          int64_t end_ns)
{
    int i;

    for (i = 0; i < c->nranks; i++)
        if (s->ranks[c->ranks[i]].dies_ns < end_ns)
            return true;
    return false;
}

/* The last to come decides when all end. */
static void hold(struct simulation *s, int comm, const struct instruction *in)
{
    const struct comm *c = &s->layout->comms[comm];
    struct meeting *m = &s->meetings[comm];
    const struct launch launch = launch_of(s, comm, in);
    int i;

    if (may_hang(s->layout->options) &&
        somebody_dies(s, c, m->last_ns + launch.ns))
        return;
    tell(s, comm, &launch);
    for (i = 0; i < c->nranks; i++) {
        const struct rank *rank = &s->ranks[c->ranks[i]];
        const int64_t begin_ns = leaves_early(s, &launch, i)
                                     ? rank->streams[m->streams[i]].start_ns
                                     : m->last_ns;

        simulation_done(s, c->ranks[i], m->streams[i],
                        begin_ns + launch.ns + late_end_ns(s, comm, i, m->n));
    }
    m->n += (uint64_t)launch.n;
    m->arrived = 0;
    m->last_ns = 0;
}

void meet(struct simulation *s, int r, int stream)
{
    const struct instruction *in = stream_task(&s->ranks[r], stream);
    const enum comm_kind kind = in[in->call == GROUP].comm;
    const int64_t start_ns = s->ranks[r].streams[stream].start_ns;
    const int comm = s->layout->comm_of[r][kind];
    struct meeting *m = &s->meetings[comm];

    m->streams[s->layout->place_in[r][kind]] = (unsigned char)stream;
    if (start_ns > m->last_ns)
        m->last_ns = start_ns;
    if (++m->arrived == s->layout->comms[comm].nranks)
        hold(s, comm, in);
}
