/*
 * What makes the report less sure than it could be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "findings/rules.h"
#include "trace/lost.h"

static const struct ct_process *process_at(const struct ct_case *c, int i)
{
    return &c->trace->processes[c->job->processes[i]];
}

static bool report_lost(const struct ct_case *c, struct ct_findings *findings)
{
    const struct ct_process *worst = NULL;
    const char *cause;
    struct ct_finding_row *row;

    if (c->job->lost_ops == 0)
        return true;
    for (int i = 0; i < c->job->nprocesses; i++)
        if (!worst || process_at(c, i)->lost > worst->lost)
            worst = process_at(c, i);
    cause = worst ? ct_lost_cause(worst) : "unknown";
    row = ct_finding_add(findings, CT_FINDING_OPS_LOST);
    if (!row)
        return false;
    snprintf(row->text, sizeof row->text,
             "%" PRId64 " op%s not recorded, most on rank %d (%" PRId64
             ", cause %.40s); counts and prices leave them out",
             c->job->lost_ops, c->job->lost_ops == 1 ? " was" : "s were",
             worst ? worst->rank : CT_NONE, worst ? worst->lost : 0, cause);
    snprintf(row->advice, sizeof row->advice, "%s; the calls themselves ran",
             ct_lost_remedy(cause));
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

/* What a rank called, and the others, as far as that differs. */
static void describe_difference(const struct ct_unlike *u, char *text,
                                size_t size)
{
    char own[24], others[24];

    ct_bytes_text((double)u->own.bytes, own, sizeof own);
    ct_bytes_text((double)u->others.bytes, others, sizeof others);
    if (u->own.bytes != u->others.bytes && !strcmp(own, others)) {
        snprintf(own, sizeof own, "%" PRIu64 " bytes", u->own.bytes);
        snprintf(others, sizeof others, "%" PRIu64 " bytes", u->others.bytes);
    }
    if (u->own.base != u->others.base || u->own.bytes != u->others.bytes)
        snprintf(text, size, "%s of %s, of %s %s of %s",
                 ct_op_infos[u->own.base].name, own,
                 u->tied ? "another" : "the others",
                 ct_op_infos[u->others.base].name, others);
    else
        snprintf(text, size, "%s of %s with another %s",
                 ct_op_infos[u->own.base].name, own,
                 u->own.type != u->others.type     ? "data type"
                 : u->own.redop != u->others.redop ? "reduction"
                                                   : "root");
}

static const struct ct_unlike *most_unlike(const struct ct_job *job)
{
    const struct ct_unlike *most = job->unlike;

    for (int i = 1; i < job->nunlike; i++)
        if (job->unlike[i].calls > most->calls)
            most = &job->unlike[i];
    return most;
}

static int job_rank(const struct ct_case *c, int comm, int rank)
{
    const int process = c->job->comms[comm].members[rank].process;

    return process == CT_NONE ? CT_NONE : c->trace->processes[process].rank;
}

static void name_unlike(const struct ct_case *c, struct ct_finding_row *row)
{
    const struct ct_unlike *u = most_unlike(c->job);
    const size_t used = strlen(row->text);
    char ranks[80], difference[160];

    row->comm = u->comm;
    ct_ranks_text(c->trace, &c->job->comms[u->comm], ranks, sizeof ranks);
    describe_difference(u, difference, sizeof difference);
    snprintf(row->text + used, sizeof row->text - used,
             "; rank %d called %" PRId64 " of the communicator of ranks %s "
             "otherwise than %s, the first, number %" PRIu32 ", %s",
             job_rank(c, u->comm, u->rank), u->calls, ranks,
             u->tied ? "another" : "the others", u->first, difference);
    if (c->job->nunlike > 1)
        snprintf(row->text + strlen(row->text),
                 sizeof row->text - strlen(row->text),
                 "; and so did %d other rank%s, see DATA", c->job->nunlike - 1,
                 ct_plural(c->job->nunlike - 1));
}

static bool report_mismatch(const struct ct_case *c,
                            struct ct_findings *findings)
{
    struct ct_finding_row *row;

    if (c->job->mismatches == 0)
        return true;
    row = ct_finding_add(findings, CT_FINDING_OP_MISMATCH);
    if (!row)
        return false;
    snprintf(row->text, sizeof row->text,
             "%" PRId64 " operation%s between ranks in kind, type or size",
             c->job->mismatches,
             c->job->mismatches == 1 ? " differs" : "s differ");
    if (c->job->nunlike > 0)
        name_unlike(c, row);
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

/* Whether more of the job would help depends on why there are none. */
static const char *advice_on_steps(const struct ct_case *c,
                                   const struct ct_findings *findings)
{
    if (ended_early(c, findings))
        return "the job ended too early to tell; see how it did";
    if (c->job->lost_ops)
        return "see to the lost ops first (OPS_LOST): steps may be there that "
               "cannot be told apart without them";
    if (!c->job->no_steps || !strcmp(c->job->no_steps, CT_NO_PERIOD))
        return "if this trains and fewer than five steps were traced, trace "
               "more of them";
    return "a longer trace may tell more, where the job trains without change "
           "of ranks, sizes or micro-batches";
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
    if (c->job->nforwards)
        snprintf(row->text, sizeof row->text,
                 "no training steps but forward passes, %d of them; figures "
                 "are per second",
                 c->job->nforwards);
    else
        snprintf(row->text, sizeof row->text, "%s; figures are per second",
                 c->job->no_steps ? c->job->no_steps : CT_NO_PERIOD);
    if (!c->job->nforwards)
        snprintf(row->advice, sizeof row->advice, "%s",
                 advice_on_steps(c, findings));
    return true;
}

bool ct_rule_quality(const struct ct_case *c, struct ct_findings *findings)
{
    return report_lost(c, findings) && report_missing(c, findings) &&
           report_mismatch(c, findings) && report_no_steps(c, findings);
}
