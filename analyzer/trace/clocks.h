/*
 * Clocks of a job's hosts, and the time that they have in common. Each host's
 * CLOCK_MONOTONIC began at another moment and runs at a rate of its own; what
 * ties two of them is that a synchronising collective ends on all ranks at
 * about the same moment (research/model.md 2.2), and, where two hosts share
 * none, that messages went both ways. From that, piece by piece over the run:
 *
 *     common = common_ns + (own - own_ns) * (1 + rate)
 *
 * Clocks that are tied, directly or by way of others, are one group, whose
 * common time is that of its first clock. Between groups nothing is known.
 */
#ifndef COMMTRACE_CLOCKS_H
#define COMMTRACE_CLOCKS_H

#include "trace/trace.h"

enum ct_clock_tie {
    CT_TIE_NONE, /* it leads its group */
    CT_TIE_COLLECTIVES,
    CT_TIE_P2P
};

struct ct_clock_piece {
    int64_t from_ns;           /* own time; of the first piece INT64_MIN */
    int64_t own_ns, common_ns; /* the same moment */
    double rate;
};

struct ct_clock { /* of a host, or of those processes of it that read it */
    int node;
    int first; /* process of lowest rank that reads it */
    int nprocesses;
    int group;  /* the first clock of its group */
    int parent; /* the clock that it was tied to; CT_NONE */
    enum ct_clock_tie tie;
    int npieces; /* at least one */
    const struct ct_clock_piece *pieces;
    int64_t ties;              /* ops that tie it to parent */
    int64_t first_ns, last_ns; /* own time of the first and last of them */
    double residual_ns;  /* 95 % of ends are no farther from the common time */
    double error_ns;     /* how far that itself may be off */
    int depth;           /* ties from it to the first clock of its group */
    double tie_error_ns; /* of the tie to parent alone; and more, */
    double rate_error; /* per ns before the first op of it or after the last */
    int64_t checked;   /* messages to and from clocks of its group */
    int64_t contradicted; /* of them, received before they were sent */
    bool distrusted;      /* too many: it was taken out of its group */
};

/* Two clocks that also meet without the ties of their group, which tells them
 * apart better than those do. */
struct ct_clock_pair {
    int a, b;                  /* a < b */
    int64_t first_ns, last_ns; /* common time of those ties */
    double error_ns;           /* of common times of both, between these */
};

/* Readings of a clock and of the common time of its group. */
int64_t ct_clock_common(const struct ct_clock *clock, int64_t own_ns);

/* How far common times by clocks a and b of the job may be off from each other
 * when a says own_ns; INFINITY where they are not tied. */
double ct_clock_error(const struct ct_job *job, int a, int b, int64_t own_ns);

/* A time of process on the common time of its clock's group. */
int64_t ct_common_ns(const struct ct_trace *trace,
                     const struct ct_process *process, int64_t ns);

/* When an op that has a place in time ended: while its rank waited its clock
 * went on at its own rate. */
static inline int64_t ct_common_end(const struct ct_trace *trace,
                                    const struct ct_process *process,
                                    const struct ct_op_row *op)
{
    return ct_common_ns(trace, process, ct_op_start_ns(op) + ct_op_gpu_ns(op));
}

/* How far times of a and b on common time, about ns of a, may be off from each
 * other: 0 on one clock, INFINITY where their clocks are not tied. */
double ct_common_error(const struct ct_trace *trace, const struct ct_process *a,
                       const struct ct_process *b, int64_t ns);

/* All clocks of the job are tied. */
bool ct_clocks_are_tied(const struct ct_job *job);

#endif
