/*
 * The transfers that a fit may rest on: what trace/ calls samples, and
 * exchanges, which trace/ cannot time since they are launched in one group.
 *
 * Exchanges (rings.c): rings of two or more ranks in which each rank sends to
 * one and receives from another in one launch, all of one size over links of
 * one class, as in nccl-tests' sendrecv and in a pipeline's steady state. A
 * rank's launch ends when the message of the rank before it has come:
 * d(i) = start(i-1) + T - start(i), as long as sends do not wait for their
 * receiver. Round the ring the starts cancel out: the mean of the durations is
 * T, without a common clock and whoever was late. Sends larger than NCCL's
 * buffer wait for their receiver; there the shortest duration is T.
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
    int64_t *rings;              /* what some of them point into */
};

/* Returns 0, or -1 without memory. */
int ct_samples_gather(const struct ct_trace *trace, const struct ct_job *job,
                      struct ct_sample_set *set);
void ct_samples_release(struct ct_sample_set *set);

/* Replaces the samples of usages that are exchanges. 0, or -1 without memory.
 */
int ct_samples_from_rings(const struct ct_trace *trace,
                          const struct ct_job *job, struct ct_sample_set *set);

#endif
