/*
 * NCCL's own prediction: what its table and its formula give (tuning.cc of
 * 2.30.7), by what it chose, else by the best.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "model/nccl.h"
#include "trace_files.h"

enum { FOUR_RANKS = 4 };

static const struct ct_nccl_comm one_node = {4, false, false};
static const struct ct_nccl_comm two_nodes = {4, true, false};
static const struct ct_nccl_comm old = {4, true, true};

static double us(enum ct_op op, const char *algorithm, const char *protocol,
                 const struct ct_nccl_comm *comm, uint64_t bytes)
{
    const struct ct_tuning_row row = {.base = op,
                                      .algorithm = algorithm,
                                      .protocol = protocol,
                                      .latency_us = 20,
                                      .algbw_GBps = 10};

    return ct_nccl_us(&row, comm, bytes);
}

static void expect(double is, double should)
{
    if (!(fabs(is / should - 1) < 1e-9))
        fail_msg("%g instead of %g", is, should);
}

static void test_formula(void **state)
{
    const enum ct_op ar = CT_OP_ALL_REDUCE;

    (void)state;
    expect(us(ar, "RING", "LL", &one_node, 1000000), 20 + 100);
    expect(us(ar, "NVLS", "SIMPLE", &two_nodes, 1000000), 20 + 100);
    /* 1 MiB is 2^14 times 64 B */
    expect(us(ar, "TREE", "LL", &one_node, 1 << 20), 20 + 104.8576 / .5);
    expect(us(ar, "TREE", "LL128", &one_node, 1 << 20), 20 + 104.8576 / .6);
    expect(us(ar, "TREE", "SIMPLE", &one_node, 1 << 20), 20 + 104.8576 / .5);
    expect(us(ar, "TREE", "LL", &one_node, (1 << 20) - 1), 20 + 104.8575 / .4);
    expect(us(ar, "TREE", "LL", &one_node, 8), 20 + .0008);
    expect(us(ar, "TREE", "SIMPLE", &one_node, 64), 20 + .0064 / .9);
    expect(us(ar, "TREE", "SIMPLE", &one_node, 1u << 29), 20 + 53687.0912);
    expect(us(ar, "RING", "SIMPLE", &one_node, 1000000), 20 + 100);
    expect(us(ar, "RING", "SIMPLE", &two_nodes, 1000000), 28 + 100);
    expect(us(ar, "RING", "SIMPLE", &two_nodes, 255), 20 + .0255);
    expect(us(ar, "RING", "SIMPLE", &old, 1000000), 38 + 100);
    expect(us(CT_OP_ALL_GATHER, "RING", "SIMPLE", &two_nodes, 1000000),
           20 + 100);
}

/* NCCL 2.30.7 itself, 4 ranks on 2 nodes over TCP: its table of all-reduce, and
 * "4000 Bytes -> Algo RING proto LL". */
static void test_real_table(void **state)
{
    static const struct ct_tuning_row rows[] = {
        {0, CT_OP_ALL_REDUCE, "RING", "LL", 20.0, .4},
        {0, CT_OP_ALL_REDUCE, "TREE", "LL", 18.8, .3},
        {0, CT_OP_ALL_REDUCE, "TREE", "SIMPLE", 44.4, 1.1},
        {0, CT_OP_ALL_REDUCE, "RING", "SIMPLE", 60.4, .8},
    };

    (void)state;
    expect(ct_nccl_us(&rows[0], &two_nodes, 4000), 30);
    for (int i = 1; i < 4; i++)
        assert_true(ct_nccl_us(&rows[i], &two_nodes, 4000) > 30);
}

static void tuning(sqlite3 *db, int comm, enum ct_op op, const char *algorithm,
                   double latency_us, double GBps)
{
    files_sql(db, "INSERT INTO tuning VALUES (%d, %d, '%s', 'LL', %f, %f)",
              comm, (int)op, algorithm, latency_us, GBps);
}

/* Two sizes of all-reduce in two communicators of four ranks, all-gathers, and
 * sends, of which NCCL has no table. */
static struct ct_trace *make(const char *folder, bool choices)
{
    for (int r = 0; r < FOUR_RANKS; r++) {
        sqlite3 *db = files_begin(folder, r, FOUR_RANKS, 0);

        files_sql(db,
                  "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, 78, 'split', %d, %d, %d)",
                  FOUR_RANKS, r, r);
        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 250, -1);
        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 250000, -1);
        files_class(db, 3, 2, CT_OP_ALL_REDUCE, 250000, -1);
        files_class(db, 4, 1, CT_OP_ALL_GATHER, 1000, -1);
        files_class(db, 5, 1, r % 2 ? CT_OP_RECV : CT_OP_SEND, 100, r ^ 1);
        files_op(db, 1, 1, 0, 10000, 5000);
        files_op(db, 2, 2, 1, 20000, 5000);
        files_op(db, 3, 3, 0, 30000, 5000);
        files_op(db, 4, 2, 2, 40000, 5000);
        files_op(db, 5, 2, 3, 50000, 5000);
        files_op(db, 6, 4, 4, 60000, 5000);
        files_op(db, 7, 5, 0, 70000, 5000);
        if (r == 0) {
            tuning(db, 1, CT_OP_ALL_REDUCE, "RING", 50, 100);
            tuning(db, 1, CT_OP_ALL_REDUCE, "NVLS", 10, 1);
            tuning(db, 1, CT_OP_ALL_REDUCE, "PAT", 1, 0);
        }
        if (r == 1) /* its rank 0 is another */
            tuning(db, 2, CT_OP_ALL_REDUCE, "RING", 5, 10);
        if (r == 0 && choices) {
            files_sql(db,
                      "INSERT INTO choice_class VALUES (1, 1, %d, 1000,"
                      " NULL, 'RING', 'LL', 2, 'log')",
                      CT_OP_ALL_REDUCE);
            files_sql(db,
                      "INSERT INTO choice_class VALUES (2, 1, %d, 1000000,"
                      " NULL, 'RING', 'LL', 2, 'log')",
                      CT_OP_ALL_REDUCE);
            files_sql(db,
                      "INSERT INTO choice_class VALUES (3, 1, %d, 1000000,"
                      " NULL, 'NVLS', 'LL', 2, 'log')",
                      CT_OP_ALL_REDUCE);
            files_sql(db, "INSERT INTO choice VALUES (1, 1, 0, NULL, NULL,"
                          " NULL), (2, 2, 1, NULL, NULL, NULL),"
                          " (3, 2, 2, NULL, NULL, NULL),"
                          " (4, 3, 3, NULL, NULL, NULL)");
        }
        files_end(db);
    }
    return files_open(folder);
}

static const struct ct_prediction *of(const struct ct_model *model,
                                      enum ct_op base, uint64_t bytes)
{
    for (int i = 0; i < model->npredictions; i++)
        if (model->predictions[i].base == base &&
            model->predictions[i].bytes == bytes)
            return &model->predictions[i];
    fail_msg("no prediction of %d bytes", (int)bytes);
    return NULL;
}

static void test_predictions(void **state)
{
    const bool choices = *state != NULL;
    const char *folder = files_folder();
    struct ct_trace *trace = make(folder, choices);
    struct ct_model *model = ct_model_build(trace, &trace->jobs[0]);
    const double small = choices ? 50.01 : 11;
    /* three calls in the one communicator, one in the other */
    const double large = ((choices ? 60 + 60 + 1010 : 3 * 60) + 105) / 4.;

    assert_non_null(model);
    expect(of(model, CT_OP_ALL_REDUCE, 1000)->nccl_us, small);
    expect(of(model, CT_OP_ALL_REDUCE, 1000000)->nccl_us, large);
    assert_true(isnan(of(model, CT_OP_ALL_GATHER, 16000)->nccl_us));
    assert_true(isnan(of(model, CT_OP_SEND, 400)->nccl_us));
    ct_model_free(model);
    files_close(trace, folder);
}

int main(void)
{
    static int with_choices;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_real_table),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test_prestate(test_predictions, &with_choices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
