#include "findings/findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/rules.h"

#define BAD "bad"
#define WARN "warn"
#define INFO "info"
const struct ct_finding_info ct_finding_infos[CT_FINDING_COUNT] = {
#define FINDING(id_, severity_, meaning_, next_) {#id_, severity_, meaning_},
#include "commtrace/findings.def"
};

struct ct_finding_row *ct_finding_add(struct ct_findings *findings,
                                      enum ct_finding id)
{
    struct ct_finding_row *rows =
        realloc(findings->rows, (size_t)(findings->n + 1) * sizeof *rows);
    struct ct_finding_row *row;

    if (!rows)
        return NULL;
    findings->rows = rows;
    row = &rows[findings->n++];
    *row = (struct ct_finding_row){.id = id,
                                   .comm = CT_NONE,
                                   .observed_ms = NAN,
                                   .predicted_ms = NAN,
                                   .loss_ms = NAN,
                                   .loss_low_ms = NAN,
                                   .loss_high_ms = NAN,
                                   .stretch = 1,
                                   .per = "step",
                                   .source = CT_SOURCE_PRIOR,
                                   .confidence = 1};
    return row;
}

void ct_finding_say(struct ct_finding_row *row, const char *format, ...)
{
    const size_t used = strlen(row->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(row->text + used, sizeof row->text - used, format, arguments);
    va_end(arguments);
}

void ct_rank_list(const int *ranks, int n, char *text, size_t size)
{
    size_t used = 0;
    int last;

    *text = 0;
    for (int i = 0; i < n; i = last + 1) {
        char part[32];

        for (last = i; last + 1 < n && ranks[last + 1] == ranks[last] + 1;
             last++)
            ;
        if (last > i)
            snprintf(part, sizeof part, "%d-%d", ranks[i], ranks[last]);
        else
            snprintf(part, sizeof part, "%d", ranks[i]);
        if (used + strlen(part) + sizeof ", ..." > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used ? ", " : "", part);
    }
}

void ct_ranks_text(const struct ct_trace *trace, const struct ct_comm *comm,
                   char *text, size_t size)
{
    int *ranks = malloc(((size_t)comm->nranks + 1) * sizeof *ranks);
    int n = 0;

    *text = 0;
    for (int i = 0; ranks && i < comm->nranks; i++)
        if (comm->members[i].process != CT_NONE)
            ranks[n++] = trace->processes[comm->members[i].process].rank;
    ct_rank_list(ranks, n, text, size);
    free(ranks);
}

static int severity_rank(const struct ct_finding_row *row)
{
    const char *severity = ct_finding_infos[row->id].severity;

    return strcmp(severity, BAD) == 0 ? 0 : strcmp(severity, WARN) == 0 ? 1 : 2;
}

/* What a job hung in comes before what its steps cost. */
static bool ends_job(const struct ct_finding_row *row)
{
    return row->id == CT_FINDING_RANK_NEVER_CAME ||
           row->id == CT_FINDING_OP_NEVER_ENDED;
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct ct_finding_row *a = pa;
    const struct ct_finding_row *b = pb;
    const double loss_a = isnan(a->loss_ms) ? -1e300 : a->loss_ms;
    const double loss_b = isnan(b->loss_ms) ? -1e300 : b->loss_ms;

    if (ends_job(a) != ends_job(b))
        return ends_job(a) ? -1 : 1;
    if (severity_rank(a) != severity_rank(b))
        return severity_rank(a) - severity_rank(b);
    if (loss_a != loss_b)
        return loss_a > loss_b ? -1 : 1;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->comm - b->comm;
}

static bool find_troubles(const struct ct_case *c, struct ct_findings *findings)
{
    return ct_rule_stuck(c, findings) && ct_rule_died(c, findings) &&
           ct_rule_quality(c, findings);
}

static bool add_all(struct ct_findings *findings,
                    const struct ct_findings *others)
{
    for (int i = 0; i < others->n; i++) {
        struct ct_finding_row *row =
            ct_finding_add(findings, others->rows[i].id);

        if (!row)
            return false;
        *row = others->rows[i];
    }
    return true;
}

static bool find_costs(struct ct_case *c, struct ct_findings *findings)
{
    return ct_rule_crossing(c, findings) && ct_rule_slow_link(c, findings) &&
           ct_rule_straggler(c, findings) && ct_rule_transport(c, findings) &&
           ct_rule_nics(c, findings) && ct_rule_ports(c, findings);
}

struct ct_findings *ct_findings_of_troubles(const struct ct_trace *trace,
                                            const struct ct_job *job)
{
    struct ct_findings *findings = calloc(1, sizeof *findings);
    const struct ct_case c = {.trace = trace, .job = job};

    if (findings && find_troubles(&c, findings))
        return findings;
    ct_findings_free(findings);
    return NULL;
}

struct ct_findings *ct_findings_build(const struct ct_trace *trace,
                                      const struct ct_job *job,
                                      const struct ct_model *model,
                                      const struct ct_model *reference,
                                      const struct ct_roles *roles,
                                      const struct ct_findings *troubles)
{
    struct ct_findings *findings = calloc(1, sizeof *findings);
    struct ct_case c = {trace, job, model, reference, roles, NULL, NULL};

    if (findings && (!find_costs(&c, findings) ||
                     !(troubles ? add_all(findings, troubles)
                                : find_troubles(&c, findings)))) {
        ct_findings_free(findings);
        findings = NULL;
    }
    free(c.located_us);
    free(c.located_error);
    if (findings && findings->n > 0)
        qsort(findings->rows, (size_t)findings->n, sizeof *findings->rows,
              compare_rows);
    return findings;
}

void ct_findings_free(struct ct_findings *findings)
{
    if (!findings)
        return;
    free(findings->rows);
    free(findings);
}
