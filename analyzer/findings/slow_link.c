/*
 * SLOW_LINK. Each rank of a slow way loses what its transfers take longer than
 * usual, once or, where a pipeline's stages wait for each other, up to several
 * times; or less, where computing hides it. How much of it the step loses shows
 * where these ranks meet others that do the same work: those wait for them.
 */
#include "findings/slow_link.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "findings/kept.h"
#include "findings/price.h"

#define NOTICEABLE_NS 1e5 /* per step or second */
#define LEAST_SHARE .01   /* of the step or second */
#define REPORTED 4
#define MESSAGE_ENDS 2 /* sender and receiver are late by it, one by one */
#define MUCH .25       /* of what transfers take longer */
#define KEPT_ERROR .2  /* of how long others wait */
#define ONE_OTHER .6
#define FEW_OTHERS .8
#define MANY_OTHERS .9
#define ENOUGH_OTHERS 3

struct search {
    const struct ct_case *c;
    struct ct_ways ways;
    bool *slow;                   /* per way: costly, and in no finding yet */
    bool *taken;                  /* per way: of the finding that is made */
    bool *those;                  /* per process of the trace: at these */
    double *plain_ns, *excess_ns; /* per process of the trace: what transfers
                                     take longer; at most that costs it */
};

static bool begin(struct search *s)
{
    const size_t ways = (size_t)s->ways.n + 1;
    const size_t processes = (size_t)s->c->trace->nprocesses + 1;
    const double period =
        s->c->job->nsteps > 0 ? (double)s->c->job->step_ns : 1e9;

    s->slow = calloc(ways, sizeof *s->slow);
    s->taken = calloc(ways, sizeof *s->taken);
    s->those = calloc(processes, sizeof *s->those);
    s->plain_ns = calloc(processes, sizeof *s->plain_ns);
    s->excess_ns = calloc(processes, sizeof *s->excess_ns);
    if (!s->slow || !s->taken || !s->those || !s->plain_ns || !s->excess_ns)
        return false;
    for (int i = 0; i < s->ways.n; i++)
        s->slow[i] = s->ways.rows[i].slow > 0 &&
                     s->ways.rows[i].excess_ns >
                         fmax(NOTICEABLE_NS, LEAST_SHARE * period);
    return true;
}

static void end(struct search *s)
{
    free(s->slow);
    free(s->taken);
    free(s->those);
    free(s->plain_ns);
    free(s->excess_ns);
    ct_ways_release(&s->ways);
}

/* The stages of a pipeline pay for what a micro-batch takes longer while it
 * fills and drains, too, and of a message both ends do. */
static double spread(const struct ct_case *c, const struct ct_way *way)
{
    const double p = c->roles->pp, m = c->roles->micro_batches;
    const int role = c->roles->of_usage[way->top];
    const double stretch = p > 1 && m > 0 ? (m + p - 1) / m : 1;

    if (ct_is_p2p(c->job->usages[way->top].base))
        return MESSAGE_ENDS * stretch;
    return role != CT_NONE && c->roles->roles[role].role == CT_ROLE_DP
               ? 1
               : stretch;
}

static void take(struct search *s, int number, struct ct_slow *slow)
{
    const struct ct_way *way = &s->ways.rows[number];
    const struct ct_comm *comm = &s->c->job->comms[way->comm];

    s->taken[number] = true;
    slow->ways++;
    if (!slow->worst || way->excess_ns > slow->worst->excess_ns)
        slow->worst = way;
    for (int r = 0; r < comm->nranks; r++) {
        const int process = comm->members[r].process;

        if (process == CT_NONE || !ct_way_has(way, r))
            continue;
        s->those[process] = true;
        s->plain_ns[process] += way->excess_ns;
        s->excess_ns[process] +=
            spread(s->c, way) * (way->excess_ns + way->error_ns);
        slow->plain_ns = fmax(slow->plain_ns, s->plain_ns[process]);
        slow->high_ns = fmax(slow->high_ns, s->excess_ns[process]);
    }
}

static void clear(struct search *s)
{
    const size_t processes = (size_t)s->c->trace->nprocesses;

    memset(s->taken, 0, (size_t)s->ways.n * sizeof *s->taken);
    memset(s->those, 0, processes * sizeof *s->those);
    memset(s->plain_ns, 0, processes * sizeof *s->plain_ns);
    memset(s->excess_ns, 0, processes * sizeof *s->excess_ns);
}

/* What most slow ways over a network share, else those inside nodes. */
static bool find_shared(struct search *s, struct ct_slow *slow)
{
    struct ct_shared inside;

    if (!ct_shared_find(s->c, &s->ways, s->slow, true, &slow->shared) ||
        !ct_shared_find(s->c, &s->ways, s->slow, false, &inside))
        return false;
    const bool network = slow->shared.ways >= inside.ways;

    if (!network)
        slow->shared = inside;
    for (int i = 0; slow->shared.ways && i < s->ways.n; i++)
        if (s->slow[i] && s->ways.rows[i].network == network &&
            ct_shared_holds(s->c, &slow->shared, &s->ways.rows[i]))
            take(s, i, slow);
    return true;
}

/* The worst of those that share nothing, and all that only the reference shows.
 * That it is slow is certain only where most that are alike are not. */
static void find_lone(struct search *s, struct ct_slow *slow)
{
    int worst = CT_NONE;

    for (int i = 0; i < s->ways.n; i++)
        if (s->slow[i] && !s->ways.rows[i].rare &&
            (worst == CT_NONE ||
             s->ways.rows[i].excess_ns > s->ways.rows[worst].excess_ns))
            worst = i;
    for (int i = 0; worst != CT_NONE && i < s->ways.n; i++)
        if (i == worst ||
            (s->slow[i] && s->ways.rows[worst].by_reference &&
             s->ways.rows[i].by_reference &&
             s->ways.rows[i].network == s->ways.rows[worst].network))
            take(s, i, slow);
}

static double confidence(const struct ct_slow *slow)
{
    const int others = slow->worst->alike - slow->ways;

    return slow->worst->rare || others < 2 ? ONE_OTHER
           : others < ENOUGH_OTHERS        ? FEW_OTHERS
                                           : MANY_OTHERS;
}

/* What others wait for these ranks is lost for certain, and is all that is
 * where it is much of what transfers take longer. Where it is little, either
 * computing hides the rest, or all that would wait are slow themselves. */
static void price(const struct ct_case *c, const struct ct_slow *slow,
                  struct ct_finding_row *row)
{
    const double kept_ns = fmax(slow->kept_ns, 0); /* 0 of NAN */
    const bool all = kept_ns > MUCH * slow->plain_ns;
    const double lost_ns = fmin(all ? kept_ns : slow->plain_ns, slow->high_ns);

    row->per = c->job->nsteps > 0 ? "step" : "second";
    row->source = CT_SOURCE_FIT;
    row->loss_ms = lost_ns / 1e6;
    row->loss_low_ms = fmin((1 - KEPT_ERROR) * kept_ns, lost_ns) / 1e6;
    row->loss_high_ms = slow->high_ns / 1e6;
}

static bool report(struct search *s, struct ct_slow *slow,
                   struct ct_findings *findings)
{
    struct ct_finding_row *row;

    if (!ct_kept_waiting(s->c, s->those, &slow->kept_ns))
        return false;
    row = ct_finding_add(findings, CT_FINDING_SLOW_LINK);
    if (!row)
        return false;
    row->comm = slow->worst->comm;
    row->groups = slow->ways;
    row->confidence = confidence(slow);
    price(s->c, slow, row);
    ct_slow_tell(s->c, slow, row);
    return true;
}

static bool report_all(struct search *s, struct ct_findings *findings)
{
    for (int n = 0; n < REPORTED; n++) {
        struct ct_slow slow = {0};

        clear(s);
        if (!find_shared(s, &slow))
            return false;
        if (!slow.ways)
            find_lone(s, &slow);
        if (!slow.ways)
            return true;
        if (!report(s, &slow, findings))
            return false;
        for (int i = 0; i < s->ways.n; i++)
            s->slow[i] &= !s->taken[i];
    }
    return true;
}

bool ct_rule_slow_link(const struct ct_case *c, struct ct_findings *findings)
{
    struct search s = {.c = c};
    const bool good = ct_ways_compare(c, &s.ways) == 0 && begin(&s) &&
                      report_all(&s, findings);

    end(&s);
    return good;
}
