/*
 * Which ops of different ranks are one communication: same lane, same ordinal.
 * Passes over all ops, no searching: count ordinals per lane, mark those that
 * occur, number them, add up.
 */
#include "trace/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define CT_MAX_SUM ((uint64_t)1 << 63)

static int lane_of(struct ct_matching *m, enum ct_lane_kind kind, int comm,
                   int src, int dst)
{
    int key[4] = {(int)kind, comm, src, dst};
    int lane = ct_intern_add(&m->lane_keys, key, sizeof(key));

    if (lane == m->nlanes) {
        m->lanes =
            ct_grow(m->lanes, &m->lane_capacity, lane, sizeof(*m->lanes));
        m->lanes[m->nlanes++] = (struct ct_lane){.comm = comm,
                                                 .src = src,
                                                 .dst = dst,
                                                 .kind = kind,
                                                 .low = UINT32_MAX};
    }
    return lane;
}

/* Everything that all ranks of an instance have to agree on. */
static int signature_of(struct ct_matching *m,
                        const struct ct_op_class_row *class,
                        const struct ct_usage *usage)
{
    int root = usage->src == CT_NONE ? class->peer : CT_NONE;
    uint64_t key[9] = {
        (uint64_t)usage->comm,  (uint64_t)usage->base, (uint64_t)usage->type,
        (uint64_t)usage->redop, usage->count,          usage->bytes,
        (uint64_t)usage->src,   (uint64_t)usage->dst,  (uint64_t)root};
    int n = m->signature_keys.n;
    int signature = ct_intern_add(&m->signature_keys, key, sizeof(key));

    if (signature == n) {
        m->signatures = ct_grow(m->signatures, &m->signature_capacity, n,
                                sizeof(*m->signatures));
        m->signatures[n] = *usage;
    }
    return signature;
}

static void describe_class(struct ct_matching *m, const struct ct_process *p,
                           const struct ct_op_class_row *class,
                           struct ct_class_info *info)
{
    const struct ct_comm_row *row = &p->comms[class->comm];
    struct ct_usage usage = {.comm = row->comm,
                             .base = class->base,
                             .type = class->type,
                             .redop = class->redop,
                             .count = class->count,
                             .bytes = class->bytes,
                             .src = CT_NONE,
                             .dst = CT_NONE};
    enum ct_lane_kind kind = CT_LANE_COLL;

    info->cls = ct_op_infos[class->kind].cls;
    if (info->cls == CT_SEND || info->cls == CT_ONE_SIDED) {
        kind = info->cls == CT_SEND ? CT_LANE_P2P : CT_LANE_ONE_SIDED;
        usage.src = row->rank;
        usage.dst = class->peer;
    } else if (info->cls == CT_RECV) {
        kind = CT_LANE_P2P;
        usage.base = CT_OP_SEND;
        usage.src = class->peer;
        usage.dst = row->rank;
        info->receives = true;
    } else if (info->cls == CT_ROOTED) {
        bool to_root =
            class->base == CT_OP_REDUCE || class->base == CT_OP_GATHER;

        info->receives = to_root == (row->rank == class->peer);
    }
    info->lane = lane_of(m, kind, row->comm, usage.src, usage.dst);
    info->signature = signature_of(m, class, &usage);
}

static void describe_classes(struct ct_matching *m)
{
    int i, c, n = m->job->nprocesses;

    m->infos = ct_alloc((size_t)n, sizeof(void *));
    for (i = 0; i < n; i++) {
        const struct ct_process *p = ct_process_at(m, i);

        m->infos[i] = ct_alloc((size_t)p->nclasses, sizeof(**m->infos));
        for (c = 0; c < p->nclasses; c++)
            describe_class(m, p, &p->classes[c], &m->infos[i][c]);
    }
}

static void sum_launch(struct ct_process *p, const struct ct_op_row *op,
                       const struct ct_class_info *info)
{
    const struct ct_launch_row *launch = &p->launches[op->launch];
    const uint64_t bytes = p->classes[op->cls].bytes;
    struct ct_launch_bytes *sums;
    uint64_t *sum;

    if (launch->bytes == CT_NONE)
        return;
    sums = &p->launch_bytes[launch->bytes];
    sum = info->cls == CT_RECV   ? &sums->recv
          : info->cls == CT_SEND ? &sums->send
                                 : &sums->coll;
    if (info->cls != CT_ONE_SIDED)
        *sum += bytes < CT_MAX_SUM - *sum ? bytes : 0;
}

/* An op alone in its launch answers for all of it. */
static void lay_out_launches(struct ct_trace *trace, struct ct_process *p)
{
    int i;

    p->nlaunch_bytes = 0;
    for (i = 0; i < p->nlaunches; i++)
        p->launches[i].bytes =
            p->launches[i].nops == 1 ? CT_NONE : p->nlaunch_bytes++;
    p->launch_bytes = ct_arena_alloc(trace->arena, (size_t)p->nlaunch_bytes,
                                     sizeof(*p->launch_bytes));
}

static void note_issued(struct ct_matching *m, const struct ct_process *p,
                        const struct ct_op_row *op,
                        const struct ct_class_info *info)
{
    const struct ct_lane *lane = &m->lanes[info->lane];
    const int rank = p->comms[p->classes[op->cls].comm].rank;
    uint32_t *issued =
        &m->issued[lane->issued + ct_lane_place(lane, info, rank)];

    if (op->ordinal >= *issued)
        *issued = op->ordinal + (op->ordinal < UINT32_MAX);
}

static void count_ordinals(struct ct_matching *m, int i)
{
    struct ct_process *p = ct_process_at(m, i);
    int o;

    lay_out_launches(m->trace, p);
    for (o = 0; o < p->nops; o++) {
        const struct ct_op_row *op = &p->ops[o];
        const struct ct_class_info *info = &m->infos[i][op->cls];
        struct ct_lane *lane = &m->lanes[info->lane];

        lane->n++;
        if (op->ordinal < lane->low)
            lane->low = op->ordinal;
        if (op->ordinal > lane->high)
            lane->high = op->ordinal;
        if (op->launch != CT_NONE)
            sum_launch(p, op, info);
        note_issued(m, p, op, info);
    }
}

/* In a group with others, so that its interval is not its own. A group of one
 * (PyTorch wraps each lone send so) times that one. */
static bool shares_launch(const struct ct_process *p,
                          const struct ct_op_row *op)
{
    if (op->launch == CT_NONE)
        return op->flags & CT_FLAG_GROUPED;
    return p->launches[op->launch].nops != 1;
}

static bool disagrees(const struct ct_matching *m, int a, int b)
{
    const struct ct_usage *ua = &m->signatures[a], *ub = &m->signatures[b];

    /* A send may call its bytes by another type than the recv. */
    if (a == b || (ua->base == CT_OP_SEND && ua->bytes == ub->bytes))
        return false;
    return true;
}

static void note_pair(struct ct_matching *m, int i, const struct ct_op_row *op,
                      const struct ct_class_info *info)
{
    const struct ct_lane *lane = &m->lanes[info->lane];
    const int o = (int)(op - ct_process_at(m, i)->ops);
    struct ct_pair *pair = &m->pairs[lane->pair + op->instance - lane->first];

    if (info->receives && pair->receiver == CT_NONE) {
        pair->receiver = m->job->processes[i];
        pair->recv = o;
    } else if (!info->receives && pair->sender == CT_NONE) {
        pair->sender = m->job->processes[i];
        pair->send = o;
    }
}

static void match_op(struct ct_matching *m, int i, struct ct_op_row *op)
{
    struct ct_process *p = ct_process_at(m, i);
    const struct ct_class_info *info = &m->infos[i][op->cls];
    const struct ct_lane *lane = &m->lanes[info->lane];
    const int64_t runs = ct_op_runs(p, op);
    struct ct_instance *instance;
    int *signature;

    op->instance = ct_lane_instance(m, lane, op->ordinal);
    instance = &m->job->instances[op->instance];
    signature = &m->signature_of[op->instance];
    if (*signature == CT_NONE) {
        *signature = info->signature;
        instance->base = (uint8_t)m->signatures[info->signature].base;
    } else if (*signature != info->signature) {
        instance->mismatch |= disagrees(m, *signature, info->signature);
    }
    instance->ranks++;
    if (runs > instance->runs)
        instance->runs = runs > UINT32_MAX ? UINT32_MAX : (uint32_t)runs;
    instance->grouped |= shares_launch(p, op);
    instance->cut |= (op->flags & CT_FLAG_CUT) != 0;
    if (ct_op_gpu_ns(op) == CT_NO_TIME)
        return;
    ct_transfer_add(m, i, op, info, instance);
    if (lane->kind == CT_LANE_P2P)
        note_pair(m, i, op, info);
}

static void match_ops(struct ct_matching *m)
{
    int i, o;

    for (i = 0; i < m->job->nprocesses; i++) {
        struct ct_process *p = ct_process_at(m, i);

        for (o = 0; o < p->nops; o++)
            match_op(m, i, &p->ops[o]);
    }
}

static int new_usage(struct ct_matching *m, int signature, bool grouped)
{
    struct ct_job *job = m->job;
    struct ct_link_fact fact;
    struct ct_usage *usage;

    job->usages = ct_grow(job->usages, &m->usage_capacity, job->nusages,
                          sizeof(*job->usages));
    usage = &job->usages[job->nusages];
    *usage = m->signatures[signature];
    usage->grouped = grouped;
    usage->link = job->comms[usage->comm].link;
    usage->speed = job->comms[usage->comm].speed;
    usage->evidence = job->comms[usage->comm].evidence;
    if (ct_usage_is_p2p(usage)) {
        ct_pair_link(m->trace, job, usage->comm, usage->src, usage->dst, &fact);
        usage->link = fact.link;
        usage->speed = fact.speed;
        usage->evidence = fact.evidence;
    }
    return job->nusages++;
}

/* A signature's key also holds the root; usages that differ only in it are
 * one. */
static void number_usages(struct ct_matching *m)
{
    int i, n = 2 * m->signature_keys.n;
    struct ct_intern keys = {0};

    m->usage_of = ct_alloc((size_t)n, sizeof(*m->usage_of));
    memset(m->usage_of, 0xff, (size_t)n * sizeof(*m->usage_of));
    for (i = 0; i < m->job->ninstances; i++) {
        struct ct_instance *instance = &m->job->instances[i];
        int s = m->signature_of[i];
        int *usage = &m->usage_of[2 * s + instance->grouped];

        if (*usage == CT_NONE) {
            const struct ct_usage *u = &m->signatures[s];
            uint64_t key[9] = {
                (uint64_t)u->comm,  (uint64_t)u->base, (uint64_t)u->type,
                (uint64_t)u->redop, u->count,          u->bytes,
                (uint64_t)u->src,   (uint64_t)u->dst,  instance->grouped};

            *usage = ct_intern_add(&keys, key, sizeof(key));
            if (*usage == m->job->nusages)
                new_usage(m, s, instance->grouped);
        }
        instance->usage = *usage;
    }
    ct_intern_release(&keys);
    ct_arena_adopt(m->trace->arena, m->job->usages);
}

/* What instances are known by while they are matched. */
static void forget_numbers(struct ct_matching *m)
{
    free(m->slots);
    free(m->signature_of);
    m->slots = NULL;
    m->signature_of = NULL;
}

static void release(struct ct_matching *m)
{
    int i;

    for (i = 0; i < m->job->nprocesses; i++)
        free(m->infos[i]);
    for (i = 0; i < m->nlanes; i++)
        free(m->lanes[i].sparse);
    free(m->infos);
    free(m->lanes);
    free(m->pairs);
    free(m->issued);
    free(m->signatures);
    free(m->usage_of);
    ct_intern_release(&m->lane_keys);
    ct_intern_release(&m->signature_keys);
}

void ct_trace_match(struct ct_trace *trace, struct ct_job *job)
{
    struct ct_matching m = {.trace = trace, .job = job};
    int i;

    /* Never NULL, also without any op. */
    m.lanes = ct_grow(NULL, &m.lane_capacity, 0, sizeof(*m.lanes));
    describe_classes(&m);
    ct_account_lay_out(&m);
    for (i = 0; i < job->nprocesses; i++)
        count_ordinals(&m, i);
    ct_lanes_lay_out(&m);
    for (i = 0; i < job->nprocesses; i++)
        ct_lanes_mark(&m, i);
    ct_lanes_number(&m);
    match_ops(&m);
    ct_match_agree(&m);
    ct_account(&m);
    number_usages(&m);
    forget_numbers(&m);
    ct_trace_clocks(&m);
    ct_transfer_finish(&m);
    release(&m);
}
