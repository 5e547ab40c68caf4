/* How often captured ops ran: by the launches of the graphs that hold them. */
#include "trace/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"
#include "trace/stages.h"

bool ct_graph_launch_counts(const struct ct_graph_launch_row *launch)
{
    return launch->graph != CT_NONE &&
           (launch->result == 0 || launch->host_ns == CT_NO_TIME);
}

struct aged {
    int64_t id;
    int graph;
};

/* Captures first, then what was made of others in its order: -1, -2, ... */
static int by_age(const void *left, const void *right)
{
    const int64_t a = ((const struct aged *)left)->id;
    const int64_t b = ((const struct aged *)right)->id;

    return (a < b) - (a > b);
}

int *ct_graphs_oldest_first(const struct ct_process *p)
{
    struct aged *aged = ct_alloc((size_t)p->ngraphs, sizeof(*aged));
    int *order = ct_alloc((size_t)p->ngraphs, sizeof(*order));
    int i;

    for (i = 0; i < p->ngraphs; i++)
        aged[i] = (struct aged){p->graphs[i].id, i};
    qsort(aged, (size_t)p->ngraphs, sizeof(*aged), by_age);
    for (i = 0; i < p->ngraphs; i++)
        order[i] = aged[i].graph;
    free(aged);
    return order;
}

/* Graphs in graphs in graphs run more often than can be counted. */
static int64_t add_runs(int64_t a, int64_t b)
{
    const int64_t sum = ct_add_time(a, b);

    return sum < INT32_MAX ? sum : INT32_MAX;
}

static void add_part(int64_t *runs, int part, int64_t n)
{
    if (part != CT_NONE)
        runs[part] = add_runs(runs[part], n);
}

/* What a graph contains runs with it. The youngest first: a graph has its own
 * sum when it hands it on, since all that contain it are younger. */
static void hand_on(const struct ct_process *p, int64_t *runs)
{
    int *order = ct_graphs_oldest_first(p), i;

    for (i = p->ngraphs - 1; i >= 0; i--) {
        const struct ct_graph_row *whole = &p->graphs[order[i]];

        add_part(runs, whole->first, runs[order[i]]);
        add_part(runs, whole->second, runs[order[i]]);
    }
    free(order);
}

static void count_op(struct ct_process *p, const struct ct_op_row *op)
{
    const int graph = p->classes[op->cls].graph;
    const int64_t runs = ct_op_runs(p, op);

    p->runs = ct_add_time(p->runs, runs);
    if (!(op->flags & CT_FLAG_CAPTURED))
        return;
    p->captured++;
    p->idle += runs == 0;
    p->blind += !p->by_launches;
    if (p->by_launches)
        p->replays = ct_add_time(p->replays, runs);
    if (graph != CT_NONE)
        p->graphs[graph].ops++;
}

void ct_graphs_count(struct ct_process *p)
{
    int64_t *runs = ct_alloc((size_t)p->ngraphs, sizeof(*runs));
    int i;

    p->by_launches |= p->ngraph_launches > 0;
    for (i = 0; i < p->ngraph_launches; i++) {
        const struct ct_graph_launch_row *launch = &p->graph_launches[i];

        if (ct_graph_launch_counts(launch))
            runs[launch->graph] = ++p->graphs[launch->graph].launches;
    }
    hand_on(p, runs);
    for (i = 0; i < p->ngraphs; i++)
        p->graphs[i].runs = runs[i];
    free(runs);
    for (i = 0; i < p->nops; i++)
        count_op(p, &p->ops[i]);
}

/* A step is what was called since the one before it ended. */
static bool is_in(const struct ct_process *p, int step, int64_t at_ns)
{
    const struct ct_step_row *row = &p->steps[step];
    const bool follows = step > 0 && row[-1].last_op + 1 == row->first_op;

    return at_ns <= row->last_ns &&
           (follows ? at_ns > row[-1].last_ns : at_ns >= row->first_ns);
}

/* The first step that ends at or after at_ns; nsteps: none. */
static int step_at(const struct ct_process *p, int64_t at_ns)
{
    int low = 0, high = p->nsteps;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (p->steps[middle].last_ns < at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ct_graph_step_at(const struct ct_process *p, int64_t at_ns)
{
    const int step = step_at(p, at_ns);

    return step < p->nsteps && is_in(p, step, at_ns) ? step : CT_NONE;
}

struct placed { /* a launch */
    int step, graph;
};

static int by_step(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    return (a->step > b->step) - (a->step < b->step);
}

static struct placed *place_launches(const struct ct_process *p, int *n_p)
{
    struct placed *placed =
        ct_alloc((size_t)p->ngraph_launches, sizeof(*placed));
    int i, n = 0;

    for (i = 0; i < p->ngraph_launches; i++) {
        const struct ct_graph_launch_row *launch = &p->graph_launches[i];

        if (ct_graph_launch_counts(launch))
            placed[n++] = (struct placed){ct_graph_step_at(p, launch->enter_ns),
                                          launch->graph};
    }
    qsort(placed, (size_t)n, sizeof(*placed), by_step);
    *n_p = n;
    return placed;
}

static void tell(const struct ct_process *p, const int64_t *runs, int step,
                 ct_graph_runs_fn *told, void *context)
{
    int g;

    for (g = 0; g < p->ngraphs; g++)
        if (runs[g] && p->graphs[g].ops)
            told(context, g, step, runs[g]);
}

void ct_graphs_by_step(const struct ct_process *p, ct_graph_runs_fn *told,
                       void *context)
{
    int64_t *runs = ct_alloc((size_t)p->ngraphs, sizeof(*runs));
    int i, k, n = 0;
    struct placed *placed = place_launches(p, &n);

    for (i = 0; i < n; i = k) {
        memset(runs, 0, (size_t)p->ngraphs * sizeof(*runs));
        for (k = i; k < n && placed[k].step == placed[i].step; k++)
            runs[placed[k].graph]++;
        hand_on(p, runs);
        tell(p, runs, placed[i].step, told, context);
    }
    free(placed);
    free(runs);
}

static void add_steady(void *context, int graph, int step, int64_t runs)
{
    struct ct_process *p = context;
    int64_t *steady = &p->graphs[graph].steady;

    if (step != CT_NONE && p->steps[step].kind == CT_STEP_STEADY)
        *steady = add_runs(*steady, runs);
}

void ct_graphs_count_steady(struct ct_process *p)
{
    ct_graphs_by_step(p, add_steady, p);
}
