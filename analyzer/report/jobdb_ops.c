/* Ops, what each is part of, and how its kernels ran. */
#include "report/jobdb_insert.h"

/* Its number in the whole job. */
static int op_id(const struct ct_process *p, int op)
{
    return p->op_ids ? p->op_ids[op] : op;
}

static void put_op(struct jobdb *db, const struct ct_process *p, int number,
                   int i)
{
    const struct ct_op_row *op = &p->ops[i];
    bool own_time = op->launch == CT_NONE;

    jobdb_start(db, JOBDB_T_op);
    jobdb_int(db, number);
    jobdb_int(db, op_id(p, i));
    jobdb_int(db, op->cls);
    jobdb_int(db, op->ordinal);
    if (own_time)
        jobdb_none(db);
    else
        jobdb_int(db, (int64_t)p->launches[op->launch].grp);
    jobdb_int(db, op->enter_ns);
    jobdb_time(db, ct_op_host_ns(op));
    jobdb_gpu_time(db, op->enter_ns, own_time ? ct_op_start_ns(op) : CT_NO_TIME,
                   own_time ? ct_op_gpu_ns(op) : CT_NO_TIME);
    jobdb_int(db, op->flags);
    jobdb_end(db);
}

static void put_match(struct jobdb *db, const struct jobdb_job *job, int number,
                      int i)
{
    const struct ct_trace *trace = job->view->trace;
    const struct ct_process *p = &trace->processes[number];
    const struct ct_op_row *op = &p->ops[i];
    struct ct_op_cost cost;
    int told;
    const struct ct_choice_class_row *choice =
        ct_op_choice(trace, number, i, &told);

    ct_op_cost(trace, number, i, &cost);
    jobdb_start(db, JOBDB_T_op_match);
    jobdb_int(db, number);
    jobdb_int(db, op_id(p, i));
    jobdb_index(db, op->launch);
    jobdb_index(db, jobdb_instance(job, op->instance));
    jobdb_index(db, jobdb_usage(job, op->instance));
    jobdb_index(db, ct_step_number(p, ct_op_step(p, op)));
    jobdb_time(db, cost.transfer_ns);
    jobdb_time(db, cost.wait_ns);
    jobdb_graph(db, p, ct_op_graph(p, op));
    jobdb_index(db, choice ? choice->id : CT_NONE);
    jobdb_index(db, choice ? told : CT_NONE);
    jobdb_end(db);
}

static void put_kernels(struct jobdb *db, const struct ct_process *p,
                        int number)
{
    for (int i = 0; i < p->nkernels && !db->error[0]; i++) {
        const struct ct_kernel_row *k = &p->kernels[i];

        jobdb_start(db, JOBDB_T_kernel);
        jobdb_int(db, number);
        jobdb_int(db, op_id(p, k->op));
        jobdb_index(db, k->launch == CT_NONE ? CT_NONE
                                             : p->graph_launches[k->launch].id);
        jobdb_time(db, k->start_ns);
        jobdb_int(db, k->gpu_ns);
        jobdb_end(db);
    }
}

void jobdb_put_ops(struct jobdb *db, const struct jobdb_job *job, int process)
{
    const struct ct_process *p = &job->view->trace->processes[process];

    for (int i = 0; i < p->nops && !db->error[0]; i++)
        put_op(db, p, process, i);
    for (int i = 0; i < p->nops && !db->error[0]; i++)
        put_match(db, job, process, i);
    put_kernels(db, p, process);
}
