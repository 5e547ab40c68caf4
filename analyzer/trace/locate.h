/*
 * The transfer of collectives where ranks disturb each other. The shortest
 * duration over the ranks is less than it where ranks come at different times,
 * since what does not need the late rank goes on without it. Put right are
 * whole instances: every rank timed by itself.
 *
 * Skew (skew.c): in a ring of latency-bound steps a rank that is late by delta
 * ends as early as if it were not: its duration is T - delta, the others' at
 * most T + delta. So the shortest duration falls by kappa = 1/2 for each ns
 * between shortest and longest, until what the others could do without the late
 * rank is done: of an all-reduce's 2(n-1) steps n are left for that one,
 * however late it is. Where bandwidth rules, and for an all-reduce of two
 * ranks, kappa is 0. It is estimated per usage from the calls themselves; where
 * ranks always came too far apart for that, the shortest duration may be as
 * little as those n steps, and is marked.
 *
 * Rotation (rotation.c): back to back, a ring hands the ranks' skews on: a
 * message travels one rank per step, so after a call of k steps rank i is as
 * late as rank i-k was before it. Nobody is late for a reason outside; each
 * rank's durations swing about T, and their mean over the ranks is T exactly,
 * without a common clock. Recognised by this: over one turn the means of all
 * ranks agree although their single durations do not. Where ranks are late for
 * reasons of their own the means disagree.
 *
 * Meeting (meeting.c): ranks are placed by their clocks, where those are good
 * enough; the last end after the last start needs no guess.
 *
 * Whatever the reason, T is at most the mean over the ranks: lateness is handed
 * on or waited out, never lost.
 */
#ifndef COMMTRACE_LOCATE_H
#define COMMTRACE_LOCATE_H

#include "trace/trace.h"

struct ct_spread { /* of the durations of one instance over its ranks, ns */
    double shortest, mean, longest;
};

static inline struct ct_spread ct_spread_of(const struct ct_instance *instance)
{
    const double shortest = (double)instance->transfer_ns;

    return (struct ct_spread){
        shortest, shortest + (double)instance->wait_sum_ns / instance->timed,
        shortest + (double)instance->wait_max_ns};
}

static inline bool ct_is_whole_collective(const struct ct_job *job,
                                          const struct ct_instance *i)
{
    const int nranks = job->comms[i->comm].nranks;

    return i->usage != CT_NONE && nranks > 1 && !i->grouped && !i->bound &&
           !i->mismatch && i->transfer_ns != CT_NO_TIME && i->transfer_ns > 0 &&
           (int)i->timed == nranks &&
           ct_op_infos[job->usages[i->usage].base].cls == CT_COLL;
}

/* Sets rotates[u] of usages whose skews go round. */
void ct_find_rotations(const struct ct_trace *trace, const struct ct_job *job,
                       bool *rotates);

/* Skews up to this share of the shortest duration can be put right. */
#define CT_MOST_SKEW .6

/* Sets ns[i], and clears skewed, of whole instances whose ranks came apart, as
 * far as clocks tell. rotates: what ct_find_rotations found. */
void ct_place_meetings(const struct ct_trace *trace, struct ct_job *job,
                       const bool *rotates, double *ns);

/* Sets ns[i] of whole instances: their transfer in ns; leaves it NAN where the
 * shortest duration has to do. Marks as skewed what is no sample. */
void ct_correct_skew(struct ct_job *job, double *ns);

#endif
