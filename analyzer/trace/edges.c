/*
 * Where steps that lack records begin and end. A call that other processes saw
 * in a step is part of it; so is a step what others saw as one.
 */
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/steps.h"

#define REACH 16 /* calls in a row that nobody is sure of */

struct edges {
    const struct ct_trace *trace;
    const struct ct_job *job;
    const int *numbers;  /* per instance */
    int *steady, *other; /* per number: rows of these kinds */
    int nnumbers;
    bool certain;
};

static int number_at(const struct edges *e, const struct ct_process *p, int o)
{
    const int instance = p->ops[o].instance;

    return instance == CT_NONE ? CT_NONE : e->numbers[instance];
}

/* From op o on, down or up, the calls that are known to be of that number (or,
 * !same, of another): the last of them; o - by: there is none. */
static int reach(const struct edges *e, const struct ct_process *p, int o,
                 int by, int number, bool same)
{
    int end = o - by, i;

    for (i = 0; i < REACH && o >= 0 && o < p->nops; i++, o += by) {
        const int there = number_at(e, p, o);

        if (there == CT_NONE)
            continue;
        if ((there == number) != same)
            break;
        end = o;
        i = 0;
    }
    return end;
}

/* Whether anyone is sure of a call near op o. */
static bool is_known(const struct edges *e, const struct ct_process *p, int o,
                     int by)
{
    int i;

    for (i = 0; i < 2 && o >= 0 && o < p->nops; i++, o += by)
        if (number_at(e, p, o) != CT_NONE)
            return true;
    return o < 0 || o >= p->nops;
}

/* A row that lost its calls to its neighbour ends before it begins. */
static void settle_start(struct edges *e, struct ct_process *p, int i)
{
    struct ct_step_row *row = &p->steps[i], *before = i ? row - 1 : NULL;
    const bool joined = before && before->last_op + 1 == row->first_op;
    int first = reach(e, p, row->first_op - 1, -1, row->number, true);

    if (first == row->first_op)
        first = reach(e, p, first, 1, row->number, false) + 1;
    if (first > row->last_op)
        return;
    row->first_op = first;
    if (before && ((joined && !before->sure) || before->last_op >= first))
        before->last_op = first - 1;
    e->certain &=
        !before || (is_known(e, p, first, 1) && is_known(e, p, first - 1, -1));
}

static void settle_end(struct edges *e, struct ct_process *p, int i)
{
    struct ct_step_row *row = &p->steps[i];
    struct ct_step_row *after = i + 1 < p->nsteps ? row + 1 : NULL;
    const bool joined = after && row->last_op + 1 == after->first_op;
    int last = reach(e, p, row->last_op + 1, 1, row->number, true);

    if (last == row->last_op)
        last = reach(e, p, last, -1, row->number, false) - 1;
    if (last < row->first_op)
        return;
    row->last_op = last;
    if (after && ((joined && !after->sure) || after->first_op <= last))
        after->first_op = last + 1;
    e->certain &=
        !after || (is_known(e, p, last, -1) && is_known(e, p, last + 1, 1));
}

static void drop_empty(struct ct_process *p)
{
    int i, n = 0;

    for (i = 0; i < p->nsteps; i++)
        if (p->steps[i].first_op <= p->steps[i].last_op)
            p->steps[n++] = p->steps[i];
    p->nsteps = n;
}

static int64_t begin_ns(const struct ct_op_row *op, bool on_gpu)
{
    const int64_t ns = on_gpu ? ct_op_start_ns(op) : CT_NO_TIME;

    return ns == CT_NO_TIME ? op->enter_ns : ns;
}

static int64_t end_ns(const struct ct_op_row *op, bool on_gpu)
{
    const int64_t host_ns = ct_op_host_ns(op);

    if (on_gpu && ct_op_start_ns(op) != CT_NO_TIME &&
        ct_op_gpu_ns(op) != CT_NO_TIME)
        return ct_op_start_ns(op) + ct_op_gpu_ns(op);
    return op->enter_ns + (host_ns == CT_NO_TIME ? 0 : host_ns);
}

static void time_rows(struct ct_process *p)
{
    int i, timed = 0;

    for (i = 0; i < p->nsteps; i++)
        timed += ct_op_gpu_ns(&p->ops[p->steps[i].last_op]) != CT_NO_TIME;
    for (i = 0; i < p->nsteps; i++) {
        struct ct_step_row *row = &p->steps[i];
        const bool on_gpu = 2 * timed > p->nsteps;

        row->start_ns = i && row[-1].last_op + 1 == row->first_op
                            ? row[-1].end_ns
                            : begin_ns(&p->ops[row->first_op], on_gpu);
        row->end_ns = end_ns(&p->ops[row->last_op], on_gpu);
        row->first_ns = p->ops[row->first_op].enter_ns;
        row->last_ns = p->ops[row->last_op].enter_ns;
    }
}

static void count_kinds(struct edges *e)
{
    int i, k;

    for (i = 0; i < e->job->nprocesses; i++) {
        const struct ct_process *p = &e->trace->processes[e->job->processes[i]];

        for (k = 0; k < p->nsteps; k++)
            if (p->steps[k].number >= e->nnumbers)
                e->nnumbers = p->steps[k].number + 1;
    }
    e->steady = ct_alloc((size_t)e->nnumbers, sizeof(*e->steady));
    e->other = ct_alloc((size_t)e->nnumbers, sizeof(*e->other));
    for (i = 0; i < e->job->nprocesses; i++) {
        const struct ct_process *p = &e->trace->processes[e->job->processes[i]];

        for (k = 0; k < p->nsteps; k++) {
            const struct ct_step_row *row = &p->steps[k];

            if (row->number == CT_NONE)
                continue;
            e->steady[row->number] += row->kind == CT_STEP_STEADY;
            e->other[row->number] += row->kind != CT_STEP_STEADY;
        }
    }
}

static void settle(struct edges *e, struct ct_process *p)
{
    bool any = false;
    int i;

    for (i = 0; i < p->nsteps; i++) {
        struct ct_step_row *row = &p->steps[i];

        if (row->sure || !ct_row_is_step(row))
            continue;
        any = true;
        if (row->kind == CT_STEP_OTHER && row->number != CT_NONE &&
            e->steady[row->number] >= e->other[row->number])
            row->kind = CT_STEP_STEADY;
        e->certain &= row->kind != CT_STEP_OTHER;
        settle_start(e, p, i);
        settle_end(e, p, i);
    }
    if (any) {
        drop_empty(p);
        time_rows(p);
    }
}

/* Whether any of the calls first..last is in a step of others. */
static bool is_in_any(const struct edges *e, const struct ct_process *p,
                      int first, int last)
{
    int o;

    for (o = first; o <= last; o++)
        if (number_at(e, p, o) >= 0)
            return true;
    return false;
}

/* Whether the call before a first step that nobody is sure of is one of those
 * that later ones hold. */
static bool may_begin_before(const struct edges *e, const struct ct_process *p)
{
    const struct ct_step_row *row = p->steps;
    const int at = row->first_op - 1;
    int o;

    if (row->sure || at < 0 || number_at(e, p, at) != CT_NONE)
        return false;
    for (o = row->last_op + 1; o <= p->steps[p->nsteps - 1].last_op; o++)
        if (p->ops[o].cls == p->ops[at].cls)
            return true;
    return false;
}

/* Whether a process has calls outside of its steps that are in one of others:
 * it lost an end of its own. One that was killed, or still runs, may lack the
 * end. */
static bool lacks_end(const struct edges *e, const struct ct_process *p)
{
    const int n = p->nsteps;
    const bool ended = p->end_ns != CT_NO_TIME;

    if (!n)
        return ended && is_in_any(e, p, 0, p->nops - 1);
    return may_begin_before(e, p) ||
           is_in_any(e, p, 0, p->steps[0].first_op - 1) ||
           (ended && is_in_any(e, p, p->steps[n - 1].last_op + 1, p->nops - 1));
}

bool ct_steps_settle_edges(const struct ct_trace *trace,
                           const struct ct_job *job, const int *numbers)
{
    struct edges e = {
        .trace = trace, .job = job, .numbers = numbers, .certain = true};
    int i;

    count_kinds(&e);
    for (i = 0; i < job->nprocesses; i++) {
        struct ct_process *p = &trace->processes[job->processes[i]];

        settle(&e, p);
        e.certain &= !lacks_end(&e, p);
    }
    free(e.steady);
    free(e.other);
    return e.certain;
}
