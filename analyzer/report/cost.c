/*
 * A job's first steps are slow for reasons of their own, and a mean over all of
 * it would say little about a step. So only instances of steady steps count;
 * where there is no step, everything does, per second.
 */
#include "report/cost.h"

#include <math.h>
#include <stdlib.h>

#include "report/view.h"

struct sum { /* over the instances of a usage that count */
    int64_t calls, timed;
    double transfer_ns, wait_ns;
    double ranks; /* records found, summed */
};

/* Counts how op was timed. */
static void note_time(struct view_times *times, const struct ct_op_row *op)
{
    unsigned source = op->flags & CT_FLAG_TIME_MASK;

    times->recovered += (op->flags & CT_FLAG_RECOVERED) != 0;
    if (op->gpu_ns != CT_NO_TIME && source == CT_FLAG_EVENT)
        times->event++;
    else if (op->gpu_ns != CT_NO_TIME)
        times->group++;
    else if (op->host_ns != CT_NO_TIME && !(op->flags & CT_FLAG_ZERO) &&
             !(op->flags & CT_FLAG_CAPTURED))
        times->host++;
    else
        times->none++;
}

/* Marks the instances that an op of a steady step belongs to. */
static void mark_steady(struct view *view, const struct ct_process *process,
                        unsigned char *steady)
{
    for (int i = 0; i < process->nops; i++) {
        const struct ct_op_row *op = &process->ops[i];

        note_time(&view->times, op);
        if (op->instance != CT_NONE && op->step != CT_NONE &&
            process->steps[op->step].kind == CT_STEP_STEADY)
            steady[op->instance] = 1;
    }
}

static void add_instance(struct sum *sum, const struct ct_instance *instance)
{
    sum->calls++;
    sum->ranks += instance->ranks;
    if (instance->transfer_ns == CT_NO_TIME)
        return;
    sum->timed++;
    sum->transfer_ns += (double)instance->transfer_ns;
    if (instance->timed)
        sum->wait_ns += (double)instance->wait_sum_ns / instance->timed;
}

/* How many ranks of its communicator take part in a call of usage. */
static double participants(const struct ct_usage *usage, const struct sum *sum)
{
    if (usage->src != CT_NONE)
        return usage->src == usage->dst ? 1 : 2;
    if (usage->grouped && ct_op_infos[usage->base].cls != CT_COLL)
        return sum->ranks / (double)sum->calls;
    return NAN;
}

static void set_cost(struct view_cost *cost, const struct ct_usage *usage,
                     int nranks, const struct sum *sum, double periods)
{
    double share, per_call;

    if (!sum->calls || !(periods > 0))
        return;
    share = participants(usage, sum) / nranks;
    if (isnan(share))
        share = 1;
    cost->calls = (double)sum->calls / periods * share;
    cost->bytes = cost->calls * (double)usage->bytes;
    /* Unsampled calls are taken to cost what the sampled ones did. */
    per_call = sum->timed ? cost->calls / (double)sum->timed / 1e6 : NAN;
    cost->transfer_ms = sum->transfer_ns * per_call;
    cost->wait_ms = sum->wait_ns * per_call;
}

int cost_measure(struct view *view)
{
    const struct ct_job *job = view->job;
    size_t ninstances = (size_t)job->ninstances + 1;
    struct sum *sums = calloc((size_t)job->nusages + 1, sizeof *sums);
    unsigned char *steady = calloc(ninstances, 1);
    double periods = job->nsteps ? job->nsteps : (double)job->span_ns / 1e9;

    view->per = job->nsteps ? "step" : "second";
    view->costs = calloc((size_t)job->nusages + 1, sizeof *view->costs);
    if (!sums || !steady || !view->costs) {
        free(sums);
        free(steady);
        return -1;
    }
    for (int i = 0; i < job->nprocesses; i++)
        mark_steady(view, &view->trace->processes[job->processes[i]], steady);
    for (int i = 0; i < job->ninstances; i++)
        if ((steady[i] || !job->nsteps) && job->instances[i].usage != CT_NONE)
            add_instance(&sums[job->instances[i].usage], &job->instances[i]);
    for (int i = 0; i < job->nusages; i++)
        set_cost(&view->costs[i], &job->usages[i],
                 job->comms[job->usages[i].comm].nranks, &sums[i], periods);
    free(sums);
    free(steady);
    return 0;
}
