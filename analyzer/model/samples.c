#include "model/samples.h"

#include <stdlib.h>

int ct_samples_gather(const struct ct_trace *trace, const struct ct_job *job,
                      struct ct_sample_set *set)
{
    *set = (struct ct_sample_set){
        .of_usage = calloc((size_t)job->nusages + 1, sizeof *set->of_usage)};
    if (!set->of_usage)
        return -1;
    for (int u = 0; u < job->nusages; u++)
        set->of_usage[u] = (struct ct_samples){job->usages[u].samples,
                                               job->usages[u].nsamples, false};
    if (ct_samples_from_rings(trace, job, set) == 0)
        return 0;
    ct_samples_release(set);
    return -1;
}

void ct_samples_release(struct ct_sample_set *set)
{
    free(set->of_usage);
    free(set->rings);
    *set = (struct ct_sample_set){0};
}
