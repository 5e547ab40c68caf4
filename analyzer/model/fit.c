#include "model/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Relative least squares with Huber weights: a size counts by how far the line
 * misses it in percent, so that 1 KiB has its say beside 1 GiB. What may be
 * called measured follows from phi = alpha / t per size: the determinant of the
 * normal equations is n^2 Var(phi), so sizes whose latency share is alike
 * cannot tell alpha from beta.
 */
#define ROUNDS 30
#define HUBER 1.345     /* 95 % efficiency on normal residuals */
#define LEAST_SPREAD .1 /* of phi, below it sizes are alike */
#define SURE .25        /* relative standard error of a measured value */
#define MISS_MEDIAN .10 /* relative residuals of a curve that is no line */
#define MISS_MOST .20
#define INVISIBLE .05    /* share of t that may be left unmeasured */
#define PRIOR_ERROR .35  /* relative, of the table in links.def */
#define LEAST_NOISE .003 /* no clock is better */

static int compare_doubles(const void *pa, const void *pb)
{
    const double a = *(const double *)pa;
    const double b = *(const double *)pb;

    return (a > b) - (a < b);
}

static double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct line {
    double a, b; /* us, us per byte */
};

/* Minimises sum w (a + b S - t)^2 with a, b >= 0. */
static struct line solve(const struct ct_point *p, const double *w, int n)
{
    double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0;

    for (int i = 0; i < n; i++) {
        s0 += w[i];
        s1 += w[i] * p[i].bytes;
        s2 += w[i] * p[i].bytes * p[i].bytes;
        t0 += w[i] * p[i].us;
        t1 += w[i] * p[i].us * p[i].bytes;
    }
    const double det = s0 * s2 - s1 * s1;

    if (det > 1e-12 * s0 * s2) {
        const struct line line = {(s2 * t0 - s1 * t1) / det,
                                  (s0 * t1 - s1 * t0) / det};

        if (line.a >= 0 && line.b >= 0)
            return line;
        if (line.b < 0)
            return (struct line){t0 / s0, 0};
    }
    return (struct line){0, t1 / s2};
}

static double residual(const struct line *line, const struct ct_point *p)
{
    return (line->a + line->b * p->bytes) / p->us - 1;
}

/* Robust scale of the relative residuals. scratch holds n. */
static double scale_of(const struct line *line, const struct ct_point *p, int n,
                       double *scratch)
{
    for (int i = 0; i < n; i++)
        scratch[i] = fabs(residual(line, &p[i]));
    return fmax(1.4826 * median_of(scratch, n), LEAST_NOISE);
}

static double base_weight(const struct ct_point *p)
{
    return sqrt((double)p->n) / (p->us * p->us);
}

static struct line fit_line(const struct ct_point *p, int n, double *w,
                            double *scratch)
{
    struct line line;

    for (int i = 0; i < n; i++)
        w[i] = base_weight(&p[i]);
    line = solve(p, w, n);
    for (int round = 0; round < ROUNDS; round++) {
        const double limit = HUBER * scale_of(&line, p, n, scratch);

        for (int i = 0; i < n; i++) {
            const double miss = fabs(residual(&line, &p[i]));

            w[i] = base_weight(&p[i]) * (miss > limit ? limit / miss : 1);
        }
        line = solve(p, w, n);
    }
    return line;
}

/* Relative standard error of a point's location. */
static double point_error(const struct ct_point *p)
{
    return fmax(1.25 * p->spread / sqrt((double)p->n), LEAST_NOISE);
}

/* Relative noise of a size: what the line leaves, at least what the samples
 * themselves scatter. */
static double noise_of(const struct line *line, const struct ct_point *p, int n)
{
    double left = 0, own = 0;

    for (int i = 0; i < n; i++) {
        const double r = residual(line, &p[i]);
        const double e = point_error(&p[i]);

        left += r * r;
        own += e * e;
    }
    left = n > 2 ? left / (n - 2) : 0;
    return sqrt(fmax(left, own / n));
}

/* Covariance of a and b: noise^2 times the inverse normal matrix of relative
 * residuals. */
static void covariance(struct ct_fit *fit, double noise)
{
    double aa = 0, ab = 0, bb = 0;

    for (int i = 0; i < fit->npoints; i++) {
        const double x = 1 / fit->points[i].us;
        const double y = fit->points[i].bytes / fit->points[i].us;

        aa += x * x;
        ab += x * y;
        bb += y * y;
    }
    const double det = aa * bb - ab * ab;

    if (!(det > 1e-12 * aa * bb)) {
        fit->var_aa = fit->var_ab = fit->var_bb = NAN;
        return;
    }
    fit->var_aa = noise * noise * bb / det;
    fit->var_ab = -noise * noise * ab / det;
    fit->var_bb = noise * noise * aa / det;
}

struct shape { /* what the points say about a line */
    double phi_mean, phi_spread;
    double miss_median, miss_most; /* most: beyond 3 errors of the point */
    double miss_largest;
    double a_error, b_error;
};

static struct shape shape_of(const struct ct_fit *fit, const struct line *line,
                             double *scratch)
{
    const int n = fit->npoints;
    struct shape shape = {0};
    double squares = 0;

    for (int i = 0; i < n; i++) {
        const struct ct_point *p = &fit->points[i];
        const double phi = line->a / (line->a + line->b * p->bytes);
        const double miss = fabs(residual(line, p));

        shape.phi_mean += phi / n;
        squares += phi * phi / n;
        scratch[i] = miss;
        shape.miss_largest = fmax(shape.miss_largest, miss);
        shape.miss_most = fmax(shape.miss_most, miss - 3 * point_error(p));
    }
    shape.phi_spread = sqrt(fmax(0, squares - shape.phi_mean * shape.phi_mean));
    shape.miss_median = median_of(scratch, n);
    shape.a_error = line->a > 0 ? sqrt(fit->var_aa) / line->a : INFINITY;
    shape.b_error = line->b > 0 ? sqrt(fit->var_bb) / line->b : INFINITY;
    return shape;
}

static void say(struct ct_fit *fit, enum ct_fit_quality quality,
                const char *words)
{
    fit->quality = quality;
    if (words != fit->words)
        snprintf(fit->words, sizeof fit->words, "%s", words);
    if (quality == CT_FIT_PRIOR)
        fit->line_us = fit->line_us_per_byte = NAN;
    if (quality == CT_FIT_FULL || quality == CT_FIT_LAT_ONLY)
        fit->alpha_us = fit->line_us;
    if (quality == CT_FIT_FULL || quality == CT_FIT_BW_ONLY)
        fit->algbw_GBps = 1e-3 / fit->line_us_per_byte;
}

/* One size, or sizes that cannot be told apart and fit no line: only where the
 * prior agrees with what was seen may its small part be taken from it. */
static void lean_on_prior(struct ct_fit *fit)
{
    const struct ct_point *p = &fit->points[fit->npoints - 1];
    const double prior = ct_model_prior_us(fit->link, fit->speed, fit->base,
                                           fit->nranks, (uint64_t)p->bytes);
    const double latency =
        ct_model_prior_us(fit->link, fit->speed, fit->base, fit->nranks, 0);
    const bool agrees =
        p->us > prior / 2 && p->us < prior * 2 && point_error(p) <= SURE;

    fit->var_aa = fit->var_ab = 0;
    if (agrees && latency < INVISIBLE * p->us) {
        fit->line_us = latency;
        fit->line_us_per_byte = (p->us - latency) / p->bytes;
        fit->algbw_se = fmax(point_error(p), INVISIBLE / 2);
        fit->var_bb = pow(fit->algbw_se * fit->line_us_per_byte, 2);
        say(fit, CT_FIT_BW_ONLY,
            "one size, at which the prior's latency is below 5 % of the time");
    } else if (agrees && prior - latency < INVISIBLE * p->us) {
        fit->line_us_per_byte = (prior - latency) / p->bytes;
        fit->line_us = p->us - (prior - latency);
        fit->alpha_se = fmax(point_error(p), INVISIBLE / 2);
        fit->var_aa = pow(fit->alpha_se * fit->line_us, 2);
        fit->var_bb = pow(PRIOR_ERROR * fit->line_us_per_byte, 2);
        say(fit, CT_FIT_LAT_ONLY,
            "one size, at which the prior's transfer is below 5 % of the time");
    } else {
        say(fit, CT_FIT_PRIOR,
            isnan(prior) ? "one size, over a link that is not known"
            : agrees ? "one size: latency and bandwidth cannot be told apart"
            : point_error(p) > SURE
                ? "one size, and its times differ too much to mean anything"
                : "one size, and its time is far from the prior: latency "
                  "and bandwidth cannot be told apart");
    }
}

static void judge_alike(struct ct_fit *fit, const struct shape *shape)
{
    if (shape->b_error <= SURE && shape->phi_mean < .5) {
        fit->algbw_se = shape->b_error;
        snprintf(fit->words, sizeof fit->words,
                 "%d sizes, all with a small share of latency (%.0f %%)",
                 fit->sizes, 100 * shape->phi_mean);
        say(fit, CT_FIT_BW_ONLY, fit->words);
    } else if (shape->a_error <= SURE && shape->phi_mean >= .5) {
        fit->alpha_se = shape->a_error;
        snprintf(fit->words, sizeof fit->words,
                 "%d sizes, all mostly latency (%.0f %%)", fit->sizes,
                 100 * shape->phi_mean);
        say(fit, CT_FIT_LAT_ONLY, fit->words);
    } else {
        snprintf(fit->words, sizeof fit->words,
                 "%d sizes too alike to tell latency from bandwidth",
                 fit->sizes);
        say(fit, CT_FIT_PRIOR, fit->words);
    }
}

static void judge(struct ct_fit *fit, const struct shape *shape)
{
    fit->residual = shape->miss_median;
    if (shape->miss_median > MISS_MEDIAN || shape->miss_most > MISS_MOST) {
        snprintf(fit->words, sizeof fit->words,
                 "no single line describes the %d sizes: it misses one by "
                 "%.0f %%",
                 fit->sizes, 100 * shape->miss_largest);
        say(fit, CT_FIT_PRIOR, fit->words);
        return;
    }
    if (shape->phi_spread < LEAST_SPREAD || shape->a_error > SURE ||
        shape->b_error > SURE) {
        judge_alike(fit, shape);
        return;
    }
    fit->alpha_se = shape->a_error;
    fit->algbw_se = shape->b_error;
    snprintf(fit->words, sizeof fit->words,
             "%d sizes with %.0f to %.0f %% latency%s", fit->sizes,
             100 * fit->line_us / fit->points[fit->npoints - 1].us,
             fmin(100, 100 * fit->line_us / fit->points[0].us),
             fit->sizes == 2 ? "; two sizes leave no check" : "");
    say(fit, CT_FIT_FULL, fit->words);
}

void ct_fit_points(struct ct_fit *fit)
{
    const int n = fit->npoints;
    double *w = malloc((size_t)(n + 1) * 2 * sizeof *w);

    fit->sizes = n;
    fit->alpha_us = fit->algbw_GBps = NAN;
    fit->alpha_se = fit->algbw_se = fit->residual = NAN;
    fit->line_us = fit->line_us_per_byte = NAN;
    fit->var_aa = fit->var_ab = fit->var_bb = NAN;
    if (n == 0 || !w) {
        say(fit, CT_FIT_PRIOR,
            n == 0 ? "no call was fit to time a transfer" : "out of memory");
    } else if (n == 1) {
        fit->residual = 0;
        lean_on_prior(fit);
    } else {
        const struct line line = fit_line(fit->points, n, w, w + n);

        fit->line_us = line.a;
        fit->line_us_per_byte = line.b;
        covariance(fit, noise_of(&line, fit->points, n));
        const struct shape shape = shape_of(fit, &line, w);

        judge(fit, &shape);
    }
    free(w);
}

double ct_fit_us(const struct ct_fit *fit, double bytes,
                 double *relative_error_p)
{
    const double us = fit->line_us + fit->line_us_per_byte * bytes;
    const double variance =
        fit->var_aa + 2 * bytes * fit->var_ab + bytes * bytes * fit->var_bb;

    if (relative_error_p)
        *relative_error_p = us > 0 ? sqrt(fmax(variance, 0)) / us : NAN;
    return us;
}
