/*
 * A job's first steps are slow for reasons of their own, and a mean over all of
 * it would say little about a step. So only ops of steady steps count; where
 * there is no step, everything does, per second.
 */
#include "report/cost.h"

#include <math.h>
#include <stdlib.h>

#include "report/view.h"

struct sum { /* over the ops of a usage that count, weighted to a period */
    double calls, sent;
    double direct, timed; /* of calls: not by graphs of whose runs nothing is
                             known; with a time */
    double transfer_ns, wait_ns;
};

/* Counts how op was timed. */
static void note_time(struct view_times *times, const struct ct_op_row *op)
{
    unsigned source = op->flags & CT_FLAG_TIME_MASK;

    times->recovered += (op->flags & CT_FLAG_RECOVERED) != 0;
    if (ct_op_gpu_ns(op) != CT_NO_TIME && op->flags & CT_FLAG_KERNEL)
        times->kernel++;
    else if (ct_op_gpu_ns(op) != CT_NO_TIME && source == CT_FLAG_EVENT)
        times->event++;
    else if (ct_op_gpu_ns(op) != CT_NO_TIME)
        times->group++;
    else if (ct_op_host_ns(op) != CT_NO_TIME &&
             !(op->flags & (CT_FLAG_ZERO | CT_FLAG_CAPTURED | CT_FLAG_RUNNING)))
        times->host++;
    else
        times->none++;
}

static void count_calls(struct sum *sum, enum ct_op kind, double n)
{
    sum->calls += n;
    if (ct_op_infos[kind].cls != CT_RECV)
        sum->sent += n;
}

static void add_op(struct sum *sum, const struct view *view, int process, int i,
                   double weight)
{
    const struct ct_process *p = &view->trace->processes[process];
    const struct ct_op_row *op = &p->ops[i];
    struct ct_op_cost cost;

    count_calls(sum, p->classes[op->cls].kind, weight);
    sum->direct += weight;
    if (!ct_op_cost(view->trace, process, i, &cost))
        return;
    sum->timed += weight;
    sum->transfer_ns += weight * (double)cost.transfer_ns;
    sum->wait_ns += weight * (double)cost.wait_ns;
}

/* Of a captured op. */
static double runs_that_count(const struct ct_job *job,
                              const struct ct_process *p,
                              const struct ct_op_row *op)
{
    const struct ct_graph_row *graph = &p->graphs[ct_op_graph(p, op)];

    return (double)(job->nsteps ? graph->steady : graph->runs);
}

/* By graphs: with times only where NCCL's profiler told them. */
static void add_runs(struct sum *sum, const struct view *view, int process,
                     int i, double weight)
{
    const struct ct_process *p = &view->trace->processes[process];

    if (ct_op_gpu_ns(&p->ops[i]) == CT_NO_TIME)
        count_calls(sum, p->classes[p->ops[i].cls].kind, weight);
    else
        add_op(sum, view, process, i, weight);
}

static void add_process(struct view *view, int process, struct sum *sums)
{
    const struct ct_process *p = &view->trace->processes[process];
    const struct ct_job *job = view->job;
    double periods = job->nsteps ? ct_count_steps(p, CT_STEP_STEADY)
                                 : (double)job->span_ns / 1e9;
    int step = 0;

    for (int i = 0; i < p->nops; i++) {
        const struct ct_op_row *op = &p->ops[i];
        struct sum *sum;
        bool steady;

        while (step < p->nsteps && p->steps[step].last_op < i)
            step++;
        steady = step < p->nsteps && i >= p->steps[step].first_op &&
                 p->steps[step].kind == CT_STEP_STEADY;
        note_time(&view->times, op);
        if (op->instance == CT_NONE || periods <= 0 ||
            job->instances[op->instance].usage == CT_NONE)
            continue;
        sum = &sums[job->instances[op->instance].usage];
        if (ct_op_graph(p, op) != CT_NONE)
            add_runs(sum, view, process, i,
                     runs_that_count(job, p, op) / periods);
        else if (steady || !job->nsteps)
            add_op(sum, view, process, i, 1 / periods);
    }
}

/* Traced members of comm, of those chosen; where there are steps, those that
 * have them. */
static int members_that_count(const struct view *view, int comm)
{
    const struct ct_comm *c = &view->job->comms[comm];
    int n = 0;

    for (int i = 0; i < c->nranks; i++) {
        const int process = c->members[i].process;
        const struct ct_process *p =
            process == CT_NONE ? NULL : &view->trace->processes[process];

        n += p && !p->left_out &&
             (!view->job->nsteps || ct_count_steps(p, CT_STEP_STEADY));
    }
    return n;
}

static void set_cost(struct view_cost *cost, const struct ct_usage *usage,
                     const struct sum *sum)
{
    const int ranks = cost->ranks;
    double per_call;

    if (!(sum->calls > 0) || ranks < 1)
        return;
    cost->calls = sum->calls / ranks;
    cost->bytes = sum->sent / ranks * (double)usage->bytes;
    /* Unsampled calls are taken to cost what the sampled ones did; of those
     * that graphs made nothing is known. */
    per_call = sum->timed > 0 ? sum->direct / ranks / sum->timed / 1e6 : NAN;
    cost->transfer_ms = sum->transfer_ns * per_call;
    cost->wait_ms = sum->wait_ns * per_call;
}

int cost_measure(struct view *view)
{
    const struct ct_job *job = view->job;
    struct sum *sums = calloc((size_t)job->nusages + 1, sizeof *sums);
    /* Per communicator: messages of a large one have thousands of usages. */
    int *members = calloc((size_t)job->ncomms + 1, sizeof *members);

    view->per = job->nsteps ? "step" : "second";
    view->costs = calloc((size_t)job->nusages + 1, sizeof *view->costs);
    if (!sums || !members || !view->costs) {
        free(members);
        free(sums);
        return -1;
    }
    for (int i = 0; i < job->nprocesses; i++)
        add_process(view, job->processes[i], sums);
    for (int i = 0; i < job->ncomms; i++)
        members[i] = members_that_count(view, i);
    for (int i = 0; i < job->nusages; i++) {
        view->costs[i].ranks = members[job->usages[i].comm];
        set_cost(&view->costs[i], &job->usages[i], &sums[i]);
    }
    free(members);
    free(sums);
    return 0;
}
