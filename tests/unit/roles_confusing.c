/*
 * Traffic that looks like something else (research/model.md names the cases):
 * a label may be missing, never be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "roles/roles.h"
#include "roles_jobs.h"

#define KIB(n) ((uint64_t)(n)*1024 / 4) /* elements */
#define STEPS 4

struct world {
    struct maker *maker;
    const struct ct_trace *trace;
    struct ct_roles *roles;
    int ranks;
};

static void begin(struct world *world, int ranks)
{
    int all[64];

    for (int i = 0; i < ranks; i++)
        all[i] = i;
    *world = (struct world){.maker = maker_new(ranks, 8, 5), .ranks = ranks};
    maker_jitter(world->maker, .05);
    assert_int_equal(maker_comm(world->maker, all, ranks), 0);
}

/* Communicator of n ranks from first on, stride apart. */
static int group(struct world *world, int first, int stride, int n)
{
    int ranks[64];

    for (int i = 0; i < n; i++)
        ranks[i] = first + i * stride;
    return maker_comm(world->maker, ranks, n);
}

static void run(struct world *world, void (*step)(struct world *, int))
{
    for (int rank = 0; rank < world->ranks; rank++) {
        maker_step(world->maker, rank, CT_STEP_OTHER);
        for (int i = 0; i <= STEPS; i++) {
            step(world, rank);
            maker_step(world->maker, rank,
                       i ? CT_STEP_STEADY : CT_STEP_WARM_UP);
        }
    }
    world->trace = maker_run(world->maker);
    world->roles = ct_roles_build(world->trace, &world->trace->jobs[0]);
    assert_non_null(world->roles);
}

static void end(struct world *world)
{
    ct_roles_free(world->roles);
    maker_free(world->maker);
}

static void show(const struct world *world)
{
    for (int i = 0; i < world->roles->nroles; i++) {
        const struct ct_role *role = &world->roles->roles[i];

        printf("  comm %d %s: %s %.2f (%s, %s)\n", role->comm, role->use,
               ct_role_names[role->role], role->confidence,
               ct_role_names[role->best], ct_role_names[role->second]);
        for (int k = 0; k < CT_REASONS && *role->reasons[k]; k++)
            printf("    + %s\n", role->reasons[k]);
        if (*role->contradiction)
            printf("    - %s\n", role->contradiction);
    }
}

/* The use of comm is labelled as one of allowed, or (where also_unknown) not
 * at all. */
static void expect(const struct world *world, int comm, const char *use,
                   enum ct_role_id allowed, bool also_unknown)
{
    for (int i = 0; i < world->roles->nroles; i++) {
        const struct ct_role *role = &world->roles->roles[i];

        if (role->comm != comm ||
            (strcmp(role->use, use) != 0 && strcmp(role->use, "all") != 0))
            continue;
        if (role->role != allowed &&
            !(also_unknown && role->role == CT_ROLE_UNKNOWN)) {
            show(world);
            fail_msg("comm %d %s is called %s", comm, use,
                     ct_role_names[role->role]);
        }
        if (role->role == CT_ROLE_UNKNOWN)
            assert_true(*role->decides != 0);
        return;
    }
    fail_msg("comm %d has no use %s", comm, use);
}

static void all_reduce(struct world *world, int rank, int comm, uint64_t count)
{
    maker_op(world->maker, rank, comm, CT_OP_ALL_REDUCE, count, CT_REDOP_SUM,
             CT_NONE);
}

static void norm(struct world *world, int rank)
{
    all_reduce(world, rank, 0, 1);
}

/* 1: data parallel in one 8-GPU node: a contiguous group is not tensor. */
static void ddp_step(struct world *world, int rank)
{
    static const uint64_t bucket[] = {1024, 31000, 25900, 26200, 9500};

    maker_compute(world->maker, rank, 5000);
    for (int i = 0; i < 5; i++) {
        maker_compute(world->maker, rank, 2000);
        all_reduce(world, rank, 0, KIB(bucket[i]));
    }
}

static void test_ddp_in_one_node(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 8);
    run(&world, ddp_step);
    expect(&world, 0, "large", CT_ROLE_DP, false);
    end(&world);
}

/* 1, harder: buckets of one size, overlapped with the backward pass, or at the
 * end of a step that communication dominates. */
static int equal_buckets;
static double bucket_pause_us;

static void equal_step(struct world *world, int rank)
{
    maker_compute(world->maker, rank, 4000);
    for (int i = 0; i < equal_buckets; i++) {
        maker_compute(world->maker, rank, bucket_pause_us);
        all_reduce(world, rank, 0, KIB(25600));
    }
}

static void test_ddp_with_equal_buckets(void **state)
{
    static const double pauses[] = {0, 100, 1000, 2000};

    (void)state;
    for (equal_buckets = 1; equal_buckets <= 12; equal_buckets++)
        for (size_t i = 0; i < 4; i++) {
            struct world world;

            bucket_pause_us = pauses[i] * 8 / equal_buckets;
            begin(&world, 8);
            run(&world, equal_step);
            expect(&world, 0, "large", CT_ROLE_DP, true);
            end(&world);
        }
}

/* 2: Megatron without batched p2p, two stages: one direction runs on the
 * communicator of the whole world. */
static int pair_comm;

static void half_on_world(struct world *world, int rank)
{
    for (int m = 0; m < 4; m++) {
        maker_compute(world->maker, rank, 300);
        if (rank == 0) {
            maker_op(world->maker, 0, pair_comm, CT_OP_SEND, KIB(512), CT_NONE,
                     1);
            maker_op(world->maker, 0, 0, CT_OP_RECV, KIB(512), CT_NONE, 1);
        } else {
            maker_op(world->maker, 1, pair_comm, CT_OP_RECV, KIB(512), CT_NONE,
                     0);
            maker_op(world->maker, 1, 0, CT_OP_SEND, KIB(512), CT_NONE, 0);
        }
    }
    norm(world, rank);
}

static void test_pipeline_half_on_world(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 2);
    pair_comm = group(&world, 0, 1, 2);
    run(&world, half_on_world);
    expect(&world, pair_comm, "p2p", CT_ROLE_PP, false);
    expect(&world, 0, "p2p", CT_ROLE_PP, false);
    expect(&world, 0, "small", CT_ROLE_CONTROL, false);
    end(&world);
}

/* 3: PyTorch's isend/irecv: a communicator of its own for each pair. */
static int private_comm[3];

static void private_pairs(struct world *world, int rank)
{
    for (int m = 0; m < 8; m++) {
        if (rank > 0)
            maker_op(world->maker, rank, private_comm[rank - 1], CT_OP_RECV,
                     KIB(512), CT_NONE, 0);
        maker_compute(world->maker, rank, 300);
        if (rank < 3)
            maker_op(world->maker, rank, private_comm[rank], CT_OP_SEND,
                     KIB(512), CT_NONE, 1);
    }
    for (int m = 0; m < 8; m++) {
        if (rank < 3)
            maker_op(world->maker, rank, private_comm[rank], CT_OP_RECV,
                     KIB(512), CT_NONE, 1);
        maker_compute(world->maker, rank, 600);
        if (rank > 0)
            maker_op(world->maker, rank, private_comm[rank - 1], CT_OP_SEND,
                     KIB(512), CT_NONE, 0);
    }
    norm(world, rank);
}

static void test_pipeline_of_private_pairs(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 4);
    for (int i = 0; i < 3; i++)
        private_comm[i] = group(&world, i, 1, 2);
    run(&world, private_pairs);
    for (int i = 0; i < 3; i++)
        expect(&world, private_comm[i], "p2p", CT_ROLE_PP, false);
    assert_int_equal(world.roles->pp, 4);
    assert_int_equal(world.roles->micro_batches, 8);
    end(&world);
}

/* 4: DeepSpeed's old pipeline: broadcasts in pairs. */
static void by_broadcast(struct world *world, int rank)
{
    for (int m = 0; m < 8; m++) {
        if (rank == 0)
            maker_compute(world->maker, rank, 300);
        maker_op(world->maker, rank, pair_comm, CT_OP_BROADCAST, KIB(512),
                 CT_NONE, 0);
        if (rank == 1)
            maker_compute(world->maker, rank, 900);
        maker_op(world->maker, rank, pair_comm, CT_OP_BROADCAST, KIB(512),
                 CT_NONE, 1);
    }
    norm(world, rank);
}

static void test_pipeline_by_broadcast(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 2);
    pair_comm = group(&world, 0, 1, 2);
    run(&world, by_broadcast);
    expect(&world, pair_comm, "large", CT_ROLE_PP, true);
    end(&world);
}

/* 7: Ulysses: all-to-all in a group as large as a tensor group; native, or
 * send/recv with every rank. */
static bool native_exchange;

static void exchange(struct world *world, int rank)
{
    const int comm = 1 + rank / 4;

    if (native_exchange) {
        maker_op(world->maker, rank, comm, CT_OP_ALL_TO_ALL, KIB(64), CT_NONE,
                 CT_NONE);
        return;
    }
    maker_group(world->maker, rank);
    for (int peer = 0; peer < 4; peer++) {
        if (peer == rank % 4)
            continue;
        maker_op(world->maker, rank, comm, CT_OP_SEND, KIB(64), CT_NONE, peer);
        maker_op(world->maker, rank, comm, CT_OP_RECV, KIB(64), CT_NONE, peer);
    }
    maker_group_end(world->maker, rank);
}

static void ulysses_step(struct world *world, int rank)
{
    for (int i = 0; i < 8; i++) {
        maker_compute(world->maker, rank, 300);
        for (int k = 0; k < 4; k++)
            exchange(world, rank);
    }
    all_reduce(world, rank, 0, KIB(9000));
    all_reduce(world, rank, 0, KIB(25000));
}

static void test_ulysses(void **state)
{
    (void)state;
    for (int native = 0; native <= 1; native++) {
        struct world world;

        native_exchange = native;
        begin(&world, 8);
        group(&world, 0, 1, 4);
        group(&world, 4, 1, 4);
        run(&world, ulysses_step);
        expect(&world, 1, "exchange", CT_ROLE_UNKNOWN, true);
        expect(&world, 2, "exchange", CT_ROLE_UNKNOWN, true);
        expect(&world, 0, "large", CT_ROLE_DP, false);
        end(&world);
    }
}

/* FSDP: per unit two gathers and a scatter, one odd unit; 9: its replicas sum
 * the shards (HSDP). */
static int units, shards, replicas;

static uint64_t unit_count(int unit)
{
    return unit == 0 ? KIB(3000) : KIB(1024);
}

static void gather(struct world *world, int rank, int unit)
{
    maker_op(world->maker, rank, 1 + rank / shards, CT_OP_ALL_GATHER,
             unit_count(unit), CT_NONE, CT_NONE);
}

static void fsdp_step(struct world *world, int rank)
{
    for (int unit = 0; unit < units; unit++) {
        gather(world, rank, unit);
        maker_compute(world->maker, rank, 500);
    }
    for (int unit = units - 1; unit >= 0; unit--) {
        gather(world, rank, unit);
        maker_compute(world->maker, rank, 1000);
        maker_op(world->maker, rank, 1 + rank / shards, CT_OP_REDUCE_SCATTER,
                 unit_count(unit), CT_REDOP_AVG, CT_NONE);
        if (replicas > 1)
            all_reduce(world, rank, 1 + replicas + rank % shards,
                       unit_count(unit));
    }
    norm(world, rank);
}

static void fsdp_world(struct world *world)
{
    begin(world, shards * replicas);
    for (int i = 0; i < replicas; i++)
        group(world, i * shards, 1, shards);
    for (int i = 0; replicas > 1 && i < shards; i++)
        group(world, i, shards, replicas);
    run(world, fsdp_step);
}

static void test_fsdp(void **state)
{
    struct world world;

    (void)state;
    units = 12;
    shards = 8;
    replicas = 1;
    fsdp_world(&world);
    expect(&world, 1, "large", CT_ROLE_DP, false);
    end(&world);
}

static void test_hsdp(void **state)
{
    (void)state;
    for (units = 2; units <= 32; units *= 2)
        for (shards = 2; shards <= 4; shards *= 2) {
            struct world world;

            replicas = 8 / shards;
            fsdp_world(&world);
            expect(&world, 1, "large", CT_ROLE_DP, true);
            expect(&world, 1 + replicas, "large", CT_ROLE_DP, true);
            end(&world);
        }
}

/* ZeRO-1: gradients scattered, parameters gathered, once per step. */
static void zero_step(struct world *world, int rank)
{
    static const uint64_t part[] = {900, 3100, 2600};

    maker_compute(world->maker, rank, 9000);
    for (int i = 0; i < 3; i++)
        maker_op(world->maker, rank, 0, CT_OP_REDUCE_SCATTER, KIB(part[i]),
                 CT_REDOP_SUM, CT_NONE);
    norm(world, rank);
    for (int i = 0; i < 3; i++)
        maker_op(world->maker, rank, 0, CT_OP_ALL_GATHER, KIB(part[i]), CT_NONE,
                 CT_NONE);
}

static void test_zero(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 8);
    run(&world, zero_step);
    expect(&world, 0, "large", CT_ROLE_DP, false);
    expect(&world, 0, "small", CT_ROLE_CONTROL, false);
    end(&world);
}

/* 13: two ranks. Everything has the same shape; only counts, sizes and places
 * differ. */
static void test_two_ranks(void **state)
{
    struct layout layout = default_layout;

    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        layout.pp = 1;
        layout.tp = axis ? 2 : 1;
        layout.dp = axis ? 1 : 2;
        struct maker *maker = layout_make(&layout);
        const struct ct_trace *trace = maker_run(maker);
        struct world world = {maker, trace,
                              ct_roles_build(trace, &trace->jobs[0]), 2};

        expect(&world, 1, "large", axis ? CT_ROLE_TP : CT_ROLE_DP, false);
        end(&world);
    }
}

/* 13: the shared embedding of first and last stage: a pair like any other. */
static void tied_step(struct world *world, int rank)
{
    private_pairs(world, rank);
    if (rank == 0 || rank == 3)
        all_reduce(world, rank, 4, KIB(512));
}

static void test_tied_embedding(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 4);
    for (int i = 0; i < 3; i++)
        private_comm[i] = group(&world, i, 1, 2);
    assert_int_equal(group(&world, 0, 3, 2), 4);
    run(&world, tied_step);
    expect(&world, 4, "large", CT_ROLE_UNKNOWN, true);
    expect(&world, private_comm[0], "p2p", CT_ROLE_PP, false);
    end(&world);
}

/* 14: gradients every fourth micro-batch of what looks like a step. */
static int accumulated;

static void accumulate(struct world *world, int rank)
{
    maker_compute(world->maker, rank, 3000);
    if (++accumulated % 2)
        return;
    all_reduce(world, rank, 0, KIB(9000));
    all_reduce(world, rank, 0, KIB(25000));
    all_reduce(world, rank, 0, KIB(1000));
}

static void test_accumulation(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 4);
    accumulated = 0;
    for (int rank = 0; rank < 4; rank++) {
        maker_step(world.maker, rank, CT_STEP_OTHER);
        accumulated = 0;
        for (int i = 0; i < 8; i++) {
            accumulate(&world, rank);
            maker_step(world.maker, rank, CT_STEP_STEADY);
        }
    }
    world.trace = maker_run(world.maker);
    world.roles = ct_roles_build(world.trace, &world.trace->jobs[0]);
    expect(&world, 0, "large", CT_ROLE_DP, true);
    end(&world);
}

/* Context parallelism: keys and values round a ring, each rank sending and
 * receiving at once. */
static void ring_step(struct world *world, int rank)
{
    const int n = world->ranks;

    for (int layer = 0; layer < 8; layer++)
        for (int hop = 0; hop < n - 1; hop++) {
            maker_group(world->maker, rank);
            maker_op(world->maker, rank, 0, CT_OP_SEND, KIB(512), CT_NONE,
                     (rank + 1) % n);
            maker_op(world->maker, rank, 0, CT_OP_RECV, KIB(512), CT_NONE,
                     (rank + n - 1) % n);
            maker_group_end(world->maker, rank);
            maker_compute(world->maker, rank, 200);
        }
    all_reduce(world, rank, 0, KIB(9000));
    all_reduce(world, rank, 0, KIB(25000));
}

static void test_context_ring(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n *= 2) {
        struct world world;

        begin(&world, n);
        run(&world, ring_step);
        expect(&world, 0, "p2p", CT_ROLE_UNKNOWN, true);
        expect(&world, 0, "large", CT_ROLE_DP, true);
        end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddp_in_one_node),
        cmocka_unit_test(test_ddp_with_equal_buckets),
        cmocka_unit_test(test_pipeline_half_on_world),
        cmocka_unit_test(test_pipeline_of_private_pairs),
        cmocka_unit_test(test_pipeline_by_broadcast),
        cmocka_unit_test(test_ulysses),
        cmocka_unit_test(test_fsdp),
        cmocka_unit_test(test_hsdp),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_two_ranks),
        cmocka_unit_test(test_tied_embedding),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_context_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
