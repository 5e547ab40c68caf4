/* Ranks in virtual time: collectives and send/recv wait for each other. */
#include "roles_jobs_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EAGER_BYTES (4u << 20) /* sends below return without their receiver */

bool maker_is_p2p(enum ct_op base)
{
    return base == CT_OP_SEND || base == CT_OP_RECV;
}

static uint64_t bytes_of(const struct maker *maker, const struct item *item)
{
    const uint64_t share = item->count * 4;

    return ct_op_infos[item->base].size == CT_ALL_SHARES
               ? share * (uint64_t)maker->job.comms[item->comm].nranks
               : share;
}

static double transfer_us(struct maker *maker, enum ct_op base, int comm,
                          enum ct_link link, uint64_t bytes)
{
    const int n = maker->job.comms[comm].nranks;
    const struct maker_link *l = &maker->links[link == CT_LINK_NETWORK];
    const double steps = maker_is_p2p(base)         ? 1
                         : base == CT_OP_ALL_REDUCE ? 2 * (n - 1)
                                                    : n - 1;

    return maker_jittered(maker, steps * l->alpha_us + ct_wire_factor(base, n) *
                                                           (double)bytes /
                                                           (l->GBps * 1e3));
}

enum ct_link maker_pair_link(const struct maker *maker, int a, int b)
{
    return a / maker->ranks_per_node == b / maker->ranks_per_node
               ? CT_LINK_NVLINK
               : CT_LINK_NETWORK;
}

static int *ordinal_of(struct rank_state *state, int comm, enum ct_op base,
                       int peer)
{
    int *row = state->ordinals + comm * (1 + 2 * 64);

    return maker_is_p2p(base) ? &row[1 + 2 * peer + (base == CT_OP_RECV)]
                              : &row[0];
}

static int class_of(struct ct_process *process, const struct item *item,
                    uint64_t bytes)
{
    for (int i = 0; i < process->nclasses; i++) {
        const struct ct_op_class_row *cls = &process->classes[i];

        if (cls->comm == item->comm && cls->base == item->base &&
            cls->count == item->count && cls->peer == item->peer &&
            cls->redop == item->redop)
            return i;
    }
    process->classes =
        realloc(process->classes,
                (size_t)(process->nclasses + 1) * sizeof *process->classes);
    process->classes[process->nclasses] =
        (struct ct_op_class_row){.comm = item->comm,
                                 .graph = CT_NONE,
                                 .kind = item->base,
                                 .base = item->base,
                                 .type = CT_TYPE_FLOAT32,
                                 .redop = item->redop,
                                 .count = item->count,
                                 .bytes = bytes,
                                 .peer = item->peer,
                                 .stream = 1};
    return process->nclasses++;
}

static void issue(struct maker *maker, int rank, const struct item *item)
{
    struct rank_state *state = &maker->ranks[rank];
    struct ct_process *process = &maker->trace.processes[rank];
    int *ordinal = ordinal_of(state, item->comm, item->base, item->peer);
    const uint64_t bytes = bytes_of(maker, item);
    struct call *call;

    state->calls = maker_more(state->calls, state->ncalls, &state->calls_room,
                              sizeof *state->calls);
    call = &state->calls[state->ncalls++];
    *call = (struct call){.comm = item->comm,
                          .peer = item->peer,
                          .base = item->base,
                          .bytes = bytes,
                          .ordinal = (uint32_t)(*ordinal)++,
                          .end = NAN,
                          .op = process->nops};
    process->ops = realloc(process->ops,
                           (size_t)(process->nops + 1) * sizeof *process->ops);
    process->ops[process->nops++] =
        (struct ct_op_row){.cls = class_of(process, item, bytes),
                           .ordinal = call->ordinal,
                           .launch = CT_NONE,
                           .instance = CT_NONE};
}

static struct call *find_call(struct maker *maker, int rank, int comm,
                              enum ct_op base, int peer, uint32_t ordinal)
{
    struct rank_state *state = &maker->ranks[rank];

    for (int i = state->ncalls - 1; i >= 0; i--) {
        struct call *call = &state->calls[i];

        if (call->comm == comm && call->ordinal == ordinal &&
            maker_is_p2p(call->base) == maker_is_p2p(base) &&
            (!maker_is_p2p(base) || (call->base == base && call->peer == peer)))
            return call->posted ? call : NULL;
    }
    return NULL;
}

static int world_rank(const struct maker *maker, int comm, int rank)
{
    return maker->job.comms[comm].members[rank].process;
}

static struct ct_instance *new_instance(struct maker *maker,
                                        const struct call *call, double us)
{
    struct ct_job *job = &maker->job;
    struct ct_instance *instance;

    job->instances = maker_more(job->instances, job->ninstances,
                                &maker->instances_room, sizeof *job->instances);
    instance = &job->instances[job->ninstances++];
    *instance = (struct ct_instance){.comm = call->comm,
                                     .base = (uint8_t)call->base,
                                     .ordinal = call->ordinal,
                                     .transfer_ns = (int64_t)(us * 1e3),
                                     .usage = CT_NONE};
    return instance;
}

/* End of a collective, once all ranks have come. */
static bool settle_collective(struct maker *maker, const struct call *call)
{
    const struct ct_comm *comm = &maker->job.comms[call->comm];
    double last = 0;

    if (!isnan(call->end))
        return true;
    for (int i = 0; i < comm->nranks; i++) {
        const struct call *other =
            find_call(maker, comm->members[i].process, call->comm, call->base,
                      CT_NONE, call->ordinal);

        if (!other)
            return false;
        last = fmax(last, other->start);
    }
    const double us =
        transfer_us(maker, call->base, call->comm, comm->link, call->bytes);
    const struct call model = *call;
    const int index = maker->job.ninstances;

    new_instance(maker, &model, us);
    for (int i = 0; i < comm->nranks; i++) {
        const int rank = comm->members[i].process;
        struct call *other = find_call(maker, rank, model.comm, model.base,
                                       CT_NONE, model.ordinal);

        other->end = last + us;
        maker->trace.processes[rank].ops[other->op].instance = index;
    }
    return true;
}

static bool settle_p2p(struct maker *maker, int rank, struct call *call)
{
    const bool send = call->base == CT_OP_SEND;
    const int self = maker->comm_of[call->comm][rank];
    const int peer = world_rank(maker, call->comm, call->peer);
    struct call *other =
        find_call(maker, peer, call->comm, send ? CT_OP_RECV : CT_OP_SEND, self,
                  call->ordinal);
    const enum ct_link link = maker_pair_link(maker, rank, peer);

    if (!isnan(call->end))
        return true;
    if (send && call->bytes <= EAGER_BYTES && !other) {
        call->end = call->start;
        return true;
    }
    if (!other)
        return false;
    const double us =
        transfer_us(maker, call->base, call->comm, link, call->bytes);
    const double sent = send ? call->start : other->start;
    const double end = call->bytes <= EAGER_BYTES
                           ? fmax(send ? other->start : call->start, sent + us)
                           : fmax(call->start, other->start) + us;
    const int index = maker->job.ninstances;

    new_instance(maker, send ? call : other, us);
    struct call *const sender = send ? call : other;
    struct call *const receiver = send ? other : call;

    receiver->end = end;
    if (isnan(sender->end))
        sender->end = call->bytes <= EAGER_BYTES ? sender->start : end;
    maker->trace.processes[rank].ops[call->op].instance = index;
    maker->trace.processes[peer].ops[other->op].instance = index;
    return true;
}

static bool settle(struct maker *maker, int rank, struct call *call)
{
    return maker_is_p2p(call->base) ? settle_p2p(maker, rank, call)
                                    : settle_collective(maker, call);
}

static void post(struct rank_state *state, int first)
{
    for (int i = first; i < state->ncalls; i++) {
        state->calls[i].start = state->now;
        state->calls[i].posted = true;
    }
    state->posted = true;
}

/* Posts and, where it can end, ends calls first.. of a rank. */
static bool finish_calls(struct maker *maker, int rank, int first)
{
    struct rank_state *state = &maker->ranks[rank];
    double end = 0;

    if (!state->posted)
        post(state, first);
    for (int i = first; i < state->ncalls; i++)
        if (!settle(maker, rank, &state->calls[i]))
            return false;
    for (int i = first; i < state->ncalls; i++)
        end = fmax(end, state->calls[i].end);
    struct ct_process *process = &maker->trace.processes[rank];

    for (int i = first; i < state->ncalls; i++) {
        struct ct_op_row *op = &process->ops[state->calls[i].op];

        op->enter_ns = (int64_t)(state->now * 1e3);
        op->host = ct_shorten_ns(3000);
        ct_op_set_gpu(op, op->enter_ns, (int64_t)((end - state->now) * 1e3));
        op->flags = CT_FLAG_EVENT;
    }
    state->now = end;
    state->posted = false;
    return true;
}

static void close_group(struct maker *maker, int rank, int first)
{
    struct rank_state *state = &maker->ranks[rank];
    struct ct_process *process = &maker->trace.processes[rank];
    const int id = process->nlaunches++;
    const struct ct_op_row *op = &process->ops[state->calls[first].op];

    process->launches =
        realloc(process->launches,
                (size_t)process->nlaunches * sizeof *process->launches);
    process->launches[id] =
        (struct ct_launch_row){.enter_ns = op->enter_ns,
                               .offset = op->offset,
                               .gpu = op->gpu,
                               .comm = state->calls[first].comm,
                               .nops = state->ncalls - first,
                               .first_op = state->calls[first].op,
                               .bytes = CT_NONE};
    for (int i = first; i < state->ncalls; i++)
        process->ops[state->calls[i].op].launch = id;
}

static void close_step(struct maker *maker, int rank, enum ct_step_kind kind)
{
    struct ct_process *process = &maker->trace.processes[rank];
    const int64_t now = (int64_t)(maker->ranks[rank].now * 1e3);
    struct ct_step_row step = {.start_ns = now,
                               .end_ns = now,
                               .first_op = process->nops,
                               .last_op = process->nops - 1,
                               .kind = CT_STEP_OTHER};

    if (process->nsteps > 0) {
        struct ct_step_row *last = &process->steps[process->nsteps - 1];

        last->end_ns = now;
        last->last_op = process->nops - 1;
        last->kind = kind;
    }
    if (kind == CT_STEP_STEADY)
        maker->ranks[rank].steady_us += maker->ranks[rank].busy;
    maker->ranks[rank].busy = 0;
    process->steps = realloc(process->steps, (size_t)(process->nsteps + 1) *
                                                 sizeof *process->steps);
    process->steps[process->nsteps++] = step;
}

/* One item of a rank; false: it has to wait for others. */
static bool advance(struct maker *maker, int rank)
{
    struct rank_state *state = &maker->ranks[rank];
    const struct item *item = &state->items[state->pc];

    switch (item->kind) {
    case COMPUTE: {
        const double us = maker_jittered(maker, item->us);

        state->now += us;
        state->busy += us;
        break;
    }
    case GROUP:
        state->group_first = state->ncalls;
        break;
    case CALL:
        if (!state->posted)
            issue(maker, rank, item);
        if (state->group_first < 0 &&
            !finish_calls(maker, rank, state->ncalls - 1))
            return false;
        break;
    case GROUP_END:
        if (!finish_calls(maker, rank, state->group_first))
            return false;
        close_group(maker, rank, state->group_first);
        state->group_first = -1;
        break;
    case STEP:
        close_step(maker, rank, item->step);
        break;
    }
    state->pc++;
    return true;
}

void maker_play(struct maker *maker)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < maker->nranks; r++)
            while (maker->ranks[r].pc < maker->ranks[r].nitems &&
                   advance(maker, r))
                moved = true;
    }
    for (int r = 0; r < maker->nranks; r++)
        if (maker->ranks[r].pc < maker->ranks[r].nitems) {
            fprintf(stderr, "rank %d is stuck at item %d of %d\n", r,
                    maker->ranks[r].pc, maker->ranks[r].nitems);
            abort();
        }
}
