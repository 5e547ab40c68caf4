/*
 * Transfers that late ranks and unknown clocks disturb: exchanges of send/recv
 * and collectives of several steps.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/model.h"
#include "roles_jobs.h"

#define ROUNDS 20

static void assert_within(double value, double truth, double relative)
{
    if (!(fabs(value / truth - 1) <= relative))
        fail_msg("%g is not within %g of %g", value, relative, truth);
}

/* Each rank sends to the next and receives from the one before, as nccl-tests'
 * sendrecv; late: one comes later, and so
 * one of them always waits. */
static struct maker *ring(int n, double late_us)
{
    struct maker *maker = maker_new(n, n, (uint64_t)n);
    int ranks[64];

    for (int i = 0; i < n; i++)
        ranks[i] = i;
    maker_comm(maker, ranks, n);
    maker_links(maker, (struct maker_link){50, 10},
                (struct maker_link){50, 10});
    maker_jitter(maker, .02);
    for (int rank = 0; rank < n; rank++)
        for (uint64_t count = 256; count <= 256 * 1024; count *= 8)
            for (int i = 0; i < ROUNDS; i++) {
                if (i == 0) /* a barrier between sizes */
                    maker_op(maker, rank, 0, CT_OP_ALL_REDUCE, 1, CT_REDOP_SUM,
                             CT_NONE);
                if (rank == 0 && i == 0)
                    maker_compute(maker, rank, late_us);
                maker_group(maker, rank);
                maker_op(maker, rank, 0, CT_OP_SEND, count, CT_NONE,
                         (rank + 1) % n);
                maker_op(maker, rank, 0, CT_OP_RECV, count, CT_NONE,
                         (rank + n - 1) % n);
                maker_group_end(maker, rank);
            }
    return maker;
}

static void test_exchanges(void **state)
{
    static const double late[] = {0, 5, 12};

    (void)state;
    for (int n = 2; n <= 4; n++)
        for (int i = 0; i < 3; i++) {
            struct maker *maker = ring(n, late[i]);
            struct ct_trace *trace = (struct ct_trace *)maker_run(maker);
            struct ct_job *job = &trace->jobs[0];

            for (int k = 0; k < trace->nprocesses; k++)
                trace->processes[k].t0_ns = k * INT64_C(987654321);
            for (int k = 0; k < job->ninstances; k++)
                job->instances[k].transfer_ns = CT_NO_TIME;
            struct ct_model *model = ct_model_build(trace, job);

            const struct ct_fit *fit = &model->fits[model->nfits - 1];

            assert_int_equal(fit->base, CT_OP_SEND);
            assert_int_equal(fit->quality, CT_FIT_FULL);
            assert_within(fit->alpha_us, 50, .05);
            assert_within(fit->algbw_GBps, 10, .05);
            ct_model_free(model);
            maker_free(maker);
        }
}

/* One usage of 200 calls, whose shortest duration falls by kappa * skew until
 * the gain of the late rank is used up. */
struct skewed {
    struct ct_trace trace;
    struct ct_job job;
    struct ct_comm comm;
    struct ct_usage usage;
    struct ct_instance instances[200];
    int64_t samples[200];
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

        s->instances[i] =
            (struct ct_instance){.base = CT_OP_ALL_REDUCE,
                                 .bytes = 65536,
                                 .transfer_ns = (int64_t)(shortest * 1e3),
                                 .wait_max_ns = (int64_t)(between * 1e3)};
        s->samples[i] = s->instances[i].transfer_ns;
    }
    s->usage = (struct ct_usage){.base = CT_OP_ALL_REDUCE,
                                 .bytes = 65536,
                                 .link = CT_LINK_NVLINK,
                                 .calls = 200,
                                 .nsamples = 200,
                                 .samples = s->samples,
                                 .median_ns = s->samples[0]};
}

static double located(const struct skewed *s)
{
    double us, error;

    assert_int_equal(ct_model_locate(&s->trace, &s->job, &us, &error), 0);
    assert_true(error >= 0 && error < .05);
    return us;
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

/* All calls alike: what the skew did is not known, only bounded. */
static void test_little_skew(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, .5, .1, 300);
    assert_within(located(&s), 300, .03);
}

static void test_hopeless_skew_is_left_alone(void **state)
{
    static struct skewed s;

    (void)state;
    skew(&s, 4, 0, .5, 300);
    for (int i = 0; i < 200; i++)
        s.instances[i].wait_max_ns += 1000000;
    assert_within(located(&s), 300, .02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_late_ranks),
        cmocka_unit_test(test_little_skew),
        cmocka_unit_test(test_hopeless_skew_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
