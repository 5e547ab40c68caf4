#include "report/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/cli.h"
#include "report/view.h"

static int64_t count_ops(const struct ct_trace *trace, const struct ct_job *job)
{
    int64_t n = 0;

    for (int i = 0; i < job->nprocesses; i++)
        n += trace->processes[job->processes[i]].nops;
    return n;
}

static int most_steps(const struct ct_trace *trace, const struct ct_job *job)
{
    int most = 0;

    for (int i = 0; i < job->nprocesses; i++) {
        const int steps = view_steps(&trace->processes[job->processes[i]]);

        most = steps > most ? steps : most;
    }
    return most;
}

static int64_t last_call(const struct ct_trace *trace, const struct ct_job *job,
                         const struct ct_job_clock *clock)
{
    int64_t last = 0;

    for (int i = 0; i < job->nprocesses; i++) {
        const struct ct_process *p = &trace->processes[job->processes[i]];
        const int64_t ns =
            p->nops ? ct_job_time(clock, p, p->ops[p->nops - 1].enter_ns) : 0;

        if (ns > last)
            last = ns;
    }
    return last;
}

static int64_t time_of(const struct selection_moment *moment,
                       const struct selected *selected)
{
    int64_t ns;

    if (!moment->text)
        return CT_NO_TIME;
    if (!moment->date)
        return moment->ns;
    return __builtin_sub_overflow(moment->ns, selected->start_real_ns, &ns)
               ? INT64_MAX
               : ns;
}

static void note_whole(struct selected *selected, const struct selection *s,
                       const struct ct_trace *trace, const struct ct_job *job)
{
    struct ct_job_clock *clock = ct_job_clock_new(trace, job);

    selected->start_real_ns = ct_job_start_real(clock);
    selected->last_ns = last_call(trace, job, clock);
    ct_job_clock_free(clock);
    selected->from_ns = time_of(&s->from, selected);
    selected->to_ns = time_of(&s->to, selected);
    selected->of_ops = count_ops(trace, job);
    selected->of_steps = most_steps(trace, job);
}

/* Takes over old, which says what each usage that is left was. */
static void renumber_roles(struct ct_roles *roles, const struct ct_job *job,
                           int *old)
{
    for (int i = 0; i < job->nusages; i++)
        roles->of_usage[i] = roles->of_usage[old[i]];
    free(old);
}

/* About the whole job, or about a communicator that a chosen rank is in. */
static bool concerns(const struct ct_trace *trace, const struct ct_job *job,
                     int comm)
{
    const struct ct_comm *c = comm == CT_NONE ? NULL : &job->comms[comm];

    for (int i = 0; c && i < c->nranks; i++)
        if (c->members[i].process != CT_NONE &&
            !trace->processes[c->members[i].process].left_out)
            return true;
    return !c;
}

static void drop_findings(struct ct_findings *findings,
                          const struct ct_trace *trace,
                          const struct ct_job *job)
{
    int n = 0;

    for (int i = 0; i < findings->n; i++)
        if (concerns(trace, job, findings->rows[i].comm))
            findings->rows[n++] = findings->rows[i];
    findings->n = n;
}

/* What went wrong is found in all of the job; what it costs in the steps and
 * times that are chosen, where who is late shows at all ranks. */
static int select_job(struct view_input *input, const struct selection *s,
                      int number)
{
    struct ct_trace *trace = input->trace;
    struct ct_job *job = &trace->jobs[number];
    struct selected *selected = &input->selected[number];
    struct ct_findings *troubles = NULL;
    struct ct_selection what = {.first_step =
                                    s->steps_text ? s->first_step : CT_NONE,
                                .last_step = s->last_step,
                                .nranks = s->nranks,
                                .ranks = s->ranks};
    struct ct_model *model = NULL;

    note_whole(selected, s, trace, job);
    what.from_ns = selected->from_ns;
    what.to_ns = selected->to_ns;
    selected->roles = ct_roles_build(trace, job);
    troubles = ct_findings_of_troubles(trace, job);
    if (!selected->roles || !troubles)
        goto out;
    if (s->steps_text || s->from.text || s->to.text)
        renumber_roles(selected->roles, job, ct_narrow_time(trace, job, &what));
    model = ct_model_build(trace, job);
    if (!model)
        goto out;
    selected->findings = ct_findings_build(trace, job, model, input->reference,
                                           selected->roles, troubles);
    if (s->ranks_text)
        renumber_roles(selected->roles, job,
                       ct_narrow_ranks(trace, job, &what));
    if (selected->findings && s->ranks_text)
        drop_findings(selected->findings, trace, job);
    selected->ops = count_ops(trace, job);
out:
    ct_model_free(model);
    ct_findings_free(troubles);
    return selected->findings ? 0 : -1;
}

void selection_date(int64_t real_ns, char *text, size_t size)
{
    const time_t seconds = (time_t)(real_ns / 1000000000);
    struct tm tm;

    *text = '\0';
    if (!gmtime_r(&seconds, &tm) ||
        !strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm))
        return;
    snprintf(text + strlen(text), size - strlen(text), ".%03dZ",
             (int)(real_ns % 1000000000 / 1000000));
}

/* Of several jobs, what the first says. */
static void say_times(const struct view_input *input, const struct selection *s,
                      const struct cli *cli)
{
    const struct selected *first = &input->selected[0];
    char start[40];

    if (s->from.text && s->to.text && first->from_ns >= first->to_ns) {
        cli_fail(cli, "--from %s is not before --to %s", s->from.text,
                 s->to.text);
        return;
    }
    selection_date(first->start_real_ns, start, sizeof start);
    cli_fail(cli,
             "no operation is in the selection: the job began at %s, its last "
             "call is %.3f s later",
             start, (double)first->last_ns / 1e9);
}

static int say_nothing_left(const struct view_input *input,
                            const struct selection *s, const struct cli *cli)
{
    int steps = 0;

    for (int i = 0; i < input->trace->njobs; i++)
        if (input->selected[i].of_steps > steps)
            steps = input->selected[i].of_steps;
    if (s->steps_text && !steps)
        cli_fail(cli, "--steps %s: no steps were found", s->steps_text);
    else if (s->steps_text && s->first_step >= steps)
        cli_fail(cli, "--steps %s: there are steps 0..%d", s->steps_text,
                 steps - 1);
    else if (s->from.text || s->to.text)
        say_times(input, s, cli);
    else
        cli_fail(cli, "no operation is in the selection");
    return -1;
}

static int check_ranks(const struct ct_trace *trace, const struct selection *s,
                       const struct cli *cli)
{
    for (int i = 0; i < s->nranks; i++)
        if (!view_has_rank(trace, s->ranks[i])) {
            cli_fail(cli, "--ranks: rank %d has no trace", s->ranks[i]);
            return -1;
        }
    return 0;
}

int selection_apply(struct view_input *input, const struct cli *cli)
{
    const struct selection *s = &cli->selection;
    int64_t ops = 0;

    if (selection_is_all(s))
        return 0;
    if (check_ranks(input->trace, s, cli) < 0)
        return -1;
    input->selected =
        calloc((size_t)input->trace->njobs + 1, sizeof *input->selected);
    for (int i = 0; i < input->trace->njobs; i++) {
        if (!input->selected || select_job(input, s, i) < 0) {
            cli_fail(cli, "out of memory");
            return -1;
        }
        ops += input->selected[i].ops;
    }
    return ops ? 0 : say_nothing_left(input, s, cli);
}

void selection_forget(struct view_input *input)
{
    for (int i = 0; input->selected && i < input->trace->njobs; i++) {
        ct_roles_free(input->selected[i].roles);
        ct_findings_free(input->selected[i].findings);
    }
    free(input->selected);
    input->selected = NULL;
}
