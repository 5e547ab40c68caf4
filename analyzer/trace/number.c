/*
 * Which steps of all processes are one: those that communicated with each
 * other. One process counts its steps; the steps of others have the number that
 * most of their communication has, outwards from it.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/steps.h"

#define WHOLE 256 /* calls of a step that are all looked at */
#define ENDS 64   /* else so many at each end */
#define FEW 0.001 /* of the steps, that processes may not agree on */

struct numbering {
    struct ct_trace *trace;
    struct ct_job *job;
    int *number; /* per instance: of the step it is part of, CT_BETWEEN */
    int64_t votes, agreeing;
    int rows;     /* steps */
    int contrary; /* rows with a call that others have in another step, or in
                     one where the row is none */
};

static struct ct_process *process_of(const struct numbering *n, int i)
{
    return &n->trace->processes[n->job->processes[i]];
}

/* The op to look at after o. */
static int next_op(const struct ct_step_row *row, int o)
{
    const int n = row->last_op + 1 - row->first_op;

    return n > WHOLE && o == row->first_op + ENDS - 1 ? row->last_op + 1 - ENDS
                                                      : o + 1;
}

/* Where a step begins and ends that lacks records is asked of others. */
static void mark(struct numbering *n, const struct ct_process *p,
                 const struct ct_step_row *row)
{
    const int number = ct_row_is_step(row) ? row->number : CT_BETWEEN;
    bool contrary = false;
    int o;

    for (o = row->first_op; o <= row->last_op; o = next_op(row, o)) {
        const int instance = p->ops[o].instance;

        if (instance == CT_NONE)
            continue;
        if (n->number[instance] == CT_NONE && row->sure)
            n->number[instance] = number;
        if (n->number[instance] == CT_NONE)
            continue;
        contrary |= n->number[instance] != number;
        if (number == CT_BETWEEN)
            continue;
        n->votes++;
        n->agreeing += n->number[instance] == number;
    }
    n->rows += number != CT_BETWEEN;
    n->contrary += contrary;
}

/* What most of the row's communication was numbered; CT_NONE: none was. */
static int majority(const struct numbering *n, const struct ct_process *p,
                    const struct ct_step_row *row)
{
    int o, vote = 0, number = CT_NONE;

    for (o = row->first_op; o <= row->last_op; o = next_op(row, o)) {
        const int instance = p->ops[o].instance;

        if (instance == CT_NONE || n->number[instance] < 0)
            continue;
        if (!vote)
            number = n->number[instance];
        vote += n->number[instance] == number ? 1 : -1;
    }
    return number;
}

static void count_up(struct ct_process *p, int first)
{
    int i;

    for (i = 0; i < p->nsteps; i++)
        if (ct_row_is_step(&p->steps[i]))
            p->steps[i].number = first++;
}

/* Rows before the first one that is told count back from it. */
static void count_back(struct ct_process *p, int i)
{
    int number = p->steps[i].number;

    while (--i >= 0)
        if (ct_row_is_step(&p->steps[i]))
            p->steps[i].number = number > 0 ? --number : 0;
}

static bool adopt(const struct numbering *n, struct ct_process *p)
{
    int i, last = CT_NONE;

    for (i = 0; i < p->nsteps; i++) {
        struct ct_step_row *row = &p->steps[i];
        int number;

        if (!ct_row_is_step(row))
            continue;
        number = majority(n, p, row);
        if (last != CT_NONE && number <= last)
            number = last + 1;
        row->number = number;
        if (last == CT_NONE && number != CT_NONE)
            count_back(p, i);
        last = number;
    }
    return last != CT_NONE;
}

static void mark_all(struct numbering *n, const struct ct_process *p)
{
    int i;

    for (i = 0; i < p->nsteps; i++)
        mark(n, p, &p->steps[i]);
}

static int longest(const struct numbering *n)
{
    int i, best = 0;

    for (i = 1; i < n->job->nprocesses; i++)
        if (process_of(n, i)->nsteps > process_of(n, best)->nsteps)
            best = i;
    return best;
}

double ct_steps_number(struct ct_trace *trace, struct ct_job *job,
                       bool *certain_p)
{
    struct numbering n = {
        .trace = trace,
        .job = job,
        .number = ct_alloc((size_t)job->ninstances, sizeof(*n.number))};
    bool *done = ct_alloc((size_t)job->nprocesses, sizeof(*done));
    int i, left = job->nprocesses, before;

    for (i = 0; i < job->ninstances; i++)
        n.number[i] = CT_NONE;
    i = longest(&n);
    count_up(process_of(&n, i), 0);
    mark_all(&n, process_of(&n, i));
    done[i] = true;
    do {
        before = left;
        for (i = 0; i < job->nprocesses; i++)
            if (!done[i] && adopt(&n, process_of(&n, i))) {
                mark_all(&n, process_of(&n, i));
                done[i] = true;
                left--;
            }
    } while (left < before);
    for (i = 0; i < job->nprocesses; i++)
        if (!done[i])
            count_up(process_of(&n, i), 0);
    *certain_p = ct_steps_settle_edges(trace, job, n.number) &&
                 n.contrary <= FEW * n.rows;
    free(n.number);
    free(done);
    return n.votes ? (double)n.agreeing / (double)n.votes : 1;
}
