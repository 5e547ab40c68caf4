/* Ops of CUDA graphs count as often as their graph was launched. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/graphs.h"
#include "trace_files.h"

enum { TWO_RANKS = 2, COUNT = 100 };

static void captured_class(sqlite3 *db, int id, int graph)
{
    files_class(db, id, 1, CT_OP_ALL_REDUCE, COUNT, -1);
    files_sql(db, "UPDATE op_class SET graph = %d WHERE id = %d", graph, id);
}

static void captured_op(sqlite3 *db, int id, int class, int ordinal, long enter)
{
    files_sql(db,
              "INSERT INTO op VALUES (%d, %d, %d, NULL, %ld, 500, NULL, NULL,"
              " %d)",
              id, class, ordinal, enter, CT_FLAG_CAPTURED);
}

static void launch(sqlite3 *db, int id, int graph, long enter, int result)
{
    files_sql(db,
              "INSERT INTO graph_launch VALUES (%d, nullif(%d, 0), 1, %ld, 100,"
              " %d)",
              id, graph, enter, result);
}

/* Graphs 5 and 6 are captures, -1 is both, -2 is that and 5 again. */
static void some_graphs(sqlite3 *db)
{
    files_class(db, 1, 1, CT_OP_ALL_REDUCE, COUNT, -1);
    captured_class(db, 2, 5);
    captured_class(db, 3, 6);
    captured_class(db, 4, 7);
    files_op(db, 1, 1, 0, 1000, 100);
    captured_op(db, 2, 2, 1, 2000);
    captured_op(db, 3, 2, 2, 3000);
    captured_op(db, 4, 3, 3, 4000);
    captured_op(db, 5, 4, 4, 5000);
    files_sql(db, "INSERT INTO graph VALUES (5, 2500, NULL, NULL)");
    files_sql(db, "INSERT INTO graph VALUES (6, 4500, NULL, NULL)");
    files_sql(db, "INSERT INTO graph VALUES (-1, 4600, 5, 6)");
    files_sql(db, "INSERT INTO graph VALUES (-2, 4700, -1, 5)");
}

static const struct ct_graph_row *graph_of(const struct ct_process *p,
                                           int64_t id)
{
    for (int i = 0; i < p->ngraphs; i++)
        if (p->graphs[i].id == id)
            return &p->graphs[i];
    fail_msg("no graph %lld", (long long)id);
    return NULL;
}

static void test_runs(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    const struct ct_process *p;
    int i, n = 10;

    (void)state;
    for (i = 0; i < TWO_RANKS; i++) {
        sqlite3 *db = files_begin(folder, i, TWO_RANKS, 0);

        some_graphs(db);
        for (n = 10; n < 13; n++)
            launch(db, n, 5, 1000 * n, 0);
        for (; n < 15; n++)
            launch(db, n, -1, 1000 * n, 0);
        launch(db, n++, -2, 20000, 0);
        launch(db, n++, 6, 21000, 700); /* refused */
        launch(db, n++, 0, 22000, 0);
        if (i == 1) /* only one rank came to it, and is still in it */
            files_sql(db, "INSERT INTO graph_launch VALUES (90, 6, 1, 30000,"
                          " NULL, NULL)");
        files_end(db);
    }
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_int_equal(p->ngraph_launches, 8);
    assert_int_equal(graph_of(p, 5)->runs, 3 + 2 + 2);
    assert_int_equal(graph_of(p, 5)->launches, 3);
    assert_int_equal(graph_of(p, 5)->ops, 2);
    assert_int_equal(graph_of(p, 6)->runs, 3);
    assert_int_equal(graph_of(p, 7)->runs, 0);
    assert_int_equal(graph_of(&trace->processes[1], 6)->runs, 4);
    assert_int_equal(p->captured, 4);
    assert_int_equal(p->idle, 1);
    assert_int_equal(p->blind, 0);
    assert_int_equal(p->runs, 1 + 7 + 7 + 3 + 0);
    assert_int_equal(p->replays, 7 + 7 + 3 + 0);
    assert_int_equal(files_instance(trace, 0, 0)->runs, 1);
    assert_int_equal(files_instance(trace, 0, 1)->runs, 7);
    assert_int_equal(files_instance(trace, 0, 3)->runs, 4);
    assert_int_equal(trace->jobs[0].ninstances, 5);
    assert_int_equal(trace->jobs[0].nusages, 1);
    assert_int_equal(trace->jobs[0].usages[0].calls, 1 + 7 + 7 + 4 + 0);
    files_close(trace, folder);
}

static void test_no_launch_seen(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    struct ct_trace *trace;

    (void)state;
    some_graphs(db);
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].blind, 4);
    assert_int_equal(trace->processes[0].idle, 0);
    assert_int_equal(trace->processes[0].runs, 5);
    assert_int_equal(trace->processes[0].replays, 0);
    assert_int_equal(trace->jobs[0].usages[0].calls, 5);
    files_close(trace, folder);
}

struct told {
    int64_t runs, outside;
    int steps;
};

static void note(void *context, int graph, int step, int64_t runs)
{
    struct told *told = context;

    (void)graph;
    told->runs += runs;
    told->outside += step == CT_NONE ? runs : 0;
    told->steps += step != CT_NONE;
}

/* Each step launches a graph of two ops twice, beside three ops of its own. */
static void test_per_step(void **state)
{
    enum { STEPS = 30 };
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    const struct ct_job *job;
    struct ct_trace *trace;
    struct told told = {0};
    int id = 0, s, k;

    (void)state;
    captured_class(db, 1, 5);
    files_class(db, 2, 1, CT_OP_ALL_GATHER, 3000, -1);
    files_class(db, 3, 1, CT_OP_REDUCE_SCATTER, 5000, -1);
    captured_op(db, ++id, 1, 0, 100);
    captured_op(db, ++id, 1, 1, 200);
    for (s = 0; s < STEPS; s++) {
        const long at = 100000L * (s + 1);

        for (k = 0; k < 3; k++) {
            ++id;
            files_op(db, id, k < 2 ? 2 : 3, 2 + 3 * s + k, at + 20000 * k, 50);
        }
        launch(db, ++id, 5, at + 30000, 0);
        launch(db, ++id, 5, at + 31000, 0);
    }
    files_end(db);
    trace = files_open(folder);
    job = &trace->jobs[0];
    assert_in_range(job->nsteps, STEPS - 2, STEPS);
    ct_graphs_by_step(&trace->processes[0], note, &told);
    assert_int_equal(told.runs, 2 * STEPS);
    assert_in_range(told.steps, STEPS - 2, STEPS);
    assert_in_range(told.outside, 0, 4);
    for (k = 0; k < job->nusages; k++) {
        const struct ct_usage *usage = &job->usages[k];
        const bool captured = usage->base == CT_OP_ALL_REDUCE;

        assert_true(
            fabs(usage->per_step - (usage->base == CT_OP_REDUCE_SCATTER ? 1
                                    : captured                          ? 4
                                               : 2)) < 1e-9);
        assert_int_equal(isnan(usage->position), captured);
        assert_int_equal(usage->calls, captured ? 4 * STEPS
                                       : usage->base == CT_OP_ALL_GATHER
                                           ? 2 * STEPS
                                           : STEPS);
    }
    files_close(trace, folder);
}

/* Two graphs a step, captured anew every fifth, and nothing else; steps begin
 * with a warm-up that is called as it is. */
static void test_steps_of_graphs(void **state)
{
    enum { STEPS = 40, CALLED = 4 };
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    const struct ct_process *p;
    struct ct_trace *trace;
    int id = 0, ordinal = 0, s, k;

    (void)state;
    files_class(db, 1, 1, CT_OP_ALL_GATHER, 3000, -1);
    files_class(db, 2, 1, CT_OP_REDUCE_SCATTER, 5000, -1);
    for (s = 0; s < STEPS; s++) {
        const long at = 100000L * (s + 1);
        const int graph = 10 + s / 5 * 2;

        for (k = 0; k < 3 && s < CALLED; k++)
            files_op(db, ++id, k < 2 ? 1 : 2, ordinal++, at + 20000 * k, 50);
        if (s < CALLED)
            continue;
        if (s == CALLED || s % 5 == 0) {
            files_class(db, graph, 1, CT_OP_ALL_GATHER, 3000, -1);
            files_class(db, graph + 1, 1, CT_OP_REDUCE_SCATTER, 5000, -1);
            files_sql(db, "UPDATE op_class SET graph = id WHERE id IN (%d, %d)",
                      graph, graph + 1);
            captured_op(db, ++id, graph, ordinal++, at - 9000);
            captured_op(db, ++id, graph, ordinal++, at - 8000);
            captured_op(db, ++id, graph + 1, ordinal++, at - 7000);
        }
        launch(db, ++id, graph, at, 0);
        launch(db, ++id, graph + 1, at + 30000, 0);
    }
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_in_range(trace->jobs[0].nsteps, STEPS - CALLED - 2, STEPS - CALLED);
    assert_true(labs((long)trace->jobs[0].step_ns - 100000) < 1000);
    assert_int_equal(trace->jobs[0].nusages, 2);
    for (k = 0; k < 2; k++) {
        const struct ct_usage *usage = &trace->jobs[0].usages[k];
        const int per_step = usage->base == CT_OP_ALL_GATHER ? 2 : 1;

        assert_int_equal(usage->calls, per_step * STEPS);
        assert_true(fabs(usage->per_step - per_step) < 1e-9);
    }
    for (k = 0; k < p->nops; k++)
        assert_true(ct_op_step(p, &p->ops[k]) == CT_NONE || k < 3 * CALLED);
    files_close(trace, folder);
}

/* Parts that are no older than their whole would never end. */
static void test_circle(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    struct ct_trace *trace;
    int i;

    (void)state;
    some_graphs(db);
    files_sql(db, "UPDATE graph SET first = -2, second = -1 WHERE id = -1");
    for (i = 3; i < 100; i++) /* runs beyond any number */
        files_sql(db, "INSERT INTO graph VALUES (%d, 0, %d, %d)", -i, 1 - i,
                  1 - i);
    launch(db, 50, -99, 9000, 0);
    launch(db, 51, -1, 9000, 0);
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(graph_of(&trace->processes[0], 6)->runs, 0);
    assert_int_equal(graph_of(&trace->processes[0], 5)->runs, INT32_MAX);
    assert_int_equal(trace->jobs[0].usages[0].calls,
                     1 + 2 * (int64_t)INT32_MAX);
    files_close(trace, folder);
}

/* What version 1 of the schema did not have. */
static void test_old_file(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = files_begin(folder, 0, 1, 0);
    struct ct_trace *trace;

    (void)state;
    some_graphs(db);
    files_sql(db, "ALTER TABLE op_class DROP COLUMN graph");
    files_sql(db, "DROP TABLE graph");
    files_sql(db, "DROP TABLE graph_launch");
    files_sql(db, "PRAGMA user_version = 1");
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].nops, 5);
    assert_int_equal(trace->processes[0].blind, 4);
    assert_int_equal(trace->jobs[0].usages[0].calls, 5);
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_no_launch_seen),
        cmocka_unit_test(test_steps_of_graphs),
        cmocka_unit_test(test_per_step),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_old_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
