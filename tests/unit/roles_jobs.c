#include "roles_jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COMMS 256
#define EAGER_BYTES (4u << 20) /* sends below return without their receiver */

enum item_kind { COMPUTE, CALL, GROUP, GROUP_END, STEP };

struct item {
    enum item_kind kind;
    double us;
    int comm, peer, redop;
    enum ct_op base;
    uint64_t count;
    enum ct_step_kind step;
};

struct call { /* a played op */
    int comm, peer;
    enum ct_op base;
    uint64_t bytes;
    uint32_t ordinal;
    double start, end;
    bool posted;
    int op; /* index in the process's ops */
};

struct rank_state {
    int nitems, room, pc;
    struct item *items;
    double now, busy; /* us; busy: computing, in the step */
    double steady_us; /* computing in steady steps */
    int ncalls, calls_room;
    struct call *calls;
    int group_first; /* first call of the open or posted group */
    bool posted;
    int *ordinals; /* [comm]: collectives; then per peer and direction */
};

struct maker {
    int nranks, ranks_per_node, ncomms;
    uint64_t seed;
    double jitter;
    struct maker_link links[2];
    struct rank_state *ranks;
    int comm_of[MOST_COMMS][64]; /* rank in comm by world rank, -1 */
    double idle;
    int instances_room, usages_room;
    struct ct_trace trace;
    struct ct_job job;
};

const struct layout default_layout = {.tp = 2,
                                      .pp = 2,
                                      .dp = 2,
                                      .order = "tpd",
                                      .layers = 2,
                                      .micro_batches = 4,
                                      .steps = 4,
                                      .buckets = 3,
                                      .ranks_per_node = 4,
                                      .payload = 16384,
                                      .compute_us = 100,
                                      .seed = 1};

static void *more(void *array, int n, int *room, size_t size)
{
    if (n < *room)
        return array;
    *room = *room ? *room * 2 : 64;
    array = realloc(array, (size_t)*room * size);
    if (!array)
        abort();
    return array;
}

static double uniform(struct maker *maker)
{
    maker->seed = maker->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(maker->seed >> 11) / 9007199254740992.0;
}

static double jittered(struct maker *maker, double us)
{
    return us * (1 + maker->jitter * (2 * uniform(maker) - 1));
}

struct maker *maker_new(int ranks, int ranks_per_node, uint64_t seed)
{
    struct maker *maker = calloc(1, sizeof *maker);

    maker->nranks = ranks;
    maker->ranks_per_node = ranks_per_node;
    maker->seed = seed * 2654435761u + 12345;
    maker->links[0] = (struct maker_link){2, 100};
    maker->links[1] = (struct maker_link){15, 10};
    maker->ranks = calloc((size_t)ranks, sizeof *maker->ranks);
    for (int r = 0; r < ranks; r++) {
        maker->ranks[r].group_first = -1;
        maker->ranks[r].ordinals =
            calloc((size_t)MOST_COMMS * (1 + 2 * 64), sizeof(int));
    }
    maker->job.comms = calloc(MOST_COMMS, sizeof *maker->job.comms);
    for (int i = 0; i < 10; i++)
        uniform(maker);
    return maker;
}

void maker_free(struct maker *maker)
{
    for (int r = 0; r < maker->nranks; r++) {
        free(maker->ranks[r].items);
        free(maker->ranks[r].calls);
        free(maker->ranks[r].ordinals);
        if (maker->trace.processes) {
            free(maker->trace.processes[r].ops);
            free(maker->trace.processes[r].launches);
            free(maker->trace.processes[r].classes);
            free(maker->trace.processes[r].steps);
            free(maker->trace.processes[r].comms);
        }
    }
    for (int c = 0; c < maker->ncomms; c++)
        free(maker->job.comms[c].members);
    for (int u = 0; u < maker->job.nusages; u++)
        free(maker->job.usages[u].samples);
    free(maker->job.usages);
    free(maker->job.instances);
    free(maker->job.processes);
    free(maker->job.node_names);
    free(maker->job.comms);
    free(maker->trace.processes);
    free(maker->ranks);
    free(maker);
}

void maker_links(struct maker *maker, struct maker_link inside,
                 struct maker_link between)
{
    maker->links[0] = inside;
    maker->links[1] = between;
}

void maker_jitter(struct maker *maker, double jitter)
{
    maker->jitter = jitter;
}

int maker_comm(struct maker *maker, const int *ranks, int n)
{
    const int id = maker->ncomms++;
    struct ct_comm *comm = &maker->job.comms[id];

    if (id >= MOST_COMMS)
        abort();
    comm->uid = (uint64_t)id + 1;
    comm->origin = "init";
    comm->nranks = comm->nknown = n;
    comm->members = calloc((size_t)n, sizeof *comm->members);
    comm->evidence = "made";
    for (int r = 0; r < 64; r++)
        maker->comm_of[id][r] = -1;
    bool nodes[64] = {false};

    for (int i = 0; i < n; i++) {
        comm->members[i] = (struct ct_member){ranks[i], id};
        maker->comm_of[id][ranks[i]] = i;
        nodes[ranks[i] / maker->ranks_per_node] = true;
    }
    for (int i = 0; i < 64; i++)
        comm->nnodes += nodes[i];
    comm->ndomains = comm->nnodes;
    comm->link = comm->nnodes > 1 ? CT_LINK_NETWORK : CT_LINK_NVLINK;
    return id;
}

static void push(struct maker *maker, int rank, struct item item)
{
    struct rank_state *state = &maker->ranks[rank];

    state->items =
        more(state->items, state->nitems, &state->room, sizeof *state->items);
    state->items[state->nitems++] = item;
}

void maker_compute(struct maker *maker, int rank, double us)
{
    push(maker, rank, (struct item){.kind = COMPUTE, .us = us});
}

void maker_op(struct maker *maker, int rank, int comm, enum ct_op base,
              uint64_t count, int redop, int peer)
{
    push(maker, rank,
         (struct item){.kind = CALL,
                       .comm = comm,
                       .base = base,
                       .count = count,
                       .redop = redop,
                       .peer = peer});
}

void maker_group(struct maker *maker, int rank)
{
    push(maker, rank, (struct item){.kind = GROUP});
}

void maker_group_end(struct maker *maker, int rank)
{
    push(maker, rank, (struct item){.kind = GROUP_END});
}

void maker_step(struct maker *maker, int rank, enum ct_step_kind kind)
{
    push(maker, rank, (struct item){.kind = STEP, .step = kind});
}

/* ---- playing ---- */

static bool is_p2p(enum ct_op base)
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
    const double steps = is_p2p(base)               ? 1
                         : base == CT_OP_ALL_REDUCE ? 2 * (n - 1)
                                                    : n - 1;

    return jittered(maker, steps * l->alpha_us + ct_wire_factor(base, n) *
                                                     (double)bytes /
                                                     (l->GBps * 1e3));
}

static enum ct_link pair_link(const struct maker *maker, int a, int b)
{
    return a / maker->ranks_per_node == b / maker->ranks_per_node
               ? CT_LINK_NVLINK
               : CT_LINK_NETWORK;
}

static int *ordinal_of(struct rank_state *state, int comm, enum ct_op base,
                       int peer)
{
    int *row = state->ordinals + comm * (1 + 2 * 64);

    return is_p2p(base) ? &row[1 + 2 * peer + (base == CT_OP_RECV)] : &row[0];
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

    state->calls = more(state->calls, state->ncalls, &state->calls_room,
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
                           .instance = CT_NONE,
                           .step = CT_NONE};
}

static struct call *find_call(struct maker *maker, int rank, int comm,
                              enum ct_op base, int peer, uint32_t ordinal)
{
    struct rank_state *state = &maker->ranks[rank];

    for (int i = state->ncalls - 1; i >= 0; i--) {
        struct call *call = &state->calls[i];

        if (call->comm == comm && call->ordinal == ordinal &&
            is_p2p(call->base) == is_p2p(base) &&
            (!is_p2p(base) || (call->base == base && call->peer == peer)))
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

    job->instances = more(job->instances, job->ninstances,
                          &maker->instances_room, sizeof *job->instances);
    instance = &job->instances[job->ninstances++];
    *instance = (struct ct_instance){.comm = call->comm,
                                     .base = call->base,
                                     .ordinal = call->ordinal,
                                     .bytes = call->bytes,
                                     .transfer_ns = (int64_t)(us * 1e3),
                                     .usage = CT_NONE,
                                     .src = CT_NONE,
                                     .dst = CT_NONE};
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
    const enum ct_link link = pair_link(maker, rank, peer);

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
    struct ct_instance *instance = new_instance(maker, send ? call : other, us);

    instance->src = send ? self : call->peer;
    instance->dst = send ? call->peer : self;
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
    return is_p2p(call->base) ? settle_p2p(maker, rank, call)
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

        op->enter_ns = op->start_ns = (int64_t)(state->now * 1e3);
        op->gpu_ns = (int64_t)((end - state->now) * 1e3);
        op->host_ns = 3000;
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
                               .start_ns = op->start_ns,
                               .gpu_ns = op->gpu_ns,
                               .comm = state->calls[first].comm,
                               .nops = state->ncalls - first,
                               .first_op = state->calls[first].op,
                               .instance = op->instance};
    for (int i = first; i < state->ncalls; i++)
        process->ops[state->calls[i].op].launch = id;
}

static void close_step(struct maker *maker, int rank, enum ct_step_kind kind)
{
    struct ct_process *process = &maker->trace.processes[rank];
    const int64_t now = (int64_t)(maker->ranks[rank].now * 1e3);
    struct ct_step_row step = {now, now, process->nops, process->nops - 1,
                               CT_STEP_OTHER};

    if (process->nsteps > 0) {
        struct ct_step_row *last = &process->steps[process->nsteps - 1];

        last->end_ns = now;
        last->last_op = process->nops - 1;
        last->kind = kind;
        for (int i = last->first_op; i <= last->last_op; i++)
            process->ops[i].step = process->nsteps - 1;
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
        const double us = jittered(maker, item->us);

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

static void play(struct maker *maker)
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

/* ---- what trace/ derives ---- */

static struct ct_usage *usage_for(struct maker *maker,
                                  const struct ct_instance *instance,
                                  const struct ct_op_class_row *cls,
                                  bool grouped)
{
    struct ct_job *job = &maker->job;

    for (int i = 0; i < job->nusages; i++) {
        struct ct_usage *usage = &job->usages[i];

        if (usage->comm == instance->comm && usage->base == instance->base &&
            usage->bytes == instance->bytes && usage->redop == cls->redop &&
            usage->src == instance->src && usage->dst == instance->dst &&
            usage->grouped == grouped)
            return usage;
    }
    job->usages = more(job->usages, job->nusages, &maker->usages_room,
                       sizeof *job->usages);
    struct ct_usage *usage = &job->usages[job->nusages++];
    const struct ct_comm *comm = &job->comms[instance->comm];

    *usage = (struct ct_usage){
        .comm = instance->comm,
        .base = instance->base,
        .type = CT_TYPE_FLOAT32,
        .redop = cls->redop,
        .count = cls->count,
        .bytes = instance->bytes,
        .src = instance->src,
        .dst = instance->dst,
        .grouped = grouped,
        .link = is_p2p(instance->base)
                    ? pair_link(maker, comm->members[instance->src].process,
                                comm->members[instance->dst].process)
                    : comm->link,
        .evidence = "made",
        .samples = calloc(4096, sizeof *usage->samples)};
    return usage;
}

static int compare_ns(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

static void finish_usage(struct ct_usage *usage, int steps)
{
    int64_t sorted[4096];

    memcpy(sorted, usage->samples, (size_t)usage->nsamples * sizeof sorted[0]);
    qsort(sorted, (size_t)usage->nsamples, sizeof sorted[0], compare_ns);
    usage->median_ns =
        usage->nsamples > 0 ? sorted[usage->nsamples / 2] : CT_NO_TIME;
    if (usage->grouped)
        usage->nsamples = 0;
    usage->per_step = steps > 0 ? usage->per_step / steps : NAN;
    usage->position = NAN;
}

/* Counts op i of a process for its instance's usage, once per instance. */
static void count_op(struct maker *maker, const struct ct_process *process,
                     int i)
{
    const struct ct_op_row *op = &process->ops[i];
    struct ct_instance *instance;
    struct ct_usage *usage;

    if (op->instance == CT_NONE)
        return;
    instance = &maker->job.instances[op->instance];
    if (instance->ranks++ > 0)
        return;
    usage = usage_for(maker, instance, &process->classes[op->cls],
                      op->launch != CT_NONE &&
                          process->launches[op->launch].nops > 1);
    instance->usage = (int)(usage - maker->job.usages);
    usage->calls++;
    usage->transfer_ns += instance->transfer_ns;
    if (op->step != CT_NONE && process->steps[op->step].kind == CT_STEP_STEADY)
        usage->per_step += 1;
    if (usage->nsamples < 4096)
        usage->samples[usage->nsamples++] = instance->transfer_ns;
}

/* Share of the rank's steady steps that it did not compute. */
static double idle_of(const struct rank_state *state,
                      const struct ct_process *process)
{
    double wall = 0;

    for (int s = 0; s < process->nsteps; s++)
        if (process->steps[s].kind == CT_STEP_STEADY)
            wall +=
                (double)(process->steps[s].end_ns - process->steps[s].start_ns);
    return wall > 0 ? 1 - state->steady_us * 1e3 / wall : 0;
}

static void finish_job(struct maker *maker)
{
    struct ct_job *job = &maker->job;

    job->nprocesses = maker->nranks;
    job->world_size = maker->nranks;
    job->ncomms = maker->ncomms;
    job->nnodes = job->ndomains =
        (maker->nranks + maker->ranks_per_node - 1) / maker->ranks_per_node;
    job->processes = calloc((size_t)maker->nranks, sizeof *job->processes);
    job->node_names = calloc((size_t)job->nnodes, sizeof *job->node_names);
    for (int i = 0; i < job->nnodes; i++)
        job->node_names[i] = i == 0 ? "alpha" : i == 1 ? "beta" : "gamma";
    for (int r = 0; r < maker->nranks; r++)
        job->processes[r] = r;
    const struct ct_process *first = &maker->trace.processes[0];

    for (int s = 0; s < first->nsteps; s++)
        job->nsteps += first->steps[s].kind == CT_STEP_STEADY;
    for (int s = 0; s < first->nsteps; s++)
        if (first->steps[s].kind == CT_STEP_STEADY)
            job->step_ns = first->steps[s].end_ns - first->steps[s].start_ns;
    for (int r = 0; r < maker->nranks; r++)
        for (int i = 0; i < maker->trace.processes[r].nops; i++)
            count_op(maker, &maker->trace.processes[r], i);
    for (int u = 0; u < job->nusages; u++)
        finish_usage(&job->usages[u], job->nsteps);
    for (int r = 0; r < maker->nranks; r++) {
        maker->idle += idle_of(&maker->ranks[r], &maker->trace.processes[r]) /
                       maker->nranks;
        if (maker->ranks[r].now * 1e3 > (double)job->span_ns)
            job->span_ns = (int64_t)(maker->ranks[r].now * 1e3);
    }
}

static void start_processes(struct maker *maker)
{
    maker->trace.nprocesses = maker->nranks;
    maker->trace.njobs = 1;
    maker->trace.jobs = &maker->job;
    maker->trace.processes =
        calloc((size_t)maker->nranks, sizeof *maker->trace.processes);
    for (int r = 0; r < maker->nranks; r++) {
        struct ct_process *process = &maker->trace.processes[r];

        process->rank = r;
        process->world_size = maker->nranks;
        process->node = process->domain = r / maker->ranks_per_node;
        process->host = process->host_id = process->boot_id =
            process->node == 0 ? "alpha" : "beta";
        process->ncomms = maker->ncomms;
        process->comms =
            calloc((size_t)maker->ncomms + 1, sizeof *process->comms);
        for (int c = 0; c < maker->ncomms; c++)
            process->comms[c] =
                (struct ct_comm_row){.uid = (uint64_t)c + 1,
                                     .origin = "init",
                                     .parent = CT_NONE,
                                     .nranks = maker->job.comms[c].nranks,
                                     .rank = maker->comm_of[c][r],
                                     .comm = c};
    }
}

const struct ct_trace *maker_run(struct maker *maker)
{
    start_processes(maker);
    play(maker);
    for (int r = 0; r < maker->nranks; r++)
        if (maker->trace.processes[r].nsteps > 0)
            maker->trace.processes[r].nsteps--; /* the one left open */
    finish_job(maker);
    return &maker->trace;
}

double maker_idle(const struct maker *maker)
{
    return maker->idle;
}

/* ---- layouts ---- */

static int size_of(const struct layout *layout, char axis)
{
    return axis == 't' ? layout->tp : axis == 'p' ? layout->pp : layout->dp;
}

int layout_place(const struct layout *layout, char axis, int rank)
{
    for (int i = 0; i < 3; i++) {
        if (layout->order[i] == axis)
            return rank % size_of(layout, axis);
        rank /= size_of(layout, layout->order[i]);
    }
    abort();
}

static int stride_of(const struct layout *layout, char axis)
{
    int stride = 1;

    for (int i = 0; layout->order[i] != axis; i++)
        stride *= size_of(layout, layout->order[i]);
    return stride;
}

/* First rank of the group, which names it. */
static int leader(const struct layout *layout, char axis, int rank)
{
    return rank - layout_place(layout, axis, rank) * stride_of(layout, axis);
}

struct build {
    const struct layout *layout;
    struct maker *maker;
    int comms[3][64]; /* t, p, d by rank */
};

static void make_comms(struct build *build, char axis, int *comms)
{
    const struct layout *layout = build->layout;
    const int n = size_of(layout, axis);
    const int world = layout->tp * layout->pp * layout->dp;

    for (int rank = 0; rank < world; rank++) {
        int ranks[64];

        if (n == 1 || leader(layout, axis, rank) != rank)
            continue;
        for (int i = 0; i < n; i++)
            ranks[i] = rank + i * stride_of(layout, axis);
        const int comm = maker_comm(build->maker, ranks, n);

        for (int i = 0; i < n; i++)
            comms[ranks[i]] = comm;
    }
}

int layout_group(const struct layout *layout, char axis, int rank)
{
    const int world = layout->tp * layout->pp * layout->dp;
    int comm = 1; /* after the world's */

    for (const char *a = "tpd"; *a; a++)
        for (int r = 0; r < world; r++) {
            if (size_of(layout, *a) == 1 || leader(layout, *a, r) != r)
                continue;
            if (*a == axis && leader(layout, axis, rank) == r)
                return comm;
            comm++;
        }
    return CT_NONE;
}

static void tensor_calls(struct build *build, int rank)
{
    const struct layout *layout = build->layout;
    const int comm = build->comms[0][rank];

    if (layout->tp == 1)
        return;
    if (!layout->sequence) {
        maker_op(build->maker, rank, comm, CT_OP_ALL_REDUCE, layout->payload,
                 CT_REDOP_SUM, CT_NONE);
        return;
    }
    maker_op(build->maker, rank, comm, CT_OP_ALL_GATHER,
             layout->payload / (uint64_t)layout->tp, CT_NONE, CT_NONE);
    maker_op(build->maker, rank, comm, CT_OP_REDUCE_SCATTER,
             layout->payload / (uint64_t)layout->tp, CT_REDOP_SUM, CT_NONE);
}

static void pass(struct build *build, int rank, double factor)
{
    for (int l = 0; l < build->layout->layers; l++)
        for (int half = 0; half < 2; half++) {
            maker_compute(build->maker, rank,
                          build->layout->compute_us * factor / 2);
            tensor_calls(build, rank);
            if (build->layout->sequence && factor > 1) /* wgrad gathers again */
                maker_op(build->maker, rank, build->comms[0][rank],
                         CT_OP_ALL_GATHER,
                         build->layout->payload / (uint64_t)build->layout->tp,
                         CT_NONE, CT_NONE);
        }
}

static void move(struct build *build, int rank, bool send, int peer)
{
    const struct layout *layout = build->layout;

    maker_op(build->maker, rank, build->comms[1][rank],
             send ? CT_OP_SEND : CT_OP_RECV,
             layout->payload / (layout->sequence ? (uint64_t)layout->tp : 1),
             CT_NONE, peer);
}

struct wish { /* messages that share a bracket; -1: none */
    int send_next, recv_prev, send_prev, recv_next;
};

static void bracket(struct build *build, int rank, struct wish wish)
{
    const int stage = layout_place(build->layout, 'p', rank);
    const int last = build->layout->pp - 1;

    wish.send_next = wish.send_next && stage < last;
    wish.recv_next = wish.recv_next && stage < last;
    wish.send_prev = wish.send_prev && stage > 0;
    wish.recv_prev = wish.recv_prev && stage > 0;
    if (!wish.send_next && !wish.recv_next && !wish.send_prev &&
        !wish.recv_prev)
        return;
    maker_group(build->maker, rank);
    if (wish.send_prev)
        move(build, rank, true, stage - 1);
    if (wish.recv_prev)
        move(build, rank, false, stage - 1);
    if (wish.send_next)
        move(build, rank, true, stage + 1);
    if (wish.recv_next)
        move(build, rank, false, stage + 1);
    maker_group_end(build->maker, rank);
}

/* 1F1B, as Megatron-LM's forward_backward_pipelining_without_interleaving. */
static void pipeline(struct build *build, int rank)
{
    const struct layout *layout = build->layout;
    const int m = layout->micro_batches;
    const int stage = layout_place(layout, 'p', rank);
    const int room = layout->pp - stage - 1;
    const int warm_up = room < m ? room : m;

    for (int i = 0; i < warm_up; i++) {
        bracket(build, rank, (struct wish){.recv_prev = 1});
        pass(build, rank, 1);
        bracket(build, rank, (struct wish){.send_next = 1});
    }
    if (m > warm_up)
        bracket(build, rank, (struct wish){.recv_prev = 1});
    for (int i = 0; i < m - warm_up; i++) {
        pass(build, rank, 1);
        bracket(build, rank, (struct wish){.send_next = 1, .recv_next = 1});
        pass(build, rank, 2);
        if (i + 1 < m - warm_up)
            bracket(build, rank, (struct wish){.send_prev = 1, .recv_prev = 1});
        else
            bracket(build, rank, (struct wish){.send_prev = 1});
    }
    for (int i = 0; i < warm_up; i++) {
        bracket(build, rank, (struct wish){.recv_next = 1});
        pass(build, rank, 2);
        bracket(build, rank, (struct wish){.send_prev = 1});
    }
}

static uint64_t bucket(const struct layout *layout, int i)
{
    return layout->payload * 6 + (uint64_t)(layout->buckets - i) * 70001;
}

static void gradients(struct build *build, int rank)
{
    const struct layout *layout = build->layout;

    for (int i = 0; layout->dp > 1 && i < layout->buckets; i++)
        maker_op(build->maker, rank, build->comms[2][rank], CT_OP_ALL_REDUCE,
                 bucket(layout, i), CT_REDOP_SUM, CT_NONE);
    if (!layout->no_norm)
        maker_op(build->maker, rank, 0, CT_OP_ALL_REDUCE, 1, CT_REDOP_SUM,
                 CT_NONE);
}

static void train(struct build *build, int rank)
{
    const struct layout *layout = build->layout;

    for (int i = 0;
         layout->dp > 1 && !layout->no_broadcast && i < layout->buckets; i++)
        maker_op(build->maker, rank, build->comms[2][rank], CT_OP_BROADCAST,
                 bucket(layout, i), CT_NONE, 0);
    maker_op(build->maker, rank, 0, CT_OP_ALL_REDUCE, 1, CT_REDOP_SUM, CT_NONE);
    if (layout->steps > 0)
        maker_step(build->maker, rank, CT_STEP_OTHER);
    for (int step = 0; step < (layout->steps ? layout->steps + 1 : 3); step++) {
        pipeline(build, rank);
        gradients(build, rank);
        if (layout->steps > 0)
            maker_step(build->maker, rank,
                       step == 0 ? CT_STEP_WARM_UP : CT_STEP_STEADY);
    }
}

struct maker *layout_make(const struct layout *layout)
{
    const int world = layout->tp * layout->pp * layout->dp;
    struct build build = {.layout = layout};
    int all[64];

    build.maker = maker_new(world, layout->ranks_per_node, layout->seed);
    for (int i = 0; i < world; i++)
        all[i] = i;
    maker_comm(build.maker, all, world);
    for (int i = 0; i < 3; i++)
        make_comms(&build, "tpd"[i], build.comms[i]);
    for (int rank = 0; rank < world; rank++)
        train(&build, rank);
    return build.maker;
}
