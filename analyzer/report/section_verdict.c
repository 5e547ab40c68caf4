/*
 * The few lines that are read at night: what is worst, where the time goes, and
 * whether the data can be trusted.
 */
#include "report/sections.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/units.h"

#define MUCH_WAITING 10 /* percent */

struct verdict {
    const char *finding;
    double loss_ms, share_percent, confidence;
    bool complete;
    char data[400];
};

static const struct out_column columns[] = {
    OUT_COL(struct verdict, finding, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct verdict, loss_ms, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct verdict, share_percent, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct verdict, confidence, "", OUT_REAL, 0, OUT_BOTH),
    OUT_COL(struct verdict, complete, "", OUT_BOOL, 0, OUT_BOTH),
    OUT_COL(struct verdict, data, "", OUT_BUFFER, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct verdict, columns);

static const struct ct_finding_row *find(const struct ct_findings *findings,
                                         enum ct_finding id)
{
    for (int i = 0; i < findings->n; i++)
        if (findings->rows[i].id == id)
            return &findings->rows[i];
    return NULL;
}

/* What the job hung in, or who died; NULL: it did not, as far as is known. */
static const struct ct_finding_row *
how_it_ended(const struct ct_findings *findings)
{
    static const enum ct_finding ends[] = {CT_FINDING_RANK_NEVER_CAME,
                                           CT_FINDING_OP_NEVER_ENDED,
                                           CT_FINDING_PROCESS_DIED};
    const struct ct_finding_row *row = NULL;

    for (size_t i = 0; i < sizeof ends / sizeof *ends && !row; i++)
        row = find(findings, ends[i]);
    return row;
}

/* The worst finding that costs time; NULL: none. */
static const struct ct_finding_row *dearest(const struct ct_findings *findings)
{
    for (int i = 0; i < findings->n; i++)
        if (!isnan(findings->rows[i].loss_ms))
            return &findings->rows[i];
    return NULL;
}

__attribute__((format(printf, 2, 3))) static void
add_issue(struct verdict *verdict, const char *format, ...)
{
    size_t used = 0;
    va_list args;

    while (verdict->data[used])
        used++;
    verdict->complete = false;
    if (used && used + 2 < sizeof verdict->data) {
        verdict->data[used++] = ';';
        verdict->data[used++] = ' ';
        verdict->data[used] = '\0';
    }
    va_start(args, format);
    vsnprintf(verdict->data + used, sizeof verdict->data - used, format, args);
    va_end(args);
}

static int64_t count_refused(const struct view *view)
{
    int64_t refused = 0;

    for (int i = 0; i < view->job->nprocesses; i++)
        refused += view->trace->processes[view->job->processes[i]].refused;
    return refused;
}

/* Ranks that called something, but whose steps were not found. */
static int count_stepless(const struct view *view)
{
    const struct ct_job *job = view->job;
    int n = 0;

    for (int i = 0; i < job->nprocesses && job->nsteps; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        n += p->nops && !p->nsteps && !p->left_out;
    }
    return n;
}

static void judge_data(struct verdict *verdict, const struct view *view)
{
    const struct ct_job *job = view->job;
    const struct view_times *t = &view->times;
    const int stepless = count_stepless(view);
    const int unread = view->trace->nskipped - view->trace->ndoubles;
    char ranks[80], dead[80];

    verdict->complete = true;
    if (job->lost_ops)
        add_issue(verdict, "%" PRId64 " op%s lost", job->lost_ops,
                  ct_plural((double)job->lost_ops));
    if (job->missing) {
        view_missing_ranks(view, ranks, sizeof ranks);
        add_issue(verdict, "%s left no trace", ranks);
    }
    if (view_dead(view, dead, sizeof dead))
        add_issue(verdict, "%s", dead);
    if (job->in_flight)
        add_issue(verdict, "%d op%s not known to have finished", job->in_flight,
                  ct_plural(job->in_flight));
    if (count_refused(view))
        add_issue(verdict, "%" PRId64 " call%s returned an error",
                  count_refused(view), ct_plural((double)count_refused(view)));
    if (job->mismatches)
        add_issue(verdict, "%" PRId64 " op%s not the same on all ranks",
                  job->mismatches, ct_plural((double)job->mismatches));
    if (t->host)
        add_issue(verdict, "%.0f %% of ops without a GPU time",
                  100.0 * (double)t->host /
                      (double)(t->event + t->group + t->host + t->none));
    if (unread)
        add_issue(verdict, "%d file%s not read", unread, ct_plural(unread));
    if (job->met.lost + job->met.ahead)
        add_issue(verdict, "%" PRId64 " operation%s of some ranks only",
                  job->met.lost + job->met.ahead,
                  ct_plural((double)(job->met.lost + job->met.ahead)));
    if (stepless)
        add_issue(verdict, "%d rank%s without steps, left out of means",
                  stepless, ct_plural(stepless));
    if (job->nsteps && job->step_confidence < VIEW_STEPS_SURE)
        add_issue(verdict, "steps are told with confidence %.2f only",
                  job->step_confidence);
    if (!job->nsteps)
        add_issue(verdict, view->selected && view->selected->of_steps
                               ? "no whole training step chosen"
                               : "no training step found");
    if (verdict->complete)
        snprintf(verdict->data, sizeof verdict->data,
                 "every rank and op is there, timed on the GPU");
}

/* "rank 17 (host2)", "ranks 0-7"; "": the whole job. */
static void name_who(const struct view *view, const struct ct_finding_row *row,
                     char *text, size_t size)
{
    const struct ct_comm *comm;
    int *ranks;

    snprintf(text, size, "%s", row->who);
    if (*text || row->comm == CT_NONE)
        return;
    comm = &view->job->comms[row->comm];
    ranks = calloc((size_t)comm->nranks + 1, sizeof *ranks);
    if (ranks) {
        snprintf(text, size, "ranks ");
        units_ranks(text + strlen(text), size - strlen(text), ranks,
                    view_comm_ranks(view->trace, comm, ranks));
    }
    free(ranks);
}

static void say_worst(struct out *out, const struct view *view,
                      const struct ct_finding_row *row)
{
    const char *code = ct_finding_infos[row->id].code;
    char sure[UNITS_SIZE], who[80];

    if (isnan(row->loss_ms)) {
        out_say(out, 2, "%s: %s", code, row->text);
        return;
    }
    name_who(view, row, who, sizeof who);
    out_say(out, 2,
            "%s%s%s: %s ms of each %s lost (%s %%), between %s and %s; "
            "sure %s%s%s",
            code, *who ? ", " : "", who, CT_NUM(row->loss_ms, 3), row->per,
            CT_NUM(row->loss_ms / view_period_ms(view) * 100, 2),
            CT_NUM(row->loss_low_ms, 3), CT_NUM(row->loss_high_ms, 3),
            units_sure(sure, row->confidence),
            isnan(row->predicted_ms) ? "" : ", predicted by ",
            isnan(row->predicted_ms) ? "" : section_source_names[row->source]);
    if (row->groups > 1)
        out_say(out, 2,
                "(the worst of %d such groups; they run side by side, their "
                "losses do not add up)",
                row->groups);
    if (row->advice[0])
        out_say(out, 2, "-> %s", row->advice);
}

/* What a rank spends on a role, families weighted by the ranks they hold. */
static void sum_role(const struct families *families, int ranks,
                     enum ct_role_id role, double *transfer_p, double *wait_p)
{
    *transfer_p = *wait_p = 0;
    for (int i = 0; i < families->n; i++) {
        const struct family *f = &families->rows[i];
        const double weight = (double)f->members / ranks;

        if ((f->given ? f->given->role : CT_ROLE_UNKNOWN) != role)
            continue;
        *transfer_p += weight * f->transfer_ms;
        *wait_p += weight * f->wait_ms;
    }
}

/* Below a tenth of a percent nothing is worth a digit. */
static void put_percent(char *text, size_t size, double percent)
{
    snprintf(text, size, percent < 9.95 ? "%.1f" : "%.0f",
             percent < .05 ? 0. : percent);
}

static void say_budget(struct out *out, const struct view *view,
                       const struct families *families)
{
    static const enum ct_role_id order[] = {CT_ROLE_TP, CT_ROLE_PP, CT_ROLE_DP,
                                            CT_ROLE_CONTROL, CT_ROLE_UNKNOWN};
    const int ranks = view_chosen_ranks(view);
    char text[400] = "";
    double waits = 0;
    size_t used = 0;

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        double transfer, wait, period = view_period_ms(view) / 100;
        char parts[2][32];

        sum_role(families, ranks, order[i], &transfer, &wait);
        if (transfer + wait <= 0)
            continue;
        put_percent(parts[0], sizeof parts[0], transfer / period);
        put_percent(parts[1], sizeof parts[1], wait / period);
        waits += wait / period;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s%s %s + %s", used ? ", " : "",
                                 ct_role_names[order[i]], parts[0], parts[1]);
    }
    if (used)
        out_say(out, 2,
                "Of each %s, in %%, transfer + wait: %s (overlapped with "
                "computing or not)",
                view->per, text);
    if (waits >= MUCH_WAITING)
        out_say(out, 2,
                "Ranks wait %.0f %% of each %s for later ones%s; commtrace "
                "merge and samples/sql/last_arrivals.sql say for whom",
                waits, view->per,
                view->pipeline.stages > 1
                    ? ", a pipeline's fill and drain included"
                    : "");
}

/* What is priced, so that silence about all else is not taken for praise. */
static const char *nothing_found(const struct view *view,
                                 const struct families *families)
{
    bool any = false;

    for (int i = 0; i < families->n; i++)
        any = any || (families->rows[i].given &&
                      families->rows[i].given->role == CT_ROLE_TP);
    if (!any)
        return "No TP group was found, and so none that crosses nodes";
    return view->job->missing ? "No TP group is seen to cross nodes, but not "
                                "all are seen whole"
                              : "No TP group crosses nodes";
}

/* Codes of what was found, each once. */
static void say_unpriced(struct out *out, const struct view *view,
                         const struct families *families)
{
    const struct ct_findings *findings = view->findings;
    bool said[CT_FINDING_COUNT] = {false};
    char text[400] = "";
    size_t used = 0;

    for (int i = 0; i < findings->n; i++) {
        const struct ct_finding_row *row = &findings->rows[i];

        if (!said[row->id])
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%s%s%s%s%s", used ? ", " : "",
                ct_finding_infos[row->id].code, *row->who ? " (" : "", row->who,
                *row->who ? ")" : "");
        said[row->id] = true;
    }
    if (used)
        out_say(out, 2, "Found, and what it costs is not known: %s. %s.", text,
                nothing_found(view, families));
    else
        out_say(out, 2,
                "Nothing was found of what commtrace knows to look for. %s.",
                nothing_found(view, families));
}

void section_verdict(struct out *out, const struct view *view,
                     const struct families *families)
{
    const struct ct_finding_row *end = how_it_ended(view->findings);
    const struct ct_finding_row *price = dearest(view->findings);
    const struct ct_finding_row *row = end ? end : price;
    struct verdict verdict = {
        .loss_ms = NAN, .share_percent = NAN, .confidence = NAN};

    judge_data(&verdict, view);
    if (row) {
        verdict.finding = ct_finding_infos[row->id].code;
        verdict.loss_ms = row->loss_ms;
        verdict.share_percent = row->loss_ms / view_period_ms(view) * 100;
        verdict.confidence = row->confidence;
    }
    out_title(out, "VERDICT", NULL);
    out_record(out, "verdict", &table, &verdict);
    if (end)
        say_worst(out, view, end);
    if (price)
        say_worst(out, view, price);
    if (!row)
        say_unpriced(out, view, families);
    say_budget(out, view, families);
    out_say(out, 2, "Data: %s.", verdict.data);
}
