#include "findings/ways.h"

#include <math.h>
#include <stdlib.h>

#include "findings/medians.h"
#include "findings/price.h"
#include "trace/intern.h"
#include "trace/links.h"

#define LONGER 1.3 /* than the others, surely */
#define LATE .4    /* more, per transfer by which the wait is longer */
#define MOST_LATE 3
#define NINETY_PERCENT 1.64 /* standard errors */

/* What transfers have to have in common; no padding. */
struct kind_key {
    uint64_t bytes;
    int64_t speed;
    int32_t base, nranks, link, nnodes, ndomains, hops, nics, role, grouped,
        p2p;
};

struct way_key { /* no padding */
    int comm, a, b;
};

struct measured { /* a usage */
    int usage, kind, way;
    struct ct_median median;
};

struct comparison {
    const struct ct_case *c;
    struct ct_intern kinds, way_keys;
    struct ct_ways *ways;
    int n;
    struct measured *measured;
};

static int kind_of(struct comparison *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const struct ct_comm *comm = &x->c->job->comms[u->comm];
    const int role = x->c->roles->of_usage[usage];
    struct kind_key key = {.bytes = u->bytes,
                           .speed = u->speed,
                           .base = u->base,
                           .nranks = comm->nranks,
                           .link = u->link,
                           .nnodes = comm->nnodes,
                           .ndomains = comm->ndomains,
                           .hops = comm->hops,
                           .nics = comm->nics,
                           .role = role == CT_NONE
                                       ? CT_ROLE_UNKNOWN
                                       : x->c->roles->roles[role].role,
                           .grouped = u->grouped,
                           .p2p = ct_usage_is_p2p(u)};

    if (key.p2p && !key.grouped)
        key.nnodes = key.ndomains = key.hops = key.nics = CT_NONE;
    return ct_intern_add(&x->kinds, &key, sizeof key);
}

static struct way_key pair_key(const struct ct_usage *u)
{
    return u->src < u->dst ? (struct way_key){u->comm, u->src, u->dst}
                           : (struct way_key){u->comm, u->dst, u->src};
}

static int way_of(struct comparison *x, const struct ct_usage *u)
{
    const struct way_key key =
        ct_usage_is_p2p(u) ? pair_key(u)
                           : (struct way_key){u->comm, CT_NONE, CT_NONE};
    const int known = x->way_keys.n;
    const int way = ct_intern_add(&x->way_keys, &key, sizeof key);

    if (way == known)
        x->ways->rows[x->ways->n++] =
            (struct ct_way){.comm = key.comm,
                            .a = key.a,
                            .b = key.b,
                            .network = ct_link_is_network(u->link),
                            .top = CT_NONE};
    return way;
}

static bool measure_all(struct comparison *x)
{
    const struct ct_job *job = x->c->job;
    const size_t room = (size_t)job->nusages + 1;
    struct ct_median *medians = ct_medians_measure(x->c);

    x->measured = malloc(room * sizeof *x->measured);
    x->ways->rows = malloc(room * sizeof *x->ways->rows);
    if (!medians || !x->measured || !x->ways->rows) {
        free(medians);
        return false;
    }
    for (int u = 0; u < job->nusages; u++)
        if (medians[u].n && ct_price_calls(job, &job->usages[u]) > 0)
            x->measured[x->n++] =
                (struct measured){.usage = u,
                                  .kind = kind_of(x, u),
                                  .way = way_of(x, &job->usages[u]),
                                  .median = medians[u]};
    free(medians);
    return true;
}

static int by_kind_and_time(const void *left, const void *right)
{
    const struct measured *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->median.ns < b->median.ns || a->median.ns > b->median.ns)
        return a->median.ns < b->median.ns ? -1 : 1;
    return a->usage - b->usage;
}

static int by_way(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;

    return (a > b) - (a < b);
}

static int count_ways(const struct measured *of, int n)
{
    int *ways = malloc((size_t)n * sizeof *ways);
    int distinct = 0;

    for (int i = 0; ways && i < n; i++)
        ways[i] = of[i].way;
    if (ways)
        qsort(ways, (size_t)n, sizeof *ways, by_way);
    for (int i = 0; ways && i < n; i++)
        distinct += i == 0 || ways[i] != ways[i - 1];
    free(ways);
    return distinct;
}

/* On average, which others that are in the way raise; single transfers that
 * took for ever do not count. */
static double longer(const struct measured *m, const struct measured *usual)
{
    const double ns = m->median.ns - usual->median.ns;

    return fmax(ns, fmin(m->median.mean_ns - usual->median.mean_ns, 2 * ns));
}

static void add_excess(struct comparison *x, const struct measured *m,
                       const struct measured *usual, int alike)
{
    const struct ct_usage *u = &x->c->job->usages[m->usage];
    const double excess_ns = ct_price_calls(x->c->job, u) * longer(m, usual);
    struct ct_way *way = &x->ways->rows[m->way];

    way->slow++;
    if (excess_ns > way->top_excess_ns) {
        way->top_excess_ns = excess_ns;
        way->top = m->usage;
        way->own_ns = m->median.ns;
        way->usual_ns = usual->median.ns;
        way->alike = alike;
    }
    way->excess_ns += excess_ns;
    way->error_ns +=
        NINETY_PERCENT * ct_price_calls(x->c->job, u) *
        fmin(hypot(m->median.error_ns, usual->median.error_ns), m->median.ns);
}

/* Where a rank comes late by several transfers these are known less well. */
static double certainly(const struct comparison *x, const struct measured *m)
{
    const struct ct_usage *u = &x->c->job->usages[m->usage];
    const double late = (double)u->wait_ns / fmax((double)u->transfer_ns, 1);

    return ct_usage_is_p2p(u)
               ? LONGER
               : LONGER * (1 + LATE * fmin(fmax(late - 1, 0), MOST_LATE));
}

static bool is_slow(const struct comparison *x, const struct measured *m,
                    const struct measured *usual)
{
    return m->median.low_ns > certainly(x, m) * usual->median.high_ns;
}

/* The usual time is the median of those that are about as fast as the fastest.
 * These may be few: then no way is slow but for what slow ones share. */
static void compare(struct comparison *x, const struct measured *of, int n)
{
    const int alike = count_ways(of, n);
    const struct measured *usual;
    int fast = 1;

    if (alike < 2)
        return;
    while (fast < n && of[fast].median.ns <= LONGER * of[0].median.ns)
        fast++;
    usual = &of[fast / 2];
    for (int i = 0; i < n; i++) {
        struct ct_way *way = &x->ways->rows[of[i].way];

        way->usual += of[i].median.ns <= LONGER * usual->median.ns;
        if (i < fast || !is_slow(x, &of[i], usual))
            continue;
        way->rare |= 2 * fast < n;
        add_excess(x, &of[i], usual, alike);
    }
}

/* What all that are alike have in common shows beside a trace of the same
 * machines alone. */
static void compare_with_reference(struct comparison *x,
                                   const struct measured *m)
{
    const struct ct_usage *u = &x->c->job->usages[m->usage];
    struct ct_way *way = &x->ways->rows[m->way];
    struct measured usual = {0};
    enum ct_source source;
    double error = 0;

    if ((way->slow && !way->by_reference) || u->grouped)
        return;
    usual.median.ns = usual.median.mean_ns =
        1e3 * ct_model_over_us(x->c->reference, NULL, u->link, u->speed,
                               u->base, x->c->job->comms[u->comm].nranks,
                               u->bytes, &source, &error);
    usual.median.high_ns = usual.median.ns * (1 + NINETY_PERCENT * error);
    if (source != CT_SOURCE_FIT || !is_slow(x, m, &usual))
        return;
    way->by_reference = true;
    add_excess(x, m, &usual, 1);
}

static void compare_all(struct comparison *x)
{
    int first = 0;

    if (x->n)
        qsort(x->measured, (size_t)x->n, sizeof *x->measured, by_kind_and_time);
    for (int i = 1; i <= x->n; i++)
        if (i == x->n || x->measured[i].kind != x->measured[first].kind) {
            compare(x, x->measured + first, i - first);
            first = i;
        }
    for (int i = 0; x->c->reference && i < x->n; i++)
        compare_with_reference(x, &x->measured[i]);
}

int ct_ways_compare(const struct ct_case *c, struct ct_ways *ways)
{
    struct comparison x = {.c = c, .ways = ways};
    bool good;

    *ways = (struct ct_ways){0};
    good = measure_all(&x);
    if (good)
        compare_all(&x);
    ct_intern_release(&x.kinds);
    ct_intern_release(&x.way_keys);
    free(x.measured);
    if (!good)
        ct_ways_release(ways);
    return good ? 0 : -1;
}

void ct_ways_release(struct ct_ways *ways)
{
    free(ways->rows);
    *ways = (struct ct_ways){0};
}

int ct_way_processes(const struct ct_job *job, const struct ct_way *way,
                     int *processes)
{
    const struct ct_comm *comm = &job->comms[way->comm];
    int n = 0;

    for (int r = 0; r < comm->nranks; r++)
        if (comm->members[r].process != CT_NONE && ct_way_has(way, r))
            processes[n++] = comm->members[r].process;
    return n;
}
