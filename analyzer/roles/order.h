/*
 * What the order and the pauses of ops inside a step say about each use.
 */
#ifndef COMMTRACE_ORDER_H
#define COMMTRACE_ORDER_H

#include "roles/use.h"

/* Fills p2p_inside, gap_ratio and turns of every use with ops in a step. 0, or
 * -1 without memory. */
int ct_order_measure(const struct ct_trace *trace, const struct ct_job *job,
                     struct ct_uses *uses);

#endif
