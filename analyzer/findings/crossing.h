/*
 * The price of a crossing group, and its words.
 */
#ifndef COMMTRACE_CROSSING_H
#define COMMTRACE_CROSSING_H

#include "findings/rules.h"

struct ct_price { /* of one group, per step or second */
    double observed_us, predicted_us;
    double observed_var, predicted_error; /* us^2; us */
    double predicted_high_us; /* if the prior is as far off inside a node as it
                                 is between nodes */
    double prior_off;         /* by which factor, there; 1: not, or unused */
    double calls, top_calls, top_bytes; /* top: of the size with most time */
    double top_us;
    enum ct_op top_base;
    enum ct_source source;
    bool timed;
};

/* The finding's sentence, from the figures that row has. */
void ct_crossing_tell(const struct ct_case *c, const struct ct_price *price,
                      struct ct_finding_row *row);

/* What to do about a group of nranks. */
void ct_crossing_advise(const struct ct_case *c, int nranks,
                        struct ct_finding_row *row);

#endif
