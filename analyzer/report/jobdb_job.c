/* Jobs, places, members, links, steps, usages: what the ranks say together. */
#include "report/jobdb_insert.h"
#include "report/sections.h"
#include "trace/graphs.h"

#include <math.h>

static void put_job_row(struct jobdb *db, const struct view *view)
{
    const struct ct_job *job = view->job;

    jobdb_start(db, JOBDB_T_job);
    jobdb_int(db, view->number);
    jobdb_int(db, job->nprocesses);
    jobdb_index(db, job->world_size);
    jobdb_int(db, job->nnodes);
    jobdb_int(db, job->ndomains);
    jobdb_int(db, job->nsteps);
    jobdb_time(db, job->nsteps ? job->step_ns : CT_NO_TIME);
    jobdb_real(db, job->nsteps ? job->step_confidence : NAN);
    jobdb_text(db, job->nsteps ? job->step_doubt : NULL);
    jobdb_text(db, job->no_steps);
    jobdb_index(db, job->nsteps ? view_micro_batches(view) : CT_NONE);
    jobdb_time(db, job->nsteps ? job->micro_batch_ns : CT_NO_TIME);
    jobdb_int(db, job->nforwards);
    jobdb_time(db, job->nforwards ? job->forward_ns : CT_NO_TIME);
    jobdb_text(db, job->run_id);
    jobdb_int(db, job->restart);
    jobdb_int(db, job->start_real_ns);
    jobdb_end(db);
}

static void put_selection(struct jobdb *db, const struct view *view)
{
    const struct selected *s = view->selected;
    char ranks[400];

    if (!s)
        return;
    selection_ranks_text(view, ranks, sizeof ranks);
    jobdb_start(db, JOBDB_T_selection);
    jobdb_int(db, view->number);
    jobdb_text(db, view->selection->steps_text);
    jobdb_text(db, view->selection->ranks_text ? ranks : NULL);
    jobdb_time(db, s->from_ns);
    jobdb_time(db, s->to_ns);
    jobdb_int(db, s->start_real_ns);
    jobdb_int(db, s->ops);
    jobdb_int(db, s->of_ops);
    jobdb_end(db);
}

static void put_place(struct jobdb *db, const struct view *view, int process)
{
    const struct ct_process *p = &view->trace->processes[process];

    jobdb_start(db, JOBDB_T_place);
    jobdb_int(db, process);
    jobdb_int(db, view->number);
    jobdb_index(db, p->rank);
    jobdb_index(db, p->node);
    jobdb_index(db, p->domain);
    jobdb_int(db, p->clock);
    jobdb_text(db, p->node >= 0 && p->node < view->job->nnodes
                       ? view->job->node_names[p->node]
                       : NULL);
    jobdb_text(db, p->path);
    jobdb_int(db, p->dead);
    jobdb_int(db, p->recovered);
    jobdb_int(db, p->lost);
    jobdb_end(db);
}

static void put_steps(struct jobdb *db, const struct ct_process *p, int process)
{
    for (int i = 0; i < p->nsteps; i++) {
        if (p->steps[i].kind == CT_STEP_CUT &&
            p->steps[i].last_op < p->steps[i].first_op)
            continue; /* nothing of it is here */
        jobdb_start(db, JOBDB_T_step);
        jobdb_int(db, process);
        jobdb_index(db, p->steps[i].number);
        jobdb_time(db, p->steps[i].start_ns);
        jobdb_time(db, p->steps[i].end_ns);
        jobdb_text(db, ct_step_kinds[p->steps[i].kind]);
        jobdb_end(db);
    }
}

static void put_members(struct jobdb *db, const struct view *view, int comm)
{
    const struct ct_comm *c = &view->job->comms[comm];
    const struct ct_absent absent = ct_absent_of(view->trace, view->job, comm);

    for (int i = 0; i < c->nranks; i++) {
        int process = c->members[i].process;
        const struct ct_process *p =
            process == CT_NONE ? NULL : &view->trace->processes[process];

        jobdb_start(db, JOBDB_T_member);
        jobdb_int(db, (int64_t)c->uid);
        jobdb_int(db, i);
        jobdb_index(db, process);
        jobdb_index(db, p ? p->rank : ct_absent_rank(&absent, i));
        jobdb_index(db, p ? p->node : CT_NONE);
        jobdb_index(db, p ? p->domain : CT_NONE);
        jobdb_end(db);
    }
}

static void put_comms(struct jobdb *db, const struct view *view)
{
    for (int i = 0; i < view->job->ncomms; i++)
        put_members(db, view, i);
    jobdb_put_links(db, view);
}

static void put_usage(struct jobdb *db, const struct view *view, int i,
                      int64_t id)
{
    const struct ct_usage *u = &view->job->usages[i];
    const struct ct_role *role = view_role(view, i);

    jobdb_start(db, JOBDB_T_usage);
    jobdb_int(db, id);
    jobdb_int(db, view->number);
    jobdb_int(db, (int64_t)view->job->comms[u->comm].uid);
    jobdb_int(db, u->base);
    jobdb_index(db, u->type);
    jobdb_index(db, u->redop);
    jobdb_int(db, (int64_t)u->count);
    jobdb_int(db, (int64_t)u->bytes);
    jobdb_index(db, u->src);
    jobdb_index(db, u->dst);
    jobdb_int(db, u->grouped);
    jobdb_int(db, u->link);
    jobdb_index(db, u->speed);
    jobdb_text(db, u->evidence);
    jobdb_text(db, role ? ct_role_names[role->role] : NULL);
    jobdb_int(db, u->calls);
    jobdb_real(db, u->per_step);
    jobdb_int(db, u->transfer_ns);
    jobdb_int(db, u->wait_ns);
    jobdb_time(db, u->median_ns);
    jobdb_int(db, u->nsamples);
    jobdb_int(db, u->timed);
    jobdb_end(db);
}

struct graph_runs {
    struct jobdb *db;
    const struct ct_process *process;
    int number;
};

static void put_graph_run(void *context, int graph, int step, int64_t runs)
{
    const struct graph_runs *to = context;

    jobdb_start(to->db, JOBDB_T_graph_run);
    jobdb_int(to->db, to->number);
    jobdb_int(to->db, to->process->graphs[graph].id);
    jobdb_index(to->db, step);
    jobdb_int(to->db, runs);
    jobdb_end(to->db);
}

static void put_graph_runs(struct jobdb *db, const struct view *view,
                           int process)
{
    struct graph_runs to = {db, &view->trace->processes[process], process};

    ct_graphs_by_step(to.process, put_graph_run, &to);
}

void jobdb_put_job(struct jobdb *db, const struct jobdb_job *whole)
{
    const struct view *view = whole->view;
    const struct ct_job *job = view->job;

    put_job_row(db, view);
    put_selection(db, view);
    for (int i = 0; i < job->nprocesses; i++) {
        put_place(db, view, job->processes[i]);
        put_steps(db, &view->trace->processes[job->processes[i]],
                  job->processes[i]);
        put_graph_runs(db, view, job->processes[i]);
    }
    jobdb_put_clocks(db, view);
    put_comms(db, view);
    for (int i = 0; i < job->nusages && !db->error[0]; i++)
        put_usage(db, view, i, whole->first_usage + i);
    jobdb_put_verdicts(db, view);
}
