#include "findings/price.h"

#include <math.h>
#include <stdlib.h>

#define NINETY_PERCENT 1.64 /* standard errors */
#define PRIOR_HOLDS 3.0     /* observed over prior, at most */
/* Relative errors of a time without samples, */
#define USUAL_ERROR .1
#define APART_ERROR .5 /* and where it may be half of the transfer */

bool ct_price_times(struct ct_case *c)
{
    const size_t room = (size_t)c->job->nusages + 1;

    if (c->located_us)
        return true;
    c->located_us = malloc(room * sizeof *c->located_us);
    c->located_error = malloc(room * sizeof *c->located_error);
    return c->located_us && c->located_error &&
           ct_model_locate(c->trace, c->job, c->located_us, c->located_error) ==
               0;
}

double ct_price_calls(const struct ct_job *job, const struct ct_usage *usage)
{
    if (job->nsteps > 0)
        return usage->per_step;
    return job->span_ns > 0 ? (double)usage->calls / (double)job->span_ns * 1e9
                            : 0;
}

double ct_price_observed_us(const struct ct_case *c, int usage, double *error_p)
{
    const struct ct_usage *u = &c->job->usages[usage];
    const double us = (double)u->median_ns / 1e3;

    if (!isnan(c->located_us[usage])) {
        *error_p = c->located_us[usage] * c->located_error[usage];
        return c->located_us[usage];
    }
    if (u->median_ns == CT_NO_TIME)
        return NAN;
    *error_p = us * (u->apart ? APART_ERROR : USUAL_ERROR);
    return us;
}

double ct_price_doubt(const struct ct_case *c, const struct ct_usage *usage,
                      double us)
{
    const double prior =
        ct_model_prior_us(usage->link, usage->speed, usage->base,
                          c->job->comms[usage->comm].nranks, usage->bytes);
    const double off = us / prior;

    return off > PRIOR_HOLDS ? off : 1;
}

struct sum {
    double calls, observed_us, predicted_us;
    double observed_var, predicted_error; /* us^2; us */
    enum ct_source source;
    bool doubted;
};

static void add(const struct ct_case *c, int id,
                const struct ct_link_fact *better, struct sum *sum)
{
    const struct ct_usage *usage = &c->job->usages[id];
    const double calls = ct_price_calls(c->job, usage);
    double error = 0, relative_error = 0;
    const double us = ct_price_observed_us(c, id, &error);
    enum ct_source source;

    if (!(calls > 0) || isnan(us))
        return;
    const double then =
        ct_model_over_us(c->model, c->reference, better->link, better->speed,
                         usage->base, c->job->comms[usage->comm].nranks,
                         usage->bytes, &source, &relative_error);

    if (isnan(then) ||
        (source == CT_SOURCE_PRIOR && ct_price_doubt(c, usage, us) > 1))
        sum->doubted = true;
    sum->calls += calls;
    sum->observed_us += calls * us;
    sum->observed_var += pow(calls * error, 2);
    sum->predicted_us += calls * then;
    sum->predicted_error += calls * then * relative_error;
    if (source > sum->source) /* as good as its weakest part */
        sum->source = source;
}

double ct_price_link(const struct ct_case *c, int comm, enum ct_link link,
                     const struct ct_link_fact *better,
                     struct ct_finding_row *row)
{
    struct sum sum = {.source = CT_SOURCE_FIT};
    double lost, error;

    row->per = c->job->nsteps > 0 ? "step" : "second";
    for (int i = 0; i < c->job->nusages; i++)
        if (c->job->usages[i].comm == comm && c->job->usages[i].link == link)
            add(c, i, better, &sum);
    lost = sum.observed_us - sum.predicted_us;
    error = NINETY_PERCENT * hypot(sqrt(sum.observed_var), sum.predicted_error);
    if (!(lost > 0) || sum.doubted)
        return sum.calls;
    row->source = sum.source;
    row->observed_ms = sum.observed_us / 1e3;
    row->predicted_ms = sum.predicted_us / 1e3;
    row->loss_ms = lost / 1e3;
    row->loss_low_ms = fmax(lost - error, 0) / 1e3;
    row->loss_high_ms = (lost + error) / 1e3;
    return sum.calls;
}
