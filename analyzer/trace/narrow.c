#include "trace/narrow.h"

#include <stdlib.h>

#include "trace/arena.h"
#include "trace/graphs.h"
#include "trace/keep.h"
#include "trace/parallel.h"

struct narrowing {
    struct ct_trace *trace;
    struct ct_job *job;
    const struct ct_selection *selection;
    struct ct_job_clock *clock;
};

static bool has_step(const struct ct_selection *s, int step)
{
    return s->first_step == CT_NONE ||
           (step >= s->first_step && step <= s->last_step);
}

static bool has_time(const struct narrowing *n, const struct ct_process *p,
                     int64_t ns)
{
    const struct ct_selection *s = n->selection;
    int64_t at;

    if (s->from_ns == CT_NO_TIME && s->to_ns == CT_NO_TIME)
        return true;
    at = ct_job_time(n->clock, p, ns);
    return (s->from_ns == CT_NO_TIME || at >= s->from_ns) &&
           (s->to_ns == CT_NO_TIME || at < s->to_ns);
}

static void choose_graph_launches(const struct narrowing *n,
                                  struct ct_process *p)
{
    bool *keep = ct_alloc((size_t)p->ngraph_launches, sizeof(*keep));
    int i;

    for (i = 0; i < p->ngraph_launches; i++) {
        const int64_t enter_ns = p->graph_launches[i].enter_ns;

        keep[i] = has_step(n->selection,
                           ct_step_number(p, ct_graph_step_at(p, enter_ns))) &&
                  has_time(n, p, enter_ns);
    }
    ct_keep_graph_launches(p, keep);
    free(keep);
}

/* What was captured counts where it ran, if it ever did. */
static bool has_op(const struct narrowing *n, const struct ct_process *p,
                   const struct ct_op_row *op, const bool *ran)
{
    const int graph = ct_op_graph(p, op);

    if (graph != CT_NONE && ran[graph])
        return p->graphs[graph].runs > 0;
    return has_step(n->selection, ct_step_number(p, ct_op_step(p, op))) &&
           has_time(n, p, op->enter_ns);
}

static bool has_whole_step(const struct narrowing *n,
                           const struct ct_process *p, int step)
{
    return has_step(n->selection, ct_step_number(p, step)) &&
           has_time(n, p, p->steps[step].first_ns) &&
           has_time(n, p, p->steps[step].last_ns);
}

static void narrow_process(struct narrowing *n, struct ct_process *p)
{
    bool *keep = ct_alloc((size_t)p->nops, sizeof(*keep));
    bool *ran = ct_alloc((size_t)p->ngraphs, sizeof(*ran));
    int i;

    for (i = 0; i < p->ngraphs; i++)
        ran[i] = p->graphs[i].runs > 0;
    if (p->ngraph_launches)
        choose_graph_launches(n, p);
    for (i = 0; i < p->nops; i++)
        keep[i] = has_op(n, p, &p->ops[i], ran);
    for (i = 0; i < p->nsteps; i++)
        if (!has_whole_step(n, p, i))
            p->steps[i].kind = CT_STEP_CUT;
    ct_keep_ops(n->trace, p, keep);
    free(ran);
    free(keep);
}

int *ct_narrow_time(struct ct_trace *trace, struct ct_job *job,
                    const struct ct_selection *selection)
{
    struct narrowing n = {trace, job, selection, ct_job_clock_new(trace, job)};
    int i;

    for (i = 0; i < job->nprocesses; i++)
        narrow_process(&n, &trace->processes[job->processes[i]]);
    ct_job_clock_free(n.clock);
    return ct_keep_instances(trace, job);
}

static bool has_rank(const struct ct_selection *s, int rank)
{
    int low = 0, high = s->nranks;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (s->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->nranks && s->ranks[low] == rank;
}

/* Its communicators and members stay: the others know it. */
static void leave_out(struct ct_trace *trace, struct ct_process *p)
{
    bool *keep = ct_alloc((size_t)p->nops, sizeof(*keep));
    bool *launches = ct_alloc((size_t)p->ngraph_launches, sizeof(*launches));

    if (p->ngraph_launches)
        ct_keep_graph_launches(p, launches);
    ct_keep_ops(trace, p, keep);
    p->nsteps = 0;
    p->left_out = true;
    free(launches);
    free(keep);
}

int *ct_narrow_ranks(struct ct_trace *trace, struct ct_job *job,
                     const struct ct_selection *selection)
{
    int i;

    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];

        if (!has_rank(selection, p->rank))
            leave_out(trace, p);
    }
    return ct_keep_instances(trace, job);
}
