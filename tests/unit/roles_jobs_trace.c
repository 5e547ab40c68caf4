/* What was played, as trace/ would have loaded and joined it. */
#include "roles_jobs_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ct_usage *usage_for(struct maker *maker,
                                  const struct ct_instance *instance,
                                  const struct ct_op_class_row *cls, int rank,
                                  bool grouped)
{
    const bool p2p = maker_is_p2p(instance->base);
    const int src = cls->kind == CT_OP_SEND ? rank : cls->peer;
    const int dst = cls->kind == CT_OP_SEND ? cls->peer : rank;
    struct ct_job *job = &maker->job;

    for (int i = 0; i < job->nusages; i++) {
        struct ct_usage *usage = &job->usages[i];

        if (usage->comm == instance->comm && usage->base == instance->base &&
            usage->bytes == cls->bytes && usage->redop == cls->redop &&
            (!p2p || (usage->src == src && usage->dst == dst)) &&
            usage->grouped == grouped)
            return usage;
    }
    job->usages = maker_more(job->usages, job->nusages, &maker->usages_room,
                             sizeof *job->usages);
    struct ct_usage *usage = &job->usages[job->nusages++];
    const struct ct_comm *comm = &job->comms[instance->comm];

    *usage = (struct ct_usage){
        .comm = instance->comm,
        .base = instance->base,
        .type = CT_TYPE_FLOAT32,
        .redop = cls->redop,
        .count = cls->count,
        .bytes = cls->bytes,
        .src = p2p ? src : CT_NONE,
        .dst = p2p ? dst : CT_NONE,
        .grouped = grouped,
        .link = p2p ? maker_pair_link(maker, comm->members[src].process,
                                      comm->members[dst].process)
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
    const int step = ct_op_step(process, &process->ops[i]);
    const struct ct_op_row *op = &process->ops[i];
    const struct ct_op_class_row *cls = &process->classes[op->cls];
    struct ct_instance *instance;
    struct ct_usage *usage;

    if (op->instance == CT_NONE)
        return;
    instance = &maker->job.instances[op->instance];
    if (instance->ranks++ > 0)
        return;
    usage = usage_for(maker, instance, cls, process->comms[cls->comm].rank,
                      op->launch != CT_NONE &&
                          process->launches[op->launch].nops > 1);
    instance->usage = (int)(usage - maker->job.usages);
    usage->calls++;
    usage->transfer_ns += instance->transfer_ns;
    if (step != CT_NONE && process->steps[step].kind == CT_STEP_STEADY)
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
    maker_play(maker);
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
