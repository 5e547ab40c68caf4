/* Which ops meet, and what they cost, on cases whose truth is in the numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace_files.h"

static void test_all_reduce(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 3, 0);

        files_op(db, 1, 1, 0, 5000 + 100 * r, 1000 - 100 * r);
        files_op(db, 2, 1, 1, 9000, 500);
        files_end(db);
    }
    trace = files_open(folder);
    {
        const struct ct_job *job = &trace->jobs[0];
        const struct ct_instance *i = files_instance(trace, 1, 0);

        assert_int_equal(trace->njobs, 1);
        assert_int_equal(job->ninstances, 2);
        assert_int_equal(job->nusages, 1);
        assert_int_equal(i->ranks, 3);
        assert_int_equal(i->timed, 3);
        assert_int_equal(ct_usage_of(job, i)->bytes, 4000);
        assert_int_equal(i->transfer_ns, 800); /* of the last to come */
        assert_int_equal(i->wait_sum_ns, 200 + 100);
        assert_int_equal(i->wait_max_ns, 200);
        assert_false(i->bound || i->grouped || i->mismatch || i->overlapped);
        assert_int_equal(files_wait(trace, 0, 0), 200);
        assert_int_equal(files_wait(trace, 2, 0), 0);
        assert_int_equal(job->usages[0].calls, 2);
        assert_int_equal(job->usages[0].nsamples, 2);
        assert_int_equal(job->usages[0].samples[0], 800);
        assert_int_equal(job->usages[0].samples[1], 500);
        assert_int_equal(job->usages[0].transfer_ns, 1300);
        assert_int_equal(job->usages[0].wait_ns, 100);
        assert_int_equal(job->missing, 0);
    }
    files_close(trace, folder);
}

static void test_missing_rank(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 3, 0);

        files_op(db, 1, 1, 0, 5000, 1000);
        if (r == 0)
            files_op(db, 2, 1, 7, 5000, 1000); /* others never came */
        files_end(db);
    }
    trace = files_open(folder);
    assert_true(files_instance(trace, 0, 0)->bound);
    assert_int_equal(files_instance(trace, 0, 0)->ranks, 2);
    assert_int_equal(files_instance(trace, 0, 1)->ranks, 1);
    assert_int_equal(trace->jobs[0].missing, 1);
    assert_int_equal(trace->jobs[0].mismatches, 0);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 0);
    assert_int_equal(trace->jobs[0].usages[0].median_ns, 1000);
    files_close(trace, folder);
}

static void test_mismatch(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 1001, -1);
        files_class(db, 3, 1, CT_OP_ALL_GATHER, 1000, -1);
        files_class(db, 4, 1, CT_OP_BROADCAST, 1000, r);
        files_class(db, 5, 1, CT_OP_BCAST, 1000, 1);
        files_class(db, 6, 1, CT_OP_BROADCAST, 1000, 1);
        files_op(db, 1, 1, 0, 5000, 1000);
        files_op(db, 2, r ? 2 : 1, 1, 7000, 1000);  /* size */
        files_op(db, 3, r ? 3 : 1, 2, 9000, 1000);  /* kind */
        files_op(db, 4, 4, 3, 11000, 1000);         /* root */
        files_op(db, 5, r ? 5 : 6, 4, 13000, 1000); /* the same by two names */
        files_end(db);
    }
    trace = files_open(folder);
    assert_false(files_instance(trace, 0, 0)->mismatch);
    assert_true(files_instance(trace, 0, 1)->mismatch);
    assert_true(files_instance(trace, 0, 2)->mismatch);
    assert_true(files_instance(trace, 0, 3)->mismatch);
    assert_false(files_instance(trace, 0, 4)->mismatch);
    assert_int_equal(trace->jobs[0].mismatches, 3);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 1);
    /* Of two that differ both are named. */
    assert_int_equal(trace->jobs[0].nunlike, 2);
    assert_true(trace->jobs[0].unlike[0].tied);
    assert_int_equal(trace->jobs[0].unlike[1].rank, 1);
    assert_int_equal(trace->jobs[0].unlike[1].calls, 3);
    assert_int_equal(trace->jobs[0].unlike[1].first, 1);
    assert_int_equal(trace->jobs[0].unlike[1].own.count, 1001);
    assert_int_equal(trace->jobs[0].unlike[1].others.count, 1000);
    files_close(trace, folder);
}

/* What most ranks call is what the operation is, whoever was seen first. */
static void test_most_are_right(void **state)
{
    const char *folder = files_folder();
    const struct ct_job *job;
    struct ct_trace *trace;
    int r, i;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 3, 0);

        files_class(db, 2, 1, CT_OP_ALL_GATHER, 7, -1);
        for (i = 0; i < 10; i++)
            files_op(db, i + 1, r == 0 && i >= 8 ? 2 : 1, i, 1000 * i, 500);
        files_end(db);
    }
    trace = files_open(folder);
    job = &trace->jobs[0];
    assert_int_equal(job->mismatches, 2);
    assert_int_equal(files_instance(trace, 0, 9)->base, CT_OP_ALL_REDUCE);
    assert_int_equal(ct_usage_of(job, files_instance(trace, 0, 9))->bytes,
                     4000);
    assert_int_equal(job->nusages, 1);
    assert_int_equal(job->nunlike, 1);
    assert_int_equal(job->unlike[0].rank, 0);
    assert_int_equal(job->unlike[0].calls, 2);
    assert_int_equal(job->unlike[0].first, 8);
    assert_int_equal(job->unlike[0].own.base, CT_OP_ALL_GATHER);
    assert_int_equal(job->unlike[0].others.base, CT_OP_ALL_REDUCE);
    assert_false(job->unlike[0].tied);
    assert_int_equal(job->met.whole, 10);
    assert_int_equal(job->met.unlike, 2);
    files_close(trace, folder);
}

/* Ranks 0 and 2 issue one more than rank 1, which is said where nothing is
 * missing of that one. */
static void test_ahead(void **state)
{
    enum { WHOLE, LOSES, KILLED, CASES };
    int which, r, i;

    (void)state;
    for (which = 0; which < CASES; which++) {
        const char *folder = files_folder();
        const struct ct_job *job;
        struct ct_trace *trace;

        for (r = 0; r < 3; r++) {
            sqlite3 *db = files_begin_reducing(folder, r, 3, 0);

            for (i = 0; i < (r == 1 ? 4 : 5); i++)
                files_op(db, i + 1, 1, i, 1000 * i, 500);
            if (r == 1 && which == LOSES)
                files_sql(db, "INSERT INTO loss VALUES"
                              " ('ring_full', 'op', 1, 1, 1, 2)");
            if (r == 1 && which == KILLED)
                files_sql(db, "UPDATE process SET end_ns = NULL");
            files_end(db);
        }
        trace = files_open(folder);
        job = &trace->jobs[0];
        assert_int_equal(job->met.whole, 4);
        assert_int_equal(job->met.ahead, which == WHOLE);
        assert_int_equal(job->met.lost, which != WHOLE);
        assert_int_equal(job->nahead, which == WHOLE);
        assert_true(files_instance(trace, 0, 4)->bound);
        if (which == WHOLE) {
            assert_int_equal(job->ahead[0].behind, 1);
            assert_int_equal(job->ahead[0].issued, 4);
            assert_int_equal(job->ahead[0].most, 5);
        }
        files_close(trace, folder);
    }
}

static void test_groups(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 3000, -1);
        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 1000, -1);
        files_class(db, 3, 1, CT_OP_SEND, 500, 1 - r);
        files_class(db, 4, 1, CT_OP_RECV, 500, 1 - r);
        /* Two all-reduces in one launch share its time by their bytes. */
        files_grouped(db, 1, 1, 0, 1);
        files_grouped(db, 2, 2, 1, 1);
        files_launch(db, 3, 1, 1, 2, 5000, 4000 + 800 * r);
        /* A group of one is not grouped. */
        files_grouped(db, 4, 2, 2, 2);
        files_launch(db, 5, 2, 1, 1, 12000, 900);
        /* An exchange: both directions share the interval. */
        files_grouped(db, 6, 3, 0, 3);
        files_grouped(db, 7, 4, 0, 3);
        files_launch(db, 8, 3, 1, 2, 20000 + 1000 * r - FILES_SKEW * r,
                     2000 - 1000 * r);
        files_end(db);
    }
    trace = files_open(folder);
    {
        const struct ct_instance *i = files_instance(trace, 0, 0);

        assert_true(i->grouped);
        assert_int_equal(i->transfer_ns, 3000);
        assert_int_equal(i->wait_max_ns, 600);
        assert_int_equal(files_instance(trace, 0, 1)->transfer_ns, 1000);
        i = files_instance(trace, 0, 2);
        assert_false(i->grouped);
        assert_int_equal(i->transfer_ns, 900);
        i = files_instance(trace, 0, 3);
        assert_true(i->grouped);
        assert_int_equal(i->transfer_ns, 1000);
        assert_int_equal(ct_usage_of(trace->jobs, i)->src, 0);
        assert_int_equal(
            ct_usage_of(trace->jobs, files_instance(trace, 0, 4))->src, 1);
        assert_int_equal(files_wait(trace, 0, 4), 1000);
        assert_int_equal(files_wait(trace, 0, 3), 0);
        assert_ptr_equal(files_instance(trace, 0, 4),
                         files_instance(trace, 1, 3));
    }
    assert_int_equal(trace->processes[0].launches[0].first_op, 0);
    assert_int_equal(trace->processes[0].launches[2].first_op, 3);
    files_close(trace, folder);
}

static void test_untimed(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    struct ct_trace *trace;

    (void)state;
    files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
    files_sql(db, "INSERT INTO op VALUES (1, 1, 0, NULL, 5000, 700, NULL,"
                  " NULL, 0)");
    files_end(db);
    trace = files_open(folder);
    /* How long an asynchronous call took on the host is no transfer. */
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, CT_NO_TIME);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 0);
    assert_int_equal(trace->jobs[0].usages[0].calls, 1);
    files_close(trace, folder);
}

/* Ordinals so far apart that an index by ordinal would not fit. */
static void test_sparse_ordinals(void **state)
{
    static const unsigned ordinals[] = {0, 1000000, 4294967295u};
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r, i;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

        for (i = 0; i < 3; i++)
            files_sql(db,
                      "INSERT INTO op VALUES (%d, 1, %u, NULL, %d, 9, 1, 50,"
                      " 1)",
                      i + 1, ordinals[i], 1000 * i);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->jobs[0].ninstances, 3);
    for (i = 0; i < 3; i++) {
        assert_int_equal(files_instance(trace, 0, i)->ranks, 2);
        assert_int_equal(files_instance(trace, 0, i)->ordinal, ordinals[i]);
    }
    files_close(trace, folder);
}

/* One rank's call fails: the calls after it still meet those of the other. */
static void test_refused(void **state)
{
    const char *folder = files_folder();
    const struct ct_process *p;
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

        files_class(db, 2, 1, CT_OP_BROADCAST, 10, 99);
        files_class(db, 3, 1, CT_OP_SEND, -1, -5);
        files_op(db, 1, 1, 0, 5000, 700);
        if (r == 1)
            files_sql(db, "INSERT INTO op VALUES"
                          " (2, 2, 1, NULL, 6000, 9, NULL, NULL, 4 << 16),"
                          " (3, 3, 0, NULL, 6001, 9, NULL, NULL, 4 << 16)");
        /* ncclInProgress: of a communicator that does not block. */
        files_op(db, 4, 1, 1 + r, 7000, 700);
        files_sql(db, "UPDATE op SET flags = flags + (7 << 16) WHERE id = 4");
        files_end(db);
    }
    trace = files_open(folder);
    p = &trace->processes[1];
    assert_int_equal(trace->processes[0].refused, 0);
    assert_int_equal(p->refused, 2);
    assert_int_equal(p->first_refused.kind, CT_OP_BROADCAST);
    assert_int_equal(p->first_refused.result, 4);
    assert_int_equal(p->nops, 2);
    assert_int_equal(p->ops[1].ordinal, 1);
    assert_int_equal(files_instance(trace, 1, 1)->ranks, 2);
    assert_int_equal(trace->jobs[0].ninstances, 2);
    assert_int_equal(trace->jobs[0].mismatches, 0);
    files_close(trace, folder);
}

/* One rank's first group was only simulated, and of its second a call failed:
 * what follows still meets that of the other. */
static void test_never_launched(void **state)
{
    const char *folder = files_folder();
    const struct ct_process *p;
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

        files_class(db, 2, 1, CT_OP_SEND, 1000, 0);
        if (r == 1) {
            files_grouped(db, 1, 1, 0, 1);
            files_grouped(db, 2, 2, 0, 1);
            files_launch(db, 3, 1, 1, 2, 3000, 0);
            files_sql(db, "UPDATE launch SET gpu_ns = NULL, flags = %d",
                      CT_FLAG_SIMULATED);
            files_grouped(db, 4, 1, 1, 2);
            files_launch(db, 5, 2, 1, 1, 4000, 0);
            files_sql(db, "UPDATE launch SET gpu_ns = NULL, flags = 5 << 16"
                          " WHERE id = 5");
        }
        files_op(db, 6, 1, r ? 2 : 0, 5000, 700);
        files_end(db);
    }
    trace = files_open(folder);
    p = &trace->processes[1];
    assert_int_equal(p->simulated, 2);
    assert_int_equal(p->refused, 1);
    assert_int_equal(p->first_refused.result, 5);
    assert_int_equal(p->nops, 1);
    assert_int_equal(p->ops[0].ordinal, 0);
    assert_int_equal(files_instance(trace, 1, 0)->ranks, 2);
    assert_int_equal(trace->jobs[0].ninstances, 1);
    files_close(trace, folder);
}

/* A group that was begun and never ended has no launch. Where a launch may have
 * been lost, or the group may still be open, nobody knows. */
static void test_never_ended(void **state)
{
    static const struct {
        const char *besides;
        int simulated;
    } cases[] = {
        {"SELECT 1", 1},
        {"INSERT INTO loss VALUES ('ring_full', 'launch', 1, 1, 1, 2)", 0},
        {"UPDATE process SET end_ns = NULL", 0},
        {"PRAGMA user_version = 1", 0},
    };
    size_t i;
    int r;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *folder = files_folder();
        const struct ct_process *p;
        struct ct_trace *trace;

        for (r = 0; r < 2; r++) {
            sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

            if (r == 1)
                files_grouped(db, 1, 1, 0, 1);
            files_grouped(db, 2, 1, r, 2);
            files_launch(db, 3, 2, 1, 1, 4000, 700);
            files_sql(db, "%s", cases[i].besides);
            files_end(db);
        }
        trace = files_open(folder);
        p = &trace->processes[1];
        assert_int_equal(p->simulated, cases[i].simulated);
        assert_int_equal(p->nops, 2 - cases[i].simulated);
        if (cases[i].simulated)
            assert_int_equal(files_instance(trace, 1, 0)->ranks, 2);
        files_close(trace, folder);
    }
}

/* Nobody meets a put: it counts by itself, and beside it collectives and sends
 * do as always, also those that share its launch. */
static void test_one_sided(void **state)
{
    const char *folder = files_folder();
    const struct ct_instance *put, *wait, *reduce;
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

        files_class(db, 2, 1, CT_OP_PUT_SIGNAL, 9000, 1 - r);
        files_class(db, 3, 1, CT_OP_WAIT_SIGNAL, 0, -1);
        files_class(db, 4, 1, r ? CT_OP_RECV : CT_OP_SEND, 50, 1 - r);
        if (r == 0) {
            files_op(db, 1, 2, 0, 1000, 300);
            files_op(db, 2, 2, 1, 2000, 300);
        } else {
            files_op(db, 3, 3, 0, 1000, 900);
        }
        files_op(db, 4, 4, 0, 3000, 100);
        if (r == 0) {
            files_grouped(db, 5, 2, 2, 1);
            files_grouped(db, 6, 1, 0, 1);
            files_launch(db, 7, 1, 1, 2, 5000, 800);
        } else {
            files_op(db, 6, 1, 0, 5000, 800);
        }
        files_end(db);
    }
    trace = files_open(folder);
    put = files_instance(trace, 0, 0);
    wait = files_instance(trace, 1, 0);
    reduce = files_instance(trace, 1, 2);
    assert_int_equal(put->ranks, 1);
    assert_int_equal(ct_usage_of(trace->jobs, put)->src, 0);
    assert_int_equal(ct_usage_of(trace->jobs, put)->dst, 1);
    assert_int_equal(put->transfer_ns, 300);
    assert_true(put->bound);
    assert_int_equal(wait->transfer_ns, 0);
    assert_int_equal(wait->wait_sum_ns, 900);
    assert_int_equal(files_wait(trace, 1, 0), 900);
    assert_int_equal(files_instance(trace, 0, 2)->ranks, 2); /* send, recv */
    assert_int_equal(files_instance(trace, 0, 3)->transfer_ns, 800);
    assert_ptr_equal(files_instance(trace, 0, 4), reduce);
    assert_int_equal(reduce->ranks, 2);
    assert_int_equal(reduce->transfer_ns, 800); /* no share for the put */
    assert_int_equal(trace->jobs[0].mismatches, 0);
    assert_int_equal(trace->jobs[0].ninstances, 6);
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_missing_rank),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_most_are_right),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_untimed),
        cmocka_unit_test(test_sparse_ordinals),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_never_launched),
        cmocka_unit_test(test_never_ended),
        cmocka_unit_test(test_one_sided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
