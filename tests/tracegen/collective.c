#include "tracegen.h"

/* The last to come decides when all end. */
static void hold(struct simulation *s, int comm, const struct instruction *in)
{
    const struct comm *c = &s->layout->comms[comm];
    struct meeting *m = &s->meetings[comm];
    const uint64_t bytes = op_bytes(in->op, in->type, in->count, c->nranks);
    const int64_t ns = collective_ns(s, comm, in->op, bytes, m->n, m->last_ns);
    const struct instance instance = {.comm = comm,
                                      .op = in->op,
                                      .type = in->type,
                                      .count = in->count,
                                      .ordinal = m->n,
                                      .src = -1,
                                      .dst = -1,
                                      .start_ns = m->last_ns,
                                      .transfer_ns = ns};
    int i;

    truth_instance(s, &instance);
    for (i = 0; i < c->nranks; i++)
        simulation_done(s, c->ranks[i], m->streams[i],
                        m->last_ns + ns + late_end_ns(s, comm, i, m->n));
    m->n++;
    m->arrived = 0;
    m->last_ns = 0;
}

void meet(struct simulation *s, int r, int stream)
{
    const struct instruction *in = stream_task(&s->ranks[r], stream);
    const int64_t start_ns = s->ranks[r].streams[stream].start_ns;
    const int comm = s->layout->comm_of[r][in->comm];
    struct meeting *m = &s->meetings[comm];

    m->streams[s->layout->place_in[r][in->comm]] = (unsigned char)stream;
    if (start_ns > m->last_ns)
        m->last_ns = start_ns;
    if (++m->arrived == s->layout->comms[comm].nranks)
        hold(s, comm, in);
}
