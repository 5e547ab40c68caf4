#include "findings/medians.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/clocks.h"
#include "trace/match.h"
#include "trace/select.h"

#define LEAST_TRANSFERS 10
#define NO_PEER (-2)
#define SEVERAL (-3)
#define STANDARD_ERRORS 3 /* a rank among n has one of sqrt(n) / 2 */

struct measuring {
    const struct ct_case *c;
    bool *mixed;     /* per usage: in groups with messages of other pairs */
    int64_t *others; /* transfers that are no samples, by usage, */
    int64_t *ends;   /* where those of each end */
    int64_t *work;
};

/* Messages, and what was in groups. Not all of them are samples of a usage;
 * where those are few, between likes they serve. */
static bool is_other(const struct ct_instance *i)
{
    return (i->grouped || i->base == CT_OP_SEND) &&
           (!i->estimated || i->base == CT_OP_SEND) &&
           i->transfer_ns != CT_NO_TIME && !i->bound && !i->overlapped &&
           !i->skewed && !i->mismatch;
}

/* What a message of a group takes shows in all of it, and so does a wait. */
static bool mark_mixed(struct measuring *x, const struct ct_process *p)
{
    int *peers;

    if (!p->nlaunches)
        return true;
    peers = malloc((size_t)p->nlaunches * sizeof *peers);
    for (int i = 0; peers && i < p->nlaunches; i++)
        peers[i] = NO_PEER;
    for (int pass = 0; peers && pass < 2; pass++)
        for (int o = 0; o < p->nops; o++) {
            const struct ct_op_row *op = &p->ops[o];
            const int peer = p->classes[op->cls].peer;

            if (op->launch == CT_NONE || op->instance == CT_NONE)
                continue;
            if (peers[op->launch] == NO_PEER)
                peers[op->launch] = peer;
            else if (peers[op->launch] != peer)
                peers[op->launch] = SEVERAL;
            if (pass && peers[op->launch] == SEVERAL)
                x->mixed[x->c->job->instances[op->instance].usage] = true;
        }
    free(peers);
    return peers != NULL;
}

static bool find_mixed(struct measuring *x)
{
    const struct ct_job *job = x->c->job;
    bool good;

    x->mixed = calloc((size_t)job->nusages + 1, sizeof *x->mixed);
    good = x->mixed != NULL;
    for (int i = 0; good && i < job->nprocesses; i++)
        good = mark_mixed(x, &x->c->trace->processes[job->processes[i]]);
    return good;
}

static bool gather_others(struct measuring *x)
{
    const struct ct_job *job = x->c->job;
    int64_t total = 0;

    x->ends = calloc((size_t)job->nusages + 1, sizeof *x->ends);
    for (int i = 0; x->ends && i < job->ninstances; i++)
        if (is_other(&job->instances[i]))
            x->ends[job->instances[i].usage + 1]++;
    for (int u = 0; x->ends && u < job->nusages; u++)
        total = x->ends[u + 1] += x->ends[u];
    x->others = malloc(((size_t)total + 1) * sizeof *x->others);
    if (!x->ends || !x->others)
        return false;
    for (int i = 0; i < job->ninstances; i++)
        if (is_other(&job->instances[i]))
            x->others[x->ends[job->instances[i].usage]++] =
                job->instances[i].transfer_ns;
    return true;
}

/* How far a message may have taken more or less by the clocks of its ends. */
static double clock_error(const struct ct_case *c, const struct ct_usage *u)
{
    const struct ct_member *members = c->job->comms[u->comm].members;
    const struct ct_process *from, *to;

    if (!ct_usage_is_p2p(u))
        return 0;
    if (members[u->src].process == CT_NONE ||
        members[u->dst].process == CT_NONE)
        return INFINITY;
    from = &c->trace->processes[members[u->src].process];
    to = &c->trace->processes[members[u->dst].process];
    return ct_common_error(c->trace, from, to, from->last_ns / 2);
}

struct transfers {
    const int64_t *ns;
    int64_t n;
    double error_ns; /* INFINITY: they may have waited as well */
};

static struct transfers transfers_of(const struct measuring *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const int64_t begin = usage ? x->ends[usage - 1] : 0;
    const int64_t n = x->ends[usage] - begin;
    double error_ns;

    if (u->nsamples >= LEAST_TRANSFERS || n < u->nsamples)
        return (struct transfers){u->samples, u->nsamples, 0};
    error_ns = clock_error(x->c, u);
    if (u->median_ns == CT_NO_TIME || !ct_is_clear(error_ns, u->median_ns))
        error_ns = INFINITY;
    return (struct transfers){x->others + begin, n, error_ns};
}

static double nth(int64_t *values, int64_t n, double k)
{
    return (double)ct_nth(values, n,
                          k < 0                 ? 0
                          : k > (double)(n - 1) ? n - 1
                                                : (int64_t)k);
}

static void set_mean(struct ct_median *median, const int64_t *ns)
{
    const double n = (double)median->n;
    double squares = 0;

    for (int64_t i = 0; i < median->n; i++)
        median->mean_ns += (double)ns[i] / n;
    for (int64_t i = 0; i < median->n; i++)
        squares += pow((double)ns[i] - median->mean_ns, 2);
    median->error_ns = sqrt(squares / n / (n - 1));
}

static struct ct_median measure(const struct measuring *x, int usage)
{
    const struct ct_usage *u = &x->c->job->usages[usage];
    const struct transfers t = transfers_of(x, usage);
    const bool known = !isinf(t.error_ns);
    const double half = (double)t.n / 2;
    const double off = STANDARD_ERRORS * sqrt((double)t.n) / 2;
    struct ct_median median = {0};

    if (t.n < LEAST_TRANSFERS || x->mixed[usage] ||
        (ct_usage_is_p2p(u) && u->src == u->dst))
        return median;
    memcpy(x->work, t.ns, (size_t)t.n * sizeof *x->work);
    median.n = t.n;
    median.ns = nth(x->work, t.n, half);
    median.high_ns = nth(x->work, t.n, half + off) + (known ? t.error_ns : 0);
    if (known)
        median.low_ns = nth(x->work, t.n, half - off) - t.error_ns;
    set_mean(&median, t.ns);
    return median;
}

struct ct_median *ct_medians_measure(const struct ct_case *c)
{
    const struct ct_job *job = c->job;
    struct measuring x = {.c = c};
    struct ct_median *medians =
        calloc((size_t)job->nusages + 1, sizeof *medians);
    bool good = medians && find_mixed(&x) && gather_others(&x);

    x.work = malloc(((size_t)job->ninstances + 1) * sizeof *x.work);
    good = good && x.work;
    for (int u = 0; good && u < job->nusages; u++)
        medians[u] = measure(&x, u);
    free(x.mixed);
    free(x.others);
    free(x.ends);
    free(x.work);
    if (!good)
        free(medians);
    return good ? medians : NULL;
}
