/* Exchanges of send/recv, whoever is late and whatever the clocks say. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
