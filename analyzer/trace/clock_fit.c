/*
 * Lines through samples of how far two clocks are apart, by medians, so that
 * what a few ops ended late by does not count: the rate is the median over
 * pairs of samples half a piece apart (Theil-Sen), the height the median of
 * what is left. Samples count by their weight. A piece is at most ten minutes
 * long, and shorter where that follows the clock better: temperature, NTP and
 * steps change rates within a run.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define PIECE_NS 600e9
#define PIECE_SAMPLES 16  /* fewest */
#define GAIN .75          /* of what is left, at most, for two instead of one */
#define RATE_SAMPLES 4    /* below, clocks are taken to run alike */
#define MESSAGE_SAMPLES 8 /* the same where messages tie them */
#define FEWEST_MESSAGES 5 /* or so few, where a line is clear: */
#define CLEAR .2          /* of what they scatter without it */
#define SURE 3            /* standard errors */
#define USUAL_RATE 2e-5   /* that crystals may be off by */
#define FEW_SAMPLES 8     /* of one kind: too few to say what it does */
#define BETTER .5         /* error of messages, to replace collectives */
#define ASYMMETRY .015    /* of both ways together */
#define NORMAL .87        /* standard deviations in what 3/4 are within */

struct point { /* a sample relative to the first one */
    double t, apart, weight;
};

struct valued {
    double value, weight;
};

struct line {
    double middle, apart, rate; /* apart at middle */
    double left;                /* weighted sum of what is left */
    double spread;              /* three quarters are no farther off */
    double rate_error;
};

struct fitting {
    struct ct_tie *tie;
    const struct point *points;
    struct valued *work; /* room for all points */
};

static int by_value(const void *left, const void *right)
{
    const struct valued *a = left, *b = right;

    return (a->value > b->value) - (a->value < b->value);
}

/* The value below which share of the weight is. */
static double quantile(struct valued *of, int n, double share)
{
    double sum = 0, at = 0;
    int i;

    qsort(of, (size_t)n, sizeof(*of), by_value);
    for (i = 0; i < n; i++)
        sum += of[i].weight;
    for (i = 0; i < n - 1; i++) {
        at += of[i].weight;
        if (at >= share * sum)
            break;
    }
    return of[i].value;
}

static double rate_of(const struct point *p, int n, struct valued *work)
{
    const int half = n / 2;
    int i, k = 0;

    for (i = 0; i + half < n; i++) {
        const struct point *a = &p[i], *b = &p[i + half];

        if (b->t > a->t)
            work[k++] = (struct valued){(b->apart - a->apart) / (b->t - a->t),
                                        fmin(a->weight, b->weight)};
    }
    return k ? quantile(work, k, .5) : 0;
}

static double distance(const struct line *line, const struct point *p)
{
    return p->apart - line->apart - line->rate * (p->t - line->middle);
}

static void set_height(struct line *line, const struct point *p, int n,
                       struct valued *work)
{
    int i;

    line->apart = 0;
    for (i = 0; i < n; i++)
        work[i] = (struct valued){distance(line, &p[i]), p[i].weight};
    line->apart = quantile(work, n, .5);
    line->left = 0;
    for (i = 0; i < n; i++) {
        const double off = fabs(distance(line, &p[i]));

        work[i] = (struct valued){off, p[i].weight};
        line->left += off * p[i].weight;
    }
    line->spread = quantile(work, n, .75);
}

/* Whether a rate is no chance: few messages may lie on any line. */
static bool is_clear(const struct fitting *f, const struct line *with,
                     const struct line *without, int n)
{
    return fabs(with->rate) >= SURE * with->rate_error &&
           (f->tie->how != CT_TIE_P2P || n >= MESSAGE_SAMPLES ||
            with->spread <= CLEAR * without->spread);
}

static struct line line_of(const struct fitting *f, const struct point *p,
                           int n)
{
    const bool messages = f->tie->how == CT_TIE_P2P;
    const double span = p[n - 1].t - p[0].t;
    struct line line = {.middle = p[0].t + span / 2, .rate_error = USUAL_RATE};
    struct line sloping = line;

    set_height(&line, p, n, f->work);
    if (n < (messages ? FEWEST_MESSAGES : RATE_SAMPLES) || span <= 0)
        return line;
    sloping.rate = rate_of(p, n, f->work);
    set_height(&sloping, p, n, f->work);
    sloping.rate_error = 5 * NORMAL * sloping.spread / (span * sqrt(n));
    if (messages) /* a few scatter by less about their own line */
        sloping.rate_error *= n / (n - 3.);
    if (is_clear(f, &sloping, &line, n))
        return sloping;
    if (!messages || n >= MESSAGE_SAMPLES)
        line.rate_error = sloping.rate_error; /* within what chance gives */
    return line;
}

static void add_line(struct fitting *f, const struct line *line, int first)
{
    struct ct_tie *tie = f->tie;
    const struct ct_tie_sample *origin = &tie->samples[0];
    struct ct_tie_line *to;

    tie->lines = ct_grow(tie->lines, &tie->line_capacity, tie->nlines,
                         sizeof(*tie->lines));
    to = &tie->lines[tie->nlines];
    *to = (struct ct_tie_line){INT64_MIN, origin->at_ns + (int64_t)line->middle,
                               origin->apart_ns + (int64_t)line->apart,
                               line->rate};
    if (tie->nlines++)
        to->from_ns =
            tie->samples[first - 1].at_ns +
            (tie->samples[first].at_ns - tie->samples[first - 1].at_ns) / 2;
    tie->rate_error = line->rate_error; /* of the last one: it goes on */
}

static void fit_range(struct fitting *f, int first, int n)
{
    const struct point *p = f->points + first;
    const struct line whole = line_of(f, p, n);
    const int half = n / 2;

    if (half >= PIECE_SAMPLES) {
        const struct line one = line_of(f, p, half);
        const struct line two = line_of(f, p + half, n - half);

        if (p[n - 1].t - p[0].t > PIECE_NS ||
            one.left + two.left < GAIN * whole.left) {
            fit_range(f, first, half);
            fit_range(f, first + half, n - half);
            return;
        }
    }
    add_line(f, &whole, first);
}

static int by_time(const void *left, const void *right)
{
    const struct ct_tie_sample *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a->apart_ns > b->apart_ns) - (a->apart_ns < b->apart_ns);
}

#define ALL (-2)

/* Distances of samples from the lines of tie, into work: of those to which the
 * ranks of one clock came last, or ALL. Returns how many. */
static int distances(const struct ct_tie *tie, const struct ct_tie *samples,
                     int last, struct valued *work)
{
    int i, line = 0, n = 0;

    for (i = 0; i < samples->nsamples; i++) {
        const struct ct_tie_sample *s = &samples->samples[i];
        const struct ct_tie_line *l;

        while (line + 1 < tie->nlines &&
               s->at_ns >= tie->lines[line + 1].from_ns)
            line++;
        l = &tie->lines[line];
        if (last == ALL || s->last == last)
            work[n++] =
                (struct valued){(double)(s->apart_ns - l->apart_ns) -
                                    l->rate * (double)(s->at_ns - l->at_ns),
                                (double)s->weight};
    }
    return n;
}

/* Chance in the middle of n samples of which 95 % are off by no more. */
static double chance(const struct ct_tie *samples, double residual_ns)
{
    double sum = 0, squares = 0;
    int i;

    for (i = 0; i < samples->nsamples; i++) {
        const double weight = (double)samples->samples[i].weight;

        sum += weight;
        squares += weight * weight;
    }
    return 2 * residual_ns * sqrt(squares) / sum;
}

/* The same of messages. Where receivers did not wait these say less, not always
 * as much; and a few scatter by less about their own middle. */
static double scatter(const struct ct_tie *messages, double residual_ns)
{
    const int n = messages->nsamples;

    return messages->waited_for && n > 2
               ? chance(messages, residual_ns) * n / (n - 2)
               : residual_ns;
}

static double residual_of(struct valued *off, int n)
{
    int i;

    for (i = 0; i < n; i++)
        off[i].value = fabs(off[i].value);
    return quantile(off, n, .95);
}

static void shift(struct ct_tie *tie, double ns)
{
    int i;

    for (i = 0; i < tie->nlines; i++)
        tie->lines[i].apart_ns += (int64_t)ns;
}

/* Three others that came last, now this one, now that. */
static bool is_varied(const struct ct_tie *tie)
{
    int seen[3], n = 0, i, k;

    for (i = 0; i < tie->nsamples && n < 3; i++) {
        for (k = 0; k < n && seen[k] != tie->samples[i].last; k++)
            ;
        if (k == n && tie->samples[i].last != CT_NONE)
            seen[n++] = tie->samples[i].last;
    }
    return n == 3;
}

/* What all ends may have in common, after it was taken out as far as that can
 * be. Who comes last ends otherwise than the others, by as much in one
 * direction as in the other; where others come last, ends differ by how far
 * those are in the ring. Where it is always the same one nobody can tell. */
static double balance(struct fitting *f)
{
    struct ct_tie *tie = f->tie;
    double of_a, of_b;
    int n = distances(tie, tie, tie->a, f->work);

    of_a = n >= FEW_SAMPLES ? quantile(f->work, n, .5) : NAN;
    n = distances(tie, tie, tie->b, f->work);
    of_b = n >= FEW_SAMPLES ? quantile(f->work, n, .5) : NAN;
    if (!isnan(of_a + of_b)) {
        shift(tie, (of_a + of_b) / 2);
        return fabs(of_a - of_b) / 4;
    }
    n = distances(tie, tie, ALL, f->work);
    return n >= 2 * FEW_SAMPLES && is_varied(tie)
               ? fmin(residual_of(f->work, n), tie->least_ns / 2)
               : tie->least_ns / 2;
}

/* How far the middle of messages both ways may be off. In a few stretches
 * receivers may always have been late on one side, and clocks may have gone
 * apart: they tell no rate. */
static double asymmetry(const struct ct_tie *messages)
{
    return messages->nsamples < RATE_SAMPLES
               ? messages->least_ns / 2 + USUAL_RATE * messages->span_ns / 2
               : ASYMMETRY * messages->least_ns;
}

static void measure(struct fitting *f)
{
    struct ct_tie *tie = f->tie;
    const bool messages = tie->how == CT_TIE_P2P;
    const double common = messages ? asymmetry(tie) : balance(f);

    tie->residual_ns = residual_of(f->work, distances(tie, tie, ALL, f->work));
    tie->error_ns =
        common + sqrt(tie->nlines) * (messages ? scatter(tie, tie->residual_ns)
                                               : chance(tie, tie->residual_ns));
}

void ct_clock_fit(struct ct_tie *tie)
{
    struct fitting f = {.tie = tie};
    struct point *points;
    int i;

    if (!tie->nsamples)
        return;
    qsort(tie->samples, (size_t)tie->nsamples, sizeof(*tie->samples), by_time);
    points = ct_alloc((size_t)tie->nsamples, sizeof(*points));
    f.work = ct_alloc((size_t)tie->nsamples, sizeof(*f.work));
    for (i = 0; i < tie->nsamples; i++)
        points[i] = (struct point){
            (double)(tie->samples[i].at_ns - tie->samples[0].at_ns),
            (double)(tie->samples[i].apart_ns - tie->samples[0].apart_ns),
            (double)tie->samples[i].weight};
    f.points = points;
    fit_range(&f, 0, tie->nsamples);
    tie->first_ns = tie->samples[0].at_ns;
    tie->last_ns = tie->samples[tie->nsamples - 1].at_ns;
    measure(&f);
    free(points);
    free(f.work);
}

/* By how much 95 % of the messages' samples differ from what the tie says,
 * after what most differ by; that is *common_p. */
static double difference(const struct ct_tie *tie,
                         const struct ct_tie *messages, double *common_p)
{
    struct valued *off = ct_alloc((size_t)messages->nsamples, sizeof(*off));
    const int n = distances(tie, messages, ALL, off);
    double residual;
    int i;

    *common_p = quantile(off, n, .5);
    for (i = 0; i < n; i++)
        off[i].value -= *common_p;
    residual = residual_of(off, n);
    free(off);
    return residual;
}

bool ct_clock_correct(struct ct_tie *tie, const struct ct_tie *messages)
{
    double common, error;
    const double residual = difference(tie, messages, &common);

    error = asymmetry(messages) + scatter(messages, residual);
    if (fabs(common) > 2 * tie->error_ns + error) {
        tie->error_ns = fabs(common);
        return false;
    }
    if (error >= tie->error_ns || fabs(common) > tie->least_ns)
        return messages->error_ns < BETTER * tie->error_ns;
    /* By what both may be off by: ends that may be by much need not be. */
    shift(tie, common / (1 + error * error / (tie->error_ns * tie->error_ns)));
    tie->error_ns = error;
    return messages->residual_ns < BETTER * residual;
}
