/* How whole the job's communications are, and whose calls do not fit. */
#include <inttypes.h>
#include <stdio.h>

#include "report/sections.h"

#define SHOWN 4 /* ranks of each kind */

static const struct out_column met_columns[] = {
    OUT_COL(struct ct_met, whole, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct ct_met, untraced, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct ct_met, lost, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct ct_met, ahead, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct ct_met, unlike, "", OUT_COUNT, 0, OUT_DATA),
};

static const struct out_table met_table = OUT_TABLE(struct ct_met, met_columns);

struct unlike_line {
    int comm, rank, global_rank;
    int64_t calls, first;
    const char *op, *others_op;
    uint64_t bytes, others_bytes;
    bool tied;
};

static const struct out_column unlike_columns[] = {
    OUT_COL(struct unlike_line, comm, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, rank, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, global_rank, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, calls, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, first, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, op, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, bytes, "", OUT_SIZE, 0, OUT_DATA),
    OUT_COL(struct unlike_line, others_op, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct unlike_line, others_bytes, "", OUT_SIZE, 0, OUT_DATA),
    OUT_COL(struct unlike_line, tied, "", OUT_BOOL, 0, OUT_DATA),
};

static const struct out_table unlike_table =
    OUT_TABLE(struct unlike_line, unlike_columns);

struct ahead_line {
    int comm, src, dst, behind, global_rank;
    int64_t issued, most;
};

static const struct out_column ahead_columns[] = {
    OUT_COL(struct ahead_line, comm, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, src, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, dst, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, behind, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, global_rank, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, issued, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct ahead_line, most, "", OUT_COUNT, 0, OUT_DATA),
};

static const struct out_table ahead_table =
    OUT_TABLE(struct ahead_line, ahead_columns);

static int global_rank(const struct view *view, int comm, int rank)
{
    const int process = view->job->comms[comm].members[rank].process;

    return process == CT_NONE ? CT_NONE : view->trace->processes[process].rank;
}

static void say_met(struct out *out, const struct ct_met *met)
{
    const struct {
        int64_t n;
        const char *what;
    } lacks[] = {
        {met->untraced, "more whose other ranks left no trace"},
        {met->lost, "more of which records were lost or had not been made"},
        {met->ahead, "more issued by some of their ranks only"},
        {met->unlike, "called differently by their ranks"}};
    char text[320] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (lacks[i].n)
            used +=
                (size_t)snprintf(text + used, sizeof text - used,
                                 "; %" PRId64 " %s", lacks[i].n, lacks[i].what);
    if (used)
        out_fact(out, "matched",
                 "%" PRId64 " operations over all their ranks%s", met->whole,
                 text);
}

static void put_unlike(struct out *out, const struct view *view)
{
    out_list(out, "unlike");
    for (int i = 0; i < view->job->nunlike; i++) {
        const struct ct_unlike *u = &view->job->unlike[i];
        const struct unlike_line line = {u->comm,
                                         u->rank,
                                         global_rank(view, u->comm, u->rank),
                                         u->calls,
                                         u->first,
                                         ct_op_infos[u->own.base].name,
                                         ct_op_infos[u->others.base].name,
                                         u->own.bytes,
                                         u->others.bytes,
                                         u->tied};

        out_record(out, NULL, &unlike_table, &line);
        if (i < SHOWN)
            out_fact(out, i ? "" : "unlike",
                     "rank %d: %" PRId64 " call%s of comm %d, from number "
                     "%" PRId64 " on, %s those of %s",
                     line.global_rank, line.calls,
                     ct_plural((double)line.calls), line.comm, line.first,
                     line.calls == 1 ? "is not" : "are not",
                     line.tied ? "another rank" : "most ranks");
    }
    out_list_end(out);
    if (view->job->nunlike > SHOWN)
        out_fact(out, "", "and of %d ranks more", view->job->nunlike - SHOWN);
}

static void put_ahead(struct out *out, const struct view *view)
{
    out_list(out, "behind");
    for (int i = 0; i < view->job->nahead; i++) {
        const struct ct_ahead *a = &view->job->ahead[i];
        const struct ahead_line line = {a->comm,
                                        a->src,
                                        a->dst,
                                        a->behind,
                                        global_rank(view, a->comm, a->behind),
                                        a->issued,
                                        a->most};

        out_record(out, NULL, &ahead_table, &line);
        if (i < SHOWN)
            out_fact(out, i ? "" : "behind",
                     "rank %d issued %" PRId64 " %s of comm %d, others are "
                     "%" PRId64 " ahead",
                     line.global_rank, line.issued,
                     a->src == CT_NONE ? "collectives" : "sends or receives",
                     line.comm, line.most - line.issued);
    }
    out_list_end(out);
    if (view->job->nahead > SHOWN)
        out_fact(out, "", "and in %d places more", view->job->nahead - SHOWN);
}

void section_met(struct out *out, const struct view *view)
{
    out_record(out, "matched", &met_table, &view->job->met);
    say_met(out, &view->job->met);
    put_unlike(out, view);
    put_ahead(out, view);
}
