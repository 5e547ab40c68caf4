/* GPU times by the kernels that NCCL's profiler saw. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace_files.h"

enum { TWO_RANKS = 2, AHEAD = 700000 }; /* the GPU's clock */

static sqlite3 *begin(const char *folder, int rank)
{
    sqlite3 *db = files_begin_reducing(folder, rank, TWO_RANKS, 0);

    files_sql(db,
              "INSERT INTO choice_class VALUES (1, 1, %d, 4000, NULL,"
              " 'RING', 'LL', 2, 'plugin')",
              CT_OP_ALL_REDUCE);
    return db;
}

static void untimed(sqlite3 *db, int id, int class, int ordinal, long enter,
                    unsigned flags)
{
    files_sql(db,
              "INSERT INTO op VALUES (%d, %d, %d, NULL, %ld, 500, NULL, NULL,"
              " %u)",
              id, class, ordinal, enter, flags);
}

/* launch 0: none; start 0: not told. */
static void kernel(sqlite3 *db, int id, int n, int launch, long start, long ns)
{
    files_sql(db,
              "INSERT INTO choice VALUES (%d, 1, %d, nullif(%d, 0),"
              " nullif(%ld, 0), %ld)",
              id, n, launch, start, ns);
}

static void expect_op(const struct ct_process *p, int op, int64_t start,
                      int64_t ns, bool by_kernel)
{
    assert_int_equal(ct_op_start_ns(&p->ops[op]), start);
    assert_int_equal(ct_op_gpu_ns(&p->ops[op]), ns);
    assert_int_equal((p->ops[op].flags & CT_FLAG_KERNEL) != 0, by_kernel);
}

static void test_alone(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = begin(folder, 0);
    const struct ct_process *p;
    struct ct_trace *trace;

    (void)state;
    untimed(db, 1, 1, 0, 9000, CT_FLAG_UNSAMPLED);
    files_op(db, 2, 1, 1, 20000, 150);
    untimed(db, 3, 1, 2, 29000, CT_FLAG_UNSAMPLED | CT_FLAG_RUNNING);
    files_op(db, 4, 1, 3, 40000, 150);
    untimed(db, 5, 1, 4, 49000, CT_FLAG_UNSAMPLED);
    untimed(db, 6, 1, 5, 59000, CT_FLAG_UNSAMPLED);
    kernel(db, 1, 0, 0, AHEAD + 10000, 100);
    kernel(db, 2, 1, 0, AHEAD + 20020, 110);
    kernel(db, 3, 2, 0, AHEAD + 30020, 120);
    kernel(db, 4, 3, 0, AHEAD + 40050, 130); /* clocks drift */
    kernel(db, 5, 4, 0, AHEAD + 50050, 140);
    kernel(db, 6, 5, 0, 0, 145);
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    expect_op(p, 0, 9980, 100, true);
    expect_op(p, 1, 20000, 150, false);
    expect_op(p, 2, 30000, 120, true);
    expect_op(p, 3, 40000, 150, false);
    expect_op(p, 4, 50000, 140, true);
    expect_op(p, 5, CT_NO_TIME, 145, true);
    assert_int_equal(p->ops[2].flags & CT_FLAG_RUNNING, 0);
    assert_int_equal(ct_op_kernel(p, 3)->gpu_ns, 130);
    files_close(trace, folder);
}

/* COMMTRACE_TIMING=off: durations alone tell transfer and wait. */
static void test_no_events(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r, i;

    (void)state;
    for (r = 0; r < TWO_RANKS; r++) {
        sqlite3 *db = begin(folder, r);

        for (i = 0; i < 3; i++) {
            untimed(db, 1 + i, 1, i, 10000 * (1 + i), CT_FLAG_UNSAMPLED);
            kernel(db, 1 + i, i, 0, AHEAD + 10000 * i, 1000 + (r != i) * 300);
        }
        files_end(db);
    }
    trace = files_open(folder);
    for (i = 0; i < 3; i++) {
        expect_op(&trace->processes[0], i, CT_NO_TIME, 1000 + (i != 0) * 300,
                  true);
        assert_int_equal(files_instance(trace, 0, i)->transfer_ns,
                         i < 2 ? 1000 : 1300);
    }
    assert_int_equal(files_wait(trace, 0, 1), 300);
    files_close(trace, folder);
}

static void test_group(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = begin(folder, 0);
    const struct ct_process *p;
    struct ct_trace *trace;

    (void)state;
    files_op(db, 1, 1, 0, 10000, 150);
    files_grouped(db, 2, 1, 1, 1);
    files_grouped(db, 3, 1, 2, 1);
    files_launch(db, 4, 1, 1, 2, 20000, 5000);
    files_grouped(db, 5, 1, 3, 2);
    files_grouped(db, 6, 1, 4, 2);
    files_launch(db, 7, 2, 1, 2, 30000, 5000);
    files_sql(db, "UPDATE launch SET gpu_off_ns = NULL, gpu_ns = NULL");
    kernel(db, 1, 0, 0, AHEAD + 10000, 100);
    kernel(db, 2, 1, 0, AHEAD + 20000, 100);
    kernel(db, 3, 2, 0, AHEAD + 20050, 200);
    kernel(db, 4, 3, 0, AHEAD + 30000, 100); /* of the fourth nothing */
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    expect_op(p, 1, 20000, 250, true);
    expect_op(p, 2, 20000, 250, true);
    assert_int_equal(ct_launch_start_ns(&p->launches[0]), 20000);
    assert_int_equal(ct_launch_gpu_ns(&p->launches[0]), 250);
    expect_op(p, 3, CT_NO_TIME, CT_NO_TIME, false);
    expect_op(p, 4, CT_NO_TIME, CT_NO_TIME, false);
    files_close(trace, folder);
}

/* Two captured all-reduces, run three times by one graph. In each run another
 * rank is late, so that no rank's median is the transfer. */
static void test_replays(void **state)
{
    static const long waits[TWO_RANKS][3] = {{0, 400, 500}, {300, 0, 0}};
    const char *folder = files_folder();
    struct ct_trace *trace;
    const struct ct_process *p;
    int r, i, k;

    (void)state;
    for (r = 0; r < TWO_RANKS; r++) {
        sqlite3 *db = begin(folder, r);

        files_op(db, 1, 1, 0, 10000, 1000);
        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 1000, -1);
        files_sql(db, "UPDATE op_class SET graph = 5 WHERE id = 2");
        untimed(db, 2, 2, 1, 20000, CT_FLAG_CAPTURED);
        untimed(db, 3, 2, 2, 21000, CT_FLAG_CAPTURED);
        files_sql(db, "INSERT INTO graph VALUES (5, 22000, NULL, NULL)");
        for (k = 0; k < 3; k++) {
            files_sql(db,
                      "INSERT INTO graph_launch VALUES (%d, 5, 1, %d, 100, 0)",
                      10 + k, 30000 + 10000 * k);
            for (i = 0; i < 2; i++)
                kernel(db, 10 + 2 * k + i, 1 + i, 10 + k,
                       AHEAD + 30000 + 10000 * k + 2000 * i,
                       1000 + 10 * k + waits[r][k]);
        }
        kernel(db, 20, 1, 99, AHEAD, 7);  /* no such launch */
        kernel(db, 21, 0, 10, AHEAD, 7);  /* not captured */
        kernel(db, 22, 77, 10, AHEAD, 7); /* no such op */
        files_end(db);
    }
    trace = files_open(folder);
    p = &trace->processes[0];
    expect_op(p, 0, 10000, 1000, false);
    for (i = 1; i <= 2; i++) {
        expect_op(p, i, CT_NO_TIME, 1410, true);
        assert_int_equal(ct_op_gpu_ns(&trace->processes[1].ops[i]), 1020);
        assert_int_equal(files_instance(trace, 0, i)->transfer_ns, 1010);
        assert_int_equal(files_instance(trace, 0, i)->runs, 3);
        assert_int_equal(files_wait(trace, 0, i), 400);
        assert_int_equal(files_wait(trace, 1, i), 10);
        assert_int_equal(files_instance(trace, 0, i)->wait_sum_ns, 410);
    }
    assert_int_equal(p->nkernels, 6);
    assert_int_equal(p->unplaced, 3);
    assert_int_equal(p->kernels[0].launch, 0);
    assert_int_equal(p->kernels[2].launch, 2);
    assert_null(ct_op_kernel(p, 1)); /* it never ran by itself */
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_no_events),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_replays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
