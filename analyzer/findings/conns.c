#include "findings/conns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/price.h"

#define WITHOUT_REASON .8 /* how sure, where no line of the log says why */

static const struct ct_process *process_of(const struct ct_case *c, int comm,
                                           int rank)
{
    const int process = c->job->comms[comm].members[rank].process;

    return process == CT_NONE ? NULL : &c->trace->processes[process];
}

int ct_job_rank(const struct ct_case *c, int comm, int rank)
{
    const struct ct_process *p = process_of(c, comm, rank);
    struct ct_absent absent;

    if (p)
        return p->rank;
    absent = ct_absent_of(c->trace, c->job, comm);
    return ct_absent_rank(&absent, rank);
}

int ct_path_distance(const char *path)
{
    static const char *const paths[] = {"LOC", "PIX", "PXB", "PHB", "SYS"};

    for (size_t i = 0; path && i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(path, paths[i]))
            return (int)i;
    return -1;
}

static bool visit_member(const struct ct_case *c, int comm, int rank,
                         ct_visit_conn *visit, void *context)
{
    const struct ct_comm *all = &c->job->comms[comm];
    const struct ct_process *p = process_of(c, comm, rank);
    const struct ct_conn_row *rows;
    bool more = true;
    int n;

    if (!p)
        return true;
    rows = ct_conns_in(p, all->members[rank].row, &n);
    for (int i = 0; i < n && more; i++) {
        const int end = rows[i].receives ? rows[i].dst : rows[i].src;
        const int other = rows[i].src == rank ? rows[i].dst : rows[i].src;
        struct ct_conn_at at = {.comm = comm,
                                .teller = p,
                                .row_of = &p->comms[all->members[rank].row],
                                .row = &rows[i],
                                .via = ct_via_parse(rows[i].via),
                                .own_end = end == rank};

        if (other < 0 || other >= all->nranks || other == rank)
            continue;
        at.other = process_of(c, comm, other);
        more = visit(&at, context);
    }
    return more;
}

bool ct_each_conn(const struct ct_case *c, ct_visit_conn *visit, void *context)
{
    for (int comm = 0; comm < c->job->ncomms; comm++)
        for (int rank = 0; rank < c->job->comms[comm].nranks; rank++)
            if (!visit_member(c, comm, rank, visit, context))
                return false;
    return true;
}

static bool is_value(const char *text, const char *value)
{
    const size_t n = strlen(value);

    return !strncmp(text, value, n) &&
           (!text[n] || text[n] == '.' || text[n] == ' ');
}

/* "NCCL_P2P_DISABLE set by environment to 0." */
static bool turns_nothing_off(const char *word, const char *text)
{
    const char *to = strstr(text, " to ");

    if (!to)
        return false;
    if (strstr(word, "_DISABLE"))
        return is_value(to + 4, "0");
    if (strstr(word, "_LEVEL"))
        return is_value(to + 4, "SYS");
    return (strstr(word, "_ENABLE") || strstr(word, "_GDR_")) &&
           !is_value(to + 4, "0");
}

const char *ct_log_line(const struct ct_process *process, const char *word)
{
    for (int i = 0; process && i < process->nccl.nmessages; i++) {
        const struct ct_nccl_message_row *m = &process->nccl.messages[i];

        if (strstr(m->text, word) && !turns_nothing_off(word, m->text))
            return m->text;
    }
    return NULL;
}

const char *ct_log_reason(const struct ct_conn_at *at, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        const char *line = ct_log_line(at->teller, words[i]);

        if (!line)
            line = ct_log_line(at->other, words[i]);
        if (line)
            return line;
    }
    return NULL;
}

struct search {
    struct ct_case *c;
    const struct ct_link_rule *rule;
    struct ct_finding_row best; /* of the worst communicator */
    struct ct_conn_at at;
    struct ct_bad_link bad;
    double calls;
    int last, ncomms; /* the last that is bad */
    bool failed;
};

static void weigh(struct search *s, const struct ct_conn_at *at,
                  const struct ct_bad_link *bad)
{
    struct ct_finding_row row = s->best;
    double calls = 0;

    row.observed_ms = row.predicted_ms = row.loss_ms = NAN;
    row.loss_low_ms = row.loss_high_ms = NAN;
    if (bad->could.link != CT_LINK_UNKNOWN)
        calls = ct_price_link(s->c, at->comm, bad->is.link, &bad->could, &row);
    if (s->ncomms++ && !(row.loss_ms > s->best.loss_ms) &&
        !(isnan(s->best.loss_ms) && !isnan(row.loss_ms)))
        return;
    row.comm = at->comm;
    s->best = row;
    s->at = *at;
    s->bad = *bad;
    s->calls = calls;
}

static bool look(const struct ct_conn_at *at, void *context)
{
    struct search *s = context;
    struct ct_bad_link bad = {.could = {CT_LINK_UNKNOWN, CT_NONE, "", ""},
                              .is = {CT_LINK_UNKNOWN, CT_NONE, "", ""}};

    if (at->comm == s->last || !s->rule->is_bad(s->c, at, &bad))
        return true;
    s->last = at->comm;
    s->failed = !ct_price_times(s->c);
    if (!s->failed)
        weigh(s, at, &bad);
    return !s->failed;
}

static const char *const source_words[CT_SOURCE_COUNT] = {
    [CT_SOURCE_FIT] = "this job's own measurements",
    [CT_SOURCE_REFERENCE] = "the reference trace",
    [CT_SOURCE_PRIOR] = "published figures",
};

static void tell_price(const struct search *s, struct ct_finding_row *row)
{
    const size_t used = strlen(row->text);
    char link[40];

    if (isnan(row->loss_ms))
        return;
    ct_link_text(s->bad.could.link, s->bad.could.speed, link, sizeof link);
    snprintf(row->text + used, sizeof row->text - used,
             ". Its %s call%s take %s ms per %s, over %s %s ms by %s: "
             "%s ms lost [%s, %s]",
             CT_NUM(s->calls, 4), ct_plural(s->calls),
             CT_NUM(row->observed_ms, 3), row->per, link,
             CT_NUM(row->predicted_ms, 3), source_words[row->source],
             CT_NUM(row->loss_ms, 3), CT_NUM(row->loss_low_ms, 3),
             CT_NUM(row->loss_high_ms, 3));
}

static void tell(const struct search *s, struct ct_finding_row *row)
{
    const struct ct_comm *comm = &s->c->job->comms[row->comm];
    char ranks[60], more[60] = "", what[300];

    ct_ranks_text(s->c->trace, comm, ranks, sizeof ranks);
    if (s->ncomms > 1)
        snprintf(more, sizeof more, ", as %d other communicator%s",
                 s->ncomms - 1, ct_plural(s->ncomms - 1));
    s->rule->tell(s->c, &s->at, &s->bad, what, sizeof what);
    if (s->bad.reason)
        snprintf(row->text, sizeof row->text,
                 "the communicator of ranks %s%s: %s; NCCL's log: \"%.150s\"",
                 ranks, more, what, s->bad.reason);
    else
        snprintf(row->text, sizeof row->text,
                 "the communicator of ranks %s%s: %s", ranks, more, what);
    tell_price(s, row);
    s->rule->advise(&s->bad, row->advice, sizeof row->advice);
}

bool ct_advise_unset(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (!bad->reason || !strstr(bad->reason, "NCCL_"))
        return false;
    snprintf(text, size,
             "take that variable out of the job's environment and of "
             "nccl.conf");
    return true;
}

static bool apply(struct ct_case *c, const struct ct_link_rule *rule,
                  struct ct_findings *findings)
{
    struct search s = {.c = c, .rule = rule, .last = CT_NONE};
    struct ct_finding_row *row;

    s.best.loss_ms = NAN;
    ct_each_conn(c, look, &s);
    if (s.failed || !s.ncomms)
        return !s.failed;
    row = ct_finding_add(findings, rule->id);
    if (!row)
        return false;
    if (!isnan(s.best.loss_ms)) {
        row->observed_ms = s.best.observed_ms;
        row->predicted_ms = s.best.predicted_ms;
        row->loss_ms = s.best.loss_ms;
        row->loss_low_ms = s.best.loss_low_ms;
        row->loss_high_ms = s.best.loss_high_ms;
        row->source = s.best.source;
    }
    if (s.best.per)
        row->per = s.best.per;
    row->comm = s.best.comm;
    row->groups = s.ncomms;
    row->confidence = s.bad.reason ? 1 : WITHOUT_REASON;
    tell(&s, row);
    return true;
}

bool ct_link_rules(struct ct_case *c, const struct ct_link_rule *rules,
                   size_t n, struct ct_findings *findings)
{
    for (size_t i = 0; i < n; i++)
        if (!apply(c, &rules[i], findings))
            return false;
    return true;
}
