#include <math.h>
#include <stdlib.h>

#include "model/samples.h"

#define MOST_SKEW .6    /* of the shortest duration; beyond it kappa bends */
#define LEAST_SHARE .05 /* of the calls that must be within */
#define LEAST_CALLS 3
#define ENOUGH 15 /* calls from which the first ones are left out */
#define WARM_UP 2
#define REGRESSION_CALLS 12
#define REGRESSION_RANGE .1 /* of skews, relative to the shortest duration */
#define MOST_KAPPA .65
#define UNKNOWN_KAPPA .25 /* between latency's and bandwidth's */

struct call {
    double shortest, skew; /* ns, over the ranks */
};

static int compare_skews(const void *pa, const void *pb)
{
    const struct call *a = pa;
    const struct call *b = pb;

    if (a->skew != b->skew)
        return a->skew < b->skew ? -1 : 1;
    return (a->shortest > b->shortest) - (a->shortest < b->shortest);
}

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* n-1 steps round the ring: who comes late finds all of its peers' bytes there,
 * and its own duration says nothing of the transfer. */
static bool is_one_way(enum ct_op base)
{
    return base == CT_OP_ALL_GATHER || base == CT_OP_REDUCE_SCATTER;
}

static bool lets_late_ranks_gain(enum ct_op base, int nranks)
{
    return nranks > 2 || is_one_way(base);
}

/* Median slope between the calls of the less skewed half and those of the
 * other (calls are in order of skew). slopes holds n / 2. */
static double regress(const struct call *calls, int n, double *slopes)
{
    const int half = n / 2;
    int k = 0;

    for (int i = 0; i < half; i++) {
        const struct call *near = &calls[i], *far = &calls[n - half + i];

        if (far->skew > near->skew)
            slopes[k++] =
                (near->shortest - far->shortest) / (far->skew - near->skew);
    }
    if (k == 0)
        return 0;
    qsort(slopes, (size_t)k, sizeof *slopes, compare_doubles);
    return fmin(MOST_KAPPA, fmax(0, slopes[k / 2]));
}

static double kappa_of(const struct call *calls, int n, enum ct_op base,
                       int nranks, double *scratch)
{
    const double low = calls[n / 10].skew, high = calls[n - 1 - n / 10].skew;

    if (n >= REGRESSION_CALLS &&
        high - low >= REGRESSION_RANGE * calls[n / 2].shortest)
        return regress(calls, n, scratch);
    return lets_late_ranks_gain(base, nranks) ? UNKNOWN_KAPPA : 0;
}

/* Moves the n calls that are fit to the front; returns how many. */
static int pick(struct call *calls, int n)
{
    int k = 0;

    for (int i = n >= ENOUGH ? WARM_UP : 0; i < n; i++)
        if (calls[i].skew <= MOST_SKEW * calls[i].shortest)
            calls[k++] = calls[i];
    return k;
}

static void correct(const struct ct_job *job, int usage, struct call *calls,
                    int n, struct ct_sample_set *set, int64_t *ns,
                    double *scratch)
{
    const struct ct_usage *u = &job->usages[usage];
    const int k = pick(calls, n);
    double kappa;

    if (k < LEAST_CALLS || k < LEAST_SHARE * n) {
        if (is_one_way(u->base))
            set->of_usage[usage] = (struct ct_samples){NULL, 0, false};
        return;
    }
    qsort(calls, (size_t)k, sizeof *calls, compare_skews);
    kappa = kappa_of(calls, k, u->base, job->comms[u->comm].nranks, scratch);
    for (int i = 0; i < k; i++)
        ns[i] = (int64_t)(calls[i].shortest + kappa * calls[i].skew);
    set->of_usage[usage] = (struct ct_samples){ns, k, false};
}

static bool is_collective(const struct ct_job *job, int usage)
{
    const struct ct_usage *u = &job->usages[usage];

    return ct_op_infos[u->base].cls == CT_COLL && u->nsamples > 0 &&
           job->comms[u->comm].nranks > 1;
}

static bool is_sample(const struct ct_job *job, const struct ct_instance *i)
{
    return i->usage != CT_NONE && is_collective(job, i->usage) &&
           i->transfer_ns != CT_NO_TIME && i->transfer_ns > 0 && !i->grouped &&
           !i->bound && !i->mismatch;
}

static int64_t lay_out(const struct ct_job *job, int64_t *first)
{
    int64_t total = 0;

    for (int i = 0; i < job->ninstances; i++)
        if (is_sample(job, &job->instances[i]))
            first[job->instances[i].usage + 1]++;
    for (int u = 0; u <= job->nusages; u++) {
        total += first[u];
        first[u] = total;
    }
    return total;
}

static void correct_all(const struct ct_job *job, const int64_t *first,
                        int64_t *filled, struct call *calls, double *scratch,
                        struct ct_sample_set *set)
{
    for (int i = 0; i < job->ninstances; i++) {
        const struct ct_instance *instance = &job->instances[i];

        if (is_sample(job, instance))
            calls[first[instance->usage] + filled[instance->usage]++] =
                (struct call){(double)instance->transfer_ns,
                              (double)instance->wait_max_ns};
    }
    for (int u = 0; u < job->nusages; u++)
        if (filled[u] > 0)
            correct(job, u, calls + first[u], (int)filled[u], set,
                    set->collectives + first[u], scratch);
}

int ct_samples_without_skew(const struct ct_job *job, struct ct_sample_set *set)
{
    const size_t usages = (size_t)job->nusages + 2;
    int64_t *first = calloc(usages, sizeof *first);
    int64_t *filled = calloc(usages, sizeof *filled);
    struct call *calls = NULL;
    double *scratch = NULL;
    int status = -1;

    if (first && filled) {
        const size_t n = (size_t)lay_out(job, first) + 1;

        calls = calloc(n, sizeof *calls);
        scratch = malloc(n * sizeof *scratch);
        set->collectives = malloc(n * sizeof *set->collectives);
    }
    if (calls && scratch && set->collectives) {
        correct_all(job, first, filled, calls, scratch, set);
        status = 0;
    }
    free(first);
    free(filled);
    free(calls);
    free(scratch);
    return status;
}
