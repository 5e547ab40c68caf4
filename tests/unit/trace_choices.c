/* Which op each of NCCL's choices belongs to, and where that cannot be told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace_files.h"

enum { TWO_RANKS = 2 };

/* how "": no algorithm, as of sends. */
static void choice_class(sqlite3 *db, int id, int comm, enum ct_op kind,
                         long bytes, int peer, const char *how,
                         const char *source)
{
    files_sql(db,
              "INSERT INTO choice_class VALUES (%d, %d, %d, %ld,"
              " nullif(%d, -1), nullif('%s', ''), 'SIMPLE', %d, '%s')",
              id, comm, (int)kind, bytes, peer, how, id, source);
}

static void choice(sqlite3 *db, int id, int class, unsigned n)
{
    files_sql(db, "INSERT INTO choice VALUES (%d, %d, %u, NULL, NULL, NULL)",
              id, class, n);
}

/* Channels, which are the number of the choice's class; 0: not told. */
static int chosen(const struct ct_trace *trace, int process, int op)
{
    int told;
    const struct ct_choice_class_row *row =
        ct_op_choice(trace, process, op, &told);

    return row ? row->channels : 0;
}

static void expect(const struct ct_trace *trace, int process,
                   const int *classes, int n)
{
    for (int i = 0; i < n; i++)
        if (chosen(trace, process, i) != classes[i])
            fail_msg("process %d op %d has %d instead of %d", process, i,
                     chosen(trace, process, i), classes[i]);
}

/* All-reduces of two sizes, an empty one, and all-gathers between them. */
static sqlite3 *mixed(const char *folder, int rank)
{
    sqlite3 *db = files_begin(folder, rank, TWO_RANKS, 0);

    files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
    files_class(db, 2, 1, CT_OP_ALL_REDUCE, 50, -1);
    files_class(db, 3, 1, CT_OP_ALL_GATHER, 10, -1);
    files_class(db, 4, 1, CT_OP_ALL_REDUCE, 0, -1);
    files_op(db, 1, 1, 0, 10000, 100);
    files_op(db, 2, 3, 1, 20000, 100);
    files_op(db, 3, 2, 2, 30000, 100);
    files_op(db, 4, 4, 3, 40000, 100);
    files_sql(db, "UPDATE op SET flags = %d, gpu_ns = NULL WHERE id = 4",
              CT_FLAG_ZERO);
    files_op(db, 5, 3, 4, 50000, 100);
    files_op(db, 6, 1, 5, 60000, 100);
    return db;
}

static void mixed_choices(sqlite3 *db)
{
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "log");
    choice_class(db, 12, 1, CT_OP_ALL_REDUCE, 200, -1, "TREE", "log");
    choice_class(db, 13, 1, CT_OP_ALL_GATHER, 40, -1, "RING", "log");
    choice_class(db, 14, 1, CT_OP_ALL_GATHER, 80, -1, "PAT", "log");
    choice(db, 1, 11, 0);
    choice(db, 2, 13, 0);
    choice(db, 3, 12, 1);
    choice(db, 4, 14, 1); /* some releases say S, some one rank's share */
    choice(db, 5, 11, 2);
}

static void test_order(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {11, 13, 12, 0, 14, 11};
    const struct ct_choice_class_row *row;
    struct ct_trace *trace;
    sqlite3 *db = mixed(folder, 0);
    int told;

    (void)state;
    mixed_choices(db);
    files_end(db);
    files_end(mixed(folder, 1));
    trace = files_open(folder);
    expect(trace, 0, classes, 6);
    expect(trace, 1, classes, 6); /* as rank 0 was told */
    row = ct_op_choice(trace, 1, 2, &told);
    assert_int_equal(told, 0);
    assert_string_equal(row->algorithm, "TREE");
    assert_string_equal(row->protocol, "SIMPLE");
    assert_false(row->by_plugin);
    assert_null(trace->processes[1].op_choices);
    assert_int_equal(trace->processes[0].choices, 5);
    assert_int_equal(trace->processes[0].unplaced, 0);
    assert_int_equal(trace->processes[0].nchoice_stops, 0);
    files_close(trace, folder);
}

/* NCCL 2.20 to 2.22 do not say of what a line is. */
static void test_nameless(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {11, 14, 12, 0, 14, 11};
    struct ct_trace *trace;
    sqlite3 *db = mixed(folder, 0);

    (void)state;
    mixed_choices(db);
    files_sql(db, "DELETE FROM choice");
    files_sql(db, "UPDATE choice_class SET kind = NULL");
    choice(db, 1, 11, 0);
    choice(db, 2, 14, 1);
    choice(db, 3, 12, 2);
    choice(db, 4, 14, 3);
    choice(db, 5, 11, 4);
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, classes, 6);
    assert_int_equal(trace->processes[0].unplaced, 0);
    files_close(trace, folder);
}

static void test_none(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;

    (void)state;
    files_end(mixed(folder, 0));
    files_end(mixed(folder, 1));
    trace = files_open(folder);
    assert_null(trace->processes[0].op_choices);
    assert_null(trace->jobs[0].choices);
    assert_int_equal(chosen(trace, 0, 0), 0);
    files_close(trace, folder);
}

/* NCCL ran something of another size: nothing is believed from there on, in
 * that communicator. */
static void test_mismatch(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {11, 13, 0, 0, 0, 0, 15};
    const struct ct_process *p;
    struct ct_trace *trace;
    sqlite3 *db = mixed(folder, 0);

    (void)state;
    mixed_choices(db);
    files_sql(db, "UPDATE choice SET class = 11 WHERE id = 3");
    files_sql(db, "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, 78, 'split', 2, 0, 0)");
    files_class(db, 5, 2, CT_OP_ALL_REDUCE, 7, -1);
    files_op(db, 7, 5, 0, 70000, 100);
    choice_class(db, 15, 2, CT_OP_ALL_REDUCE, 28, -1, "RING", "log");
    choice(db, 6, 15, 0);
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    expect(trace, 0, classes, 7);
    assert_int_equal(p->nchoice_stops, 1);
    assert_int_equal(p->choice_stops[0].comm, 0);
    assert_int_equal(p->choice_stops[0].op, 2);
    assert_int_equal(p->choice_stops[0].said, 4000);
    assert_false(p->choice_stops[0].lost);
    assert_int_equal(p->unplaced, 3);
    files_close(trace, folder);
}

static void test_more_choices(void **state)
{
    const char *folder = files_folder();
    const struct ct_process *p;
    struct ct_trace *trace;
    sqlite3 *db = files_begin_reducing(folder, 0, TWO_RANKS, 0);

    (void)state;
    files_op(db, 1, 1, 0, 10000, 100);
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "log");
    choice(db, 1, 11, 0);
    choice(db, 2, 11, 0); /* said twice */
    choice(db, 3, 11, 1);
    choice(db, 4, 11, 4294967295u);
    choice(db, 5, 99, 2); /* of no class */
    files_sql(db, "INSERT INTO choice_class VALUES (12, NULL, NULL, 4000, NULL,"
                  " 'RING', 'LL', 1, 'log')");
    choice(db, 6, 12, 0); /* of nobody knows what */
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_int_equal(chosen(trace, 0, 0), 11);
    assert_int_equal(p->choices, 6);
    assert_int_equal(p->unplaced, 5);
    assert_int_equal(p->nchoice_stops, 1);
    assert_int_equal(p->choice_stops[0].op, p->nops);
    files_close(trace, folder);
}

/* NCCL takes a group's ops by size. */
static void test_group(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {13, 12, 11, 12, 11};
    struct ct_trace *trace;
    sqlite3 *db = files_begin(folder, 0, TWO_RANKS, 0);
    int i;

    (void)state;
    for (i = 1; i <= 3; i++) {
        files_class(db, i, 1, CT_OP_ALL_REDUCE, 100 * i, -1);
        choice_class(db, 10 + i, 1, CT_OP_ALL_REDUCE, 400 * i, -1, "RING",
                     "log");
    }
    files_grouped(db, 1, 3, 0, 1);
    files_grouped(db, 2, 2, 1, 1);
    files_grouped(db, 3, 1, 2, 1);
    files_grouped(db, 4, 2, 3, 1);
    files_launch(db, 5, 1, 1, 4, 10000, 1000);
    files_op(db, 6, 1, 4, 20000, 100);
    choice(db, 1, 11, 0);
    choice(db, 2, 12, 1);
    choice(db, 3, 12, 2);
    choice(db, 4, 13, 3);
    choice(db, 5, 11, 4);
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, classes, 5);
    files_close(trace, folder);

    folder = files_folder();
    db = files_begin_reducing(folder, 0, TWO_RANKS, 0);
    files_class(db, 2, 1, CT_OP_ALL_REDUCE, 7, -1);
    files_grouped(db, 1, 1, 0, 1);
    files_grouped(db, 2, 1, 1, 1);
    files_launch(db, 3, 1, 1, 2, 10000, 1000);
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "log");
    choice_class(db, 12, 1, CT_OP_ALL_REDUCE, 28, -1, "RING", "log");
    choice(db, 1, 11, 0);
    choice(db, 2, 12, 1); /* none of the group's */
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(chosen(trace, 0, 0), 0);
    assert_int_equal(trace->processes[0].choice_stops[0].op, 0);
    files_close(trace, folder);
}

/* Sends and recvs count per peer. */
static void test_peers(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {11, 12, 13, 11};
    struct ct_trace *trace;
    sqlite3 *db = files_begin(folder, 0, 3, 0);

    (void)state;
    files_class(db, 1, 1, CT_OP_SEND, 100, 1);
    files_class(db, 2, 1, CT_OP_SEND, 100, 2);
    files_class(db, 3, 1, CT_OP_RECV, 100, 1);
    files_op(db, 1, 1, 0, 10000, 100);
    files_op(db, 2, 2, 0, 20000, 100);
    files_op(db, 3, 3, 0, 30000, 100);
    files_op(db, 4, 1, 1, 40000, 100);
    choice_class(db, 11, 1, CT_OP_SEND, 400, 1, "", "plugin");
    choice_class(db, 12, 1, CT_OP_SEND, 400, 2, "", "plugin");
    choice_class(db, 13, 1, CT_OP_RECV, 400, 1, "", "plugin");
    choice(db, 1, 13, 0);
    choice(db, 2, 11, 0);
    choice(db, 3, 12, 0);
    choice(db, 4, 11, 1);
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, classes, 4);
    files_close(trace, folder);
}

/* Of what kind a lost record was nobody knows. */
static void test_lost(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {11, 0, 0};
    struct ct_trace *trace;
    sqlite3 *db = files_begin_reducing(folder, 0, TWO_RANKS, 0);

    (void)state;
    files_op(db, 1, 1, 0, 10000, 100);
    files_op(db, 2, 1, 3, 20000, 100);
    files_op(db, 3, 1, 4, 30000, 100);
    files_sql(db, "INSERT INTO loss VALUES ('ring_full', 'op', 1, 2, 1, 2)");
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "log");
    for (int i = 0; i < 5; i++)
        choice(db, 1 + i, 11, (unsigned)i);
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, classes, 3);
    assert_int_equal(trace->processes[0].choice_stops[0].op, 1);
    assert_true(trace->processes[0].choice_stops[0].lost);
    files_close(trace, folder);
}

static void test_two_sources(void **state)
{
    const char *folder = files_folder();
    static const int classes[] = {21, 22, 21};
    struct ct_trace *trace;
    sqlite3 *db = files_begin_reducing(folder, 0, TWO_RANKS, 0);

    (void)state;
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "log");
    choice_class(db, 21, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "plugin");
    choice_class(db, 22, 1, CT_OP_ALL_REDUCE, 4000, -1, "TREE", "plugin");
    for (int i = 0; i < 3; i++) {
        files_op(db, 1 + i, 1, i, 10000 * (1 + i), 100);
        choice(db, 1 + 2 * i, 11, (unsigned)i);
        choice(db, 2 + 2 * i, i == 1 ? 22 : 21, (unsigned)i);
    }
    files_end(db);
    trace = files_open(folder);
    expect(trace, 0, classes, 3);
    assert_int_equal(trace->processes[0].disagreed, 1);
    assert_int_equal(trace->processes[0].unplaced, 0);
    files_close(trace, folder);
}

/* Two ranks in one process: each has the choices of its communicator. */
static void test_parts(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    sqlite3 *db = files_begin_reducing(folder, 0, TWO_RANKS, 0);

    (void)state;
    files_sql(db, "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                  " VALUES (2, 77, 'init', 2, 1, 1)");
    files_class(db, 2, 2, CT_OP_ALL_REDUCE, 1000, -1);
    files_op(db, 1, 2, 0, 10000, 100);
    files_op(db, 2, 1, 0, 10000, 100);
    files_op(db, 3, 1, 1, 20000, 100);
    files_op(db, 4, 2, 1, 20000, 100);
    choice_class(db, 11, 1, CT_OP_ALL_REDUCE, 4000, -1, "RING", "plugin");
    choice_class(db, 12, 2, CT_OP_ALL_REDUCE, 4000, -1, "RING", "plugin");
    files_sql(db, "INSERT INTO choice VALUES (1, 11, 0, NULL, 5, 60)");
    files_sql(db, "INSERT INTO choice VALUES (2, 12, 0, NULL, 5, 70)");
    files_sql(db, "INSERT INTO choice VALUES (3, 12, 1, NULL, 5, 80)");
    files_sql(db, "INSERT INTO tuning VALUES (2, %d, 'RING', 'LL', 5.0, 9.0)",
              CT_OP_ALL_REDUCE);
    files_sql(db, "INSERT INTO tuning VALUES (1, %d, 'TREE', 'LL', 5.0, 0.0)",
              CT_OP_ALL_REDUCE);
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->nprocesses, 2);
    assert_int_equal(chosen(trace, 0, 0), 11);
    assert_int_equal(trace->processes[0].op_choices[1], CT_NONE);
    assert_int_equal(chosen(trace, 1, 0), 12);
    assert_int_equal(chosen(trace, 1, 1), 12);
    assert_int_equal(trace->processes[0].ntunings, 0);
    assert_int_equal(trace->processes[1].ntunings, 1);
    assert_int_equal(trace->processes[1].tunings[0].comm, 0);
    assert_int_equal(ct_op_kernel(&trace->processes[0], 0)->gpu_ns, 60);
    assert_null(ct_op_kernel(&trace->processes[0], 1));
    assert_int_equal(ct_op_kernel(&trace->processes[1], 1)->gpu_ns, 80);
    files_close(trace, folder);
}

static void test_bad_rows(void **state)
{
    static const char *const bad[] = {
        "INSERT INTO tuning VALUES (1, 0, 'RING', 'LL', -1.0, 9.0)",
        "INSERT INTO tuning VALUES (1, 0, 'RING', 'LL', NULL, 9.0)",
        "INSERT INTO tuning VALUES (1, 0, 'RING', 'LL', 1.0, 9e999)",
        "INSERT INTO choice VALUES (1, 11, -1, NULL, NULL, NULL)",
        "INSERT INTO choice VALUES (1, 11, 0, NULL, NULL, -5)",
        "INSERT INTO choice_class VALUES (11, 1, 0, -4, NULL, '', '', 1, '')",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *folder = files_folder();
        sqlite3 *db = files_begin_reducing(folder, 0, TWO_RANKS, 0);
        char error[512];

        files_op(db, 1, 1, 0, 10000, 100);
        files_sql(db, "%s", bad[i]);
        files_end(db);
        assert_null(files_try(folder, error, sizeof(error)));
        files_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nameless),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_none),         cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_more_choices), cmocka_unit_test(test_group),
        cmocka_unit_test(test_peers),        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_two_sources),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bad_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
