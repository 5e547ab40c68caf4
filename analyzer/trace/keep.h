/* Taking ops out of a process, and what is of no op out of its job. */
#ifndef COMMTRACE_KEEP_H
#define COMMTRACE_KEEP_H

#include "trace/trace.h"

/* Only those launches of graphs stay; how often their ops ran follows. */
void ct_keep_graph_launches(struct ct_process *p, const bool *keep);

/* Only those ops stay, with their launches, kernels, choices; p->op_ids then
 * has their old numbers. Steps keep their numbers. */
void ct_keep_ops(struct ct_trace *trace, struct ct_process *p,
                 const bool *keep);

/* Instances and usages of which no op is left go, what is counted is counted
 * again. Returns the old index of each usage; the caller frees. */
int *ct_keep_instances(struct ct_trace *trace, struct ct_job *job);

#endif
