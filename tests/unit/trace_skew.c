/*
 * Collectives whose ranks come at different times: the shortest duration is not
 * the transfer.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace/arena.h"
#include "trace/stages.h"

static void assert_within(double value, double truth, double relative)
{
    if (!(fabs(value / truth - 1) <= relative))
        fail_msg("%g is not within %g of %g", value, relative, truth);
}

/* One usage of 200 calls, whose shortest duration falls by kappa * skew until
 * the gain of the late rank is used up. */
struct skewed {
    struct ct_trace trace;
    struct ct_job job;
    struct ct_comm comm;
    struct ct_usage usage;
    struct ct_instance instances[200];
};

static double unit(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void skew(struct skewed *s, int nranks, double kappa, double most_skew,
                 double us)
{
    uint64_t seed = 42;

    *s = (struct skewed){.comm.nranks = nranks};
    s->job = (struct ct_job){.comms = &s->comm,
                             .ncomms = 1,
                             .usages = &s->usage,
                             .nusages = 1,
                             .instances = s->instances,
                             .ninstances = 200};
    for (int i = 0; i < 200; i++) {
        const double between = most_skew * unit(&seed) * us;
        const double shortest =
            us * (1 + .02 * (unit(&seed) - .5)) - kappa * between;

        s->instances[i] = (struct ct_instance){
            .base = CT_OP_ALL_REDUCE,
            .transfer_ns = (int64_t)(shortest * 1e3),
            .ranks = (uint32_t)nranks,
            .timed = (uint32_t)nranks,
            .wait_max_ns = (int64_t)(between * 1e3),
            .wait_sum_ns = (int64_t)(between * 1e3) * (nranks - 1)};
    }
    s->usage = (struct ct_usage){.base = CT_OP_ALL_REDUCE,
                                 .bytes = 65536,
                                 .link = CT_LINK_NVLINK,
                                 .src = CT_NONE,
                                 .dst = CT_NONE};
}

/* Median of what is left as a sample, in us. */
static double located(struct skewed *s)
{
    s->trace.arena = ct_arena_new();
    ct_trace_locate(&s->trace, &s->job);
    ct_trace_usage(&s->trace, &s->job);
    assert_true(s->usage.nsamples > 0);
    ct_arena_free(s->trace.arena);
    return (double)s->usage.median_ns / 1e3;
}

static void test_late_ranks(void **state)
{
    static struct skewed s;

    (void)state;
    for (int nranks = 2; nranks <= 8; nranks *= 2)
        for (int latency = 0; latency <= 1; latency++) {
            skew(&s, nranks, latency ? .5 : 0, .6, 300);
            assert_within(located(&s), 300, .02);
        }
}

/* What late ranks gained is put right by as much as it was, in the calls where
 * it was most, too. */
static void test_most_skewed_calls(void **state)
{
    static struct skewed s;
    bool far[200];
    double sum = 0;
    int n = 0;

    (void)state;
    skew(&s, 4, .5, .6, 300);
    for (int i = 0; i < 200; i++)
        far[i] = s.instances[i].wait_max_ns > 120000;
    located(&s);
    for (int i = 0; i < 200; i++)
        if (far[i]) {
            sum += (double)s.instances[i].transfer_ns / 1e3;
            n++;
        }
    assert_true(n > 40);
    assert_within(sum / n, 300, .01);
}

/* All calls alike: what the skew did is not known, only bounded. */
static void test_little_skew(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, .5, .1, 300);
    assert_within(located(&s), 300, .03);
}

static void always_apart(struct skewed *s)
{
    for (int i = 0; i < 200; i++) {
        s->instances[i].wait_max_ns += 1000000;
        s->instances[i].wait_sum_ns += 1000000;
    }
}

/* Two ranks wait for each other, however late one is. */
static void test_two_ranks_gain_nothing(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 2, 0, .5, 300);
    always_apart(&s);
    assert_within(located(&s), 300, .02);
    assert_int_equal(s.usage.nsamples, 195); /* 5 to warm up */
    assert_int_equal(s.usage.apart, 0);
    assert_false(s.instances[0].skewed);
}

/* Of four, the last one finds what the others could send without it. In a ring
 * of six steps of 50 us these are the first two: it takes 200 us, always, as it
 * would if the transfer took no longer. */
static void test_hopeless_skew_is_a_least(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, 0, .5, 200);
    always_apart(&s);
    s.trace.arena = ct_arena_new();
    ct_trace_locate(&s.trace, &s.job);
    ct_trace_usage(&s.trace, &s.job);
    assert_int_equal(s.usage.nsamples, 0);
    assert_int_equal(s.usage.apart, 200);
    assert_true(s.instances[0].skewed && s.instances[199].skewed);
    assert_within((double)s.usage.median_ns / 1e3, 200, .02);
    ct_arena_free(s.trace.arena);
}

/* Now and then a rank is very late: those calls are told by the others, never
 * by more than what their ranks saw, and are samples of nothing. */
static void test_very_late_ranks(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, .5, .4, 300);
    for (int i = 0; i < 200; i += 4) {
        s.instances[i].transfer_ns = 60000;
        s.instances[i].wait_max_ns = i == 100 ? 100000 : 5000000;
        s.instances[i].wait_sum_ns = 3 * s.instances[i].wait_max_ns;
    }
    assert_within(located(&s), 300, .02);
    assert_int_equal(s.usage.nsamples, 145);
    assert_within((double)s.instances[0].transfer_ns / 1e3, 300, .02);
    assert_int_equal(s.instances[100].transfer_ns, 135000);
}

/* A gather that never saw its ranks together says nothing of its time. */
static void test_one_way(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, 0, .5, 300);
    s.usage.base = CT_OP_ALL_GATHER;
    for (int i = 0; i < 200; i++) {
        s.instances[i].base = CT_OP_ALL_GATHER;
        s.instances[i].wait_max_ns += 1000000;
        s.instances[i].wait_sum_ns += 1000000;
    }
    s.trace.arena = ct_arena_new();
    ct_trace_locate(&s.trace, &s.job);
    ct_trace_usage(&s.trace, &s.job);
    assert_int_equal(s.usage.nsamples, 0);
    ct_arena_free(s.trace.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_ranks),
        cmocka_unit_test(test_most_skewed_calls),
        cmocka_unit_test(test_little_skew),
        cmocka_unit_test(test_two_ranks_gain_nothing),
        cmocka_unit_test(test_hopeless_skew_is_a_least),
        cmocka_unit_test(test_very_late_ranks),
        cmocka_unit_test(test_one_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
