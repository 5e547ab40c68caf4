/* What communication costs a rank. */
#ifndef COMMTRACE_REPORT_COST_H
#define COMMTRACE_REPORT_COST_H

#include "trace/trace.h"

struct view;

/* Fills view->per, costs and times. Returns 0, or -1 without memory. */
int cost_measure(struct view *view);

/* What an op's rank spent on the transfer of its instance; CT_NO_TIME: not
 * timed. What it waited beyond is ct_op_wait_ns. */
int64_t cost_transfer_ns(const struct ct_process *process,
                         const struct ct_op_row *op,
                         const struct ct_instance *instance);

#endif
