#include <stdlib.h>

#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/keep.h"

/* [i]: how many of keep[0..i-1] are true; the new index of i if that one is. */
static int *count_kept(const bool *keep, int n)
{
    int *before = ct_alloc((size_t)n + 1, sizeof(*before));
    int i;

    for (i = 0; i < n; i++)
        before[i + 1] = before[i] + keep[i];
    return before;
}

static void recount_graphs(struct ct_process *p)
{
    int i;

    for (i = 0; i < p->ngraphs; i++)
        p->graphs[i].launches = p->graphs[i].ops = p->graphs[i].steady = 0;
    p->runs = p->replays = 0;
    p->captured = p->idle = p->blind = 0;
    ct_graphs_count(p);
}

static void move_kernel_launches(struct ct_process *p, const bool *keep,
                                 const int *before)
{
    int i, n = 0;

    for (i = 0; i < p->nkernels; i++) {
        struct ct_kernel_row kernel = p->kernels[i];

        if (kernel.launch != CT_NONE && !keep[kernel.launch])
            continue;
        if (kernel.launch != CT_NONE)
            kernel.launch = before[kernel.launch];
        p->kernels[n++] = kernel;
    }
    p->nkernels = n;
}

void ct_keep_graph_launches(struct ct_process *p, const bool *keep)
{
    int *before = count_kept(keep, p->ngraph_launches);
    int i;

    move_kernel_launches(p, keep, before);
    for (i = 0; i < p->ngraph_launches; i++)
        if (keep[i])
            p->graph_launches[before[i]] = p->graph_launches[i];
    p->ngraph_launches = before[p->ngraph_launches];
    free(before);
    recount_graphs(p);
}

/* A launch of which an op is left. */
static void keep_launches(struct ct_process *p)
{
    bool *keep = ct_alloc((size_t)p->nlaunches, sizeof(*keep));
    int *before, i;

    for (i = 0; i < p->nops; i++)
        if (p->ops[i].launch != CT_NONE)
            keep[p->ops[i].launch] = true;
    before = count_kept(keep, p->nlaunches);
    for (i = 0; i < p->nlaunches; i++)
        if (keep[i])
            p->launches[before[i]] = p->launches[i];
    for (i = p->nops - 1; i >= 0; i--)
        if (p->ops[i].launch != CT_NONE) {
            p->ops[i].launch = before[p->ops[i].launch];
            p->launches[p->ops[i].launch].first_op = i;
        }
    p->nlaunches = before[p->nlaunches];
    free(before);
    free(keep);
}

static void move_kernels(struct ct_process *p, const bool *keep,
                         const int *before)
{
    int i, n = 0;

    for (i = 0; i < p->nkernels; i++) {
        struct ct_kernel_row kernel = p->kernels[i];

        if (!keep[kernel.op])
            continue;
        kernel.op = before[kernel.op];
        p->kernels[n++] = kernel;
    }
    p->nkernels = n;
}

/* One at the end says that there are more choices than ops. */
static void move_stops(struct ct_process *p, const bool *keep,
                       const int *before, int nops)
{
    int i, n = 0;

    for (i = 0; i < p->nchoice_stops; i++) {
        struct ct_choice_stop stop = p->choice_stops[i];

        if (stop.op < nops && !keep[stop.op])
            continue;
        stop.op = before[stop.op < nops ? stop.op : nops];
        p->choice_stops[n++] = stop;
    }
    p->nchoice_stops = n;
}

static void move_steps(struct ct_process *p, const int *before)
{
    int i;

    for (i = 0; i < p->nsteps; i++) {
        p->steps[i].first_op = before[p->steps[i].first_op];
        p->steps[i].last_op = before[p->steps[i].last_op + 1] - 1;
    }
}

static int *number_ops(struct ct_trace *trace, const struct ct_process *p,
                       const bool *keep, const int *before)
{
    int *ids =
        ct_arena_alloc(trace->arena, (size_t)before[p->nops], sizeof(*ids));
    int i;

    for (i = 0; i < p->nops; i++)
        if (keep[i])
            ids[before[i]] = p->op_ids ? p->op_ids[i] : i;
    return ids;
}

void ct_keep_ops(struct ct_trace *trace, struct ct_process *p, const bool *keep)
{
    const int nops = p->nops;
    int *before = count_kept(keep, nops);
    int i;

    p->op_ids = number_ops(trace, p, keep, before);
    for (i = 0; i < nops; i++) {
        if (!keep[i])
            continue;
        p->ops[before[i]] = p->ops[i];
        if (p->op_choices)
            p->op_choices[before[i]] = p->op_choices[i];
    }
    p->nops = before[nops];
    move_kernels(p, keep, before);
    move_stops(p, keep, before, nops);
    move_steps(p, before);
    free(before);
    keep_launches(p);
    recount_graphs(p);
}
