/* Communications over all ranks, with who came last. */
#include <stdlib.h>

#include "report/jobdb_insert.h"

/* Only who makes others wait for all of it comes last: not a sender, nor the
 * ranks that a rooted op lets go. */
static bool has_last(const struct ct_instance *instance)
{
    return ct_op_infos[instance->base].cls == CT_COLL && !instance->bound &&
           instance->wait_max_ns > 0;
}

static void note_op(const struct jobdb_job *job, int process, int i)
{
    const struct ct_process *p = &job->view->trace->processes[process];
    const struct ct_op_row *op = &p->ops[i];
    struct jobdb_arrival *arrival = &job->arrivals[op->instance];
    struct ct_op_cost cost;

    if (arrival->step == CT_NONE)
        arrival->step = ct_step_number(p, ct_op_step(p, op));
    if (!has_last(&job->view->job->instances[op->instance]) ||
        !ct_op_cost(job->view->trace, process, i, &cost))
        return;
    if (arrival->last != CT_NONE && cost.wait_ns >= arrival->least_ns)
        return;
    arrival->least_ns = cost.wait_ns;
    arrival->last = process;
}

int jobdb_note_arrivals(struct jobdb_job *job)
{
    const struct ct_job *j = job->view->job;

    job->arrivals = malloc(((size_t)j->ninstances + 1) * sizeof *job->arrivals);
    if (!job->arrivals)
        return -1;
    for (int i = 0; i < j->ninstances; i++)
        job->arrivals[i] = (struct jobdb_arrival){CT_NO_TIME, CT_NONE, CT_NONE};
    for (int k = 0; k < j->nprocesses; k++) {
        const struct ct_process *p =
            &job->view->trace->processes[j->processes[k]];

        for (int i = 0; i < p->nops; i++)
            if (p->ops[i].instance != CT_NONE)
                note_op(job, j->processes[k], i);
    }
    return 0;
}

static const char *doubt_of(const struct ct_instance *n)
{
    return n->mismatch     ? "mismatch"
           : n->overlapped ? "late"
           : n->skewed     ? "apart"
           : n->estimated  ? "clocks"
                           : NULL;
}

static void put_instance(struct jobdb *db, const struct jobdb_job *job, int i)
{
    const struct ct_instance *n = &job->view->job->instances[i];

    jobdb_start(db, JOBDB_T_instance);
    jobdb_int(db, jobdb_instance(job, i));
    jobdb_int(db, job->view->number);
    jobdb_int(db, (int64_t)job->view->job->comms[n->comm].uid);
    jobdb_int(db, n->base);
    jobdb_int(db, n->ordinal);
    jobdb_int(db, (int64_t)ct_usage_of(job->view->job, n)->bytes);
    jobdb_int(db, n->ranks);
    jobdb_time(db, n->transfer_ns);
    jobdb_time(db, n->transfer_ns == CT_NO_TIME ? CT_NO_TIME : n->wait_max_ns);
    jobdb_int(db, n->bound);
    jobdb_text(db, doubt_of(n));
    jobdb_index(db, job->arrivals[i].step);
    jobdb_int(db, n->runs);
    jobdb_index(db, jobdb_usage(job, i));
    jobdb_index(db, job->arrivals[i].last);
    jobdb_end(db);
}

void jobdb_put_instances(struct jobdb *db, const struct jobdb_job *job)
{
    for (int i = 0; i < job->view->job->ninstances && !db->error[0]; i++)
        put_instance(db, job, i);
}
