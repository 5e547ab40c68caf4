/* A transformer over TP x PP x DP ranks, as samples/jobs/train3d.c runs it. */
#include "roles_jobs.h"

#include <stdlib.h>
#include <string.h>

const struct layout default_layout = {.tp = 2,
                                      .pp = 2,
                                      .dp = 2,
                                      .order = "tpd",
                                      .layers = 2,
                                      .micro_batches = 4,
                                      .steps = 4,
                                      .buckets = 3,
                                      .ranks_per_node = 4,
                                      .payload = 16384,
                                      .compute_us = 100,
                                      .seed = 1};

static int size_of(const struct layout *layout, char axis)
{
    return axis == 't' ? layout->tp : axis == 'p' ? layout->pp : layout->dp;
}

int layout_place(const struct layout *layout, char axis, int rank)
{
    for (int i = 0; i < 3; i++) {
        if (layout->order[i] == axis)
            return rank % size_of(layout, axis);
        rank /= size_of(layout, layout->order[i]);
    }
    abort();
}

static int stride_of(const struct layout *layout, char axis)
{
    int stride = 1;

    for (int i = 0; layout->order[i] != axis; i++)
        stride *= size_of(layout, layout->order[i]);
    return stride;
}

/* First rank of the group, which names it. */
static int leader(const struct layout *layout, char axis, int rank)
{
    return rank - layout_place(layout, axis, rank) * stride_of(layout, axis);
}

struct build {
    const struct layout *layout;
    struct maker *maker;
    int comms[3][64]; /* t, p, d by rank */
};

static void make_comms(struct build *build, char axis, int *comms)
{
    const struct layout *layout = build->layout;
    const int n = size_of(layout, axis);
    const int world = layout->tp * layout->pp * layout->dp;

    for (int rank = 0; rank < world; rank++) {
        int ranks[64];

        if (n == 1 || leader(layout, axis, rank) != rank)
            continue;
        for (int i = 0; i < n; i++)
            ranks[i] = rank + i * stride_of(layout, axis);
        const int comm = maker_comm(build->maker, ranks, n);

        for (int i = 0; i < n; i++)
            comms[ranks[i]] = comm;
    }
}

int layout_group(const struct layout *layout, char axis, int rank)
{
    const int world = layout->tp * layout->pp * layout->dp;
    int comm = 1; /* after the world's */

    for (const char *a = "tpd"; *a; a++)
        for (int r = 0; r < world; r++) {
            if (size_of(layout, *a) == 1 || leader(layout, *a, r) != r)
                continue;
            if (*a == axis && leader(layout, axis, rank) == r)
                return comm;
            comm++;
        }
    return CT_NONE;
}

static void tensor_calls(struct build *build, int rank)
{
    const struct layout *layout = build->layout;
    const int comm = build->comms[0][rank];

    if (layout->tp == 1)
        return;
    if (!layout->sequence) {
        maker_op(build->maker, rank, comm, CT_OP_ALL_REDUCE, layout->payload,
                 CT_REDOP_SUM, CT_NONE);
        return;
    }
    maker_op(build->maker, rank, comm, CT_OP_ALL_GATHER,
             layout->payload / (uint64_t)layout->tp, CT_NONE, CT_NONE);
    maker_op(build->maker, rank, comm, CT_OP_REDUCE_SCATTER,
             layout->payload / (uint64_t)layout->tp, CT_REDOP_SUM, CT_NONE);
}

static void pass(struct build *build, int rank, double factor)
{
    for (int l = 0; l < build->layout->layers; l++)
        for (int half = 0; half < 2; half++) {
            maker_compute(build->maker, rank,
                          build->layout->compute_us * factor / 2);
            tensor_calls(build, rank);
            if (build->layout->sequence && factor > 1) /* wgrad gathers again */
                maker_op(build->maker, rank, build->comms[0][rank],
                         CT_OP_ALL_GATHER,
                         build->layout->payload / (uint64_t)build->layout->tp,
                         CT_NONE, CT_NONE);
        }
}

static void move(struct build *build, int rank, bool send, int peer)
{
    const struct layout *layout = build->layout;

    maker_op(build->maker, rank, build->comms[1][rank],
             send ? CT_OP_SEND : CT_OP_RECV,
             layout->payload / (layout->sequence ? (uint64_t)layout->tp : 1),
             CT_NONE, peer);
}

struct wish { /* messages that share a bracket; -1: none */
    int send_next, recv_prev, send_prev, recv_next;
};

static void bracket(struct build *build, int rank, struct wish wish)
{
    const int stage = layout_place(build->layout, 'p', rank);
    const int last = build->layout->pp - 1;

    wish.send_next = wish.send_next && stage < last;
    wish.recv_next = wish.recv_next && stage < last;
    wish.send_prev = wish.send_prev && stage > 0;
    wish.recv_prev = wish.recv_prev && stage > 0;
    if (!wish.send_next && !wish.recv_next && !wish.send_prev &&
        !wish.recv_prev)
        return;
    maker_group(build->maker, rank);
    if (wish.send_prev)
        move(build, rank, true, stage - 1);
    if (wish.recv_prev)
        move(build, rank, false, stage - 1);
    if (wish.send_next)
        move(build, rank, true, stage + 1);
    if (wish.recv_next)
        move(build, rank, false, stage + 1);
    maker_group_end(build->maker, rank);
}

/* 1F1B, as Megatron-LM's forward_backward_pipelining_without_interleaving. */
static void pipeline(struct build *build, int rank)
{
    const struct layout *layout = build->layout;
    const int m = layout->micro_batches;
    const int stage = layout_place(layout, 'p', rank);
    const int room = layout->pp - stage - 1;
    const int warm_up = room < m ? room : m;

    for (int i = 0; i < warm_up; i++) {
        bracket(build, rank, (struct wish){.recv_prev = 1});
        pass(build, rank, 1);
        bracket(build, rank, (struct wish){.send_next = 1});
    }
    if (m > warm_up)
        bracket(build, rank, (struct wish){.recv_prev = 1});
    for (int i = 0; i < m - warm_up; i++) {
        pass(build, rank, 1);
        bracket(build, rank, (struct wish){.send_next = 1, .recv_next = 1});
        pass(build, rank, 2);
        if (i + 1 < m - warm_up)
            bracket(build, rank, (struct wish){.send_prev = 1, .recv_prev = 1});
        else
            bracket(build, rank, (struct wish){.send_prev = 1});
    }
    for (int i = 0; i < warm_up; i++) {
        bracket(build, rank, (struct wish){.recv_next = 1});
        pass(build, rank, 2);
        bracket(build, rank, (struct wish){.send_prev = 1});
    }
}

static uint64_t bucket(const struct layout *layout, int i)
{
    return layout->payload * 6 + (uint64_t)(layout->buckets - i) * 70001;
}

static void gradients(struct build *build, int rank)
{
    const struct layout *layout = build->layout;

    for (int i = 0; layout->dp > 1 && i < layout->buckets; i++)
        maker_op(build->maker, rank, build->comms[2][rank], CT_OP_ALL_REDUCE,
                 bucket(layout, i), CT_REDOP_SUM, CT_NONE);
    if (!layout->no_norm)
        maker_op(build->maker, rank, 0, CT_OP_ALL_REDUCE, 1, CT_REDOP_SUM,
                 CT_NONE);
}

static void train(struct build *build, int rank)
{
    const struct layout *layout = build->layout;

    for (int i = 0;
         layout->dp > 1 && !layout->no_broadcast && i < layout->buckets; i++)
        maker_op(build->maker, rank, build->comms[2][rank], CT_OP_BROADCAST,
                 bucket(layout, i), CT_NONE, 0);
    maker_op(build->maker, rank, 0, CT_OP_ALL_REDUCE, 1, CT_REDOP_SUM, CT_NONE);
    if (layout->steps > 0)
        maker_step(build->maker, rank, CT_STEP_OTHER);
    for (int step = 0; step < (layout->steps ? layout->steps + 1 : 3); step++) {
        pipeline(build, rank);
        gradients(build, rank);
        if (layout->steps > 0)
            maker_step(build->maker, rank,
                       step == 0 ? CT_STEP_WARM_UP : CT_STEP_STEADY);
    }
}

struct maker *layout_make(const struct layout *layout)
{
    const int world = layout->tp * layout->pp * layout->dp;
    struct build build = {.layout = layout};
    int all[64];

    build.maker = maker_new(world, layout->ranks_per_node, layout->seed);
    for (int i = 0; i < world; i++)
        all[i] = i;
    maker_comm(build.maker, all, world);
    for (int i = 0; i < 3; i++)
        make_comms(&build, "tpd"[i], build.comms[i]);
    for (int rank = 0; rank < world; rank++)
        train(&build, rank);
    return build.maker;
}
