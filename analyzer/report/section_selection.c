/* What was chosen of the job, and what that means for the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections.h"
#include "report/units.h"

struct card {
    const char *steps;
    char ranks[200];
    double from_s, to_s;
    char start[40];
    int64_t ops, of_ops;
    int whole_steps;
};

static const struct out_column columns[] = {
    OUT_COL(struct card, steps, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct card, ranks, "", OUT_BUFFER, 0, OUT_BOTH),
    OUT_COL(struct card, from_s, "", OUT_REAL, 9, OUT_BOTH),
    OUT_COL(struct card, to_s, "", OUT_REAL, 9, OUT_BOTH),
    OUT_COL(struct card, start, "", OUT_BUFFER, 0, OUT_BOTH),
    OUT_COL(struct card, ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct card, of_ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct card, whole_steps, "", OUT_INT, 0, OUT_BOTH),
};

static const struct out_table table = OUT_TABLE(struct card, columns);

void selection_ranks_text(const struct view *view, char *text, size_t size)
{
    const struct ct_job *job = view->job;
    int *ranks = calloc((size_t)job->nprocesses + 1, sizeof *ranks);
    int n = 0;

    *text = '\0';
    for (int i = 0; ranks && i < job->nprocesses; i++)
        if (!view->trace->processes[job->processes[i]].left_out)
            ranks[n++] = view->trace->processes[job->processes[i]].rank;
    if (ranks)
        units_ranks(text, size, ranks, n);
    free(ranks);
}

static double seconds(int64_t ns)
{
    return ns == CT_NO_TIME ? NAN : (double)ns / 1e9;
}

static void fill(struct card *card, const struct view *view)
{
    const struct selected *s = view->selected;

    card->steps = view->selection->steps_text;
    if (view->selection->ranks_text)
        selection_ranks_text(view, card->ranks, sizeof card->ranks);
    card->from_s = seconds(s->from_ns);
    card->to_s = seconds(s->to_ns);
    selection_date(s->start_real_ns, card->start, sizeof card->start);
    card->ops = s->ops;
    card->of_ops = s->of_ops;
    card->whole_steps = view->job->nsteps;
}

static void say_chosen(struct out *out, const struct card *card,
                       const struct view *view)
{
    const char *label = "chosen";

    if (card->steps) {
        out_fact(out, label, "steps %s of 0..%d", card->steps,
                 view->selected->of_steps - 1);
        label = "";
    }
    if (*card->ranks) {
        out_fact(out, label, "ranks %s of %d", card->ranks,
                 view->job->nprocesses);
        label = "";
    }
    if (isnan(card->from_s) && isnan(card->to_s))
        return;
    if (isnan(card->to_s))
        out_fact(out, label, "what was called from %.9g s on, since %s",
                 card->from_s, card->start);
    else
        out_fact(out, label,
                 "what was called from %.9g s to %.9g s since %s, the job's "
                 "start",
                 isnan(card->from_s) ? 0 : card->from_s, card->to_s,
                 card->start);
}

void section_selection(struct out *out, const struct view *view)
{
    struct card card = {0};

    if (!view->selected)
        return;
    fill(&card, view);
    out_title(out, "SELECTION", NULL);
    out_record(out, "selection", &table, &card);
    say_chosen(out, &card, view);
    out_fact(out, "counts",
             "%" PRId64 " of %" PRId64 " ops: only these make up calls, bytes, "
             "transfer, wait, fits, predictions and what findings cost; "
             "transfer and wait are as found with all ranks",
             card.ops, card.of_ops);
    if (card.whole_steps)
        out_fact(out, "steps",
                 "%d steady ones are whole on each rank; only they count per "
                 "step",
                 card.whole_steps);
    else
        out_fact(out, "steps",
                 "no steady one is whole on each rank: figures "
                 "are per second");
    out_fact(out, "of the rest",
             "communicators, links, roles, layout, clocks, matching and steps "
             "are those "
             "of the whole trace, and so are findings of hangs, deaths, "
             "mismatches, missing ranks and losses%s",
             *card.ranks ? "; lost and refused calls are those of the chosen "
                           "ranks, findings those about them, or about a "
                           "communicator that they are in"
                         : "; nothing tells the step of a lost call");
}
