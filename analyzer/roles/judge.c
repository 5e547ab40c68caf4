#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "roles/evidence.h"

#define STATED_CONFIDENCE .6
#define WORTH_SAYING .25 /* weight below which a fact is no reason */

const char *const ct_role_names[CT_ROLE_COUNT] = {
    [CT_ROLE_UNKNOWN] = "unknown", [CT_ROLE_TP] = "TP",
    [CT_ROLE_PP] = "PP",           [CT_ROLE_DP] = "DP",
    [CT_ROLE_CONTROL] = "control",
};

void ct_verdict_start(struct ct_verdict *verdict, struct ct_weights prior)
{
    *verdict = (struct ct_verdict){.explained = 1};
    verdict->prior[CT_ROLE_UNKNOWN] = prior.none;
    verdict->prior[CT_ROLE_TP] = prior.tp;
    verdict->prior[CT_ROLE_PP] = prior.pp;
    verdict->prior[CT_ROLE_DP] = prior.dp;
    verdict->prior[CT_ROLE_CONTROL] = prior.control;
}

const char *ct_view_per(const struct ct_view *view)
{
    return view->job->nsteps > 0 ? "per step" : "in all";
}

void ct_evidence_add(struct ct_verdict *verdict, struct ct_weights weights,
                     const char *format, ...)
{
    struct ct_evidence *evidence;
    va_list arguments;

    if (verdict->n == CT_MOST_EVIDENCE)
        return;
    evidence = &verdict->list[verdict->n++];
    evidence->weight[CT_ROLE_UNKNOWN] = weights.none;
    evidence->weight[CT_ROLE_TP] = weights.tp;
    evidence->weight[CT_ROLE_PP] = weights.pp;
    evidence->weight[CT_ROLE_DP] = weights.dp;
    evidence->weight[CT_ROLE_CONTROL] = weights.control;
    va_start(arguments, format);
    vsnprintf(evidence->text, sizeof evidence->text, format, arguments);
    va_end(arguments);
}

struct ranking {
    double score[CT_ROLE_COUNT], probability[CT_ROLE_COUNT];
    int order[CT_ROLE_COUNT]; /* likeliest first */
};

static void rank_roles(const struct ct_verdict *verdict,
                       struct ranking *ranking)
{
    double sum = 0;

    for (int r = 0; r < CT_ROLE_COUNT; r++) {
        ranking->score[r] = verdict->prior[r];
        for (int i = 0; i < verdict->n; i++)
            ranking->score[r] += verdict->list[i].weight[r];
        ranking->order[r] = r;
    }
    for (int i = 1; i < CT_ROLE_COUNT; i++) /* stable, five entries */
        for (int k = i; k > 0 && ranking->score[ranking->order[k]] >
                                     ranking->score[ranking->order[k - 1]];
             k--) {
            const int other = ranking->order[k];

            ranking->order[k] = ranking->order[k - 1];
            ranking->order[k - 1] = other;
        }
    const double top = ranking->score[ranking->order[0]];

    for (int r = 0; r < CT_ROLE_COUNT; r++)
        sum += exp(ranking->score[r] - top);
    for (int r = 0; r < CT_ROLE_COUNT; r++)
        ranking->probability[r] = exp(ranking->score[r] - top) / sum;
}

/* What a fact adds to role best over role second. */
static double margin(const struct ct_evidence *evidence, int best, int second)
{
    return evidence->weight[best] - evidence->weight[second];
}

static void give_reasons(const struct ct_verdict *verdict, int best, int second,
                         struct ct_role *role)
{
    bool used[CT_MOST_EVIDENCE] = {false};
    int against = CT_NONE;

    for (int reason = 0; reason < CT_REASONS; reason++) {
        int pick = CT_NONE;

        for (int i = 0; i < verdict->n; i++) {
            const double m = margin(&verdict->list[i], best, second);

            if (!used[i] && m > WORTH_SAYING &&
                verdict->list[i].weight[best] >= 0 &&
                (pick == CT_NONE ||
                 m > margin(&verdict->list[pick], best, second)))
                pick = i;
        }
        if (pick == CT_NONE)
            break;
        used[pick] = true;
        memcpy(role->reasons[reason], verdict->list[pick].text,
               sizeof role->reasons[reason]);
    }
    for (int i = 0; i < verdict->n; i++)
        if (verdict->list[i].weight[best] < -WORTH_SAYING &&
            (against == CT_NONE || verdict->list[i].weight[best] <
                                       verdict->list[against].weight[best]))
            against = i;
    if (against != CT_NONE)
        memcpy(role->contradiction, verdict->list[against].text,
               sizeof role->contradiction);
}

static double step_factor(int steps)
{
    if (steps == 0)
        return .75;
    return fmin(1, .8 + .1 * (steps - 1));
}

void ct_evidence_judge(const struct ct_view *view,
                       const struct ct_verdict *verdict, struct ct_role *role)
{
    struct ranking ranking;
    int best, second;

    rank_roles(verdict, &ranking);
    best = ranking.order[0];
    second = ranking.order[1];
    role->confidence =
        (ranking.probability[best] - ranking.probability[second]) *
        verdict->explained * step_factor(view->job->nsteps);
    role->role = CT_ROLE_UNKNOWN;
    if (best != CT_ROLE_UNKNOWN && role->confidence >= STATED_CONFIDENCE)
        role->role = (enum ct_role_id)best;
    if (best == CT_ROLE_UNKNOWN && ranking.score[second] > -2.5) {
        best = second; /* the nearest of the roles that there are */
        second = CT_ROLE_UNKNOWN;
    }
    role->best = (enum ct_role_id)best;
    role->second = (enum ct_role_id)second;
    give_reasons(verdict, best, best == second ? ranking.order[1] : second,
                 role);
}
