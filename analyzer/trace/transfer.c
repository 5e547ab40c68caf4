/*
 * What a communication cost: transfer, and wait for late ranks (research
 * behind it: a rank's own duration over-states the transfer by 24 .. 2250 %).
 *
 *   COLL    no rank ends before all have begun: transfer = shortest duration
 *   ROOTED  ranks may leave early: on one clock last end of a receiver minus
 *           last start; else the shortest duration of a receiver, as a bound.
 *           Data waits for a receiver that comes last as it does for a recv
 *   p2p     a send may retire before its recv begins: on one clock end of recv
 *           minus the later start; else the lower quartile of the recvs
 *   ONE_SIDED   nobody else records anything: its duration, as a bound; of
 *           what moves no bytes (signals) all is waiting
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/match.h"

/* A recv that begins more than this share of the transfer after its send has
 * hidden too much of it. */
#define HIDDEN_SHARE 0.02

/* Recvs so near the quartile are taken for transfers without waiting. */
#define QUARTILE_BAND 1.1

/* Third quartile over first, at most, of recvs that did not wait. */
#define TIGHT_SPREAD 1.2

static int64_t share_of(int64_t ns, uint64_t part, uint64_t whole)
{
    return whole > part ? (int64_t)((double)ns * (double)part / (double)whole)
                        : ns;
}

/* Duration that op answers for: its own, or its share of its launch, which
 * lasts as long as what the rank receives in it: sends beside that cost
 * nothing. */
static int64_t own_time(const struct ct_process *p, const struct ct_op_row *op,
                        enum ct_op_class cls)
{
    const struct ct_launch_row *launch;
    uint64_t whole;

    if (op->launch == CT_NONE || cls == CT_ONE_SIDED)
        return ct_op_gpu_ns(op);
    launch = &p->launches[op->launch];
    if (cls == CT_SEND && launch->recv_bytes + launch->coll_bytes > 0)
        return 0;
    whole = cls == CT_RECV   ? launch->recv_bytes
            : cls == CT_SEND ? launch->send_bytes
                             : launch->coll_bytes;
    return share_of(ct_op_gpu_ns(op), p->classes[op->cls].bytes, whole);
}

static void add_side(struct ct_matching *m, int i, const struct ct_process *p,
                     const struct ct_op_row *op,
                     const struct ct_class_info *info, struct ct_side *side,
                     int64_t ns)
{
    int64_t start = p->t0_ns + ct_op_start_ns(op),
            end = start + ct_op_gpu_ns(op);

    if (side->clock == CT_NONE)
        side->clock = m->clocks[i];
    side->many_clocks |= side->clock != m->clocks[i];
    if (start > side->start_max)
        side->start_max = start;
    if (!info->receives && start > side->send_start)
        side->send_start = start;
    if (!info->receives)
        return;
    if (end > side->end_max)
        side->end_max = end;
    if (ns < side->recv_min)
        side->recv_min = ns;
    side->recv_start = start;
    side->recv_sum = ct_add_time(side->recv_sum, ns);
    side->nrecv++;
    if (op->launch != CT_NONE && ct_op_gpu_ns(op) > 0)
        side->share = (double)ns / (double)ct_op_gpu_ns(op);
}

void ct_transfer_add(struct ct_matching *m, int process_number,
                     const struct ct_op_row *op,
                     const struct ct_class_info *info,
                     struct ct_instance *instance, struct ct_side *side)
{
    const struct ct_process *p =
        &m->trace->processes[m->job->processes[process_number]];
    int64_t ns = own_time(p, op, info->cls);

    instance->timed++;
    if (ns < instance->transfer_ns)
        instance->transfer_ns = ns;
    if (ns > instance->wait_max_ns)
        instance->wait_max_ns = ns;
    instance->wait_sum_ns = ct_add_time(instance->wait_sum_ns, ns);
    if (side && ct_op_start_ns(op) != CT_NO_TIME)
        add_side(m, process_number, p, op, info, side, ns);
    else if (side)
        side->many_clocks = true;
}

static int64_t at_least(int64_t low, int64_t value)
{
    return value > low ? value : low;
}

/* Sums of durations -> waits beyond transfer. */
static void set_waits(struct ct_instance *instance, int64_t transfer)
{
    int64_t all = instance->timed && transfer > INT64_MAX / instance->timed
                      ? INT64_MAX
                      : transfer * instance->timed;

    instance->transfer_ns = transfer;
    instance->wait_sum_ns = at_least(0, instance->wait_sum_ns - all);
    instance->wait_max_ns = at_least(0, instance->wait_max_ns - transfer);
}

/* Whether a receiver that began so much after all senders missed too much. */
static bool hides(int64_t late_ns, int64_t transfer_ns)
{
    return late_ns > 0 && (double)late_ns > HIDDEN_SHARE * (double)transfer_ns;
}

static void finish_rooted(struct ct_instance *instance,
                          const struct ct_side *side)
{
    int64_t transfer = instance->transfer_ns;

    if (!side->nrecv) {
        instance->bound = true;
    } else if (side->many_clocks || side->end_max <= side->start_max) {
        transfer = side->recv_min;
        instance->bound = true;
    } else {
        transfer =
            (int64_t)((double)(side->end_max - side->start_max) * side->share);
        if (transfer > instance->wait_max_ns)
            transfer = instance->wait_max_ns;
        instance->overlapped = side->send_start != CT_NO_TIME &&
                               hides(side->start_max - side->send_start,
                                     side->end_max - side->start_max);
    }
    set_waits(instance, transfer);
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

static void finish_p2p(struct ct_instance *instance, const struct ct_side *side)
{
    int64_t later, hidden, transfer;

    if (!side->nrecv) {
        /* A send alone: neither a transfer nor a bound of one. */
        set_unknown(instance);
        instance->bound = true;
        return;
    }
    set_p2p(instance, side->recv_sum, side->recv_sum);
    if (side->send_start == CT_NO_TIME || side->recv_start == CT_NO_TIME) {
        instance->bound = true;
        return;
    }
    if (side->many_clocks)
        return; /* see finish_far */
    hidden = side->recv_start - side->send_start;
    later = hidden > 0 ? side->recv_start : side->send_start;
    transfer = at_least(0, side->end_max - later);
    instance->overlapped = hides(hidden, transfer);
    transfer = (int64_t)((double)transfer * side->share);
    set_p2p(instance, side->recv_sum,
            transfer < side->recv_sum ? transfer : side->recv_sum);
}

static bool is_far(const struct ct_instance *instance,
                   const struct ct_side *side)
{
    return !instance->cut && side->many_clocks && side->nrecv &&
           side->send_start != CT_NO_TIME && side->recv_start != CT_NO_TIME;
}

struct far { /* a transfer between two clocks */
    int64_t recv_ns;
    uint64_t bytes;
    int instance;
};

static int by_size_and_time(const void *left, const void *right)
{
    const struct far *a = left, *b = right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return (a->recv_ns > b->recv_ns) - (a->recv_ns < b->recv_ns);
}

/* Where most recvs took about as long, that is the transfer. Where they did
 * not, some waited and some came late, and the quartile is only a guess. */
static void set_far(struct ct_matching *m, const struct far *far, int n)
{
    int64_t quartile = far[n / 4].recv_ns;
    int64_t upper = far[n - 1 - n / 4].recv_ns;
    bool tight = (double)upper <= TIGHT_SPREAD * (double)quartile;
    int i;

    for (i = 0; i < n; i++) {
        struct ct_instance *instance = &m->job->instances[far[i].instance];
        double ratio = (double)far[i].recv_ns / (double)at_least(1, quartile);

        instance->overlapped = ratio < 1 / QUARTILE_BAND;
        instance->estimated = !tight || ratio > QUARTILE_BAND;
        set_p2p(instance, far[i].recv_ns,
                ratio > 1 ? quartile : far[i].recv_ns);
    }
}

/* The quartile is taken per edge and size, grouped or not: which of them had
 * no reason to wait differs from job to job. */
static void finish_far(struct ct_matching *m, const struct ct_lane *lane)
{
    struct far *far = NULL;
    int i, n = 0, capacity = 0, first = 0;

    for (i = 0; i < lane->count; i++)
        if (is_far(&m->job->instances[lane->first + i],
                   &m->sides[lane->side + i])) {
            far = ct_grow(far, &capacity, n, sizeof(*far));
            far[n++] = (struct far){
                m->sides[lane->side + i].recv_sum,
                ct_usage_of(m->job, &m->job->instances[lane->first + i])->bytes,
                lane->first + i};
        }
    if (n)
        qsort(far, (size_t)n, sizeof(*far), by_size_and_time);
    for (i = 1; i <= n; i++)
        if (i == n || far[i].bytes != far[first].bytes) {
            set_far(m, far + first, i - first);
            first = i;
        }
    free(far);
}

static void finish_instance(struct ct_matching *m, const struct ct_lane *lane,
                            int i)
{
    struct ct_instance *instance = &m->job->instances[i];
    uint32_t nranks = lane->kind == CT_LANE_COLL
                          ? (uint32_t)m->job->comms[lane->comm].nranks
                      : lane->kind == CT_LANE_P2P ? 2
                                                  : 1;

    instance->bound =
        instance->timed < nranks || lane->kind == CT_LANE_ONE_SIDED;
    instance->mismatch |= instance->ranks > nranks;
    m->job->mismatches += instance->mismatch;
    if (!instance->timed || instance->cut)
        set_unknown(instance);
    else if (lane->kind == CT_LANE_P2P)
        finish_p2p(instance, &m->sides[lane->side + i - lane->first]);
    else if (ct_op_infos[instance->base].size == CT_NO_SHARE)
        set_waits(instance, 0); /* moves nothing: all of it is waiting */
    else if (ct_op_infos[instance->base].cls == CT_ROOTED && nranks > 1)
        finish_rooted(instance, &m->sides[lane->side + i - lane->first]);
    else
        set_waits(instance, instance->transfer_ns);
}

void ct_transfer_finish(struct ct_matching *m)
{
    int l, i;

    for (l = 0; l < m->nlanes; l++) {
        const struct ct_lane *lane = &m->lanes[l];

        for (i = 0; i < lane->count; i++)
            finish_instance(m, lane, lane->first + i);
        if (lane->kind == CT_LANE_P2P)
            finish_far(m, lane);
    }
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
    own = own_time(p, row, cls);
    transfer = transfer_of(&trace->jobs[p->job], cls, instance, own);
    cost->transfer_ns = cls == CT_COLL || transfer < own ? transfer : own;
    cost->wait_ns = own - cost->transfer_ns;
    return true;
}
