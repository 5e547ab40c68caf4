/*
 * Transfers of collectives that CUDA graphs ran, where NCCL's profiler timed
 * each run on all ranks: of every run the shortest duration over the ranks, as
 * of any collective, and of those the median. The median of a rank by itself,
 * which is the time of its op, holds waits.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/select.h"
#include "trace/stages.h"

struct runs { /* of an op by graphs */
    const struct ct_kernel_row *kernels;
    int n;
    int next; /* of the same instance, in all; CT_NONE */
};

struct gathering {
    struct runs *all;
    int n, capacity;
    int *first; /* per instance: index in all; CT_NONE */
};

static int runs_from(const struct ct_process *p, int at)
{
    int n = 1;

    while (at + n < p->nkernels && p->kernels[at + n].op == p->kernels[at].op)
        n++;
    return n;
}

static void add(struct gathering *g, int instance,
                const struct ct_kernel_row *kernels, int n)
{
    g->all = ct_grow(g->all, &g->capacity, g->n, sizeof(*g->all));
    g->all[g->n] = (struct runs){kernels, n, g->first[instance]};
    g->first[instance] = g->n++;
}

static void gather(struct gathering *g, const struct ct_process *p)
{
    int i, n;

    for (i = 0; i < p->nkernels; i += n) {
        const struct ct_op_row *op = &p->ops[p->kernels[i].op];

        n = 1;
        if (p->kernels[i].launch == CT_NONE)
            continue;
        n = runs_from(p, i);
        if (op->instance != CT_NONE && op->flags & CT_FLAG_KERNEL)
            add(g, op->instance, &p->kernels[i], n);
    }
}

/* All ranks were timed, in as many runs. */
static bool is_complete(const struct gathering *g,
                        const struct ct_instance *instance, int first)
{
    uint32_t ranks = 0;
    int r;

    for (r = first; r != CT_NONE; r = g->all[r].next) {
        if (g->all[r].n != g->all[first].n)
            return false;
        ranks++;
    }
    return ranks == instance->ranks && ranks == instance->timed;
}

static int64_t transfer_of(const struct gathering *g, int first)
{
    const int n = g->all[first].n;
    int64_t *ns = ct_alloc((size_t)n, sizeof(*ns)), median;
    int r, i;

    for (i = 0; i < n; i++)
        ns[i] = INT64_MAX;
    for (r = first; r != CT_NONE; r = g->all[r].next)
        for (i = 0; i < n; i++)
            if (g->all[r].kernels[i].gpu_ns < ns[i])
                ns[i] = g->all[r].kernels[i].gpu_ns;
    median = ct_nth(ns, n, n / 2);
    free(ns);
    return median;
}

static void shorten(struct ct_instance *instance, int64_t transfer_ns)
{
    const int64_t more = instance->transfer_ns - transfer_ns;
    int64_t all;

    if (more <= 0)
        return;
    if (__builtin_mul_overflow(more, (int64_t)instance->timed, &all))
        all = INT64_MAX;
    instance->transfer_ns = transfer_ns;
    instance->wait_max_ns = ct_add_time(instance->wait_max_ns, more);
    instance->wait_sum_ns = ct_add_time(instance->wait_sum_ns, all);
}

static bool any_replay(const struct ct_trace *trace, const struct ct_job *job)
{
    int i;

    for (i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];

        if (p->nkernels && p->ngraph_launches)
            return true;
    }
    return false;
}

void ct_trace_replays(struct ct_trace *trace, struct ct_job *job)
{
    struct gathering g = {0};
    int i;

    if (!any_replay(trace, job))
        return;
    g.first = ct_alloc((size_t)job->ninstances, sizeof(int));
    for (i = 0; i < job->ninstances; i++)
        g.first[i] = CT_NONE;
    for (i = 0; i < job->nprocesses; i++)
        gather(&g, &trace->processes[job->processes[i]]);
    for (i = 0; i < job->ninstances; i++) {
        struct ct_instance *instance = &job->instances[i];

        if (g.first[i] != CT_NONE && instance->transfer_ns != CT_NO_TIME &&
            ct_op_infos[instance->base].cls == CT_COLL &&
            is_complete(&g, instance, g.first[i]))
            shorten(instance, transfer_of(&g, g.first[i]));
    }
    free(g.all);
    free(g.first);
}
