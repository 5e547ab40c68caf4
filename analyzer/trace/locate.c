#include "trace/locate.h"

#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"

/* Durations stay; what of them is transfer changes, and the wait with it. */
static void set_transfer(struct ct_instance *instance, int64_t transfer_ns)
{
    const int64_t more = transfer_ns - instance->transfer_ns;

    instance->transfer_ns = transfer_ns;
    instance->wait_sum_ns -= more * (int64_t)instance->timed;
    instance->wait_max_ns -= more;
}

void ct_trace_locate(struct ct_trace *trace, struct ct_job *job)
{
    bool *rotates = ct_alloc((size_t)job->nusages, sizeof(*rotates));
    double *ns = ct_alloc((size_t)job->ninstances, sizeof(*ns));
    int i;

    for (i = 0; i < job->ninstances; i++)
        ns[i] = NAN;
    ct_find_rotations(trace, job, rotates);
    ct_correct_skew(job, ns);
    for (i = 0; i < job->ninstances; i++) {
        struct ct_instance *instance = &job->instances[i];

        if (!ct_is_whole_collective(job, instance) || !rotates[instance->usage])
            continue;
        instance->skewed = false;
        ns[i] = ct_spread_of(instance).mean;
    }
    ct_place_meetings(trace, job, rotates, ns);
    for (i = 0; i < job->ninstances; i++)
        if (!isnan(ns[i]))
            set_transfer(
                &job->instances[i],
                (int64_t)fmin(ns[i], ct_spread_of(&job->instances[i]).mean));
    free(ns);
    free(rotates);
}
