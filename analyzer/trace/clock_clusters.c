/*
 * Clusters of clocks that are known to each other far better than the messages
 * between two clusters tell: all of these, between whichever clocks, are of one
 * tie, that of the first clocks of the two. The hosts of two pipeline stages
 * are such: all-reduces tie each stage, and what a few messages of one host to
 * one other leave to chance, those of all hosts together do not.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clock.h"

#define FAR_BETTER .25

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* What clocks of a cluster may be off by at most, going by what messages
 * usually tell; 0: no messages tie clocks. */
static double closeness(const struct ct_clocking *c)
{
    double *errors = ct_alloc((size_t)c->nties, sizeof(*errors)), most = 0;
    int i, n = 0;

    for (i = 0; i < c->nties; i++)
        if (c->ties[i].how == CT_TIE_P2P)
            errors[n++] = c->ties[i].error_ns;
    if (n) {
        qsort(errors, (size_t)n, sizeof(*errors), by_value);
        most = FAR_BETTER * errors[n / 2];
    }
    free(errors);
    return most;
}

/* The message as one between the first clocks of the clusters. */
static struct ct_message between_first(const struct ct_clock *clocks,
                                       const struct ct_message *of)
{
    const struct ct_clock *a = &clocks[of->a], *b = &clocks[of->b];
    const int64_t of_a = ct_clock_common(a, of->at_ns);
    const int64_t of_b = ct_clock_common(b, of->at_ns + of->apart_ns);
    struct ct_message message = *of;

    if (a->group < b->group) {
        message.a = a->group;
        message.b = b->group;
        message.at_ns = of_a;
        message.apart_ns = of_b - of_a;
    } else {
        message.a = b->group;
        message.b = a->group;
        message.up = !of->up;
        message.at_ns = of_b;
        message.apart_ns = of_a - of_b;
    }
    return message;
}

/* Leaves those between clusters. */
static void translate(struct ct_messages *all, const struct ct_clock *clocks)
{
    int i, k, m, n = 0, pair = 0;

    for (i = 0; i < all->n; i += k, pair++) {
        k = ct_messages_alike(all, i);
        if (clocks[all->of[i].a].group == clocks[all->of[i].b].group)
            continue;
        for (m = i; m < i + k; m++) {
            all->of[n] = between_first(clocks, &all->of[m]);
            all->of[n++].pair = pair;
        }
    }
    all->n = n;
    ct_messages_sort(all);
}

static bool is_one_pair(const struct ct_message *of, int n)
{
    int i;

    for (i = 1; i < n && of[i].pair == of->pair; i++)
        ;
    return i == n;
}

/* The pooled tie speaks for pairs of clocks of the two clusters. */
static void spare_pairs(struct ct_clocking *c, const int *cluster_of,
                        const struct ct_tie *pooled)
{
    int i;

    for (i = 0; i < c->nties; i++) {
        struct ct_tie *tie = &c->ties[i];
        const int a = cluster_of[tie->a], b = cluster_of[tie->b];

        if (tie->how == CT_TIE_P2P && !tie->pooled &&
            ((a == pooled->a && b == pooled->b) ||
             (a == pooled->b && b == pooled->a)))
            tie->spare = true;
    }
}

/* Makes of what messages tell what collectives and messages tell together,
 * where there are both. False: collectives alone know better. */
static bool combine(const struct ct_job *job, struct ct_tie *messages)
{
    const struct ct_clock *a = &job->clocks[messages->a];
    const struct ct_clock *b = &job->clocks[messages->b];
    const double error_ns =
        ct_clock_error(job, messages->a, messages->b, messages->first_ns);
    struct ct_tie both = *messages;

    if (isinf(error_ns))
        return true;
    both.lines = NULL;
    both.nlines = both.line_capacity = 0;
    both.error_ns = both.least_ns = error_ns;
    both.residual_ns = hypot(a->residual_ns, b->residual_ns);
    both.rate_error = hypot(a->rate_error, b->rate_error);
    ct_clock_tie_joined(&both, a, b);
    if (ct_clock_correct(&both, messages)) {
        free(both.lines);
        return true;
    }
    free(both.error_ns < error_ns ? messages->lines : both.lines);
    if (both.error_ns >= error_ns)
        return false;
    *messages = both;
    return true;
}

static void tie_clusters(struct ct_clocking *c, const int *cluster_of,
                         const struct ct_message *of, int n)
{
    struct ct_tie tie = {.pooled = true};

    if (is_one_pair(of, n) || !ct_messages_fit(&tie, of, n))
        return;
    spare_pairs(c, cluster_of, &tie);
    if (!combine(c->m->job, &tie)) {
        ct_tie_release(&tie);
        return;
    }
    c->ties = ct_grow(c->ties, &c->tie_capacity, c->nties, sizeof(*c->ties));
    c->ties[c->nties++] = tie;
}

/* Clusters, and common time as collectives alone tell it. */
static int *find_clusters(struct ct_clocking *c, double most_ns)
{
    const struct ct_job *job = c->m->job;
    int *cluster_of = ct_alloc((size_t)job->nclocks, sizeof(*cluster_of));
    int i;

    ct_clock_join(c, CT_TIE_NONE, most_ns);
    for (i = 0; i < job->nclocks; i++)
        cluster_of[i] = job->clocks[i].group;
    translate(&c->messages, job->clocks);
    ct_clock_join(c, CT_TIE_COLLECTIVES, INFINITY);
    return cluster_of;
}

void ct_clock_tie_clusters(struct ct_clocking *c)
{
    struct ct_messages *all = &c->messages;
    const double most_ns = closeness(c);
    int *cluster_of;
    int i, k;

    if (most_ns > 0) {
        cluster_of = find_clusters(c, most_ns);
        for (i = 0; i < all->n; i += k) {
            k = ct_messages_alike(all, i);
            tie_clusters(c, cluster_of, all->of + i, k);
        }
        free(cluster_of);
    }
    free(all->of);
    *all = (struct ct_messages){0};
}
