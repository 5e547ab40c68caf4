#include <math.h>

#include "model/model.h"

#define PRIOR_ERROR .35
#define TRUSTED .25   /* own measurements this good need no reference */
#define FIT_FLOOR .03 /* a line is never better than this */
#define POINT_FLOOR .03
#define OTHER_RANKS .2 /* added where another group size was measured */
#define FAR_OUT .1     /* added per factor e beyond the measured sizes */

struct link_info {
    bool network;
    double base_us, hop_us, busbw_GBps;
};

static const struct link_info link_infos[CT_LINK_COUNT] = {
#define LINK(id_, name_, network_, base_, hop_, busbw_, source_) \
    {(network_) != 0, (base_), (hop_), (busbw_)},
#include "commtrace/links.def"
};

static const struct {
    enum ct_link link;
    int64_t speed;
    double busbw_GBps;
} speeds[] = {
#define LINK_SPEED(id_, speed_, busbw_, source_) \
    {CT_LINK_##id_, (speed_), (busbw_)},
#include "commtrace/links.def"
};

#define NSPEEDS (sizeof speeds / sizeof *speeds)

/* The row of that speed. A rate of a network that has none is taken from the
 * nearest one that has, in proportion; a version of NVLink is not. */
static double busbw_of(enum ct_link link, int64_t speed)
{
    double busbw = link_infos[link].busbw_GBps, nearest = INFINITY;

    for (size_t i = 0; speed > 0 && i < NSPEEDS; i++) {
        const double apart = fabs(log((double)speed / (double)speeds[i].speed));

        if (speeds[i].link != link || apart >= nearest ||
            (apart > 0 && !link_infos[link].network))
            continue;
        nearest = apart;
        busbw = speeds[i].busbw_GBps * (double)speed / (double)speeds[i].speed;
    }
    return busbw;
}

double ct_model_steps(enum ct_op base, int nranks)
{
    if (ct_is_p2p(base))
        return 1;
    return ct_op_infos[base].wire == CT_TWO_RING ? 2.0 * (nranks - 1)
                                                 : nranks - 1.0;
}

double ct_model_prior_us(enum ct_link link, int64_t speed, enum ct_op base,
                         int nranks, uint64_t bytes)
{
    const struct link_info *info = &link_infos[link];

    if (!(info->busbw_GBps > 0))
        return NAN;
    return info->base_us + ct_model_steps(base, nranks) * info->hop_us +
           ct_wire_factor(base, nranks) * (double)bytes /
               (busbw_of(link, speed) * 1e3);
}

struct guess {
    double us, error; /* us NAN: none */
};

static const struct guess no_guess = {NAN, INFINITY};

static void improve(struct guess *best, struct guess other)
{
    if (!isnan(other.us) && other.us > 0 && other.error < best->error)
        *best = other;
}

static double beyond(const struct ct_fit *fit, double bytes)
{
    const double low = fit->points[0].bytes;
    const double high = fit->points[fit->npoints - 1].bytes;

    if (bytes < low)
        return log(low / fmax(bytes, 1));
    return bytes > high ? log(bytes / high) : 0;
}

static struct guess by_line(const struct ct_fit *fit, double bytes)
{
    struct guess guess = no_guess;
    double error;

    if (fit->quality == CT_FIT_PRIOR)
        return guess;
    /* A single size leans on the prior for what it does not show. */
    if (fit->npoints == 1 && beyond(fit, bytes) > .02)
        return guess;
    guess.us = ct_fit_us(fit, bytes, &error);
    guess.error = hypot(error, FIT_FLOOR) + FAR_OUT * beyond(fit, bytes);
    return guess;
}

/* Between two measured sizes, linear in S as the model is. */
static struct guess by_neighbours(const struct ct_fit *fit, double bytes)
{
    for (int i = 0; i < fit->npoints; i++) {
        const struct ct_point *p = &fit->points[i];

        if (fabs(bytes / p->bytes - 1) <= .02)
            return (struct guess){
                p->us, hypot(POINT_FLOOR, p->spread / sqrt((double)p->n))};
        if (i == 0 || bytes > p->bytes || bytes < p[-1].bytes)
            continue;
        const double at = (bytes - p[-1].bytes) / (p->bytes - p[-1].bytes);

        return (struct guess){p[-1].us + at * (p->us - p[-1].us),
                              .05 + .05 * log(p->bytes / p[-1].bytes)};
    }
    return no_guess;
}

/* From a fit at another group size: alpha by steps, beta by wire bytes. */
static struct guess by_scaling(const struct ct_fit *fit, int nranks,
                               double bytes)
{
    const double steps = ct_model_steps(fit->base, nranks) /
                         ct_model_steps(fit->base, fit->nranks);
    const double wire = ct_wire_factor(fit->base, nranks) /
                        ct_wire_factor(fit->base, fit->nranks);
    struct guess guess = by_line(fit, bytes);

    if (fit->quality != CT_FIT_FULL)
        return no_guess;
    guess.us = fit->line_us * steps + fit->line_us_per_byte * wire * bytes;
    guess.error += OTHER_RANKS;
    return guess;
}

#define INSIDE_A_NODE CT_LINK_COUNT /* any link that is not network */

static bool is_over(const struct ct_fit *fit, enum ct_link link)
{
    if (link != INSIDE_A_NODE)
        return fit->link == link;
    return !link_infos[fit->link].network && fit->link != CT_LINK_SELF;
}

static struct guess measured(const struct ct_model *model, enum ct_link link,
                             enum ct_op base, int nranks, double bytes)
{
    struct guess best = no_guess;

    for (int i = 0; model && i < model->nfits; i++) {
        const struct ct_fit *fit = &model->fits[i];

        if (fit->base != base || !is_over(fit, link) || fit->npoints == 0)
            continue;
        if (fit->nranks == nranks) {
            improve(&best, by_line(fit, bytes));
            improve(&best, by_neighbours(fit, bytes));
        } else if (fit->nranks > 1) {
            improve(&best, by_scaling(fit, nranks, bytes));
        }
    }
    return best;
}

static double best_of(const struct ct_model *own,
                      const struct ct_model *reference, enum ct_link link,
                      struct guess best, enum ct_op base, int nranks,
                      uint64_t bytes, enum ct_source *source_p,
                      double *relative_error_p)
{
    const struct guess mine = measured(own, link, base, nranks, (double)bytes);
    const struct guess theirs =
        measured(reference, link, base, nranks, (double)bytes);

    *source_p = CT_SOURCE_PRIOR;
    if (!isnan(mine.us) &&
        (mine.error <= TRUSTED || mine.error <= theirs.error)) {
        best = mine;
        *source_p = CT_SOURCE_FIT;
    } else if (!isnan(theirs.us)) {
        best = theirs;
        *source_p = CT_SOURCE_REFERENCE;
    }
    *relative_error_p = best.error;
    return best.us;
}

double ct_model_inside_us(const struct ct_model *own,
                          const struct ct_model *reference, enum ct_op base,
                          int nranks, uint64_t bytes, enum ct_source *source_p,
                          double *relative_error_p)
{
    const enum ct_op op = ct_is_p2p(base) ? CT_OP_SEND : base;
    const int n = ct_is_p2p(base) ? 2 : nranks;
    const struct guess prior = {
        ct_model_prior_us(CT_LINK_NODE, CT_NONE, op, n, bytes), PRIOR_ERROR};

    return best_of(own, reference, INSIDE_A_NODE, prior, op, n, bytes, source_p,
                   relative_error_p);
}

double ct_model_over_us(const struct ct_model *own,
                        const struct ct_model *reference, enum ct_link link,
                        int64_t speed, enum ct_op base, int nranks,
                        uint64_t bytes, enum ct_source *source_p,
                        double *relative_error_p)
{
    const enum ct_op op = ct_is_p2p(base) ? CT_OP_SEND : base;
    const int n = ct_is_p2p(base) ? 2 : nranks;
    const struct guess prior = {ct_model_prior_us(link, speed, op, n, bytes),
                                PRIOR_ERROR};

    return best_of(own, reference, link, prior, op, n, bytes, source_p,
                   relative_error_p);
}
