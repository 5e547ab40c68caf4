#include "model/curve.h"

#include <math.h>
#include <stdlib.h>

#include "model/fit.h"

#define SAME_SIZE 1.02    /* sizes within 2 % are one size */
#define MOST_SAMPLES 4096 /* per size; more are thinned evenly */

struct ct_curve_key ct_curve_key(const struct ct_job *job,
                                 const struct ct_usage *usage)
{
    struct ct_curve_key key = {usage->link, usage->base,
                               job->comms[usage->comm].nranks};

    if (ct_is_p2p(usage->base)) {
        key.base = CT_OP_SEND;
        key.nranks = 2;
    }
    return key;
}

int ct_curve_key_cmp(const struct ct_curve_key *a, const struct ct_curve_key *b)
{
    if (a->link != b->link)
        return a->link < b->link ? -1 : 1;
    if (a->base != b->base)
        return a->base < b->base ? -1 : 1;
    return (a->nranks > b->nranks) - (a->nranks < b->nranks);
}

struct order_entry {
    struct ct_curve_key key;
    uint64_t bytes;
    int usage;
};

static int compare_entries(const void *pa, const void *pb)
{
    const struct order_entry *a = pa;
    const struct order_entry *b = pb;
    const int by_key = ct_curve_key_cmp(&a->key, &b->key);

    if (by_key != 0)
        return by_key;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->usage - b->usage;
}

/* A put's time is only a bound. */
static bool is_modelled(const struct ct_job *job, const struct ct_usage *usage)
{
    return usage->comm >= 0 && usage->bytes > 0 && usage->calls > 0 &&
           ct_op_infos[usage->base].cls != CT_ONE_SIDED &&
           job->comms[usage->comm].nranks > 1;
}

int ct_curve_order(const struct ct_job *job, int **order_p)
{
    const size_t room = (size_t)job->nusages + 1;
    struct order_entry *entries = malloc(room * sizeof *entries);
    int *order = malloc(room * sizeof *order);
    int n = 0;

    if (!entries || !order) {
        free(entries);
        free(order);
        return -1;
    }
    for (int i = 0; i < job->nusages; i++) {
        const struct ct_usage *usage = &job->usages[i];

        if (is_modelled(job, usage))
            entries[n++] =
                (struct order_entry){ct_curve_key(job, usage), usage->bytes, i};
    }
    qsort(entries, (size_t)n, sizeof *entries, compare_entries);
    for (int i = 0; i < n; i++)
        order[i] = entries[i].usage;
    free(entries);
    *order_p = order;
    return n;
}

/* Appends every stride-th of samples to us. */
static int64_t pool(const struct ct_samples *samples, int64_t stride,
                    double *us, int64_t n)
{
    for (int64_t i = 0; i < samples->n; i += stride)
        us[n++] = (double)samples->ns[i] / 1e3;
    return n;
}

/* The usages order[0..n) that have the size of the first of them. */
static int same_size(const struct ct_job *job, const int *order, int n)
{
    const double first = (double)job->usages[order[0]].bytes;
    int k = 1;

    while (k < n && (double)job->usages[order[k]].bytes <= first * SAME_SIZE)
        k++;
    return k;
}

/* Whether a point rests on exchanges: they need no clock, so where there are
 * any, send/recv that were placed by clocks are left out. */
static bool has_exchanges(const struct ct_sample_set *set, const int *order,
                          int k)
{
    for (int i = 0; i < k; i++)
        if (set->of_usage[order[i]].exchanges)
            return true;
    return false;
}

bool ct_curve_point(const struct ct_job *job, const struct ct_sample_set *set,
                    const int *order, int k, struct ct_point *point)
{
    const bool exchanges = has_exchanges(set, order, k);
    int64_t total = 0, kept = 0;
    double weighted = 0;
    double *us;

    for (int i = 0; i < k; i++) {
        const struct ct_samples *samples = &set->of_usage[order[i]];

        if (samples->exchanges != exchanges)
            continue;
        total += samples->n;
        weighted += (double)job->usages[order[i]].bytes * (double)samples->n;
    }
    *point = (struct ct_point){0, NAN, NAN, total};
    if (total == 0)
        return true;
    us = malloc((size_t)(MOST_SAMPLES * 2 + k) * sizeof *us);
    if (!us)
        return false;
    for (int i = 0; i < k; i++)
        if (set->of_usage[order[i]].exchanges == exchanges)
            kept = pool(&set->of_usage[order[i]], total / MOST_SAMPLES + 1, us,
                        kept);
    point->bytes = weighted / (double)total;
    point->us = ct_location(us, kept, &point->spread);
    free(us);
    return true;
}

struct ct_point *ct_curve_points(const struct ct_job *job,
                                 const struct ct_sample_set *set,
                                 const int *order, int n, int *npoints_p,
                                 int64_t *samples_p)
{
    struct ct_point *points = malloc((size_t)n * sizeof *points);
    int npoints = 0, k;
    int64_t samples = 0;

    if (!points)
        return NULL;
    for (int i = 0; i < n; i += k) {
        struct ct_point point;

        k = same_size(job, order + i, n - i);
        if (!ct_curve_point(job, set, order + i, k, &point)) {
            free(points);
            return NULL;
        }
        if (point.n > 0 && point.us > 0) {
            points[npoints++] = point;
            samples += point.n;
        }
    }
    *npoints_p = npoints;
    *samples_p = samples;
    return points;
}
