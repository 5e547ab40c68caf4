/* What was still in flight at the end of a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trace_files.h"

/* A killed process: nobody read the events of its last ops. */
static void test_in_flight(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int i, r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

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
    files_close(trace, folder);
}

/* A closed process whose trace was full: it is not known to hang. */
static void test_cut(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int r;

    (void)state;
    for (r = 0; r < 2; r++) {
        sqlite3 *db = files_begin_reducing(folder, r, 2, 0);

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
    files_close(trace, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
