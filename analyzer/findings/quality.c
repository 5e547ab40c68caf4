/*
 * What makes the report less sure than it could be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "findings/rules.h"

static const struct ct_process *process_at(const struct ct_case *c, int i)
{
    return &c->trace->processes[c->job->processes[i]];
}

static const char *remedy(const char *cause)
{
    if (!strcmp(cause, "size_limit"))
        return "raise COMMTRACE_MAX_MB";
    if (!strcmp(cause, "ring_full"))
        return "raise COMMTRACE_RING_SLOTS";
    if (!strcmp(cause, "write_error"))
        return "see that COMMTRACE_DIR has room";
    return "see table loss for when and where";
}

static bool report_lost(const struct ct_case *c, struct ct_findings *findings)
{
    const struct ct_process *worst = NULL;
    const char *cause = "unknown";
    int64_t most = 0;
    struct ct_finding_row *row;

    if (c->job->lost_ops == 0)
        return true;
    for (int i = 0; i < c->job->nprocesses; i++)
        if (!worst || process_at(c, i)->lost > worst->lost)
            worst = process_at(c, i);
    for (int i = 0; worst && i < worst->nlosses; i++) {
        if (strcmp(worst->losses[i].what, "op") != 0 ||
            worst->losses[i].n <= most)
            continue;
        most = worst->losses[i].n;
        cause = worst->losses[i].cause;
    }
    row = ct_finding_add(findings, CT_FINDING_OPS_LOST);
    if (!row)
        return false;
    snprintf(row->text, sizeof row->text,
             "%" PRId64 " op%s not recorded, most on rank %d (%" PRId64
             ", cause %.40s)",
             c->job->lost_ops, c->job->lost_ops == 1 ? " was" : "s were",
             worst ? worst->rank : CT_NONE, worst ? worst->lost : 0, cause);
    snprintf(row->advice, sizeof row->advice, "%s; the calls themselves ran",
             remedy(cause));
    return true;
}

static bool report_missing(const struct ct_case *c,
                           struct ct_findings *findings)
{
    struct ct_finding_row *row;
    int worst = CT_NONE, comms = 0;

    if (c->job->missing == 0)
        return true;
    for (int i = 0; i < c->job->ncomms; i++) {
        const int gap = c->job->comms[i].nranks - c->job->comms[i].nknown;

        comms += gap > 0;
        if (gap > 0 &&
            (worst == CT_NONE ||
             gap > c->job->comms[worst].nranks - c->job->comms[worst].nknown))
            worst = i;
    }
    row = ct_finding_add(findings, CT_FINDING_TRACE_MISSING);
    if (!row)
        return false;
    row->comm = worst;
    snprintf(row->text, sizeof row->text,
             "%d of %d processes have a trace; ranks are missing in %d "
             "communicator%s, at worst %d of %d",
             c->job->nprocesses, c->job->world_size, comms, ct_plural(comms),
             worst == CT_NONE
                 ? 0
                 : c->job->comms[worst].nranks - c->job->comms[worst].nknown,
             worst == CT_NONE ? 0 : c->job->comms[worst].nranks);
    snprintf(row->advice, sizeof row->advice,
             "add the trace folders of the other hosts to the command line");
    return true;
}

static bool report_mismatch(const struct ct_case *c,
                            struct ct_findings *findings)
{
    const struct ct_instance *first = NULL;
    struct ct_finding_row *row;
    char ranks[80] = "";

    if (c->job->mismatches == 0)
        return true;
    for (int i = 0; i < c->job->ninstances && !first; i++)
        if (c->job->instances[i].mismatch)
            first = &c->job->instances[i];
    row = ct_finding_add(findings, CT_FINDING_OP_MISMATCH);
    if (!row)
        return false;
    if (first) {
        row->comm = first->comm;
        ct_ranks_text(c->trace, &c->job->comms[first->comm], ranks,
                      sizeof ranks);
    }
    snprintf(row->text, sizeof row->text,
             "%" PRId64 " operation%s between ranks in kind, type or "
             "size; the first is number %u of the communicator of ranks %s",
             c->job->mismatches,
             c->job->mismatches == 1 ? " differs" : "s differ",
             first ? first->ordinal : 0, ranks);
    snprintf(row->advice, sizeof row->advice,
             "compare the call order of these ranks: such a job hangs or "
             "corrupts data");
    return true;
}

/* More steps could not be had by tracing longer. */
static bool ended_early(const struct ct_case *c,
                        const struct ct_findings *findings)
{
    for (int i = 0; i < c->job->nprocesses; i++)
        if (process_at(c, i)->dead)
            return true;
    for (int i = 0; i < findings->n; i++)
        if (findings->rows[i].id == CT_FINDING_RANK_NEVER_CAME ||
            findings->rows[i].id == CT_FINDING_OP_NEVER_ENDED)
            return true;
    return false;
}

static bool report_no_steps(const struct ct_case *c,
                            struct ct_findings *findings)
{
    struct ct_finding_row *row;

    if (c->job->nsteps > 0)
        return true;
    row = ct_finding_add(findings, CT_FINDING_NO_STEPS);
    if (!row)
        return false;
    row->per = "second";
    snprintf(row->text, sizeof row->text,
             "no operation recurs regularly enough to mark training steps; "
             "figures are per second");
    snprintf(row->advice, sizeof row->advice, "%s",
             ended_early(c, findings)
                 ? "the job ended too early to tell; see how it did"
                 : "trace at least five steps");
    return true;
}

bool ct_rule_quality(const struct ct_case *c, struct ct_findings *findings)
{
    return report_lost(c, findings) && report_missing(c, findings) &&
           report_mismatch(c, findings) && report_no_steps(c, findings);
}
