#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/keep.h"
#include "trace/select.h"
#include "trace/stages.h"

static struct ct_process *process_at(struct ct_trace *trace,
                                     const struct ct_job *job, int i)
{
    return &trace->processes[job->processes[i]];
}

static void add_wait(struct ct_instance *instance,
                     const struct ct_op_cost *cost)
{
    if (!instance->timed || cost->wait_ns > instance->wait_max_ns)
        instance->wait_max_ns = cost->wait_ns;
    instance->wait_sum_ns = ct_add_wait(instance->wait_sum_ns, cost->wait_ns);
    instance->timed++;
}

/* The waits of those that are left, where some are not. */
static void recount_waits(struct ct_trace *trace, struct ct_job *job,
                          const uint32_t *left)
{
    bool *partial = ct_alloc((size_t)job->ninstances, sizeof(*partial));
    int i, o;

    for (i = 0; i < job->ninstances; i++) {
        partial[i] = left[i] && left[i] < job->instances[i].ranks;
        if (!partial[i])
            continue;
        job->instances[i].ranks = left[i];
        job->instances[i].timed = 0;
        job->instances[i].wait_sum_ns = job->instances[i].wait_max_ns = 0;
    }
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = process_at(trace, job, i);

        for (o = 0; o < p->nops; o++) {
            const int instance = p->ops[o].instance;
            struct ct_op_cost cost;

            if (instance != CT_NONE && partial[instance] &&
                ct_op_cost(trace, job->processes[i], o, &cost))
                add_wait(&job->instances[instance], &cost);
        }
    }
    for (i = 0; i < job->ninstances; i++)
        if (partial[i] && !job->instances[i].timed)
            job->instances[i].transfer_ns = CT_NO_TIME;
    free(partial);
}

/* By graphs: as often as on the rank with most launches. */
static void recount_runs(struct ct_trace *trace, struct ct_job *job)
{
    int i, o;

    for (i = 0; i < job->ninstances; i++)
        job->instances[i].runs = 0;
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = process_at(trace, job, i);

        for (o = 0; o < p->nops; o++) {
            const int64_t runs = ct_op_runs(p, &p->ops[o]);
            struct ct_instance *instance;

            if (p->ops[o].instance == CT_NONE)
                continue;
            instance = &job->instances[p->ops[o].instance];
            if (runs > instance->runs)
                instance->runs =
                    runs < UINT32_MAX ? (uint32_t)runs : UINT32_MAX;
        }
    }
}

static uint32_t *count_left(struct ct_trace *trace, const struct ct_job *job)
{
    uint32_t *left = ct_alloc((size_t)job->ninstances, sizeof(*left));
    int i, o;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = process_at(trace, job, i);

        for (o = 0; o < p->nops; o++)
            if (p->ops[o].instance != CT_NONE)
                left[p->ops[o].instance]++;
    }
    return left;
}

static void move_instances(struct ct_trace *trace, struct ct_job *job,
                           const uint32_t *left)
{
    int *to = ct_alloc((size_t)job->ninstances, sizeof(*to));
    int i, o, n = 0;

    for (i = 0; i < job->ninstances; i++) {
        if (!left[i])
            continue;
        to[i] = n;
        job->instances[n] = job->instances[i];
        if (job->choices)
            job->choices[n] = job->choices[i];
        n++;
    }
    job->ninstances = n;
    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = process_at(trace, job, i);

        for (o = 0; o < p->nops; o++)
            if (p->ops[o].instance != CT_NONE)
                p->ops[o].instance = to[p->ops[o].instance];
    }
    free(to);
}

static void clear_sums(struct ct_usage *usage)
{
    usage->calls = usage->timed = 0;
    usage->transfer_ns = usage->wait_ns = 0;
    usage->nsamples = usage->apart = 0;
    usage->samples = NULL;
}

static int *move_usages(struct ct_job *job)
{
    int *to = ct_alloc((size_t)job->nusages, sizeof(*to));
    int *from = ct_alloc((size_t)job->nusages, sizeof(*from));
    int i, n = 0;

    for (i = 0; i < job->ninstances; i++)
        to[job->instances[i].usage] = 1;
    for (i = 0; i < job->nusages; i++) {
        if (!to[i])
            continue;
        to[i] = n;
        from[n] = i;
        job->usages[n] = job->usages[i];
        clear_sums(&job->usages[n++]);
    }
    job->nusages = n;
    for (i = 0; i < job->ninstances; i++)
        job->instances[i].usage = to[job->instances[i].usage];
    free(to);
    return from;
}

static void recount_steps(struct ct_trace *trace, struct ct_job *job)
{
    int64_t *durations = NULL;
    int i, s, n = 0, capacity = 0, fewest = INT32_MAX;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = process_at(trace, job, i);
        const int steady = ct_count_steps(p, CT_STEP_STEADY);

        if (!p->nsteps)
            continue;
        if (steady < fewest)
            fewest = steady;
        for (s = 0; s < p->nsteps; s++) {
            if (p->steps[s].kind != CT_STEP_STEADY)
                continue;
            durations = ct_grow(durations, &capacity, n, sizeof(*durations));
            durations[n++] = p->steps[s].end_ns - p->steps[s].start_ns;
        }
    }
    job->nsteps = n ? fewest : 0;
    job->step_ns = n ? ct_nth(durations, n, n / 2) : CT_NO_TIME;
    free(durations);
}

static void recount_troubles(struct ct_trace *trace, struct ct_job *job)
{
    int i, o;

    job->mismatches = job->lost_ops = 0;
    job->in_flight = 0;
    for (i = 0; i < job->ninstances; i++)
        job->mismatches += job->instances[i].mismatch;
    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = process_at(trace, job, i);

        if (!p->left_out)
            job->lost_ops = ct_add_time(job->lost_ops, p->lost);
        for (o = 0; o < p->nops; o++)
            job->in_flight +=
                (p->ops[o].flags & (CT_FLAG_IN_CALL | CT_FLAG_RUNNING)) != 0;
    }
}

int *ct_keep_instances(struct ct_trace *trace, struct ct_job *job)
{
    uint32_t *left = count_left(trace, job);
    int *usages;

    recount_waits(trace, job, left);
    recount_runs(trace, job);
    move_instances(trace, job, left);
    free(left);
    usages = move_usages(job);
    recount_steps(trace, job);
    recount_troubles(trace, job);
    job->span_ns = 0;
    ct_trace_usage(trace, job);
    return usages;
}
