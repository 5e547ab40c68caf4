/* How often captured ops ran: by the launches of the graphs that hold them. */
#ifndef COMMTRACE_GRAPHS_H
#define COMMTRACE_GRAPHS_H

#include "trace/trace.h"

/* It ran, as far as known, and is known what it ran. */
bool ct_graph_launch_counts(const struct ct_graph_launch_row *launch);

/* Indices of graphs, parts before what contains them; free() it. */
int *ct_graphs_oldest_first(const struct ct_process *process);

/* Sets ops, launches and runs of the process's graphs. */
void ct_graphs_count(struct ct_process *process);

/* The step in which a launch at that time was called; CT_NONE: in none. */
int ct_graph_step_at(const struct ct_process *process, int64_t at_ns);

/* Told for each step (CT_NONE: outside of all) in which ops of a graph ran. */
typedef void ct_graph_runs_fn(void *context, int graph, int step, int64_t runs);
void ct_graphs_by_step(const struct ct_process *process, ct_graph_runs_fn *told,
                       void *context);

/* Sets steady, once there are steps. */
void ct_graphs_count_steady(struct ct_process *process);

#endif
