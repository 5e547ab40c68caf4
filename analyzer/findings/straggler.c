/*
 * STRAGGLER: a rank for which the others of its communicators wait, most times
 * and for long. A rank is late for a reason of its own only where it does not
 * wait elsewhere for somebody, or for a link: those of its tensor-parallel
 * group or pipeline come late to their data-parallel groups as it does.
 *
 * The price is what each step gains if it came when the next one does, less
 * what the others are last by, which is chance. In several communicators it is
 * the same delay that is seen again, and the least of them is what counts: that
 * a tensor-parallel group waits costs nothing where its data-parallel peers
 * come later still.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "findings/straggler.h"

#define NINETY_PERCENT 1.64 /* standard errors */
#define LEAST_CALLS 10
#define LEAST_STEPS 3
#define FEW_STEPS 10
#define LEAST_SHARE_OF_STEP .01
#define NOTICEABLE_NS 1e5 /* per step: far above what clocks are off by */
#define MOST_ELSEWHERE .5 /* of the price: beyond it is kept there */
#define BY_DURATION .5    /* of the lateness seen is certain */
#define HIDDEN_CHANCE .06 /* what others are late by chance hides behind it */

struct blame { /* of one rank in one communicator, per step */
    double ns, error_ns;
    double most_ns; /* chance included */
};

/* What the others of its communicator are last by, on average. */
static double chance(const struct ct_case *c, const struct ct_lateness *l,
                     int row)
{
    const struct ct_late *late = &l->rows[row];
    const int n = c->job->comms[late->comm].nranks;
    double sum = 0;

    for (int i = l->first[late->comm]; i < l->first[late->comm] + n; i++)
        if (i != row && l->rows[i].steps > 0)
            sum += l->rows[i].sum / l->rows[i].steps / (n - 1);
    return sum;
}

/* Student's t over the normal's 90 %, about. */
static double few_steps(double n)
{
    return 1 + 1.6 / fmax(n - 1, 1);
}

static struct blame blame_of(const struct ct_case *c,
                             const struct ct_lateness *l, int row)
{
    const struct ct_late *late = &l->rows[row];
    const double n = late->steps, mean = late->sum / n;
    const double variance = fmax(0, late->squares / n - mean * mean);

    return (struct blame){mean - chance(c, l, row),
                          few_steps(n) * sqrt(variance / (n - 1)), mean};
}

/* How much longer than the others of its communicator it waits or transfers
 * elsewhere. */
static double excess_elsewhere(const struct ct_case *c,
                               const struct ct_lateness *l, int row)
{
    const struct ct_late *late = &l->rows[row];
    const int n = c->job->comms[late->comm].nranks;
    double others = 0;

    for (int i = l->first[late->comm]; i < l->first[late->comm] + n; i++)
        if (i != row && l->rows[i].steps > 0)
            others += l->rows[i].elsewhere_ns / l->rows[i].steps / (n - 1);
    return late->elsewhere_ns / late->steps - others;
}

static bool is_measured(const struct ct_late *late)
{
    return late->steps >= LEAST_STEPS && late->calls >= LEAST_CALLS;
}

/* Of few steps few calls say what those of many do. */
static bool is_priced(const struct ct_late *late)
{
    return late->steps >= LEAST_STEPS &&
           late->calls >= fmin(LEAST_CALLS, .5 * late->steps);
}

/* k of n, where chance gives one of so many ranks: most, and not by chance. */
static bool is_most(double k, double n, double nranks)
{
    const double p = 1 / nranks;

    return n > 0 && k / n > .5 + .5 * p &&
           k / n > p + 3 * sqrt(p * (1 - p) / n);
}

/* Of many calls in a step a data-parallel rank is late to the first only. */
static bool is_mostly_last(const struct ct_case *c, const struct ct_late *late)
{
    const int nranks = c->job->comms[late->comm].nranks;
    const int steps = late->steps < CT_STEPS_KEPT ? late->steps : CT_STEPS_KEPT;

    return is_most((double)late->last, (double)late->calls, nranks) ||
           is_most(late->dominated, steps, nranks);
}

static bool is_cause(const struct ct_case *c, const struct ct_lateness *l,
                     int row)
{
    const struct blame blame = blame_of(c, l, row);

    return is_measured(&l->rows[row]) && is_mostly_last(c, &l->rows[row]) &&
           blame.ns > NOTICEABLE_NS &&
           excess_elsewhere(c, l, row) < MOST_ELSEWHERE * blame.ns;
}

struct straggler {
    int row;            /* where the others wait for it most */
    struct blame least; /* over its communicators */
    bool by_clock;      /* in all of them */
    int comms;          /* it was measured in */
};

static struct straggler judge(const struct ct_case *c,
                              const struct ct_lateness *l, int process)
{
    struct straggler s = {.row = CT_NONE, .by_clock = true};
    double most = 0;

    for (int i = 0; i < l->n; i++) {
        struct blame blame;

        if (l->rows[i].process != process || !is_priced(&l->rows[i]))
            continue;
        blame = blame_of(c, l, i);
        if (s.comms++ == 0 || blame.ns < s.least.ns) {
            s.least = blame;
            s.by_clock = l->rows[i].by_clock;
        }
        if (blame.ns > most && is_cause(c, l, i)) {
            most = blame.ns;
            s.row = i;
        }
    }
    return s;
}

/* Of the micro-batches of a stage those that others idle beside while the
 * pipeline fills and drains: late there may cost nothing. */
static double hidden_share(const struct ct_roles *roles)
{
    const double p = roles->pp, m = roles->micro_batches;

    if (p <= 1)
        return 0;
    return m > p - 1 ? (p - 1) / m : 1;
}

static void tell(const struct ct_case *c, const struct ct_late *late,
                 struct ct_finding_row *row)
{
    const struct ct_process *p = &c->trace->processes[late->process];
    const int steps = late->steps < CT_STEPS_KEPT ? late->steps : CT_STEPS_KEPT;
    char ranks[60];

    snprintf(row->who, sizeof row->who, "rank %d (%.30s)", p->rank, p->host);
    ct_ranks_text(c->trace, &c->job->comms[late->comm], ranks, sizeof ranks);
    snprintf(row->text, sizeof row->text,
             "rank %d (%.30s) kept the others of the communicator of ranks %s "
             "waiting, most of all its ranks in %d of %d steps, by %s ms a "
             "step (last to %.0f %% of the %lld collectives to which one came "
             "last), and hardly waits "
             "elsewhere itself: %s ms of each step are lost [%s, %s]%s%s%s",
             p->rank, p->host, ranks, late->dominated, steps,
             CT_NUM(late->sum / late->steps / 1e6, 3),
             100 * (double)late->last / (double)late->calls,
             (long long)late->calls, CT_NUM(row->loss_ms, 3),
             CT_NUM(row->loss_low_ms, 3), CT_NUM(row->loss_high_ms, 3),
             late->steps < FEW_STEPS ? ", as far as so few steps tell" : "",
             hidden_share(c->roles) > 0
                 ? ", as far as the pipeline's fill and drain do not hide it"
                 : "",
             late->by_clock ? ""
                            : "; clocks of several hosts: this rests on "
                              "durations");
    snprintf(row->advice, sizeof row->advice,
             "see what this rank does beside the others (data, logging, "
             "checkpoints), then its GPU: clocks, heat, other processes");
}

static bool report(const struct ct_case *c, const struct ct_lateness *l,
                   const struct straggler *s, struct ct_findings *findings)
{
    const double certain =
        (s->by_clock ? 1 : BY_DURATION) * (1 - hidden_share(c->roles));
    const double error =
        hypot(NINETY_PERCENT * s->least.error_ns, HIDDEN_CHANCE * s->least.ns);
    struct ct_finding_row *row;

    if (s->least.ns < NOTICEABLE_NS || s->least.ns * certain <= error ||
        s->least.ns < LEAST_SHARE_OF_STEP * (double)c->job->step_ns)
        return true;
    row = ct_finding_add(findings, CT_FINDING_STRAGGLER);
    if (!row)
        return false;
    row->comm = l->rows[s->row].comm;
    row->source = CT_SOURCE_FIT;
    row->loss_ms = s->least.ns * (1 + certain) / 2 / 1e6;
    row->loss_low_ms = fmax(0, s->least.ns * certain - error) / 1e6;
    row->loss_high_ms = (s->least.most_ns + error) / 1e6;
    /* How sure that anything is lost: one-sided normal. */
    row->confidence = (s->by_clock ? 1 : .8) *
                      (1 - hidden_share(c->roles) / 2) * .5 *
                      erfc(-s->least.ns / fmax(s->least.error_ns, 1) / sqrt(2));
    tell(c, &l->rows[s->row], row);
    return true;
}

bool ct_rule_straggler(const struct ct_case *c, struct ct_findings *findings)
{
    struct ct_lateness lateness;
    bool good = true;

    if (c->job->nsteps < LEAST_STEPS)
        return true;
    if (ct_lateness_measure(c, &lateness) != 0)
        return false;
    for (int i = 0; good && i < c->job->nprocesses; i++) {
        const struct straggler s = judge(c, &lateness, c->job->processes[i]);

        if (s.row != CT_NONE)
            good = report(c, &lateness, &s, findings);
    }
    ct_lateness_release(&lateness);
    return good;
}
