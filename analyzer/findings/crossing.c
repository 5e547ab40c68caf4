/*
 * TP_CROSSES_NODES: what a tensor-parallel group pays for reaching over the
 * network, against the same calls inside one node.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/crossing.h"
#include "findings/price.h"

#define NINETY_PERCENT 1.64 /* standard errors */
#define UNSURE .5           /* of a price from a prior that does not hold */

static void add_usage(const struct ct_case *c, int id, struct ct_price *price)
{
    const struct ct_usage *usage = &c->job->usages[id];
    const double calls = ct_price_calls(c->job, usage);
    enum ct_source source;
    double error, observed_error = 0, off = 1;
    const double us = ct_price_observed_us(c, id, &observed_error);

    if (!(calls > 0) || isnan(us))
        return;
    const double inside = ct_model_inside_us(
        c->model, c->reference, usage->base, c->job->comms[usage->comm].nranks,
        usage->bytes, &source, &error);

    if (source == CT_SOURCE_PRIOR)
        off = ct_price_doubt(c, usage, us);
    price->timed = true;
    price->prior_off = fmax(price->prior_off, off);
    price->predicted_high_us += calls * fmin(us, inside * off);
    price->calls += calls;
    price->observed_us += calls * us;
    price->observed_var += pow(calls * observed_error, 2);
    price->predicted_us += calls * inside;
    price->predicted_error += calls * inside * error;
    if (source > price->source) /* as good as its weakest part */
        price->source = source;
    if (calls * us > price->top_us) {
        price->top_us = calls * us;
        price->top_calls = calls;
        price->top_bytes = (double)usage->bytes;
        price->top_base = usage->base;
    }
}

static struct ct_price price_of(const struct ct_case *c, int role)
{
    struct ct_price price = {.source = CT_SOURCE_FIT, .prior_off = 1};

    for (int i = 0; i < c->job->nusages; i++)
        if (c->roles->of_usage[i] == role)
            add_usage(c, i, &price);
    if (!price.timed)
        price.source = CT_SOURCE_PRIOR;
    return price;
}

static bool crosses(const struct ct_case *c, int role)
{
    const struct ct_role *r = &c->roles->roles[role];

    return r->role == CT_ROLE_TP && c->job->comms[r->comm].ndomains > 1;
}

/* A use beside the main one (scalars before the steps) is priced with it. */
static bool is_main(const struct ct_case *c, int role)
{
    const struct ct_role *r = &c->roles->roles[role];

    for (int i = 0; i < role; i++)
        if (c->roles->roles[i].comm == r->comm &&
            c->roles->roles[i].role == CT_ROLE_TP)
            return false;
    return true;
}

/* What each micro-batch of a stage takes longer, a pipeline of p stages pays
 * m + p - 1 times per step, not m times: to fill and drain it, too. */
static double stretch(const struct ct_roles *roles)
{
    const double p = roles->pp, m = roles->micro_batches;

    return p > 1 && m > 0 ? (m + p - 1) / m : 1;
}

static void fill(const struct ct_case *c, const struct ct_price *price,
                 int role, struct ct_finding_row *row)
{
    const double error = NINETY_PERCENT * hypot(sqrt(price->observed_var),
                                                price->predicted_error);
    const double lost = price->observed_us - price->predicted_us;

    row->comm = c->roles->roles[role].comm;
    row->per = c->job->nsteps > 0 ? "step" : "second";
    row->source = price->source;
    row->confidence = c->roles->roles[role].confidence;
    if (!price->timed)
        return;
    row->observed_ms = price->observed_us / 1e3;
    row->predicted_ms = price->predicted_us / 1e3;
    row->stretch = stretch(c->roles);
    row->loss_ms = row->stretch * lost / 1e3;
    row->loss_low_ms =
        row->stretch *
        (lost - (price->predicted_high_us - price->predicted_us) - error) / 1e3;
    row->loss_high_ms = row->stretch * (lost + error) / 1e3;
    /* How sure that anything is lost at all: one-sided normal. */
    row->confidence *= .5 * erfc(-lost * NINETY_PERCENT /
                                 (error > 0 ? error : 1e-9) / sqrt(2));
    if (price->prior_off > 1)
        row->confidence *= UNSURE;
}

/* One finding for all crossing groups of nranks ranks: the first is role. */
static bool report_family(const struct ct_case *c, int role, int nranks,
                          struct ct_findings *findings)
{
    struct ct_price worst = {0};
    struct ct_finding_row *row;
    int worst_role = CT_NONE, groups = 0;

    for (int i = role; i < c->roles->nroles; i++) {
        if (!crosses(c, i) || !is_main(c, i) ||
            c->job->comms[c->roles->roles[i].comm].nranks != nranks)
            continue;
        const struct ct_price price = price_of(c, i);

        groups++;
        if (worst_role == CT_NONE ||
            price.observed_us - price.predicted_us >
                worst.observed_us - worst.predicted_us) {
            worst = price;
            worst_role = i;
        }
    }
    row = ct_finding_add(findings, CT_FINDING_TP_CROSSES_NODES);
    if (!row)
        return false;
    fill(c, &worst, worst_role, row);
    row->groups = groups;
    ct_crossing_tell(c, &worst, row);
    ct_crossing_advise(c, nranks, row);
    return true;
}

static bool is_first_of_size(const struct ct_case *c, int role, int nranks)
{
    for (int i = 0; i < role; i++)
        if (crosses(c, i) &&
            c->job->comms[c->roles->roles[i].comm].nranks == nranks)
            return false;
    return true;
}

bool ct_rule_crossing(struct ct_case *c, struct ct_findings *findings)
{
    for (int i = 0; i < c->roles->nroles; i++) {
        const int nranks = c->job->comms[c->roles->roles[i].comm].nranks;

        if (!crosses(c, i) || !is_first_of_size(c, i, nranks))
            continue;
        if (!ct_price_times(c) || !report_family(c, i, nranks, findings))
            return false;
    }
    return true;
}
