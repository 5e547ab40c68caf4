#include "roles/chains.h"

#define MOST_OPS 50000 /* looked at where there are no steps */

int ct_windows(const struct ct_process *process,
               struct ct_window windows[CT_WINDOWS])
{
    bool steady = false;
    int n = 0;

    for (int i = 0; i < process->nsteps && n < CT_WINDOWS; i++) {
        const struct ct_step_row *step = &process->steps[i];

        steady |= step->kind == CT_STEP_STEADY;
        if (step->kind == CT_STEP_STEADY && step->first_op >= 0 &&
            step->last_op < process->nops && step->first_op <= step->last_op)
            windows[n++] = (struct ct_window){step->first_op, step->last_op,
                                              step->start_ns, step->end_ns};
    }
    /* Steps in which graphs ran everything have no ops of their own. */
    if (!steady && process->nops > 0) {
        const int last = process->nops < MOST_OPS ? process->nops : MOST_OPS;

        windows[n++] = (struct ct_window){0, last - 1, CT_NO_TIME, CT_NO_TIME};
    }
    return n;
}

static int graph_of(const struct ct_process *process, int op)
{
    return ct_op_graph(process, &process->ops[op]);
}

double ct_window_runs(const struct ct_process *process,
                      const struct ct_window *window, int op)
{
    const int graph = graph_of(process, op);

    if (graph == CT_NONE)
        return 1;
    return window->start_ns == CT_NO_TIME ? (double)process->graphs[graph].runs
                                          : 0;
}

static double runs_per_step(const struct ct_process *process, int graph)
{
    const int steady = ct_count_steps(process, CT_STEP_STEADY);

    return steady ? (double)process->graphs[graph].steady / steady : 0;
}

int ct_captured_window(const struct ct_process *process, int from,
                       struct ct_window *window, double *runs_p)
{
    int i = process->ngraphs ? from : process->nops, end;

    while (i < process->nops && (graph_of(process, i) == CT_NONE ||
                                 !process->graphs[graph_of(process, i)].steady))
        i++;
    if (i >= process->nops)
        return CT_NONE;
    for (end = i; end + 1 < process->nops &&
                  graph_of(process, end + 1) == graph_of(process, i);
         end++)
        ;
    *window = (struct ct_window){i, end, CT_NO_TIME, CT_NO_TIME};
    *runs_p = runs_per_step(process, graph_of(process, i));
    return end + 1;
}
