/* What a send/recv, a broadcast, a reduce cost, on cases whose truth is in the
 * numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace_files.h"

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
        files_op(db, i + 1, 1, i, recvs[i] - FILES_SKEW, recv_ns[i]);
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
    assert_int_equal(ct_usage_of(trace->jobs, i)->src, 0);
    assert_int_equal(ct_usage_of(trace->jobs, i)->dst, 1);
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
    files_close(trace, folder);
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
    files_close(trace, folder);
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
    files_close(trace, folder);
}

/* As much as they agree: all of them may have waited. */
static void test_p2p_few(void **state)
{
    static const long ns[] = {9000, 9010, 9020};
    const char *folder = files_folder();
    struct ct_trace *trace =
        transfers(folder, two_hosts, starts, starts, ns, 3);
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        assert_true(files_instance(trace, 0, i)->estimated);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 0);
    files_close(trace, folder);
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
    files_close(trace, folder);
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
        files_op(db, 1, 1, 0, 5000 + 300 * r - FILES_SKEW * r,
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
    files_close(trace, folder);
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
            files_op(db, 1, 1, 0, (r < 2 ? 5000 : 9000) - FILES_SKEW * r,
                     r == 0   ? 1000
                     : r == 1 ? 1500
                              : 100);
            if (usual)
                files_op(db, 2, 1, 1, 20000 - FILES_SKEW * r, 1000);
            files_end(db);
        }
        trace = files_open(folder);
        assert_true(files_instance(trace, 0, 0)->overlapped);
        assert_int_equal(files_wait(trace, 0, 0), 0);
        assert_int_equal(files_wait(trace, 1, 0), usual ? 500 : 0);
        assert_int_equal(files_wait(trace, 2, 0), 0);
        files_close(trace, folder);
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
        files_op(db, 1, 1, 0, r ? 5000 - FILES_SKEW : 6000, r ? 1900 : 700);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(files_instance(trace, 0, 0)->transfer_ns, 900);
    assert_false(files_instance(trace, 0, 0)->overlapped);
    assert_int_equal(trace->jobs[0].usages[0].nsamples, 1);
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_p2p_on_one_clock),
        cmocka_unit_test(test_p2p_on_two_clocks),
        cmocka_unit_test(test_p2p_scattered),
        cmocka_unit_test(test_p2p_few),
        cmocka_unit_test(test_p2p_alone),
        cmocka_unit_test(test_rooted),
        cmocka_unit_test(test_rooted_without_waiting),
        cmocka_unit_test(test_rooted_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
