/*
 * The transfers that a fit may rest on: what trace/ calls samples, and three
 * kinds that are put right first.
 *
 * Exchanges (rings.c): rings of two or more ranks in which each rank sends to
 * one and receives from another in one launch, all of one size over links of
 * one class, as in nccl-tests' sendrecv and in a pipeline's steady state. A
 * rank's launch ends when the message of the rank before it has come:
 * d(i) = start(i-1) + T - start(i), as long as sends do not wait for their
 * receiver. Round the ring the starts cancel out: the mean of the durations is
 * T, without a common clock and whoever was late. Sends larger than NCCL's
 * buffer wait for their receiver; there the shortest duration is T.
 *
 * Collectives of several steps (skew.c): the shortest duration over the ranks
 * is less than T where ranks come at different times, since what does not need
 * the late rank goes on without it. In a ring of latency-bound steps a rank
 * that is late by delta ends as early as if it were not: its duration is
 * T - delta, the others' at most T + delta. So the shortest duration falls by
 * kappa = 1/2 for each ns between shortest and longest; where bandwidth rules,
 * and for an all-reduce of two ranks, kappa is 0. It is estimated per usage
 * from the calls themselves, and what is used is T at no skew.
 *
 * Rotations (rotation.c): back to back, a ring hands the ranks' skews on: a
 * message travels one rank per step, so after a call of k steps rank i is as
 * late as rank i-k was before it. Nobody is late for a reason outside; each
 * rank's durations swing about T and their mean over one turn is T exactly,
 * on every rank, without a common clock. Recognised by just that: the means of
 * all ranks agree although their single durations do not. Where ranks are late
 * for reasons of their own the means disagree, and the minimum holds.
 */
#ifndef COMMTRACE_SAMPLES_H
#define COMMTRACE_SAMPLES_H

#include "trace/trace.h"

struct ct_samples { /* of one usage */
    const int64_t *ns;
    int64_t n;
    bool exchanges;
};

struct ct_sample_set {
    struct ct_samples *of_usage; /* per ct_job.usages */
    /* What some of them point into. */
    int64_t *rings, *collectives, *rotations;
};

/* Returns 0, or -1 without memory. */
int ct_samples_gather(const struct ct_trace *trace, const struct ct_job *job,
                      struct ct_sample_set *set);
void ct_samples_release(struct ct_sample_set *set);

/* The parts of it, each over what the one before says. */
int ct_samples_from_rings(const struct ct_trace *trace,
                          const struct ct_job *job, struct ct_sample_set *set);
int ct_samples_without_skew(const struct ct_job *job,
                            struct ct_sample_set *set);
int ct_samples_from_rotation(const struct ct_trace *trace,
                             const struct ct_job *job,
                             struct ct_sample_set *set);

#endif
