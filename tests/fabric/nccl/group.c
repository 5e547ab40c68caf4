#include "nccl/group.h"

#include <stdlib.h>

#include "nccl/api.h"
#include "nccl/bringup.h"
#include "nccl/comm.h"
#include "nccl/job.h"
#include "nccl/launch.h"
#include "nccl/op.h"
#include "nccl/profiler.h"
#include "nccl/split.h"

#define SIM_INFO_MAGIC 0x74685283u

struct group {
    int depth;
    ncclResult_t error;
    struct op *ops;
    int n_ops;
    int ops_size;
    ncclComm_t *inits;
    int n_inits;
    int is_explicit; /* the user's own, not about a call alone */
    struct split *splits;
    int n_splits;
};

static _Thread_local struct group group;

/* Room for one more; arrays of few elements need no spare room. */
static void *grow(void *array, int n, size_t size)
{
    return realloc(array, ((size_t)n + 1) * size);
}

void group_start(void)
{
    group.depth++;
    group.is_explicit = 1;
}

ncclResult_t group_fail(ncclResult_t result)
{
    if (group.depth && !group.error)
        group.error = result;
    return result;
}

/* What is outside any group is a group of one. */
static ncclResult_t end_if_alone(void)
{
    if (group.depth)
        return ncclSuccess;
    group.depth = 1;
    return group_end();
}

ncclResult_t group_add_op(const struct op *op)
{
    struct op mine = *op;

    profiler_call(&mine, group.depth + 1);
    if (group.n_ops == group.ops_size) {
        int size = group.ops_size ? 2 * group.ops_size : 16;
        struct op *ops = realloc(group.ops, (size_t)size * sizeof(*ops));

        if (!ops)
            return group_fail(ncclSystemError);
        group.ops = ops;
        group.ops_size = size;
    }
    group.ops[group.n_ops++] = mine;
    return end_if_alone();
}

ncclResult_t group_add_init(ncclComm_t comm)
{
    ncclComm_t *inits = grow(group.inits, group.n_inits, sizeof(ncclComm_t));

    if (!inits)
        return group_fail(ncclSystemError);
    group.inits = inits;
    group.inits[group.n_inits++] = comm;
    return end_if_alone();
}

ncclResult_t group_add_split(const struct split *split)
{
    struct split *splits =
        grow(group.splits, group.n_splits, sizeof(struct split));

    if (!splits)
        return group_fail(ncclSystemError);
    group.splits = splits;
    group.splits[group.n_splits++] = *split;
    return end_if_alone();
}

/* All votes are cast before any is waited for: another rank may have the
 * splits of several communicators in another order. */
static ncclResult_t run_splits(struct group *g)
{
    for (int i = 0; i < g->n_splits; i++) {
        ncclResult_t result = split_vote(&g->splits[i]);

        if (result)
            return result;
    }
    for (int i = 0; i < g->n_splits; i++) {
        ncclResult_t result = split_count(&g->splits[i]);

        if (result)
            return result;
    }
    for (int i = 0; i < g->n_splits; i++) {
        ncclResult_t result = split_finish(&g->splits[i]);

        if (result)
            return result;
    }
    return ncclSuccess;
}

static int same_launch(const struct op *a, const struct op *b)
{
    return a->comm == b->comm && a->stream == b->stream;
}

/* Moves the ops of the first op's launch to the front; returns how many. */
static int gather_launch(struct op *ops, struct op *rest, int n, int *n_rest)
{
    struct op first = ops[0];
    int k = 0;

    *n_rest = 0;
    for (int i = 0; i < n; i++) {
        if (same_launch(&first, &ops[i]))
            ops[k++] = ops[i];
        else
            rest[(*n_rest)++] = ops[i];
    }
    return k;
}

static ncclResult_t launch_all(struct op *ops, int n)
{
    struct op *rest = malloc((size_t)n * sizeof(*rest));
    struct op *scratch = rest;
    ncclResult_t result = ncclSuccess;

    if (!rest)
        return ncclSystemError;
    while (n && !result) {
        struct op *swap = ops;
        int n_rest;
        int k = gather_launch(ops, rest, n, &n_rest);

        result = launch_ops(ops, k);
        ops = rest;
        rest = swap;
        n = n_rest;
    }
    free(scratch);
    return result;
}

static ncclResult_t run(struct group *g)
{
    ncclResult_t result = bring_up(g->inits, g->n_inits, g->is_explicit);

    if (!result)
        result = run_splits(g);
    if (!result && g->n_ops)
        result = launch_all(g->ops, g->n_ops);
    return result;
}

static void release(struct group *g)
{
    free(g->ops);
    free(g->inits);
    free(g->splits);
}

/* The communicators that a group works on, each once. */
struct members {
    ncclComm_t *comms;
    int n;
};

static void add_member(struct members *m, ncclComm_t comm)
{
    for (int i = 0; i < m->n; i++) {
        if (m->comms[i] == comm)
            return;
    }
    m->comms[m->n++] = comm;
}

/* The first op on a communicator has its ranks connect. */
static int connects(const struct op *op)
{
    int first = !op->comm->connected;

    op->comm->connected = 1;
    return first;
}

/*
 * Members of a group that a helper must run, since it takes its time on a
 * communicator that does not block; else there are none. Ops alone that need
 * no new connections are launched at once, also on such a communicator.
 */
static int find_members(struct group *g, struct members *m)
{
    int slow = g->n_inits || g->n_splits;
    int blocking = 1;

    m->n = 0;
    m->comms =
        calloc((size_t)g->n_inits + (size_t)g->n_splits + (size_t)g->n_ops + 1,
               sizeof(ncclComm_t));
    if (!m->comms)
        return -1;
    for (int i = 0; i < g->n_inits; i++)
        add_member(m, g->inits[i]);
    for (int i = 0; i < g->n_splits; i++)
        add_member(m, g->splits[i].parent);
    for (int i = 0; i < g->n_ops; i++) {
        add_member(m, g->ops[i].comm);
        slow |= connects(&g->ops[i]);
    }
    for (int i = 0; i < m->n; i++)
        blocking &= m->comms[i]->blocking;
    if (blocking || !slow)
        m->n = 0;
    return 0;
}

static ncclResult_t run_job(void *arg)
{
    struct group *g = arg;
    ncclResult_t result = run(g);

    release(g);
    free(g);
    return result;
}

static ncclResult_t run_by_helper(struct group *g, const struct members *m)
{
    struct group *copy = malloc(sizeof(*copy));
    ncclResult_t result;

    if (!copy)
        return ncclSystemError;
    *copy = *g;
    result = job_start(m->comms, m->n, run_job, copy);
    if (result == ncclInProgress)
        *g = (struct group){0}; /* the helper's now */
    else
        free(copy);
    return result;
}

/* The group at its outermost end, taken from the thread; false: not there. */
static int take_group(struct group *g)
{
    if (--group.depth)
        return 0;
    *g = group;
    group = (struct group){0};
    return 1;
}

ncclResult_t group_end(void)
{
    struct group g;
    struct members members;
    ncclResult_t result;

    if (!group.depth)
        return nccl_fail(ncclInvalidUsage, "GroupEnd: not in a group call");
    if (!take_group(&g))
        return ncclSuccess;
    profiler_group_ends();
    result = g.error;
    if (!result && find_members(&g, &members))
        result = ncclSystemError;
    if (!result) {
        result = members.n ? run_by_helper(&g, &members) : run(&g);
        free(members.comms);
    }
    profiler_group_ended();
    release(&g);
    return result;
}

/* Communicators are made, ops only thought of. */
static ncclResult_t group_simulate(ncclSimInfo_t *info)
{
    struct group g;
    ncclResult_t result;

    if (!take_group(&g))
        return ncclSuccess;
    profiler_group_ends();
    for (int i = 0; i < g.n_ops; i++)
        info->estimatedTime = (i ? info->estimatedTime : 0) + 10;
    g.n_ops = 0;
    result = g.error ? g.error : run(&g);
    profiler_group_ended();
    release(&g);
    return result;
}

NCCL_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * simInfo))
{
    if (!group.depth)
        return nccl_fail(ncclInvalidUsage,
                         "GroupSimulateEnd: not in a group call");
    if (!simInfo) /* NCCL takes it for the end of a group */
        return group_end();
    if (simInfo->magic != SIM_INFO_MAGIC)
        return nccl_fail(ncclInvalidArgument,
                         "simInfo is not from NCCL_SIM_INFO_INITIALIZER");
    return group_simulate(simInfo);
}

NCCL_API(ncclResult_t, GroupStart, (void))
{
    group_start();
    return ncclSuccess;
}

NCCL_API(ncclResult_t, GroupEnd, (void))
{
    return group_end();
}
