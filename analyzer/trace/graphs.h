/* How often captured ops ran: by the launches of the graphs that hold them. */
#ifndef COMMTRACE_GRAPHS_H
#define COMMTRACE_GRAPHS_H

#include "trace/trace.h"

/* Sets ops, launches and runs of the process's graphs. */
void ct_graphs_count(struct ct_process *process);

/* Sets steady, once there are steps. */
void ct_graphs_count_steady(struct ct_process *process);

#endif
