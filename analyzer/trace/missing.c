/*
 * Which rank of the job a member without a trace is. Only what follows is
 * said: the last one that is missing, or a member of a communicator of all
 * ranks that is known to keep their order.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"

/* The only rank of the job without a process; CT_NONE: there are more, or none,
 * or a process is several ranks. */
static int only_absent(const struct ct_trace *trace, const struct ct_job *job)
{
    int world = job->world_size, absent = CT_NONE, n = 0, i;
    bool *seen;

    if (world != job->nprocesses + 1)
        return CT_NONE;
    seen = ct_alloc((size_t)world, sizeof(*seen));
    for (i = 0; i < job->nprocesses; i++) {
        const int rank = trace->processes[job->processes[i]].rank;

        if (rank >= 0 && rank < world && !seen[rank]) {
            seen[rank] = true;
            n++;
        }
    }
    for (i = 0; i < world && n == job->nprocesses; i++)
        if (!seen[i])
            absent = i;
    free(seen);
    return absent;
}

static bool keeps_order(const struct ct_trace *trace, const struct ct_job *job,
                        const struct ct_comm *comm)
{
    int i, known = 0;

    for (i = 0; i < comm->nranks; i++) {
        const int process = comm->members[i].process;

        if (process == CT_NONE)
            continue;
        if (trace->processes[process].rank != i)
            return false;
        known++;
    }
    return comm->nranks == job->world_size && known > 1;
}

struct ct_absent ct_absent_of(const struct ct_trace *trace,
                              const struct ct_job *job, int comm)
{
    const bool in_order = keeps_order(trace, job, &job->comms[comm]);

    return (struct ct_absent){in_order,
                              in_order ? CT_NONE : only_absent(trace, job)};
}

int ct_absent_rank(const struct ct_absent *absent, int rank)
{
    return absent->in_order ? rank : absent->only;
}
