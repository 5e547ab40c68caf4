#include "report/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/cost.h"
#include "report/units.h"
#include "trace/progress.h"

static int open_trace(const struct cli *cli, char *const *paths, int npaths,
                      const struct ct_part *part, struct ct_trace **trace_p)
{
    char error[4096] = "";
    int failed;

    ct_progress_begin(cli->command);
    failed =
        ct_trace_open_part(paths, npaths, part, trace_p, error, sizeof error);
    ct_progress_end();
    if (!failed)
        return 0;
    cli_fail(cli, "%s", error);
    return -1;
}

static const struct ct_job *largest_job(const struct ct_trace *trace)
{
    const struct ct_job *largest = &trace->jobs[0];

    for (int i = 1; i < trace->njobs; i++)
        if (trace->jobs[i].nprocesses > largest->nprocesses)
            largest = &trace->jobs[i];
    return largest;
}

/* A sweep is one job; of several the largest tells most. */
static int open_reference(struct view_input *input, const struct cli *cli)
{
    char *path = (char *)(uintptr_t)cli->reference;

    if (open_trace(cli, &path, 1, NULL, &input->reference_trace) < 0)
        return -1;
    if (input->reference_trace->njobs > 1)
        fprintf(stderr, "%s: %s holds %d jobs; the largest is the reference\n",
                cli->command, cli->reference, input->reference_trace->njobs);
    input->reference = ct_model_build(input->reference_trace,
                                      largest_job(input->reference_trace));
    if (input->reference)
        return 0;
    cli_fail(cli, "out of memory");
    return -1;
}

int view_input_open(struct view_input *input, const struct cli *cli)
{
    return view_input_open_part(input, cli, NULL);
}

bool view_is_copy(const char *skipped)
{
    return strstr(skipped, ": same process as ") != NULL;
}

/* Where a folder is there twice, its files would hide a damaged one. */
static void say_skipped(const struct cli *cli, const struct ct_trace *trace)
{
    int copies = 0;

    for (int i = 0; i < trace->nskipped; i++)
        if (!view_is_copy(trace->skipped[i]) || copies++ < VIEW_COPIES_SHOWN)
            fprintf(stderr, "%s: skipped %s\n", cli->command,
                    trace->skipped[i]);
    if (copies > VIEW_COPIES_SHOWN)
        fprintf(stderr,
                "%s: skipped %d copies more (report --json names all)\n",
                cli->command, copies - VIEW_COPIES_SHOWN);
}

int view_input_open_part(struct view_input *input, const struct cli *cli,
                         const struct ct_part *part)
{
    memset(input, 0, sizeof *input);
    if (open_trace(cli, cli->paths, cli->npaths, part, &input->trace) < 0)
        return -1;
    say_skipped(cli, input->trace);
    input->selection = &cli->selection;
    if ((!cli->reference || open_reference(input, cli) == 0) &&
        selection_apply(input, cli) == 0)
        return 0;
    view_input_close(input);
    return -1;
}

void view_input_close(struct view_input *input)
{
    selection_forget(input);
    ct_model_free(input->reference);
    ct_trace_free(input->reference_trace);
    ct_trace_free(input->trace);
    memset(input, 0, sizeof *input);
}

bool view_has_rank(const struct ct_trace *trace, int rank)
{
    for (int i = 0; i < trace->nprocesses; i++)
        if (trace->processes[i].rank == rank)
            return true;
    return false;
}

int view_steps(const struct ct_process *process)
{
    int steps = 0;

    for (int i = 0; i < process->nsteps; i++)
        if (process->steps[i].number >= steps)
            steps = process->steps[i].number + 1;
    return steps;
}

bool view_has_job(const struct view_input *input, int number)
{
    return !input->selected || input->selected[number].ops > 0;
}

int view_print_jobs(const struct cli *cli, const struct view_input *input,
                    view_put_job *put)
{
    const char *name = strchr(cli->command, ' ');
    struct out *out = cli_out(cli);
    int failed = 0;

    if (!out)
        return CLI_EXIT_INPUT;
    out_text(out, "command", name ? name + 1 : cli->command);
    out_list(out, "jobs");
    for (int i = 0; i < input->trace->njobs && !failed; i++) {
        if (!view_has_job(input, i)) {
            fprintf(stderr, "%s: nothing of job %d of %d is in the selection\n",
                    cli->command, i + 1, input->trace->njobs);
            continue;
        }
        out_object(out, NULL);
        if (i)
            out_say(out, 0, "%s", "");
        out_say(out, 0, "%s: job %d of %d", cli->command, i + 1,
                input->trace->njobs);
        failed = put(out, input, cli, i) < 0;
        out_object_end(out);
    }
    out_list_end(out);
    if (failed)
        cli_fail(cli, "out of memory");
    return cli_done(cli, out) || failed ? CLI_EXIT_INPUT : 0;
}

int view_print(const struct cli *cli, view_put_job *put)
{
    struct view_input input;
    int status;

    if (view_input_open(&input, cli) < 0)
        return CLI_EXIT_INPUT;
    status = view_print_jobs(cli, &input, put);
    view_input_close(&input);
    return status;
}

static int fill(struct view *view, const struct view_input *input, int number)
{
    const struct ct_trace *trace = input->trace;
    const struct ct_job *job = &trace->jobs[number];

    view->trace = trace;
    view->number = number;
    view->job = job;
    view->reference = input->reference;
    if (input->selected) {
        view->selected = &input->selected[number];
        view->selection = input->selection;
    }
    view->model = ct_model_build(trace, job);
    view->roles =
        view->selected ? view->selected->roles : ct_roles_build(trace, job);
    if (!view->model || !view->roles || cost_measure(view) < 0)
        return -1;
    ct_pipeline_measure(trace, job, view->roles, &view->pipeline);
    view->findings =
        view->selected ? view->selected->findings
                       : ct_findings_build(trace, job, view->model,
                                           view->reference, view->roles, NULL);
    return view->findings ? 0 : -1;
}

int view_open(struct view *view, const struct view_input *input, int number)
{
    int failed;

    memset(view, 0, sizeof *view);
    fflush(stdout); /* may be the terminal that shows the progress */
    ct_progress_begin("commtrace");
    ct_progress_stage("comparing with models, looking for findings", 0);
    failed = fill(view, input, number);
    ct_progress_end();
    if (failed)
        view_close(view);
    return failed;
}

void view_close(struct view *view)
{
    if (!view->selected) {
        ct_findings_free(view->findings);
        ct_roles_free(view->roles);
    }
    ct_model_free(view->model);
    free(view->costs);
    memset(view, 0, sizeof *view);
}

const struct ct_role *view_role(const struct view *view, int usage)
{
    int role = usage == CT_NONE ? CT_NONE : view->roles->of_usage[usage];

    return role == CT_NONE ? NULL : &view->roles->roles[role];
}

double view_period_ms(const struct view *view)
{
    return view->job->nsteps ? (double)view->job->step_ns / 1e6 : 1000;
}

const char *view_role_name(char *buffer, size_t size,
                           const struct ct_role *role)
{
    if (!role)
        snprintf(buffer, size, "none");
    else if (role->role != CT_ROLE_UNKNOWN || role->best == CT_ROLE_UNKNOWN)
        snprintf(buffer, size, "%s", ct_role_names[role->role]);
    else if (role->second == CT_ROLE_UNKNOWN || role->second == role->best)
        snprintf(buffer, size, "unknown {%s}", ct_role_names[role->best]);
    else
        snprintf(buffer, size, "unknown {%s, %s}", ct_role_names[role->best],
                 ct_role_names[role->second]);
    return buffer;
}

const char *view_op_name(enum ct_op base)
{
    return ct_is_p2p(base) ? "send/recv" : ct_op_infos[base].name;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

static int without_repeats(int *sorted, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (!kept || sorted[kept - 1] != sorted[i])
            sorted[kept++] = sorted[i];
    return kept;
}

int view_comm_ranks(const struct ct_trace *trace, const struct ct_comm *comm,
                    int *ranks)
{
    int n = 0;

    for (int i = 0; i < comm->nranks; i++)
        if (comm->members[i].process != CT_NONE)
            ranks[n++] = trace->processes[comm->members[i].process].rank;
    qsort(ranks, (size_t)n, sizeof *ranks, compare_ints);
    return without_repeats(ranks, n);
}

int view_traced_ranks(const struct ct_job *job)
{
    int traced = job->nprocesses;

    for (int i = 0; i < job->ncomms; i++)
        if (job->comms[i].nknown > traced)
            traced = job->comms[i].nknown;
    return traced;
}

int view_micro_batches(const struct view *view)
{
    if (view->roles->micro_batches > 0)
        return view->roles->micro_batches;
    return view->job->nsteps && view->job->step_micro_batches > 0
               ? view->job->step_micro_batches
               : CT_NONE;
}

int view_chosen_members(const struct view *view, int comm)
{
    const struct ct_comm *c = &view->job->comms[comm];
    int n = 0;

    for (int i = 0; i < c->nranks; i++)
        n += c->members[i].process != CT_NONE &&
             !view->trace->processes[c->members[i].process].left_out;
    return n;
}

int view_chosen_ranks(const struct view *view)
{
    int chosen = 0;

    for (int i = 0; i < view->job->nprocesses; i++)
        chosen += !view->trace->processes[view->job->processes[i]].left_out;
    for (int i = 0; i < view->job->ncomms; i++) {
        const int members = view_chosen_members(view, i);

        chosen = members > chosen ? members : chosen;
    }
    return chosen;
}

void view_missing_members(const struct view *view, int comm, char *text,
                          size_t size)
{
    const struct ct_comm *c = &view->job->comms[comm];
    const struct ct_absent absent = ct_absent_of(view->trace, view->job, comm);
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < c->nranks; i++) {
        char member[64];
        int rank;

        if (c->members[i].process != CT_NONE)
            continue;
        rank = ct_absent_rank(&absent, i);
        if (rank == CT_NONE)
            snprintf(member, sizeof member, "%d", i);
        else
            snprintf(member, sizeof member, "%d (rank %d)", i, rank);
        if (used + strlen(member) + sizeof ", , ..." > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used ? ", " : "", member);
    }
}

int view_missing_ranks(const struct view *view, char *text, size_t size)
{
    const struct ct_job *job = view->job;
    int world = job->world_size > 0 ? job->world_size : 0, n = 0;
    int *missing = calloc((size_t)world + 1, sizeof *missing);
    bool *traced = calloc((size_t)world + 1, sizeof *traced);

    snprintf(text, size, "some ranks");
    for (int i = 0; traced && i < job->nprocesses; i++) {
        int rank = view->trace->processes[job->processes[i]].rank;

        if (rank >= 0 && rank < world)
            traced[rank] = true;
    }
    for (int i = 0; missing && traced && i < world; i++)
        if (!traced[i])
            missing[n++] = i;
    /* With several ranks in a process only their number is known. */
    if (n && n == world - view_traced_ranks(job)) {
        int prefix = snprintf(text, size, "rank%s ", ct_plural(n));

        units_ranks(text + prefix, size - (size_t)prefix, missing, n);
    }
    free(missing);
    free(traced);
    return world - view_traced_ranks(job);
}

/* A process that is several ranks died once. One whose ring is out of reach, as
 * on another host, may as well run. */
int view_dead(const struct view *view, char *text, size_t size)
{
    int dead = 0, unsure = 0;

    for (int i = 0; i < view->job->nprocesses; i++) {
        const struct ct_process *p =
            &view->trace->processes[view->job->processes[i]];

        if (!p->dead || p->part > 0)
            continue;
        dead++;
        unsure += p->ring_missing;
    }
    *text = '\0';
    if (dead)
        snprintf(text, size, "%d process%s died%s", dead, dead == 1 ? "" : "es",
                 unsure ? " or cannot be reached" : "");
    return dead;
}
