/*
 * The alpha-beta fit against known truth: jitter, late transfers, few sizes,
 * curves that are no line.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/model.h"

#define MOST_USAGES 64
#define MOST_SAMPLES 4096

/* A job of usages alone: what the model reads. */
struct bench {
    struct ct_trace trace;
    struct ct_job job;
    struct ct_comm comms[2];
    struct ct_usage usages[MOST_USAGES];
    int64_t samples[MOST_USAGES][MOST_SAMPLES];
    uint64_t seed;
};

struct truth {
    double alpha_us, us_per_byte;
    double jitter; /* each time within 1 +- jitter */
    double late;   /* share of times that something delayed */
};

static double uniform(struct bench *bench)
{
    bench->seed = bench->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(bench->seed >> 11) / 9007199254740992.0;
}

static void start(struct bench *bench, uint64_t seed, int nranks)
{
    *bench = (struct bench){.seed = seed * 7919 + 17};
    bench->comms[0].nranks = nranks;
    bench->comms[1].nranks = nranks;
    bench->job.comms = bench->comms;
    bench->job.ncomms = 2;
    bench->job.usages = bench->usages;
    for (int i = 0; i < 10; i++)
        uniform(bench);
}

static int compare_ns(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

static int64_t median_ns(const int64_t *samples, int n)
{
    static int64_t sorted[MOST_SAMPLES];

    for (int i = 0; i < n; i++)
        sorted[i] = samples[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ns);
    return sorted[n / 2];
}

static struct ct_usage *add(struct bench *bench, enum ct_link link,
                            enum ct_op base, uint64_t bytes, int n,
                            const struct truth *truth)
{
    const int at = bench->job.nusages++;
    struct ct_usage *usage = &bench->usages[at];

    assert_true(at < MOST_USAGES && n <= MOST_SAMPLES);
    for (int i = 0; i < n; i++) {
        double us = truth->alpha_us + truth->us_per_byte * (double)bytes;

        us *= 1 + truth->jitter * (2 * uniform(bench) - 1);
        if (uniform(bench) < truth->late)
            us *= 1 - log(1 - uniform(bench));
        bench->samples[at][i] = (int64_t)(us * 1e3);
    }
    *usage = (struct ct_usage){.base = base,
                               .bytes = bytes,
                               .link = link,
                               .calls = n,
                               .src = CT_NONE,
                               .dst = CT_NONE,
                               .nsamples = n,
                               .samples = bench->samples[at],
                               .per_step = 1};
    usage->median_ns = median_ns(usage->samples, n);
    return usage;
}

/* Truth of a ring all-reduce over links of alpha_us and GBps. */
static struct truth ring(int n, double alpha_us, double GBps, double jitter,
                         double late)
{
    return (struct truth){2 * (n - 1) * alpha_us,
                          2 * (n - 1.0) / n / (GBps * 1e3), jitter, late};
}

static void assert_within(double value, double truth, double relative)
{
    if (!(fabs(value / truth - 1) <= relative))
        fail_msg("%g is not within %g of %g", value, relative, truth);
}

static void sweep(struct bench *bench, enum ct_link link, int n,
                  const struct truth *truth)
{
    for (uint64_t bytes = 1024; bytes <= 64u << 20; bytes *= 4)
        add(bench, link, CT_OP_ALL_REDUCE, bytes, n, truth);
}

static void check_sweep(enum ct_link link, int nranks, double alpha_us,
                        double GBps, double jitter, double late, double limit)
{
    static struct bench bench;

    for (uint64_t seed = 1; seed <= 25; seed++) {
        const struct truth truth = ring(nranks, alpha_us, GBps, jitter, late);

        start(&bench, seed, nranks);
        sweep(&bench, link, 20, &truth);
        struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

        assert_non_null(model);
        assert_int_equal(model->nfits, 1);
        const struct ct_fit *fit = &model->fits[0];

        assert_int_equal(fit->quality, CT_FIT_FULL);
        assert_within(fit->alpha_us, truth.alpha_us, limit);
        assert_within(fit->algbw_GBps *
                          ct_wire_factor(CT_OP_ALL_REDUCE, nranks),
                      GBps, limit);
        ct_model_free(model);
    }
}

static void test_sweep_clean(void **state)
{
    (void)state;
    check_sweep(CT_LINK_NVLINK, 2, 8, 40, .02, 0, .02);
    check_sweep(CT_LINK_NVLINK, 4, 8, 40, .02, 0, .02);
    check_sweep(CT_LINK_NETWORK, 2, 60, 5, .02, 0, .02);
    check_sweep(CT_LINK_NETWORK, 4, 60, 5, .02, 0, .02);
}

static void test_sweep_disturbed(void **state)
{
    (void)state;
    check_sweep(CT_LINK_NVLINK, 4, 8, 40, .05, .2, .06);
    check_sweep(CT_LINK_NETWORK, 2, 60, 5, .10, .2, .10);
    check_sweep(CT_LINK_NETWORK, 4, 60, 5, .05, .4, .10);
}

static void test_p2p_pools_edges(void **state)
{
    static struct bench bench;
    const struct truth truth = {25, 1 / 8e3, .03, .1};

    (void)state;
    start(&bench, 3, 8);
    for (uint64_t bytes = 4096; bytes <= 16u << 20; bytes *= 8)
        for (int edge = 0; edge < 4; edge++) {
            struct ct_usage *usage =
                add(&bench, CT_LINK_NETWORK, edge % 2 ? CT_OP_RECV : CT_OP_SEND,
                    bytes, 6, &truth);

            usage->comm = edge / 2;
            usage->src = edge;
            usage->dst = edge + 1;
        }
    struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

    assert_int_equal(model->nfits, 1);
    assert_int_equal(model->fits[0].base, CT_OP_SEND);
    assert_int_equal(model->fits[0].nranks, 2);
    assert_int_equal(model->fits[0].sizes, 5);
    assert_int_equal(model->fits[0].samples, 5 * 4 * 6);
    assert_int_equal(model->fits[0].quality, CT_FIT_FULL);
    assert_within(model->fits[0].alpha_us, 25, .06);
    assert_within(model->fits[0].algbw_GBps, 8, .06);
    ct_model_free(model);
}

/* Whatever the size: one size says nothing about two unknowns. */
static void test_single_size_is_never_full(void **state)
{
    static struct bench bench;

    (void)state;
    for (uint64_t bytes = 8; bytes <= 1u << 30; bytes *= 2)
        for (int far = 0; far < 3; far++) {
            const double factor = far == 0 ? 1 : far == 1 ? .2 : 7;
            const struct truth truth = {
                0,
                factor *
                    ct_model_prior_us(CT_LINK_NVLINK, CT_NONE, CT_OP_ALL_REDUCE,
                                      4, bytes) /
                    (double)bytes,
                .02, .1};

            start(&bench, bytes, 4);
            add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, bytes, 50, &truth);
            add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, bytes + bytes / 100,
                50, &truth);
            struct ct_model *model = ct_model_build(&bench.trace, &bench.job);
            const struct ct_fit *fit = &model->fits[0];

            assert_int_equal(fit->sizes, 1);
            assert_int_not_equal(fit->quality, CT_FIT_FULL);
            assert_true(isnan(fit->alpha_us) || isnan(fit->algbw_GBps));
            if (far) { /* the prior is refuted: nothing may lean on it */
                assert_int_equal(fit->quality, CT_FIT_PRIOR);
                assert_true(isnan(model->predictions[0].fit_us));
            }
            ct_model_free(model);
        }
}

static void test_large_sizes_show_bandwidth_only(void **state)
{
    static struct bench bench;
    const struct truth truth = ring(4, 8, 40, .02, .1);

    (void)state;
    start(&bench, 1, 4);
    add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, 512u << 20, 40, &truth);
    add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, 1024u << 20, 40, &truth);
    struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

    assert_int_equal(model->fits[0].quality, CT_FIT_BW_ONLY);
    assert_true(isnan(model->fits[0].alpha_us));
    assert_within(model->fits[0].algbw_GBps, 40 / 1.5, .03);
    ct_model_free(model);
}

static void test_small_sizes_show_latency_only(void **state)
{
    static struct bench bench;
    const struct truth truth = ring(4, 8, 40, .02, .1);

    (void)state;
    start(&bench, 1, 4);
    add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, 64, 40, &truth);
    add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, 512, 40, &truth);
    struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

    assert_int_equal(model->fits[0].quality, CT_FIT_LAT_ONLY);
    assert_true(isnan(model->fits[0].algbw_GBps));
    assert_within(model->fits[0].alpha_us, 48, .03);
    ct_model_free(model);
}

/* A fast and a slow protocol: latency and slope change at 256 KiB. */
static void test_two_protocols_are_no_line(void **state)
{
    static struct bench bench;
    const struct truth low = {8, 1 / 8e3, .02, .1};
    const struct truth high = {120, 1 / 60e3, .02, .1};

    (void)state;
    start(&bench, 1, 4);
    for (uint64_t bytes = 1024; bytes <= 256u << 20; bytes *= 4)
        add(&bench, CT_LINK_NVLINK, CT_OP_ALL_REDUCE, bytes, 30,
            bytes <= 256 * 1024 ? &low : &high);
    struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

    assert_int_not_equal(model->fits[0].quality, CT_FIT_FULL);
    assert_true(isnan(model->fits[0].alpha_us));
    assert_true(isnan(model->predictions[0].fit_us));
    ct_model_free(model);
}

/* nccl-tests doc/PERFORMANCE.md */
static void test_bandwidths_as_nccl_tests(void **state)
{
    static const struct {
        enum ct_op base;
        double factor8;
    } rows[] = {{CT_OP_ALL_REDUCE, 2 * 7 / 8.0},
                {CT_OP_ALL_GATHER, 7 / 8.0},
                {CT_OP_REDUCE_SCATTER, 7 / 8.0},
                {CT_OP_ALL_TO_ALL, 7 / 8.0},
                {CT_OP_BROADCAST, 1},
                {CT_OP_REDUCE, 1},
                {CT_OP_GATHER, 7 / 8.0},
                {CT_OP_SCATTER, 7 / 8.0}};
    static struct bench bench;
    const struct truth truth = {100, 0, 0, 0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(&bench, 1, 8);
        add(&bench, CT_LINK_NVLINK, rows[i].base, 1000000, 9, &truth);
        struct ct_model *model = ct_model_build(&bench.trace, &bench.job);
        const struct ct_prediction *row = &model->predictions[0];

        assert_true(row->observed_us == 100);
        assert_true(row->algbw_GBps == 10);
        assert_true(fabs(row->busbw_GBps - 10 * rows[i].factor8) < 1e-12);
        ct_model_free(model);
    }
}

static void test_prior_is_the_table(void **state)
{
    (void)state;
    assert_within(
        ct_model_prior_us(CT_LINK_NVLINK, CT_NONE, CT_OP_ALL_REDUCE, 8, 0),
        6.6 + 14 * .6, 1e-12);
    assert_within(
        ct_model_prior_us(CT_LINK_IB, CT_NONE, CT_OP_ALL_GATHER, 4, 47000000),
        6.6 + 3 * 2.7 + .75 * 1000, 1e-12);
    assert_within(ct_model_prior_us(CT_LINK_IB, CT_NONE, CT_OP_RECV, 16, 47000),
                  10.3, 1e-12);
}

static void test_group_is_observed_but_never_fitted(void **state)
{
    static struct bench bench;
    const struct truth truth = ring(2, 8, 40, 0, 0);

    (void)state;
    start(&bench, 1, 2);
    for (uint64_t bytes = 1024; bytes <= 1u << 20; bytes *= 32) {
        struct ct_usage *usage =
            add(&bench, CT_LINK_NVLINK, CT_OP_SEND, bytes, 10, &truth);
        usage->grouped = true;
        usage->nsamples = 0;
    }
    struct ct_model *model = ct_model_build(&bench.trace, &bench.job);

    assert_int_equal(model->npredictions, 3);
    assert_int_equal(model->fits[0].quality, CT_FIT_PRIOR);
    assert_int_equal(model->fits[0].samples, 0);
    assert_within(model->predictions[2].observed_us, 16 + 1048576 / 40e3, .001);
    ct_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_clean),
        cmocka_unit_test(test_sweep_disturbed),
        cmocka_unit_test(test_p2p_pools_edges),
        cmocka_unit_test(test_single_size_is_never_full),
        cmocka_unit_test(test_large_sizes_show_bandwidth_only),
        cmocka_unit_test(test_small_sizes_show_latency_only),
        cmocka_unit_test(test_two_protocols_are_no_line),
        cmocka_unit_test(test_bandwidths_as_nccl_tests),
        cmocka_unit_test(test_prior_is_the_table),
        cmocka_unit_test(test_group_is_observed_but_never_fitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
