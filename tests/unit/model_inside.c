/*
 * Where the expected time inside a node comes from, and how far it is off.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

#define AR CT_OP_ALL_REDUCE

/* Measured points of one class; FULL or not is what the fit says. */
struct class
{
    enum ct_link link;
    enum ct_op base;
    int nranks;
    double alpha_us, GBps; /* of a link; ring */
    int sizes;
    uint64_t bytes[4];
};

static int64_t samples[8][4][32];

static double ring_us(enum ct_op base, int n, double alpha_us, double GBps,
                      double bytes)
{
    return ct_model_steps(base, n) * alpha_us +
           ct_wire_factor(base, n) * bytes / (GBps * 1e3);
}

static struct ct_model *model_of(const struct class *classes, int n)
{
    static struct ct_usage usages[32];
    static struct ct_comm comms[8];
    static struct ct_trace trace;
    struct ct_job job = {.comms = comms, .ncomms = n, .usages = usages};

    for (int i = 0; i < n; i++) {
        const struct class *c = &classes[i];

        comms[i].nranks = c->nranks;
        for (int k = 0; k < c->sizes; k++) {
            const double us = ring_us(c->base, c->nranks, c->alpha_us, c->GBps,
                                      (double)c->bytes[k]);

            for (int s = 0; s < 32; s++)
                samples[i][k][s] = (int64_t)(us * (990 + s % 21));
            usages[job.nusages++] =
                (struct ct_usage){.comm = i,
                                  .base = c->base,
                                  .bytes = c->bytes[k],
                                  .link = c->link,
                                  .calls = 32,
                                  .nsamples = 32,
                                  .samples = samples[i][k],
                                  .median_ns = samples[i][k][16]};
        }
    }
    return ct_model_build(&trace, &job);
}

struct expectation {
    const struct ct_model *own, *reference;
    enum ct_op base;
    int nranks;
    uint64_t bytes;
    enum ct_source source;
    double truth_us, tolerance, most_error;
};

static void check(const struct expectation *e)
{
    enum ct_source source;
    double error;
    const double us = ct_model_inside_us(e->own, e->reference, e->base,
                                         e->nranks, e->bytes, &source, &error);

    assert_int_equal(source, e->source);
    if (!(fabs(us / e->truth_us - 1) <= e->tolerance))
        fail_msg("%g us, truth %g us", us, e->truth_us);
    assert_true(error > 0 && error <= e->most_error);
}

static const struct class wide = {
    CT_LINK_NVLINK, AR, 4, 8, 40, 4, {4096, 65536, 1 << 20, 16 << 20}};

static void test_own_fit(void **state)
{
    struct ct_model *own = model_of(&wide, 1);

    (void)state;
    check(&(struct expectation){own, NULL, AR, 4, 300000, CT_SOURCE_FIT,
                                ring_us(AR, 4, 8, 40, 300000), .02, .05});
    ct_model_free(own);
}

static void test_other_group_size_is_scaled(void **state)
{
    struct ct_model *own = model_of(&wide, 1);

    (void)state;
    for (int n = 2; n <= 8; n *= 4)
        check(&(struct expectation){own, NULL, AR, n, 300000, CT_SOURCE_FIT,
                                    ring_us(AR, n, 8, 40, 300000), .02, .25});
    ct_model_free(own);
}

/* Two sizes that cannot tell alpha from beta still bracket what lies between
 * them, and one size is itself. */
static void test_measured_sizes(void **state)
{
    const struct class close = {CT_LINK_NVLINK, AR, 4, 8, 40, 2,
                                {60000, 70000}};
    const struct class single = {CT_LINK_NVLINK, AR, 4, 8, 40, 1, {65536}};
    struct ct_model *own = model_of(&close, 1);

    (void)state;
    assert_int_not_equal(own->fits[0].quality, CT_FIT_FULL);
    check(&(struct expectation){own, NULL, AR, 4, 65536, CT_SOURCE_FIT,
                                ring_us(AR, 4, 8, 40, 65536), .02, .1});
    ct_model_free(own);
    own = model_of(&single, 1);
    check(&(struct expectation){own, NULL, AR, 4, 65536, CT_SOURCE_FIT,
                                ring_us(AR, 4, 8, 40, 65536), .02, .1});
    check(&(struct expectation){
        own, NULL, AR, 4, 8 << 20, CT_SOURCE_PRIOR,
        ct_model_prior_us(CT_LINK_NODE, CT_NONE, AR, 4, 8 << 20), 1e-9, .36});
    ct_model_free(own);
}

static void test_network_is_not_inside(void **state)
{
    struct class far = wide;
    struct ct_model *own, *reference;

    (void)state;
    far.link = CT_LINK_NETWORK;
    far.alpha_us = 60;
    own = model_of(&far, 1);
    check(&(struct expectation){
        own, NULL, AR, 4, 65536, CT_SOURCE_PRIOR,
        ct_model_prior_us(CT_LINK_NODE, CT_NONE, AR, 4, 65536), 1e-9, .36});
    reference = model_of(&wide, 1);
    check(&(struct expectation){own, reference, AR, 4, 65536,
                                CT_SOURCE_REFERENCE,
                                ring_us(AR, 4, 8, 40, 65536), .02, .05});
    ct_model_free(own);
    ct_model_free(reference);
}

/* Own measurements that reach too far give way to a better reference. */
static void test_reference_beats_a_stretch(void **state)
{
    const struct class far_sizes = {CT_LINK_NVLINK,     AR, 4, 8, 40, 2,
                                    {8 << 20, 16 << 20}};
    struct ct_model *own = model_of(&far_sizes, 1);
    struct ct_model *reference = model_of(&wide, 1);

    (void)state;
    check(&(struct expectation){own, reference, AR, 4, 4096,
                                CT_SOURCE_REFERENCE,
                                ring_us(AR, 4, 8, 40, 4096), .02, .05});
    ct_model_free(own);
    ct_model_free(reference);
}

static void test_send_recv_is_one_class(void **state)
{
    const struct class p2p = {CT_LINK_NVLINK,          CT_OP_SEND, 8, 5, 30, 3,
                              {4096, 1 << 18, 4 << 20}};
    struct ct_model *own = model_of(&p2p, 1);

    (void)state;
    check(&(struct expectation){own, NULL, CT_OP_RECV, 16, 1 << 20,
                                CT_SOURCE_FIT, 5 + (1 << 20) / 30e3, .02, .05});
    ct_model_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_fit),
        cmocka_unit_test(test_other_group_size_is_scaled),
        cmocka_unit_test(test_measured_sizes),
        cmocka_unit_test(test_network_is_not_inside),
        cmocka_unit_test(test_reference_beats_a_stretch),
        cmocka_unit_test(test_send_recv_is_one_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
