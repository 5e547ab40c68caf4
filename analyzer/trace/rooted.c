/*
 * Transfers of ROOTED collectives, which ranks may leave before others have
 * come: last end of a receiver minus last start, where the clocks are one or
 * tied well enough; else the shortest duration of a receiver, as a bound. Data
 * waits for a receiver that comes last as it does for a recv.
 */
#include <math.h>
#include <stdlib.h>

#include "trace/arena.h"
#include "trace/clocks.h"
#include "trace/match.h"

struct side { /* of an instance, over its ranks; common times, see clocks.h */
    int instance;
    int nrecv;
    const struct ct_process *first;
    int64_t start_max, end_max; /* end: of receivers */
    int64_t send_start;         /* of the last who sends */
    int64_t recv_min;           /* shortest duration of a receiver */
    double share;               /* of a receiver in its launch */
    double error;               /* times may be off by so much */
};

struct sides {
    struct ct_matching *m;
    int n;
    struct side *of; /* by instance */
};

static bool is_rooted(const struct ct_instance *instance)
{
    return ct_op_infos[instance->base].cls == CT_ROOTED;
}

static void list_sides(struct sides *sides)
{
    const struct ct_job *job = sides->m->job;
    int i, n = 0;

    for (i = 0; i < job->ninstances; i++)
        n += is_rooted(&job->instances[i]);
    sides->of = ct_alloc((size_t)n, sizeof(*sides->of));
    for (i = 0; i < job->ninstances; i++)
        if (is_rooted(&job->instances[i]))
            sides->of[sides->n++] = (struct side){.instance = i,
                                                  .start_max = INT64_MIN,
                                                  .end_max = INT64_MIN,
                                                  .send_start = CT_NO_TIME,
                                                  .recv_min = INT64_MAX,
                                                  .share = 1};
}

static int by_instance(const void *key, const void *side)
{
    const int a = *(const int *)key, b = ((const struct side *)side)->instance;

    return (a > b) - (a < b);
}

static void add_op(const struct sides *sides, const struct ct_process *p,
                   const struct ct_op_row *op, const struct ct_class_info *info)
{
    struct side *side = bsearch(&op->instance, sides->of, (size_t)sides->n,
                                sizeof(*sides->of), by_instance);
    const int64_t ns = ct_own_time(p, op, info->cls);
    int64_t start, end;
    double error;

    if (!side)
        return; /* of another kind than the others' */
    if (ct_op_start_ns(op) == CT_NO_TIME) {
        side->error = INFINITY;
        return;
    }
    if (!side->first)
        side->first = p;
    error =
        ct_common_error(sides->m->trace, p, side->first, ct_op_start_ns(op));
    side->error = fmax(side->error, error);
    start = ct_common_ns(sides->m->trace, p, ct_op_start_ns(op));
    if (start > side->start_max)
        side->start_max = start;
    if (!info->receives && start > side->send_start)
        side->send_start = start;
    if (!info->receives)
        return;
    end = ct_common_end(sides->m->trace, p, op);
    if (end > side->end_max)
        side->end_max = end;
    if (ns < side->recv_min)
        side->recv_min = ns;
    side->nrecv++;
    if (op->launch != CT_NONE && ct_op_gpu_ns(op) > 0)
        side->share = (double)ns / (double)ct_op_gpu_ns(op);
}

static bool has_rooted(const struct ct_process *p)
{
    int c;

    for (c = 0; c < p->nclasses; c++)
        if (ct_op_infos[p->classes[c].kind].cls == CT_ROOTED)
            return true;
    return false;
}

static void add_ops(const struct sides *sides, int i)
{
    const struct ct_process *p = ct_process_at(sides->m, i);
    int o;

    for (o = 0; has_rooted(p) && o < p->nops; o++) {
        const struct ct_op_row *op = &p->ops[o];
        const struct ct_class_info *info = &sides->m->infos[i][op->cls];

        if (info->cls == CT_ROOTED && ct_op_gpu_ns(op) != CT_NO_TIME)
            add_op(sides, p, op, info);
    }
}

static void finish(struct ct_instance *instance, const struct side *side)
{
    const int64_t both =
        side->nrecv ? side->end_max - side->start_max : CT_NO_TIME;
    int64_t transfer = instance->transfer_ns;

    if (!side->nrecv) {
        instance->bound = true;
    } else if (both <= 0 || !ct_is_clear(side->error, both)) {
        transfer = side->recv_min;
        instance->bound = true;
    } else {
        transfer = (int64_t)((double)both * side->share);
        if (transfer > instance->wait_max_ns)
            transfer = instance->wait_max_ns;
        instance->estimated = side->error > CT_SAMPLE_ERROR * (double)both;
        instance->overlapped =
            side->send_start != CT_NO_TIME &&
            ct_hides(side->start_max - side->send_start - (int64_t)side->error,
                     both);
    }
    ct_set_waits(instance, transfer);
}

void ct_rooted_finish(struct ct_matching *m)
{
    struct sides sides = {.m = m};
    int i;

    list_sides(&sides);
    for (i = 0; sides.n && i < m->job->nprocesses; i++)
        add_ops(&sides, i);
    for (i = 0; i < sides.n; i++) {
        struct ct_instance *instance = &m->job->instances[sides.of[i].instance];

        if (instance->timed && !instance->cut &&
            m->job->comms[instance->comm].nranks > 1)
            finish(instance, &sides.of[i]);
    }
    free(sides.of);
}
