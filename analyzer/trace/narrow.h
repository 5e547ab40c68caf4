/*
 * A part of a job: what was called in some of its steps, in some time, by some
 * of its ranks. What the job is has been found from all of it before; from then
 * on only the chosen ops count.
 */
#ifndef COMMTRACE_NARROW_H
#define COMMTRACE_NARROW_H

#include "trace/trace.h"

struct ct_selection {
    int first_step, last_step; /* of each process; first CT_NONE: all */
    /* Called at such a time of the job, [from, to); CT_NO_TIME: open. */
    int64_t from_ns, to_ns;
    int nranks;       /* 0: all */
    const int *ranks; /* ascending */
};

/* When ns of process p was, since the job's first process began to record, on
 * the common time of its clock. Clocks that are not tied are put together by
 * their hosts' CLOCK_REALTIME. */
struct ct_job_clock;
struct ct_job_clock *ct_job_clock_new(const struct ct_trace *trace,
                                      const struct ct_job *job);
int64_t ct_job_time(const struct ct_job_clock *clock,
                    const struct ct_process *p, int64_t ns);
/* CLOCK_REALTIME of its 0, on the host of that first process. */
int64_t ct_job_start_real(const struct ct_job_clock *clock);
void ct_job_clock_free(struct ct_job_clock *clock);

/* Take out of job what selection does not hold: by steps and time, by ranks.
 * Steps that are not whole then are CT_STEP_CUT; processes of other ranks are
 * left_out. Communicators, members, transfers and losses stay; of instances
 * that have lost ranks the waits are of those that are left. Returns the old
 * index of each usage that is left; the caller frees. */
int *ct_narrow_time(struct ct_trace *trace, struct ct_job *job,
                    const struct ct_selection *selection);
int *ct_narrow_ranks(struct ct_trace *trace, struct ct_job *job,
                     const struct ct_selection *selection);

#endif
