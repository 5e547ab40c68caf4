#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include "model/curve.h"
#include "model/fit.h"

static int same_key(const struct ct_job *job, const int *order, int n)
{
    const struct ct_curve_key first = ct_curve_key(job, &job->usages[order[0]]);
    int k = 1;

    while (k < n) {
        const struct ct_curve_key key =
            ct_curve_key(job, &job->usages[order[k]]);

        if (ct_curve_key_cmp(&key, &first) != 0)
            break;
        k++;
    }
    return k;
}

static int same_bytes(const struct ct_job *job, const int *order, int n)
{
    int k = 1;

    while (k < n && job->usages[order[k]].bytes == job->usages[order[0]].bytes)
        k++;
    return k;
}

/* Median of exchanges, which are sorted, else of the usage. */
static double median_us(const struct ct_usage *usage,
                        const struct ct_samples *samples)
{
    if (samples->exchanges)
        return (double)samples->ns[samples->n / 2] / 1e3;
    return usage->median_ns == CT_NO_TIME ? NAN
                                          : (double)usage->median_ns / 1e3;
}

/* Median time of usages of one key and size: from transfers that were timed
 * alone where there are any, else from whatever was timed. */
static double observed_us(const struct ct_job *job,
                          const struct ct_sample_set *set, const int *order,
                          int n)
{
    double alone = 0, any = 0;
    int64_t nalone = 0, nany = 0;

    for (int i = 0; i < n; i++) {
        const struct ct_usage *usage = &job->usages[order[i]];
        const struct ct_samples *samples = &set->of_usage[order[i]];
        const double us = median_us(usage, samples);

        if (isnan(us))
            continue;
        alone += us * (double)samples->n;
        nalone += samples->n;
        any += us * (double)usage->calls;
        nany += usage->calls;
    }
    if (nalone > 0)
        return alone / (double)nalone;
    return nany > 0 ? any / (double)nany : NAN;
}

static void predict(const struct ct_job *job, const struct ct_sample_set *set,
                    const struct ct_fit *fit, const int *order, int n,
                    struct ct_prediction *row)
{
    const struct ct_usage *usage = &job->usages[order[0]];

    *row = (struct ct_prediction){.link = fit->link,
                                  .base = fit->base,
                                  .nranks = fit->nranks,
                                  .bytes = usage->bytes};
    for (int i = 0; i < n; i++)
        row->calls += job->usages[order[i]].calls;
    row->observed_us = observed_us(job, set, order, n);
    row->fit_us = ct_fit_us(fit, (double)row->bytes, NULL);
    row->prior_us =
        ct_model_prior_us(fit->link, fit->base, fit->nranks, row->bytes);
    row->algbw_GBps = (double)row->bytes / (row->observed_us * 1e3);
    row->busbw_GBps = row->algbw_GBps * ct_wire_factor(fit->base, fit->nranks);
}

static bool add_key(struct ct_model *model, const struct ct_job *job,
                    const struct ct_sample_set *set, const int *order, int n)
{
    const struct ct_curve_key key = ct_curve_key(job, &job->usages[order[0]]);
    struct ct_fit *fit = &model->fits[model->nfits];
    int k;

    *fit = (struct ct_fit){
        .link = key.link, .base = key.base, .nranks = key.nranks};
    fit->points =
        ct_curve_points(job, set, order, n, &fit->npoints, &fit->samples);
    if (!fit->points)
        return false;
    model->nfits++;
    ct_fit_points(fit);
    fit->why = fit->words;
    for (int i = 0; i < n; i += k) {
        k = same_bytes(job, order + i, n - i);
        predict(job, set, fit, order + i, k,
                &model->predictions[model->npredictions++]);
    }
    return true;
}

struct ct_model *ct_model_build(const struct ct_trace *trace,
                                const struct ct_job *job)
{
    struct ct_model *model = calloc(1, sizeof *model);
    struct ct_sample_set set = {0};
    int *order = NULL;
    int n, k;

    if (!model)
        return NULL;
    n = ct_curve_order(job, &order);
    if (n < 0 || ct_samples_gather(trace, job, &set) != 0)
        goto err;
    model->fits = calloc((size_t)n + 1, sizeof *model->fits);
    model->predictions = calloc((size_t)n + 1, sizeof *model->predictions);
    if (!model->fits || !model->predictions)
        goto err;
    for (int i = 0; i < n; i += k) {
        k = same_key(job, order + i, n - i);
        if (!add_key(model, job, &set, order + i, k))
            goto err;
    }
    ct_samples_release(&set);
    free(order);
    return model;
err:
    ct_samples_release(&set);
    free(order);
    ct_model_free(model);
    return NULL;
}

void ct_model_free(struct ct_model *model)
{
    if (!model)
        return;
    for (int i = 0; i < model->nfits; i++)
        free(model->fits[i].points);
    free(model->fits);
    free(model->predictions);
    free(model);
}
