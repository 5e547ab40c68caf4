/*
 * Roles of the sample job in every layout, and the numbers that follow from
 * them.
 */
#include <math.h>
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

static struct layout shaped(int tp, int pp, int dp, const char *order)
{
    struct layout layout = default_layout;

    layout.tp = tp;
    layout.pp = pp;
    layout.dp = dp;
    memcpy(layout.order, order, sizeof layout.order);
    return layout;
}

static void show(const struct layout *l, const struct ct_roles *roles)
{
    printf("tp %d pp %d dp %d %s layers %d micro-batches %d buckets %d -> tp "
           "%d pp %d dp %d layers %d micro-batches %d\n",
           l->tp, l->pp, l->dp, l->order, l->layers, l->micro_batches,
           l->buckets, roles->tp, roles->pp, roles->dp, roles->layers_per_stage,
           roles->micro_batches);
    for (int i = 0; i < roles->nroles; i++) {
        const struct ct_role *role = &roles->roles[i];

        printf("  comm %d %s: %s %.2f (%s, %s)\n", role->comm, role->use,
               ct_role_names[role->role], role->confidence,
               ct_role_names[role->best], ct_role_names[role->second]);
        for (int k = 0; k < CT_REASONS; k++)
            if (*role->reasons[k])
                printf("    + %s\n", role->reasons[k]);
        if (*role->contradiction)
            printf("    - %s\n", role->contradiction);
        if (*role->decides)
            printf("    ? %s\n", role->decides);
    }
}

static enum ct_role_id truth_of(const struct layout *layout, int comm)
{
    const int world = layout->tp * layout->pp * layout->dp;

    if (comm == 0)
        return CT_ROLE_CONTROL;
    for (int r = 0; r < world; r++) {
        if (layout_group(layout, 't', r) == comm)
            return CT_ROLE_TP;
        if (layout_group(layout, 'p', r) == comm)
            return CT_ROLE_PP;
        if (layout_group(layout, 'd', r) == comm)
            return CT_ROLE_DP;
    }
    return CT_ROLE_UNKNOWN;
}

/* Roles that are wrong; *unknown_p: that are not known. */
static int check(const struct layout *layout, const struct ct_roles *roles,
                 int *unknown_p)
{
    int wrong = 0;

    *unknown_p = 0;
    for (int i = 0; i < roles->nroles; i++) {
        const struct ct_role *role = &roles->roles[i];

        wrong += role->role != CT_ROLE_UNKNOWN &&
                 role->role != truth_of(layout, role->comm);
        *unknown_p += role->role == CT_ROLE_UNKNOWN;
    }
    return wrong;
}

static int judge(const struct layout *layout, int *unknown_p,
                 struct ct_roles *numbers)
{
    struct maker *maker = layout_make(layout);
    const struct ct_trace *trace = maker_run(maker);
    struct ct_roles *roles = ct_roles_build(trace, &trace->jobs[0]);
    int wrong;

    assert_non_null(roles);
    assert_true(roles->nroles > 0);
    wrong = check(layout, roles, unknown_p);
    if (wrong || *unknown_p || getenv("SHOW"))
        show(layout, roles);
    *numbers = *roles;
    ct_roles_free(roles);
    maker_free(maker);
    return wrong;
}

static void assert_right(const struct layout *layout)
{
    struct ct_roles numbers;
    int unknown;

    assert_int_equal(judge(layout, &unknown, &numbers), 0);
    assert_int_equal(unknown, 0);
    assert_int_equal(numbers.tp, layout->tp);
    assert_int_equal(numbers.pp, layout->pp);
    assert_int_equal(numbers.dp, layout->dp);
    if (layout->pp > 1)
        assert_int_equal(numbers.micro_batches, layout->micro_batches);
    if (layout->pp > 1 && layout->tp > 1)
        assert_int_equal(numbers.layers_per_stage, layout->layers);
}

static const struct {
    int tp, pp, dp;
    const char *order;
} shapes[] = {{2, 2, 2, "tpd"}, {2, 2, 2, "dpt"}, {2, 2, 2, "ptd"},
              {2, 2, 2, "pdt"}, {4, 2, 1, "tpd"}, {4, 2, 1, "ptd"},
              {2, 4, 1, "tpd"}, {2, 4, 1, "ptd"}, {8, 1, 1, "tpd"},
              {1, 4, 2, "tpd"}, {1, 4, 2, "dpt"}, {1, 1, 8, "tpd"},
              {4, 1, 2, "tpd"}, {2, 1, 4, "dpt"}, {1, 8, 1, "tpd"},
              {2, 2, 4, "tpd"}, {4, 2, 4, "dtp"}, {1, 2, 4, "tpd"}};

static void test_every_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct layout layout =
            shaped(shapes[i].tp, shapes[i].pp, shapes[i].dp, shapes[i].order);

        assert_right(&layout);
    }
}

/* Depth, micro-batches and buckets: never wrong; unknown only without a
 * pipeline and with few calls. */
static void test_every_size(void **state)
{
    static const int micro_batches[] = {1, 2, 3, 4, 8, 16};
    int runs = 0, unknown_runs = 0;

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int layers = 1; layers <= 8; layers *= 2)
            for (size_t k = 0;
                 k < sizeof micro_batches / sizeof micro_batches[0]; k++)
                for (int buckets = 1; buckets <= 4; buckets += 3) {
                    struct layout layout =
                        shaped(shapes[i].tp, shapes[i].pp, shapes[i].dp,
                               shapes[i].order);
                    struct ct_roles numbers;
                    int unknown;

                    layout.layers = layers;
                    layout.micro_batches = micro_batches[k];
                    layout.buckets = buckets;
                    assert_int_equal(judge(&layout, &unknown, &numbers), 0);
                    runs++;
                    unknown_runs += unknown > 0;
                    if (layout.pp > 1 || layers * layout.micro_batches >= 2)
                        assert_int_equal(unknown, 0);
                }
    printf("%d of %d jobs with an unknown role\n", unknown_runs, runs);
}

static void test_sequence_parallel(void **state)
{
    (void)state;
    for (int tp = 2; tp <= 4; tp *= 2) {
        struct layout layout = shaped(tp, 2, 2, "tpd");

        layout.sequence = true;
        assert_right(&layout);
    }
}

static void test_without_norm_and_broadcast(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct layout layout =
            shaped(shapes[i].tp, shapes[i].pp, shapes[i].dp, shapes[i].order);

        layout.no_norm = layout.no_broadcast = true;
        assert_right(&layout);
    }
}

static void test_without_steps_never_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct layout layout =
            shaped(shapes[i].tp, shapes[i].pp, shapes[i].dp, shapes[i].order);
        struct ct_roles numbers;
        int unknown;

        layout.steps = 0;
        assert_int_equal(judge(&layout, &unknown, &numbers), 0);
    }
}

static void test_of_usage_and_reasons(void **state)
{
    const struct layout layout = shaped(2, 2, 2, "tpd");
    struct maker *maker = layout_make(&layout);
    const struct ct_trace *trace = maker_run(maker);
    const struct ct_job *job = &trace->jobs[0];
    struct ct_roles *roles = ct_roles_build(trace, job);

    (void)state;
    for (int i = 0; i < job->nusages; i++) {
        const int role = roles->of_usage[i];

        assert_in_range(role, 0, roles->nroles - 1);
        assert_int_equal(roles->roles[role].comm, job->usages[i].comm);
    }
    for (int i = 0; i < roles->nroles; i++) {
        assert_true(roles->roles[i].confidence >= .6);
        assert_true(*roles->roles[i].reasons[0] != 0);
        if (roles->roles[i].role == CT_ROLE_TP)
            assert_non_null(strstr(roles->roles[i].reasons[0],
                                   "32 calls per step of b*s*h, the 64 KiB"));
    }
    ct_roles_free(roles);
    maker_free(maker);
}

/* Nothing about nodes: the same job on one host, two, or eight. */
static void test_nodes_do_not_matter(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
        struct layout layout = shaped(2, 2, 2, "tpd");

        layout.ranks_per_node = ranks;
        assert_right(&layout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layout),
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_sequence_parallel),
        cmocka_unit_test(test_without_norm_and_broadcast),
        cmocka_unit_test(test_without_steps_never_wrong),
        cmocka_unit_test(test_of_usage_and_reasons),
        cmocka_unit_test(test_nodes_do_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
