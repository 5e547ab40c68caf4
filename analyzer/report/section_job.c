#include "report/sections.h"
#include "trace/select.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job_card {
    const char *command, *run_id;
    int restart;
    int processes, world_size, nodes, domains, communicators;
    int tp, pp, dp, layers_per_stage, micro_batches;
    int steps, warm_up_steps, evaluations, checkpoints, forwards;
    double step_ms, step_confidence, micro_batch_ms, forward_ms, span_s;
    const char *step_doubt, *no_steps;
    int64_t ops, runs, lost_ops, missing_ranks, mismatches;
    char missing[80]; /* which ranks; "": none */
    int in_flight, dead_processes;
    char dead[80];
};

static const struct out_column card_columns[] = {
    OUT_COL(struct job_card, command, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct job_card, run_id, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct job_card, restart, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, processes, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, world_size, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, nodes, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, domains, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, communicators, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, tp, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, pp, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, dp, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, layers_per_stage, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, micro_batches, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, steps, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, step_ms, "", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct job_card, step_confidence, "", OUT_REAL, 2, OUT_BOTH),
    OUT_COL(struct job_card, step_doubt, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct job_card, no_steps, "", OUT_TEXT, 0, OUT_BOTH),
    OUT_COL(struct job_card, warm_up_steps, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, evaluations, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, checkpoints, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, micro_batch_ms, "", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct job_card, forwards, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, forward_ms, "", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct job_card, span_s, "", OUT_REAL, 4, OUT_BOTH),
    OUT_COL(struct job_card, ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct job_card, runs, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct job_card, lost_ops, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct job_card, in_flight, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, dead_processes, "", OUT_INT, 0, OUT_BOTH),
    OUT_COL(struct job_card, missing_ranks, "", OUT_COUNT, 0, OUT_BOTH),
    OUT_COL(struct job_card, mismatches, "", OUT_COUNT, 0, OUT_BOTH),
};

static const struct out_table card_table =
    OUT_TABLE(struct job_card, card_columns);

/* The layout says 0 for what it does not know. */
static int known(int n)
{
    return n > 0 ? n : CT_NONE;
}

/* As many as most ranks have that have steps: one that lost records may show
 * others. */
static int usual_rows(const struct view *view, enum ct_step_kind kind)
{
    const struct ct_job *job = view->job;
    int64_t *rows = calloc((size_t)job->nprocesses + 1, sizeof *rows);
    int n = 0, usual = 0;

    for (int i = 0; rows && i < job->nprocesses; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        if (p->nsteps)
            rows[n++] = ct_count_steps(p, kind);
    }
    if (n)
        usual = (int)ct_nth(rows, n, n / 2);
    free(rows);
    return usual;
}

static double ms(int64_t ns)
{
    return ns == CT_NO_TIME ? NAN : (double)ns / 1e6;
}

static void fill_steps(struct job_card *card, const struct view *view)
{
    const struct ct_job *job = view->job;

    card->micro_batches = view_micro_batches(view);
    card->steps = job->nsteps;
    card->step_ms = card->micro_batch_ms = card->step_confidence = NAN;
    card->forwards = usual_rows(view, CT_STEP_FORWARD);
    card->forward_ms = card->forwards ? ms(job->forward_ns) : NAN;
    card->no_steps = job->no_steps;
    if (!job->nsteps)
        return;
    card->step_ms = ms(job->step_ns);
    card->step_confidence = job->step_confidence;
    card->step_doubt = job->step_doubt;
    card->warm_up_steps = usual_rows(view, CT_STEP_WARM_UP);
    card->evaluations = usual_rows(view, CT_STEP_EVALUATION);
    card->checkpoints = usual_rows(view, CT_STEP_CHECKPOINT);
    card->micro_batch_ms = ms(job->micro_batch_ns);
}

static void fill_card(struct job_card *card, const struct view *view)
{
    const struct ct_job *job = view->job;

    card->run_id = job->run_id;
    card->restart = job->restart;
    card->world_size = known(job->world_size);
    card->nodes = job->nnodes;
    card->domains = job->ndomains;
    card->communicators = job->ncomms;
    card->tp = known(view->roles->tp);
    card->pp = known(view->roles->pp);
    card->dp = known(view->roles->dp);
    card->layers_per_stage = known(view->roles->layers_per_stage);
    fill_steps(card, view);
    card->span_s = (double)job->span_ns / 1e9;
    card->lost_ops = job->lost_ops;
    card->in_flight = job->in_flight;
    if (job->missing)
        card->missing_ranks =
            view_missing_ranks(view, card->missing, sizeof card->missing);
    card->mismatches = job->mismatches;
    card->dead_processes = view_dead(view, card->dead, sizeof card->dead);
    for (int i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        card->ops += p->nops;
        card->runs += p->runs;
        card->processes += p->part == 0;
        if (!card->command)
            card->command = p->cmdline;
    }
}

/* A host name is a label only; where two nodes share one, what tells them
 * apart is added. */
static void name_node(const struct view *view, int node, char *text,
                      size_t size)
{
    const struct ct_job *job = view->job;
    const char *name = job->node_names[node] ? job->node_names[node] : "?";
    bool shared = false;

    for (int i = 0; i < job->nnodes; i++)
        shared = shared || (i != node && job->node_names[i] &&
                            !strcmp(job->node_names[i], name));
    snprintf(text, size, "%s", name);
    for (int i = 0; shared && i < job->nprocesses; i++) {
        const struct ct_process *p = &view->trace->processes[job->processes[i]];

        if (p->node != node || !p->host_id)
            continue;
        snprintf(text, size, "%s:%.8s", name, p->host_id);
        return;
    }
}

/* "host0, host1, ...", as far as it fits. */
static void list_nodes(const struct view *view, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < view->job->nnodes; i++) {
        char name[100];

        name_node(view, i, name, sizeof name);
        if (used + strlen(name) + sizeof ", , ..." > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used ? ", " : "", name);
    }
}

static void say_layout(struct out *out, const struct job_card *card)
{
    char more[100] = "";

    if (card->layers_per_stage > 0 && card->micro_batches > 0)
        snprintf(more, sizeof more, "; %d layer%s per stage, %d micro-batch%s",
                 card->layers_per_stage, ct_plural(card->layers_per_stage),
                 card->micro_batches, card->micro_batches == 1 ? "" : "es");
    else if (card->micro_batches > 0)
        snprintf(more, sizeof more, "; %d micro-batches", card->micro_batches);
    if (card->tp > 0 && card->pp > 0 && card->dp > 0)
        out_fact(out, "layout", "TP %d x PP %d x DP %d%s", card->tp, card->pp,
                 card->dp, more);
    else
        out_fact(out, "layout", "n/a: the roles found do not give one%s", more);
}

static void say_trouble(struct out *out, const struct job_card *card)
{
    const char *label = "trouble"; /* of the first line */

    if (card->dead_processes) {
        out_fact(out, label, "%s", card->dead);
        label = "";
    }
    if (card->missing[0]) {
        out_fact(out, label, "%s left no trace", card->missing);
        label = "";
    }
    if (card->mismatches)
        out_fact(out, label, "%" PRId64 " mismatched op%s", card->mismatches,
                 ct_plural(card->mismatches));
}

/* Which of a launch's tries this is, where there were several. */
static void say_run(struct out *out, const struct job_card *card,
                    const struct view *view)
{
    int tries = 0;

    for (int i = 0; card->run_id && i < view->trace->njobs; i++)
        tries += view->trace->jobs[i].run_id &&
                 !strcmp(view->trace->jobs[i].run_id, card->run_id);
    if (tries > 1 || (card->run_id && card->restart))
        out_fact(out, "run",
                 "%.60s, restart %d; %d of its tries in this report",
                 card->run_id, card->restart, tries);
}

static void add_phase(char *text, size_t size, int n, const char *one)
{
    const size_t used = strlen(text);

    if (n)
        snprintf(text + used, size - used, ", %d %s%s", n, one, ct_plural(n));
}

static void say_none(struct out *out, const struct job_card *card)
{
    out_fact(out, "steps",
             "none found in %s s: figures are per second, not per step",
             CT_NUM(card->span_s, 3));
    if (card->forwards)
        out_fact(out, "forward passes", "%d, median %s ms", card->forwards,
                 CT_NUM(card->forward_ms, 4));
}

static void say_steps(struct out *out, const struct job_card *card)
{
    char more[160] = "";

    if (!card->steps) {
        say_none(out, card);
        return;
    }
    add_phase(more, sizeof more, card->warm_up_steps, "warm-up step");
    add_phase(more, sizeof more, card->evaluations, "evaluation");
    add_phase(more, sizeof more, card->checkpoints, "checkpoint");
    if (card->step_confidence < VIEW_STEPS_SURE)
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 "; confidence %.2f", card->step_confidence);
    out_fact(out, "steps", "%d steady, median %s ms%s", card->steps,
             CT_NUM(card->step_ms, 4), more);
    if (card->step_confidence < VIEW_STEPS_SURE)
        out_fact(out, "doubt", "%s", card->step_doubt);
    if (!isnan(card->micro_batch_ms))
        out_fact(out, "micro-batches",
                 "%d in a step, %s ms from one to the next",
                 card->micro_batches, CT_NUM(card->micro_batch_ms, 4));
}

static void say_card(struct out *out, const struct job_card *card,
                     const struct view *view)
{
    const int traced = view_traced_ranks(view->job);
    char nodes[64], in[40] = "";

    list_nodes(view, nodes, sizeof nodes);
    if (card->command)
        out_fact(out, "command", "%.180s", card->command);
    say_run(out, card, view);
    if (traced > card->processes)
        snprintf(in, sizeof in, " in %d process%s", card->processes,
                 card->processes == 1 ? "" : "es");
    out_fact(out, "ranks",
             "%d traced of %d%s, on %d node%s (%s), %d NVLink domain%s", traced,
             card->world_size, in, card->nodes, ct_plural(card->nodes), nodes,
             card->domains, ct_plural(card->domains));
    say_layout(out, card);
    if (!card->steps && view->selected && view->selected->of_steps)
        out_fact(out, "steps",
                 "none steady and whole in the %s s chosen: figures are per "
                 "second",
                 CT_NUM(card->span_s, 3));
    else
        say_steps(out, card);
    out_fact(out, "ops",
             "%" PRId64 " recorded in %d communicator%s, %" PRId64
             " lost, %d in flight",
             card->ops, card->communicators, ct_plural(card->communicators),
             card->lost_ops, card->in_flight);
    say_trouble(out, card);
}

void section_job(struct out *out, const struct view *view)
{
    struct job_card card = {0};

    fill_card(&card, view);
    out_title(out, "JOB", NULL);
    out_object(out, "job");
    out_fields(out, &card_table, &card);
    out_list(out, "node_names");
    for (int i = 0; i < view->job->nnodes; i++)
        out_text(out, NULL, view->job->node_names[i]);
    out_list_end(out);
    out_object_end(out);
    say_card(out, &card, view);
}
