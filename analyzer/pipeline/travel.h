/*
 * How long messages between two processes travel, without a common clock. With
 * t_ab = (receiver's end) - (sender's start), each on its own clock, the
 * clocks' difference is in t_ab and, with the other sign, in t_ba; so the least
 * t_ab and the least t_ba of one step have twice the travel time as their sum,
 * if each direction has a message whose receiver was waiting. A receiver that
 * never waits makes the result too long, and no wait is then seen where there
 * was none.
 */
#ifndef COMMTRACE_TRAVEL_H
#define COMMTRACE_TRAVEL_H

#include "trace/trace.h"

/* Per instance of job: the time that its bytes took, ns; CT_NO_TIME: unknown.
 * Where messages go one way only, and for collectives, it is the instance's
 * transfer. NULL without memory; the caller frees. */
int64_t *ct_travel_times(const struct ct_trace *trace,
                         const struct ct_job *job);

#endif
