/* What a trace lacks. */
#ifndef SHIM_TRACE_LOSSES_H
#define SHIM_TRACE_LOSSES_H

#include "trace.h"

/* Counts what was lost since the last time. */
void count_losses(struct trace *trace);

/* Why whole kinds of facts are missing, into the trace's batch. */
void add_absence(struct trace *trace);

#endif
