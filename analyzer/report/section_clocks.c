/* The clocks of hosts: what ties them, and which are not tied. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/clock_facts.h"
#include "report/sections.h"

#define SHOWN 4     /* clocks that are not tied */
#define LEAST_US .1 /* no clock is known better, whatever its samples say */
#define LEAST_PPM .01

struct clock_line {
    int clock, node;
    const char *host;
    int processes, common, parent;
    const char *tied_by;
    int64_t ops;
    double offset_s, drift_ppm, residual_us, error_us;
    int64_t messages, contradicted;
};

static const struct out_column columns[] = {
    OUT_COL(struct clock_line, clock, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct clock_line, node, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct clock_line, host, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct clock_line, processes, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct clock_line, common, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct clock_line, parent, "", OUT_INT, 0, OUT_DATA),
    OUT_COL(struct clock_line, tied_by, "", OUT_TEXT, 0, OUT_DATA),
    OUT_COL(struct clock_line, ops, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct clock_line, offset_s, "", OUT_REAL, 12, OUT_DATA),
    OUT_COL(struct clock_line, drift_ppm, "", OUT_REAL, 4, OUT_DATA),
    OUT_COL(struct clock_line, residual_us, "", OUT_REAL, 4, OUT_DATA),
    OUT_COL(struct clock_line, error_us, "", OUT_REAL, 4, OUT_DATA),
    OUT_COL(struct clock_line, messages, "", OUT_COUNT, 0, OUT_DATA),
    OUT_COL(struct clock_line, contradicted, "", OUT_COUNT, 0, OUT_DATA),
};

static const struct out_table table = OUT_TABLE(struct clock_line, columns);

static struct clock_line line_of(const struct view *view, int i)
{
    const struct ct_clock *c = &view->job->clocks[i];
    const bool tied = c->parent != CT_NONE;

    return (struct clock_line){
        .clock = i,
        .node = c->node,
        .host = view->job->node_names[c->node],
        .processes = c->nprocesses,
        .common = c->group,
        .parent = c->parent,
        .tied_by = ct_clock_tie_names[c->tie],
        .ops = c->ties,
        .offset_s = tied ? clock_offset_ns(c) / 1e9 : NAN,
        .drift_ppm = tied ? clock_drift_ppm(c) : NAN,
        .residual_us = tied ? c->residual_ns / 1e3 : NAN,
        .error_us = tied ? c->error_ns / 1e3 : NAN,
        .messages = c->checked,
        .contradicted = c->contradicted,
    };
}

struct sum { /* over the clocks that are tied */
    int clocks;
    int64_t ops;
    double residual_us, error_us, drift_ppm; /* largest */
};

static struct sum sum_up(const struct view *view)
{
    struct sum sum = {0};

    for (int i = 0; i < view->job->nclocks; i++) {
        const struct clock_line line = line_of(view, i);

        if (line.parent == CT_NONE)
            continue;
        sum.clocks++;
        sum.ops += line.ops;
        sum.residual_us = fmax(sum.residual_us, line.residual_us);
        sum.error_us = fmax(sum.error_us, line.error_us);
        sum.drift_ppm = fmax(sum.drift_ppm, fabs(line.drift_ppm));
    }
    return sum;
}

static void say_untied(struct out *out, const struct view *view)
{
    int n = 0;

    for (int i = 1; i < view->job->nclocks; i++) {
        const struct ct_clock *c = &view->job->clocks[i];
        const int rank = view->trace->processes[c->first].rank;

        if (c->group == 0 || c->parent != CT_NONE || n++ >= SHOWN)
            continue;
        if (c->distrusted)
            out_fact(out, n == 1 ? "not tied" : "",
                     "the clock of %s (rank %d ...): by what ties it %" PRId64
                     " of %" PRId64 " messages were received before they were "
                     "sent",
                     view->job->node_names[c->node], rank, c->contradicted,
                     c->checked);
        else
            out_fact(out, n == 1 ? "not tied" : "",
                     "the clock of %s (rank %d ...): no collective with ranks "
                     "of other hosts was timed, nor send/recv both ways",
                     view->job->node_names[c->node], rank);
    }
    if (n > SHOWN)
        out_fact(out, "", "and %d clocks more", n - SHOWN);
    if (n > 0)
        out_fact(out, "",
                 "between clocks that are not tied, nothing is said that needs "
                 "one: send/recv, broadcasts and who comes last are judged by "
                 "durations");
}

void section_clocks(struct out *out, const struct view *view)
{
    const struct sum sum = sum_up(view);

    out_list(out, "clocks");
    for (int i = 0; i < view->job->nclocks; i++) {
        const struct clock_line line = line_of(view, i);

        out_record(out, NULL, &table, &line);
    }
    out_list_end(out);
    if (sum.clocks)
        out_fact(out, "clocks",
                 "%d of %d were tied to another's by %" PRId64 " ends of "
                 "operations, 95 %% of them within %s us; the common time may "
                 "still be off by %s us on a host; rates differ by %s ppm",
                 sum.clocks, view->job->nclocks, sum.ops,
                 CT_NUM(fmax(sum.residual_us, LEAST_US), 3),
                 CT_NUM(fmax(sum.error_us, LEAST_US), 3),
                 sum.drift_ppm < LEAST_PPM ? "less than 0.01"
                                           : CT_NUM(sum.drift_ppm, 2));
    say_untied(out, view);
}
