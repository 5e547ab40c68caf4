/* Which ops meet, and what they cost, on cases whose truth is in the numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace_files.h"

/* Process r's clock begins 10 ns after that of process r - 1: see files_begin;
 * starts below are of the process. */
#define SKEW 10

static void test_all_reduce(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = files_begin(folder, r, 3, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
        assert_int_equal(i->bytes, 4000);
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
    ct_trace_free(trace);
    files_remove(folder);
}

static void test_missing_rank(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 3, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    ct_trace_free(trace);
    files_remove(folder);
}

static void test_mismatch(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    ct_trace_free(trace);
    files_remove(folder);
}

/* Ranks 0 and 1 of host_of[rank] transfer 1000 floats, four times. */
static struct ct_trace *transfers(const char *folder, const int *host_of,
                                  const long *sends, const long *recvs,
                                  const long *recv_ns, int n)
{
    sqlite3 *db = files_begin(folder, 0, 2, host_of[0]);
    int i;

    files_class(db, 1, 1, CT_OP_SEND, 1000, 1);
    for (i = 0; i < n; i++)
        files_op(db, i + 1, 1, i, sends[i], 50);
    files_end(db);
    db = files_begin(folder, 1, 2, host_of[1]);
    files_class(db, 1, 1, CT_OP_RECV, 1000, 0);
    for (i = 0; i < n; i++)
        files_op(db, i + 1, 1, i, recvs[i] - SKEW, recv_ns[i]);
    files_end(db);
    return files_open(folder);
}

static void test_p2p_on_one_clock(void **state)
{
    static const int hosts[] = {0, 0};
    static const long sends[] = {10000, 20000, 30000};
    static const long recvs[] = {8000, 20010, 30500}; /* early, even, late */
    static const long ns[] = {3000, 990, 600};
    const char *folder = files_folder();
    struct ct_trace *trace = transfers(folder, hosts, sends, recvs, ns, 3);
    const struct ct_instance *i = files_instance(trace, 0, 0);

    (void)state;
    assert_int_equal(i->base, CT_OP_SEND);
    assert_int_equal(i->src, 0);
    assert_int_equal(i->dst, 1);
    assert_int_equal(i->ranks, 2);
    assert_int_equal(i->transfer_ns, 1000);
    assert_int_equal(i->wait_sum_ns, 2000);
    assert_int_equal(files_wait(trace, 1, 0), 2000);
    assert_int_equal(files_wait(trace, 0, 0), 0);
    assert_false(i->overlapped);
    i = files_instance(trace, 1, 1);
    assert_int_equal(i->transfer_ns, 990);
    assert_false(i->overlapped); /* 1 % of it is hidden */
    i = files_instance(trace, 1, 2);
    assert_int_equal(i->transfer_ns, 600);
    assert_true(i->overlapped);
    assert_int_equal(trace->jobs[0].nusages, 1);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 2);
    ct_trace_free(trace);
    files_remove(folder);
}

static const int two_hosts[] = {0, 1};
static const long starts[] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};

static void test_p2p_on_two_clocks(void **state)
{
    static const long ns[] = {9000, 300, 1000, 1010, 1020, 1030, 1040, 1050};
    const char *folder = files_folder();
    struct ct_trace *trace =
        transfers(folder, two_hosts, starts, starts, ns, 8);
    const struct ct_instance *i = files_instance(trace, 0, 0);

    (void)state;
    /* Lower quartile: 1010. */
    assert_int_equal(i->transfer_ns, 1010);
    assert_int_equal(i->wait_sum_ns, 7990);
    assert_true(i->estimated);
    assert_true(files_instance(trace, 0, 1)->overlapped);
    assert_int_equal(files_instance(trace, 0, 2)->transfer_ns, 1000);
    assert_false(files_instance(trace, 0, 2)->estimated);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 6);
    ct_trace_free(trace);
    files_remove(folder);
}

/* Too scattered to tell a transfer from a wait: no sample of anything. */
static void test_p2p_scattered(void **state)
{
    static const long ns[] = {9000, 300, 1000, 1010, 1020, 5000, 7000, 8000};
    const char *folder = files_folder();
    struct ct_trace *trace =
        transfers(folder, two_hosts, starts, starts, ns, 8);
    int i;

    (void)state;
    for (i = 0; i < 8; i++)
        assert_true(files_instance(trace, 0, i)->estimated);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 0);
    assert_int_equal(trace->jobs[0].usages[0].median_ns, 1010);
    ct_trace_free(trace);
    files_remove(folder);
}

static void test_p2p_alone(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 2, 0);
    struct ct_trace *trace;

    (void)state;
    files_class(db, 1, 1, CT_OP_SEND, 1000, 1);
    files_class(db, 2, 1, CT_OP_RECV, 1000, 1);
    files_op(db, 1, 1, 0, 5000, 100);
    files_op(db, 2, 2, 0, 6000, 700);
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, CT_NO_TIME);
    assert_int_equal(files_instance(trace, 0, 1)->transfer_ns, 700);
    assert_true(files_instance(trace, 0, 1)->bound);
    assert_int_equal(trace->jobs[0].usages[0].median_ns, CT_NO_TIME);
    ct_trace_free(trace);
    files_remove(folder);
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
        files_launch(db, 8, 3, 1, 2, 20000 + 1000 * r - SKEW * r,
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
        assert_int_equal(i->src, 0);
        assert_int_equal(files_instance(trace, 0, 4)->src, 1);
        assert_int_equal(files_wait(trace, 0, 4), 1000);
        assert_int_equal(files_wait(trace, 0, 3), 0);
        assert_ptr_equal(files_instance(trace, 0, 4),
                         files_instance(trace, 1, 3));
    }
    assert_int_equal(trace->processes[0].launches[0].first_op, 0);
    assert_int_equal(trace->processes[0].launches[2].first_op, 3);
    ct_trace_free(trace);
    files_remove(folder);
}

static void test_rooted(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 3; r++) {
        sqlite3 *db = files_begin(folder, r, 3, 0);

        files_class(db, 1, 1, CT_OP_BROADCAST, 1000, 0);
        /* The root leaves early; rank 2 comes last and takes 700. */
        files_op(db, 1, 1, 0, 5000 + 300 * r - SKEW * r,
                 r == 0   ? 200
                 : r == 1 ? 1000
                          : 700);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, 700);
    assert_false(files_instance(trace, 0, 0)->bound);
    assert_int_equal(files_instance(trace, 0, 0)->wait_max_ns, 300);
    /* The data was on its way when rank 2 came: no sample of a bandwidth. */
    assert_true(files_instance(trace, 0, 0)->overlapped);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 0);
    ct_trace_free(trace);
    files_remove(folder);
}

/* Rank 2 comes when the others are done. They waited for nobody: what they took
 * is what it takes where all are there, of which there is no sample at first.
 */
static void test_rooted_without_waiting(void **state)
{
    int usual;

    (void)state;
    for (usual = 0; usual <= 1; usual++) {
        const char *folder = files_folder();
        struct ct_trace *trace;
        int r;

        for (r = 0; r < 3; r++) {
            sqlite3 *db = files_begin(folder, r, 3, 0);

            files_class(db, 1, 1, CT_OP_BROADCAST, 1000, 0);
            files_op(db, 1, 1, 0, (r < 2 ? 5000 : 9000) - SKEW * r,
                     r == 0   ? 1000
                     : r == 1 ? 1500
                              : 100);
            if (usual)
                files_op(db, 2, 1, 1, 20000 - SKEW * r, 1000);
            files_end(db);
        }
        trace = files_open(folder);
        assert_true(files_instance(trace, 0, 0)->overlapped);
        assert_int_equal(files_wait(trace, 0, 0), 0);
        assert_int_equal(files_wait(trace, 1, 0), usual ? 500 : 0);
        assert_int_equal(files_wait(trace, 2, 0), 0);
        ct_trace_free(trace);
        files_remove(folder);
    }
}

/* The root comes last: nothing is hidden. */
static void test_rooted_in_time(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_BROADCAST, 1000, 0);
        files_op(db, 1, 1, 0, r ? 5000 - SKEW : 6000, r ? 1900 : 700);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, 900);
    assert_false(files_instance(trace, 0, 0)->overlapped);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 1);
    ct_trace_free(trace);
    files_remove(folder);
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
    ct_trace_free(trace);
    files_remove(folder);
}

/* A killed process: nobody read the events of its last ops. */
static void test_in_flight(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int i, r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
        files_class(db, 2, 1, CT_OP_ALL_REDUCE, 1000, -1);
        files_sql(db, "UPDATE op_class SET stream = 2 WHERE id = 2");
        for (i = 0; i < 4; i++)
            files_op(db, i + 1, i == 1 ? 2 : 1, i, 1000 * i, 500);
        /* Rank 1 ended all-reduce 2, so rank 0 was in it and had done 0. Of
         * 1, in another stream, and of 3 nothing is known. */
        files_sql(db,
                  "UPDATE op SET gpu_off_ns = NULL, gpu_ns = NULL,"
                  " flags = %d %s",
                  CT_FLAG_RUNNING, r ? "WHERE id IN (2, 4)" : "");
        files_sql(db, "UPDATE process SET end_ns = NULL");
        files_end(db);
    }
    trace = files_open(folder);
    assert_false(trace->processes[0].ops[0].flags & CT_FLAG_RUNNING);
    assert_true(trace->processes[0].ops[1].flags & CT_FLAG_RUNNING);
    assert_true(trace->processes[0].ops[2].flags & CT_FLAG_RUNNING);
    assert_true(trace->processes[0].ops[3].flags & CT_FLAG_RUNNING);
    assert_int_equal(trace->jobs[0].in_flight, 5);
    ct_trace_free(trace);
    files_remove(folder);
}

/* A closed process whose trace was full: it is not known to hang. */
static void test_cut(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
        files_op(db, 1, 1, 0, 1000, 500);
        files_sql(db,
                  "INSERT INTO op VALUES (2, 1, 1, NULL, 3000, 9, NULL,"
                  " NULL, %d)",
                  CT_FLAG_RUNNING);
        if (r)
            files_sql(db, "INSERT INTO loss VALUES ('size_limit', 'op', 1, 9,"
                          " 1, 2)");
        files_end(db);
    }
    trace = files_open(folder);
    assert_true(trace->processes[0].ops[1].flags & CT_FLAG_RUNNING);
    assert_false(trace->processes[1].ops[1].flags & CT_FLAG_RUNNING);
    assert_int_equal(trace->jobs[0].in_flight, 1);
    ct_trace_free(trace);
    files_remove(folder);
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
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    ct_trace_free(trace);
    files_remove(folder);
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
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    ct_trace_free(trace);
    files_remove(folder);
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
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    ct_trace_free(trace);
    files_remove(folder);
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
        sqlite3 *db = files_begin(folder, r, 2, 0);

        files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
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
    assert_int_equal(put->src, 0);
    assert_int_equal(put->dst, 1);
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
    ct_trace_free(trace);
    files_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_missing_rank),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_p2p_on_one_clock),
        cmocka_unit_test(test_p2p_on_two_clocks),
        cmocka_unit_test(test_p2p_scattered),
        cmocka_unit_test(test_p2p_alone),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_rooted),
        cmocka_unit_test(test_rooted_without_waiting),
        cmocka_unit_test(test_rooted_in_time),
        cmocka_unit_test(test_untimed),
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_sparse_ordinals),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_never_launched),
        cmocka_unit_test(test_one_sided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
