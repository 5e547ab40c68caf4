/*
 * Who keeps the others waiting, by communicator.
 */
#ifndef COMMTRACE_STRAGGLER_H
#define COMMTRACE_STRAGGLER_H

#include "findings/rules.h"

#define CT_STEPS_KEPT 512 /* of each row; more steps say no more */

struct ct_late { /* one rank in one communicator, over its steady steps */
    int comm, process;
    int64_t calls; /* whole collectives to which one rank came last */
    int64_t last;  /* of them it was that one in */
    int steps;
    double sum, squares; /* of how much later than the next, ns per step */
    float *of_step;      /* the first CT_STEPS_KEPT of them */
    int dominated;       /* steps in which all others together were less late */
    double elsewhere_ns; /* that its other communicators take, in all */
    bool by_clock;       /* starts on one clock, not durations */
    double error_ns;     /* of these */
};

struct ct_lateness {
    int n;
    struct ct_late *rows; /* by communicator, then rank in it */
    int *first;           /* per communicator; CT_NONE: not looked at */
    float *of_step;       /* of all rows */
};

/* Looks at communicators whose ranks do the same work: tensor and data
 * parallel ones; all, where there are none and no send/recv. 0, or -1 without
 * memory. */
int ct_lateness_measure(const struct ct_case *c, struct ct_lateness *lateness);
void ct_lateness_release(struct ct_lateness *lateness);

#endif
