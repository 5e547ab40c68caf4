/*
 * What a communication cost: transfer, and wait for late ranks (research
 * behind it: a rank's own duration over-states the transfer by 24 .. 2250 %).
 *
 *   COLL    no rank ends before all have begun: transfer = shortest duration
 *   ROOTED  see rooted.c
 *   p2p     a send may retire before its recv begins: end of recv minus the
 *           later start, where their clocks are one or tied well enough; else
 *           the lower quartile of the recvs
 *   ONE_SIDED   nobody else records anything: its duration, as a bound; of
 *           what moves no bytes (signals) all is waiting
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clocks.h"
#include "trace/match.h"

/* Recvs so near the quartile are taken for transfers without waiting. */
#define QUARTILE_BAND 1.1

/* Third quartile over first, at most, of recvs that did not wait. */
#define TIGHT_SPREAD 1.2
#define TIGHT_RECVS 8 /* fewer may agree by chance, or one waits alone */

static int64_t share_of(int64_t ns, uint64_t part, uint64_t whole)
{
    return whole > part ? (int64_t)((double)ns * (double)part / (double)whole)
                        : ns;
}

int64_t ct_own_time(const struct ct_process *p, const struct ct_op_row *op,
                    enum ct_op_class cls)
{
    const struct ct_launch_bytes *launch;
    uint64_t whole;

    if (op->launch == CT_NONE || p->launches[op->launch].bytes == CT_NONE ||
        cls == CT_ONE_SIDED)
        return ct_op_gpu_ns(op);
    launch = &p->launch_bytes[p->launches[op->launch].bytes];
    if (cls == CT_SEND && launch->recv + launch->coll > 0)
        return 0;
    whole = cls == CT_RECV   ? launch->recv
            : cls == CT_SEND ? launch->send
                             : launch->coll;
    return share_of(ct_op_gpu_ns(op), p->classes[op->cls].bytes, whole);
}

void ct_transfer_add(struct ct_matching *m, int process_number,
                     const struct ct_op_row *op,
                     const struct ct_class_info *info,
                     struct ct_instance *instance)
{
    int64_t ns = ct_own_time(ct_process_at(m, process_number), op, info->cls);

    instance->timed++;
    if (ns < instance->transfer_ns)
        instance->transfer_ns = ns;
    if (ns > instance->wait_max_ns)
        instance->wait_max_ns = ns;
    instance->wait_sum_ns = ct_add_time(instance->wait_sum_ns, ns);
}

static int64_t at_least(int64_t low, int64_t value)
{
    return value > low ? value : low;
}

void ct_set_waits(struct ct_instance *instance, int64_t transfer)
{
    int64_t all = instance->timed && transfer > INT64_MAX / instance->timed
                      ? INT64_MAX
                      : transfer * instance->timed;

    instance->transfer_ns = transfer;
    instance->wait_sum_ns = at_least(0, instance->wait_sum_ns - all);
    instance->wait_max_ns = at_least(0, instance->wait_max_ns - transfer);
}

static void set_unknown(struct ct_instance *instance)
{
    instance->transfer_ns = CT_NO_TIME;
    instance->wait_sum_ns = instance->wait_max_ns = 0;
}

static void set_p2p(struct ct_instance *instance, int64_t recv_ns,
                    int64_t transfer)
{
    instance->transfer_ns = transfer;
    instance->wait_sum_ns = at_least(0, recv_ns - transfer);
    instance->wait_max_ns = instance->wait_sum_ns;
}

struct pair_times { /* common ones, see clocks.h */
    int64_t send_start, recv_start, recv_end;
    int64_t recv_ns; /* that the recv answers for */
    double share;    /* of the recv in its launch */
    double error;    /* how far send and recv may be off from each other */
    bool whole;      /* both have a place in time */
};

/* False: there is no timed recv. */
static bool times_of(const struct ct_matching *m, const struct ct_pair *pair,
                     struct pair_times *t)
{
    const struct ct_process *from, *to;
    const struct ct_op_row *send, *recv;

    *t = (struct pair_times){.share = 1};
    if (pair->receiver == CT_NONE)
        return false;
    to = &m->trace->processes[pair->receiver];
    recv = &to->ops[pair->recv];
    t->recv_ns = ct_own_time(to, recv, CT_RECV);
    if (recv->launch != CT_NONE && ct_op_gpu_ns(recv) > 0)
        t->share = (double)t->recv_ns / (double)ct_op_gpu_ns(recv);
    if (pair->sender == CT_NONE)
        return true;
    from = &m->trace->processes[pair->sender];
    send = &from->ops[pair->send];
    t->whole = ct_op_start_ns(send) != CT_NO_TIME &&
               ct_op_start_ns(recv) != CT_NO_TIME;
    if (!t->whole)
        return true;
    t->send_start = ct_common_ns(m->trace, from, ct_op_start_ns(send));
    t->recv_start = ct_common_ns(m->trace, to, ct_op_start_ns(recv));
    t->recv_end = ct_common_end(m->trace, to, recv);
    t->error = ct_common_error(m->trace, from, to, ct_op_start_ns(send));
    return true;
}

/* From where both are there to the end of the recv. */
static int64_t after_both(const struct pair_times *t)
{
    const int64_t later =
        t->recv_start > t->send_start ? t->recv_start : t->send_start;

    return at_least(0, t->recv_end - later);
}

/* False: the clocks of both ends do not tell. */
static bool set_by_clock(struct ct_instance *instance,
                         const struct pair_times *t)
{
    const int64_t hidden = t->recv_start - t->send_start;
    const int64_t transfer = after_both(t);
    int64_t share = (int64_t)((double)transfer * t->share);

    if ((double)hidden > t->error) {
        /* Surely late: its own duration is all that shows. */
        instance->estimated = t->error > CT_SAMPLE_ERROR * (double)transfer;
        instance->overlapped = ct_hides(hidden - (int64_t)t->error, transfer);
        set_p2p(instance, t->recv_ns, share < t->recv_ns ? share : t->recv_ns);
        return true;
    }
    if (!ct_is_clear(t->error, transfer))
        return false;
    share = share < t->recv_ns ? share : t->recv_ns;
    if (share <= 0 && t->error > 0)
        return false;
    instance->estimated = t->error > CT_SAMPLE_ERROR * (double)transfer;
    set_p2p(instance, t->recv_ns, share);
    return true;
}

struct far { /* a transfer between two clocks that are not known well */
    int64_t recv_ns;
    int64_t most_ns; /* that it took: of recv_ns as much as clocks allow */
    uint64_t bytes;
    int instance;
};

struct fars {
    int n, capacity;
    struct far *of;
};

static int64_t most_by_clock(const struct pair_times *t)
{
    const double most = ((double)after_both(t) + t->error) * t->share;

    return most < (double)t->recv_ns ? (int64_t)fmax(most, 0) : t->recv_ns;
}

static void finish_p2p(const struct ct_matching *m, int i,
                       const struct ct_pair *pair, struct fars *fars)
{
    struct ct_instance *instance = &m->job->instances[i];
    struct pair_times t;

    if (!times_of(m, pair, &t)) {
        /* A send alone: neither a transfer nor a bound of one. */
        set_unknown(instance);
        instance->bound = true;
        return;
    }
    set_p2p(instance, t.recv_ns, t.recv_ns);
    if (!t.whole) {
        instance->bound = true;
        return;
    }
    if (set_by_clock(instance, &t))
        return;
    fars->of = ct_grow(fars->of, &fars->capacity, fars->n, sizeof(*fars->of));
    fars->of[fars->n++] = (struct far){t.recv_ns, most_by_clock(&t),
                                       ct_usage_of(m->job, instance)->bytes, i};
}

static int by_size_and_time(const void *left, const void *right)
{
    const struct far *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->most_ns != b->most_ns)
        return a->most_ns < b->most_ns ? -1 : 1;
    return (a->instance > b->instance) - (a->instance < b->instance);
}

/* It did not wait for what the clocks' error may be. */
static bool is_told(const struct far *far)
{
    return far->most_ns == far->recv_ns;
}

/* Where most recvs took about as long, that is the transfer. Where they did
 * not, some waited and some came late, and the quartile is only a guess; so it
 * is where clocks, as far as they tell, made it what it is. */
static void set_far(struct ct_matching *m, const struct far *far, int n)
{
    int64_t quartile = far[n / 4].most_ns;
    int64_t upper = far[n - 1 - n / 4].most_ns;
    bool tight = n >= TIGHT_RECVS && is_told(&far[n / 4]) &&
                 (double)upper <= TIGHT_SPREAD * (double)quartile;
    int i;

    for (i = 0; i < n; i++) {
        struct ct_instance *instance = &m->job->instances[far[i].instance];
        double ratio = (double)far[i].most_ns / (double)at_least(1, quartile);

        instance->overlapped = ratio < 1 / QUARTILE_BAND;
        instance->estimated = !tight || ratio > QUARTILE_BAND ||
                              (ratio <= 1 && !is_told(&far[i]));
        set_p2p(instance, far[i].recv_ns,
                ratio > 1 ? quartile : far[i].most_ns);
    }
}

/* The quartile is taken per edge and size, grouped or not: which of them had
 * no reason to wait differs from job to job. */
static void finish_far(struct ct_matching *m, const struct fars *fars)
{
    const struct far *of = fars->of;
    int i, first = 0;

    if (fars->n)
        qsort(fars->of, (size_t)fars->n, sizeof(*of), by_size_and_time);
    for (i = 1; i <= fars->n; i++)
        if (i == fars->n || of[i].bytes != of[first].bytes) {
            set_far(m, of + first, i - first);
            first = i;
        }
}

static void finish_instance(struct ct_matching *m, const struct ct_lane *lane,
                            int i, struct fars *fars)
{
    struct ct_instance *instance = &m->job->instances[i];
    const uint32_t nranks = (uint32_t)ct_lane_width(m, lane);

    instance->bound =
        instance->timed < nranks || lane->kind == CT_LANE_ONE_SIDED;
    instance->mismatch |= instance->ranks > nranks;
    m->job->mismatches += instance->mismatch;
    if (!instance->timed || instance->cut)
        set_unknown(instance);
    else if (lane->kind == CT_LANE_P2P)
        finish_p2p(m, i, &m->pairs[lane->pair + i - lane->first], fars);
    else if (ct_op_infos[instance->base].size == CT_NO_SHARE)
        ct_set_waits(instance, 0); /* moves nothing: all of it is waiting */
    else if (ct_op_infos[instance->base].cls != CT_ROOTED || nranks == 1)
        ct_set_waits(instance, instance->transfer_ns);
}

void ct_transfer_finish(struct ct_matching *m)
{
    struct fars fars = {0};
    int l, i;

    for (l = 0; l < m->nlanes; l++) {
        const struct ct_lane *lane = &m->lanes[l];

        for (i = 0; i < lane->count; i++)
            finish_instance(m, lane, lane->first + i, &fars);
        finish_far(m, &fars);
        fars.n = 0;
    }
    free(fars.of);
    ct_rooted_finish(m);
}

/* Ranks of a ROOTED op go on without a receiver that is late, and what is left
 * when that one comes is not what they took. Without a better one their own
 * duration counts: nothing says that they waited. */
static int64_t transfer_of(const struct ct_job *job, enum ct_op_class cls,
                           const struct ct_instance *instance, int64_t own)
{
    const struct ct_usage *usage = &job->usages[instance->usage];

    if (cls != CT_ROOTED || !instance->overlapped)
        return instance->transfer_ns;
    return usage->nsamples ? at_least(instance->transfer_ns, usage->median_ns)
                           : own;
}

bool ct_op_cost(const struct ct_trace *trace, int process, int op,
                struct ct_op_cost *cost)
{
    const struct ct_process *p = &trace->processes[process];
    const struct ct_op_row *row = &p->ops[op];
    const enum ct_op_class cls = ct_op_infos[p->classes[row->cls].kind].cls;
    const struct ct_instance *instance;
    int64_t own, transfer;

    *cost = (struct ct_op_cost){CT_NO_TIME, CT_NO_TIME};
    if (ct_op_gpu_ns(row) == CT_NO_TIME || row->instance == CT_NONE)
        return false;
    instance = &trace->jobs[p->job].instances[row->instance];
    if (instance->transfer_ns == CT_NO_TIME)
        return false;
    own = ct_own_time(p, row, cls);
    transfer = transfer_of(&trace->jobs[p->job], cls, instance, own);
    cost->transfer_ns = cls == CT_COLL || transfer < own ? transfer : own;
    cost->wait_ns = own - cost->transfer_ns;
    return true;
}
