/*
 * Measured idle time of a simulated 1F1B pipeline against the time its ranks
 * did not compute, and against theory.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pipeline/pipeline.h"
#include "roles_jobs.h"

struct measured {
    struct ct_pipeline pipeline;
    double truth;
};

static struct measured measure(const struct layout *layout,
                               struct maker_link link, double jitter)
{
    struct maker *maker = layout_make(layout);
    struct measured measured;

    maker_links(maker, link, link);
    maker_jitter(maker, jitter);
    const struct ct_trace *trace = maker_run(maker);
    struct ct_roles *roles = ct_roles_build(trace, &trace->jobs[0]);

    ct_pipeline_measure(trace, &trace->jobs[0], roles, &measured.pipeline);
    measured.truth = maker_idle(maker);
    ct_roles_free(roles);
    maker_free(maker);
    return measured;
}

static const struct maker_link instant = {1e-3, 1e6};

static struct layout stages(int p, int m)
{
    struct layout layout = default_layout;

    layout.tp = layout.dp = 1;
    layout.pp = p;
    layout.micro_batches = m;
    layout.steps = 6;
    return layout;
}

static void assert_near(double value, double truth, double points)
{
    if (!(fabs(value - truth) <= points))
        fail_msg("%.4f is not within %.3f of %.4f", value, points, truth);
}

static void test_theory(void **state)
{
    (void)state;
    for (int p = 2; p <= 8; p *= 2)
        for (int m = 2; m <= 32; m *= 2) {
            const struct layout layout = stages(p, m);
            const struct measured got = measure(&layout, instant, 0);

            assert_int_equal(got.pipeline.stages, p);
            assert_int_equal(got.pipeline.micro_batches, m);
            assert_true(got.pipeline.theory_total == (p - 1.0) / (m + p - 1.0));
            assert_true(got.pipeline.theory_ideal == (p - 1.0) / m);
            assert_near(got.truth, got.pipeline.theory_total, .002);
            assert_near(got.pipeline.idle, got.truth, .002);
            assert_int_equal(got.pipeline.samples, p * layout.steps);
        }
}

static void test_uneven_times(void **state)
{
    double worst = 0;

    (void)state;
    for (int p = 2; p <= 8; p *= 2)
        for (int m = 2; m <= 16; m *= 2)
            for (uint64_t seed = 1; seed <= 5; seed++) {
                struct layout layout = stages(p, m);

                layout.seed = seed;
                const struct measured got = measure(&layout, instant, .4);

                worst = fmax(worst, fabs(got.pipeline.idle - got.truth));
                assert_near(got.pipeline.idle, got.truth, .01);
                assert_true(got.pipeline.idle_min <= got.pipeline.idle &&
                            got.pipeline.idle <= got.pipeline.idle_max);
            }
    printf("worst %.2f percentage points\n", 100 * worst);
}

/* Tensor and data parallelism beside it, transfers that cost something. */
static void test_whole_job(void **state)
{
    static const struct maker_link link = {1, 100};
    double worst = 0;

    (void)state;
    for (int m = 2; m <= 16; m *= 2)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct layout layout = default_layout;

            layout.pp = 4;
            layout.micro_batches = m;
            layout.seed = seed;
            layout.compute_us = 400;
            const struct measured got = measure(&layout, link, .1);

            worst = fmax(worst, fabs(got.pipeline.idle - got.truth));
            assert_near(got.pipeline.idle, got.truth, .05);
        }
    printf("worst %.2f percentage points, transfers counted as busy\n",
           100 * worst);
}

/* Hosts whose clocks differ, so that no p2p transfer is known by them. */
static void test_clocks_apart(void **state)
{
    static const struct maker_link link = {5, 20};
    double worst = 0;

    (void)state;
    for (int m = 1; m <= 8; m *= 2) {
        const struct layout layout = stages(4, m);
        struct maker *maker = layout_make(&layout);
        struct ct_pipeline pipeline;

        maker_links(maker, link, link);
        maker_jitter(maker, .1);
        struct ct_trace *trace = (struct ct_trace *)maker_run(maker);

        for (int i = 0; i < trace->nprocesses; i++)
            trace->processes[i].t0_ns = i * i * INT64_C(1234567891);
        for (int i = 0; i < trace->jobs[0].ninstances; i++)
            if (ct_is_p2p(trace->jobs[0].instances[i].base))
                trace->jobs[0].instances[i].transfer_ns = CT_NO_TIME;
        struct ct_roles *roles = ct_roles_build(trace, &trace->jobs[0]);

        ct_pipeline_measure(trace, &trace->jobs[0], roles, &pipeline);
        worst = fmax(worst, fabs(pipeline.idle - maker_idle(maker)));
        ct_roles_free(roles);
        maker_free(maker);
    }
    printf("worst %.2f percentage points, transfers counted as busy\n",
           100 * worst);
    assert_true(worst < .05);
}

static void test_gradients_left_out(void **state)
{
    static const struct maker_link slow = {1, 2};
    struct layout layout = default_layout;

    (void)state;
    layout.tp = 1;
    layout.payload = 256;
    layout.micro_batches = 2;
    layout.compute_us = 50;
    layout.buckets = 4;
    const struct measured got = measure(&layout, slow, 0);

    assert_true(got.pipeline.idle < got.pipeline.theory_total - .05);
    assert_near(got.pipeline.idle_passes, got.pipeline.theory_total, .02);
}

static void test_no_pipeline(void **state)
{
    struct layout layout = default_layout;

    (void)state;
    layout.pp = 1;
    const struct measured got = measure(&layout, instant, 0);

    assert_int_equal(got.pipeline.stages, 0);
    assert_int_equal(got.pipeline.samples, 0);
    assert_true(isnan(got.pipeline.idle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theory),
        cmocka_unit_test(test_uneven_times),
        cmocka_unit_test(test_whole_job),
        cmocka_unit_test(test_clocks_apart),
        cmocka_unit_test(test_gradients_left_out),
        cmocka_unit_test(test_no_pipeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
