/* Starts and ends of the ops that may tell how clocks are apart. */
#include "trace/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/parallel.h"

#define MOST_SPANS (1 << 20) /* or one per so many ops, if that is more: */
#define OPS_PER_SPAN 10
#define FEWEST_PICKS 16
#define MOST_PICKS 65536

static const struct ct_comm *comm_of(const struct ct_clocking *c,
                                     const struct ct_lane *lane)
{
    return &c->m->job->comms[lane->comm];
}

/* Number in kernel_of of the process that holds rank; CT_NONE: no trace. */
static int kernel_at(const struct ct_clocking *c, const struct ct_comm *comm,
                     int rank)
{
    const int process = rank < 0 ? CT_NONE : comm->members[rank].process;

    return process == CT_NONE ? CT_NONE : c->kernel_of[c->number[process]];
}

enum reach { NOTHING, ONE_MACHINE, SEVERAL };

static enum reach reach_of(const struct ct_clocking *c,
                           const struct ct_lane *lane)
{
    const struct ct_comm *comm = comm_of(c, lane);
    int first = CT_NONE, known = 0, i;

    if (lane->kind == CT_LANE_P2P) {
        const int a = kernel_at(c, comm, lane->src);
        const int b = kernel_at(c, comm, lane->dst);

        return a != CT_NONE && b != CT_NONE && a != b ? SEVERAL : NOTHING;
    }
    if (lane->kind != CT_LANE_COLL || comm->nknown < 2)
        return NOTHING;
    for (i = 0; i < comm->nranks; i++) {
        const int kernel = kernel_at(c, comm, i);

        if (kernel == CT_NONE)
            continue;
        if (known++ && kernel != first)
            return SEVERAL;
        first = kernel;
    }
    return ONE_MACHINE;
}

static void add_watch(struct ct_clocking *c, int l, int64_t most)
{
    const struct ct_lane *lane = &c->m->lanes[l];
    struct ct_watch *w;
    int stride = 1;

    if (lane->count == 0)
        return;
    if (lane->count > most)
        /* Odd: what a program repeats has an even number of calls, mostly. */
        stride = (int)((lane->count + most - 1) / most) | 1;
    c->watches = ct_grow(c->watches, &c->watch_capacity, c->nwatches,
                         sizeof(*c->watches));
    c->watch_of[l] = c->nwatches;
    w = &c->watches[c->nwatches++];
    *w = (struct ct_watch){.lane = l,
                           .stride = stride,
                           .npicks = (lane->count - 1) / stride + 1,
                           .nspans = ct_lane_width(c->m, lane),
                           .span = c->nspans};
    c->nspans += (int64_t)w->npicks * w->nspans;
}

static int64_t count_ops(const struct ct_matching *m)
{
    int64_t n = 0;
    int i;

    for (i = 0; i < m->job->nprocesses; i++)
        n += ct_process_at(m, i)->nops;
    return n;
}

static void choose_watches(struct ct_clocking *c)
{
    const struct ct_matching *m = c->m;
    enum reach *reach = ct_alloc((size_t)m->nlanes, sizeof(*reach));
    int64_t room = count_ops(m) / OPS_PER_SPAN, width = 0, most;
    int l;

    for (l = 0; l < m->nlanes; l++) {
        reach[l] = reach_of(c, &m->lanes[l]);
        if (reach[l] == SEVERAL)
            width += ct_lane_width(m, &m->lanes[l]);
    }
    room = room > MOST_SPANS ? room : MOST_SPANS;
    most = width ? room / width : 0;
    most = most < FEWEST_PICKS ? FEWEST_PICKS : most;
    most = most > MOST_PICKS ? MOST_PICKS : most;
    c->watch_of = ct_alloc((size_t)m->nlanes, sizeof(*c->watch_of));
    for (l = 0; l < m->nlanes; l++) {
        c->watch_of[l] = CT_NONE;
        if (reach[l] != NOTHING)
            add_watch(c, l, reach[l] == SEVERAL ? most : FEWEST_PICKS);
    }
    free(reach);
}

/* Where the span of op goes; NULL: it is not watched. */
static struct ct_span *slot_of(const struct ct_clocking *c, int i,
                               const struct ct_process *p,
                               const struct ct_op_row *op)
{
    const struct ct_class_info *info = &c->m->infos[i][op->cls];
    const struct ct_comm_row *row = &p->comms[p->classes[op->cls].comm];
    const struct ct_lane *lane = &c->m->lanes[info->lane];
    const int watch = c->watch_of[info->lane];
    const struct ct_watch *w;
    int k;

    if (watch == CT_NONE || p->classes[op->cls].graph != CT_NONE ||
        comm_of(c, lane)->members[row->rank].process != c->m->job->processes[i])
        return NULL;
    w = &c->watches[watch];
    k = op->instance - lane->first;
    if (k % w->stride)
        return NULL;
    return &ct_watch_spans(c, w,
                           k / w->stride)[ct_lane_place(lane, info, row->rank)];
}

/* Each process has spans of its own. */
static void note_spans(void *context, int i)
{
    struct ct_clocking *c = context;
    const struct ct_process *p = ct_process_at(c->m, i);
    int o;

    for (o = 0; o < p->nops; o++) {
        const struct ct_op_row *op = &p->ops[o];
        struct ct_span *span;

        if (ct_op_start_ns(op) == CT_NO_TIME || ct_op_gpu_ns(op) == CT_NO_TIME)
            continue;
        span = slot_of(c, i, p, op);
        if (!span)
            continue;
        span->start_ns = p->t0_ns + ct_op_start_ns(op);
        span->end_ns = span->start_ns + ct_op_gpu_ns(op);
    }
}

static void gather(struct ct_clocking *c)
{
    int64_t k;

    choose_watches(c);
    c->spans = ct_alloc((size_t)c->nspans, sizeof(*c->spans));
    for (k = 0; k < c->nspans; k++)
        c->spans[k].start_ns = CT_NO_TIME;
    if (c->nwatches)
        ct_parallel_for(c->m->job->nprocesses, note_spans, c);
}

bool ct_watch_message(const struct ct_clocking *c, const struct ct_watch *w,
                      int pick, struct ct_span *send, struct ct_span *recv)
{
    const struct ct_instance *instance = ct_watch_instance(c, w, pick);

    *send = ct_watch_spans(c, w, pick)[0];
    *recv = ct_watch_spans(c, w, pick)[1];
    return send->start_ns != CT_NO_TIME && recv->start_ns != CT_NO_TIME &&
           !instance->mismatch && !instance->cut;
}

static void number_processes(struct ct_clocking *c)
{
    int i;

    c->number = ct_alloc((size_t)c->m->trace->nprocesses, sizeof(*c->number));
    for (i = 0; i < c->m->job->nprocesses; i++)
        c->number[c->m->job->processes[i]] = i;
}

static void release(struct ct_clocking *c)
{
    int i;

    for (i = 0; i < c->nties; i++)
        ct_tie_release(&c->ties[i]);
    free(c->ties);
    free(c->number);
    free(c->kernel_of);
    free(c->watches);
    free(c->watch_of);
    free(c->spans);
    ct_intern_release(&c->tie_keys);
}

void ct_trace_clocks(struct ct_matching *m)
{
    struct ct_clocking c = {.m = m};

    number_processes(&c);
    c.kernel_of = ct_clock_kernels(m);
    gather(&c);
    ct_clock_group(&c);
    ct_clock_tie_collectives(&c);
    ct_clock_tie_p2p(&c);
    ct_clock_tie_clusters(&c);
    ct_clock_join(&c, CT_TIE_NONE, INFINITY);
    ct_clock_check(&c);
    ct_clock_compare_pairs(&c);
    release(&c);
}
