#include "model/model.h"

#include <math.h>
#include <stdlib.h>

#include "model/curve.h"
#include "model/fit.h"
#include "model/nccl.h"
#include "trace/links.h"

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

struct times { /* us, per usage */
    double *located, *error, *nccl;
};

/* Time of usages of one key and size: from transfers that are fit for fits
 * where there are any, else the median of whatever was timed. */
static void observe(const struct ct_job *job, const struct ct_sample_set *set,
                    const double *located_us, const int *order, int n,
                    struct ct_prediction *row)
{
    double fit = 0, any = 0;
    int64_t nfit = 0, nany = 0, apart = 0;

    for (int i = 0; i < n; i++) {
        const struct ct_usage *usage = &job->usages[order[i]];
        const double us = located_us[order[i]];

        if (!isnan(us)) {
            fit += us * (double)set->of_usage[order[i]].n;
            nfit += set->of_usage[order[i]].n;
        }
        if (usage->median_ns != CT_NO_TIME) {
            any += (double)usage->median_ns / 1e3 * (double)usage->calls;
            nany += usage->calls;
        }
        apart += usage->apart;
    }
    row->samples = nfit;
    row->apart = nfit == 0 && apart > 0;
    row->observed_us = NAN;
    if (nfit > 0)
        row->observed_us = fit / (double)nfit;
    else if (nany > 0)
        row->observed_us = any / (double)nany;
}

/* Communicators of one size may differ in what NCCL expects of them. */
static double nccl_us(const struct ct_job *job, const double *us,
                      const int *order, int n)
{
    double sum = 0, calls = 0;

    for (int i = 0; i < n; i++) {
        const double weight = (double)job->usages[order[i]].calls;

        if (isnan(us[order[i]]))
            continue;
        sum += us[order[i]] * weight;
        calls += weight;
    }
    return calls > 0 ? sum / calls : NAN;
}

static void predict(const struct ct_job *job, const struct ct_sample_set *set,
                    const struct times *times, const struct ct_fit *fit,
                    const int *order, int n, struct ct_prediction *row)
{
    const struct ct_usage *usage = &job->usages[order[0]];

    *row = (struct ct_prediction){.link = fit->link,
                                  .base = fit->base,
                                  .nranks = fit->nranks,
                                  .bytes = usage->bytes};
    for (int i = 0; i < n; i++)
        row->calls += job->usages[order[i]].calls;
    observe(job, set, times->located, order, n, row);
    row->fit_us = ct_fit_us(fit, (double)row->bytes, NULL);
    row->prior_us = ct_model_prior_us(fit->link, fit->speed, fit->base,
                                      fit->nranks, row->bytes);
    row->nccl_us = nccl_us(job, times->nccl, order, n);
    row->algbw_GBps = (double)row->bytes / (row->observed_us * 1e3);
    row->busbw_GBps = row->algbw_GBps * ct_wire_factor(fit->base, fit->nranks);
}

/* CT_NONE: not known of any. */
static int64_t slowest(const struct ct_job *job, const int *order, int n)
{
    int64_t speed = CT_NONE;

    for (int i = 0; i < n; i++)
        speed = ct_slower(speed, job->usages[order[i]].speed);
    return speed;
}

static bool add_key(struct ct_model *model, const struct ct_job *job,
                    const struct ct_sample_set *set, const struct times *times,
                    const int *order, int n)
{
    const struct ct_curve_key key = ct_curve_key(job, &job->usages[order[0]]);
    struct ct_fit *fit = &model->fits[model->nfits];
    int k;

    *fit = (struct ct_fit){.link = key.link,
                           .speed = slowest(job, order, n),
                           .base = key.base,
                           .nranks = key.nranks};
    fit->points =
        ct_curve_points(job, set, order, n, &fit->npoints, &fit->samples);
    if (!fit->points)
        return false;
    model->nfits++;
    ct_fit_points(fit);
    fit->why = fit->words;
    for (int i = 0; i < n; i += k) {
        k = same_bytes(job, order + i, n - i);
        predict(job, set, times, fit, order + i, k,
                &model->predictions[model->npredictions++]);
    }
    return true;
}

static bool locate(const struct ct_job *job, const struct ct_sample_set *set,
                   double *us, double *relative_error)
{
    for (int u = 0; u < job->nusages; u++) {
        struct ct_point point;

        if (!ct_curve_point(job, set, &u, 1, &point))
            return false;
        us[u] = point.us;
        relative_error[u] =
            1.25 * point.spread / sqrt((double)(point.n > 0 ? point.n : 1));
    }
    return true;
}

int ct_model_locate(const struct ct_trace *trace, const struct ct_job *job,
                    double *us, double *relative_error)
{
    struct ct_sample_set set;
    bool good;

    if (ct_samples_gather(trace, job, &set) != 0)
        return -1;
    good = locate(job, &set, us, relative_error);
    ct_samples_release(&set);
    return good ? 0 : -1;
}

static bool add_keys(struct ct_model *model, const struct ct_job *job,
                     const struct ct_sample_set *set, const struct times *times,
                     const int *order, int n)
{
    int k;

    model->fits = calloc((size_t)n + 1, sizeof *model->fits);
    model->predictions = calloc((size_t)n + 1, sizeof *model->predictions);
    if (!model->fits || !model->predictions)
        return false;
    for (int i = 0; i < n; i += k) {
        k = same_key(job, order + i, n - i);
        if (!add_key(model, job, set, times, order + i, k))
            return false;
    }
    return true;
}

struct ct_model *ct_model_build(const struct ct_trace *trace,
                                const struct ct_job *job)
{
    const size_t room = (size_t)job->nusages + 1;
    struct ct_model *model = calloc(1, sizeof *model);
    double *us = malloc(3 * room * sizeof *us);
    const struct times times = {us, us + room, us + 2 * room};
    struct ct_sample_set set = {0};
    int *order = NULL;
    const int n = ct_curve_order(job, &order);

    if (!model || !us || n < 0 || ct_samples_gather(trace, job, &set) != 0 ||
        !locate(job, &set, times.located, times.error) ||
        ct_nccl_locate(trace, job, times.nccl) != 0 ||
        !add_keys(model, job, &set, &times, order, n)) {
        ct_model_free(model);
        model = NULL;
    }
    ct_samples_release(&set);
    free(us);
    free(order);
    return model;
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
