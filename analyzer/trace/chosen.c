/* What NCCL chose, asked by op: a rank that was not told has it from the others
 * of its instance, since NCCL runs an op alike on all of them. */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/stages.h"

static bool has_choices(const struct ct_trace *trace, const struct ct_job *job)
{
    int i;

    for (i = 0; i < job->nprocesses; i++)
        if (trace->processes[job->processes[i]].op_choices)
            return true;
    return false;
}

static void note(struct ct_job *job, const struct ct_process *p, int process)
{
    int o;

    for (o = 0; p->op_choices && o < p->nops; o++) {
        const int instance = p->ops[o].instance;

        if (p->op_choices[o] != CT_NONE && instance != CT_NONE &&
            job->choices[instance].choice == CT_NONE)
            job->choices[instance] =
                (struct ct_choice_of){process, p->op_choices[o]};
    }
}

void ct_trace_choices(struct ct_trace *trace, struct ct_job *job)
{
    int i;

    if (!has_choices(trace, job))
        return;
    job->choices = ct_arena_alloc(trace->arena, (size_t)job->ninstances,
                                  sizeof(*job->choices));
    for (i = 0; i < job->ninstances; i++)
        job->choices[i] = (struct ct_choice_of){CT_NONE, CT_NONE};
    for (i = 0; i < job->nprocesses; i++)
        note(job, &trace->processes[job->processes[i]], job->processes[i]);
}

const struct ct_choice_class_row *
ct_op_choice(const struct ct_trace *trace, int process, int op, int *process_p)
{
    const struct ct_process *p = &trace->processes[process];
    const struct ct_job *job = &trace->jobs[p->job];
    const int instance = p->ops[op].instance;
    struct ct_choice_of of = {process,
                              p->op_choices ? p->op_choices[op] : CT_NONE};

    if (of.choice == CT_NONE && job->choices && instance != CT_NONE)
        of = job->choices[instance];
    *process_p = of.process;
    return of.choice == CT_NONE
               ? NULL
               : &trace->processes[of.process].choice_classes[of.choice];
}

/* A run by itself sorts before those of graphs, as CT_NONE does. */
static int by_op(const void *key, const void *member)
{
    const int op = *(const int *)key;
    const struct ct_kernel_row *row = member;

    if (op != row->op)
        return op < row->op ? -1 : 1;
    return row->launch == CT_NONE ? 0 : -1;
}

const struct ct_kernel_row *ct_op_kernel(const struct ct_process *p, int op)
{
    return p->nkernels ? bsearch(&op, p->kernels, (size_t)p->nkernels,
                                 sizeof(*p->kernels), by_op)
                       : NULL;
}
