/*
 * What became of an op: how often it ran, in which step, what it cost its
 * rank, how NCCL ran it.
 */
#ifndef COMMTRACE_OP_FACTS_H
#define COMMTRACE_OP_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/process.h"

struct ct_trace;

/* The graph whose launches tell how often op ran; CT_NONE: it counts where it
 * was called, since it was not captured or no launch can have been seen. */
static inline int ct_op_graph(const struct ct_process *p,
                              const struct ct_op_row *op)
{
    return p->by_launches ? p->classes[op->cls].graph : CT_NONE;
}

/* How often op ran: once, or as often as what it was captured into. */
static inline int64_t ct_op_runs(const struct ct_process *p,
                                 const struct ct_op_row *op)
{
    const int graph = ct_op_graph(p, op);

    return graph == CT_NONE ? 1 : p->graphs[graph].runs;
}

/* Step of op, of p's ops; CT_NONE: in none, or a graph's launches tell. */
int ct_op_step(const struct ct_process *p, const struct ct_op_row *op);

/* The number in the job of the step in that row; CT_NONE: it is none. */
static inline int ct_step_number(const struct ct_process *p, int row)
{
    return row == CT_NONE ? CT_NONE : p->steps[row].number;
}

/* What an op cost its rank: both add up to its duration (in a group to its
 * share of it). Wait of a collective is negative where the rank came late and
 * found the work of its peers done; over the ranks and over time it is not. */
struct ct_op_cost {
    int64_t transfer_ns, wait_ns;
};

/* False, and no times, where nothing is known. */
bool ct_op_cost(const struct ct_trace *trace, int process, int op,
                struct ct_op_cost *cost);

/* How NCCL ran an op: as its own process was told, else as another rank of its
 * instance was, for all run it alike. NULL: nobody was told. */
const struct ct_choice_class_row *
ct_op_choice(const struct ct_trace *trace, int process, int op, int *process_p);

/* Run of an op, not by a graph, that NCCL's profiler timed; NULL: none. */
const struct ct_kernel_row *ct_op_kernel(const struct ct_process *p, int op);

#endif
