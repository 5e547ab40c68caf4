/* What jobs that did not end well say of it: aborted communicators, killed
 * processes. Traces are written by hand, so that every time is known. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "findings/findings.h"
#include "trace_files.h"

#define S 1000000000L
#define US 1000L

struct verdict {
    struct ct_trace *trace;
    struct ct_model *model;
    struct ct_roles *roles;
    struct ct_findings *findings;
};

static struct verdict judge(const char *folder)
{
    struct verdict v = {.trace = files_open(folder)};
    const struct ct_job *job = &v.trace->jobs[0];

    v.model = ct_model_build(v.trace, job);
    v.roles = ct_roles_build(v.trace, job);
    v.findings = ct_findings_build(v.trace, job, v.model, NULL, v.roles, NULL);
    assert_non_null(v.findings);
    return v;
}

static void release(struct verdict *v, const char *folder)
{
    ct_findings_free(v->findings);
    ct_roles_free(v->roles);
    ct_model_free(v->model);
    ct_trace_free(v->trace);
    files_remove(folder);
}

static const struct ct_finding_row *find(const struct verdict *v,
                                         enum ct_finding id)
{
    for (int i = 0; i < v->findings->n; i++)
        if (v->findings->rows[i].id == id)
            return &v->findings->rows[i];
    return NULL;
}

static void assert_says(const struct ct_finding_row *row, const char *words)
{
    assert_non_null(row);
    if (!strstr(row->text, words))
        fail_msg("no \"%s\" in: %s", words, row->text);
}

/* A rank with n good all-reduces of comm 1, one every ms, 300 us each. */
static sqlite3 *begin(const char *folder, int rank, int world, int n)
{
    sqlite3 *db = files_begin_reducing(folder, rank, world, 0);

    for (int i = 0; i < n; i++)
        files_op(db, i + 1, 1, i, (i + 1) * 1000 * US, 300 * US);
    files_sql(db, "INSERT INTO clock VALUES (100, 100, %d, 10000)", rank % 4);
    return db;
}

static void abort_at(sqlite3 *db, int comm, long at)
{
    files_sql(db, "INSERT INTO comm_event VALUES (%d, 'abort', %ld, 70000, 0)",
              comm, at);
}

static bool is_cut(const struct ct_op_row *op)
{
    return op->flags & CT_FLAG_CUT && op->flags & CT_FLAG_RUNNING &&
           ct_op_gpu_ns(op) == CT_NO_TIME;
}

/* Rank 1 skips a collective; the others' watchdogs abort after 10 s. */
static void test_skipped(void **state)
{
    const char *folder = files_folder();
    const struct ct_finding_row *row;
    struct verdict v;

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        sqlite3 *db = begin(folder, rank, 3, rank == 1 ? 10 : 11);

        if (rank != 1) {
            files_sql(db, "UPDATE op SET gpu_ns = %ld WHERE id = 11",
                      10 * S + rank * 20000);
            abort_at(db, 1, 10 * S + 11000 * US);
        }
        files_end(db);
    }
    v = judge(folder);
    assert_int_equal(v.trace->jobs[0].in_flight, 2);
    assert_true(is_cut(&v.trace->processes[0].ops[10]));
    assert_true(is_cut(&v.trace->processes[2].ops[10]));
    assert_false(is_cut(&v.trace->processes[0].ops[9]));
    assert_int_equal(files_instance(v.trace, 0, 10)->transfer_ns, CT_NO_TIME);
    assert_int_equal(files_instance(v.trace, 0, 10)->wait_max_ns, 0);
    assert_int_equal(files_instance(v.trace, 0, 9)->transfer_ns, 300 * US);
    assert_int_equal(v.trace->jobs[0].usages[0].transfer_ns, 10 * 300 * US);
    assert_int_equal(v.trace->jobs[0].usages[0].wait_ns, 0);
    assert_int_equal(v.trace->jobs[0].usages[0].nsamples, 10);

    row = find(&v, CT_FINDING_RANK_NEVER_CAME);
    assert_says(row, "ranks 0, 2 waited in all_reduce number 10 (3.906 KiB) "
                     "of the communicator of ranks 0-2");
    assert_says(row, " for 10 s, until it was aborted");
    assert_says(row, "rank 1 never came: it issued 10 calls there, the others "
                     "11");
    assert_ptr_equal(row, &v.findings->rows[0]);
    assert_null(find(&v, CT_FINDING_OP_NEVER_ENDED));
    assert_string_equal(find(&v, CT_FINDING_NO_STEPS)->advice,
                        "the job ended too early to tell; see how it did");
    release(&v, folder);
}

/* An abort that tears a finished job down cuts nothing. One rank's GPU clock
 * says that its last call ended just after. */
static void test_teardown(void **state)
{
    const char *folder = files_folder();
    struct verdict v;

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        sqlite3 *db = begin(folder, rank, 2, 10);

        abort_at(db, 1, 10 * 1000 * US + (rank ? 295 : 320) * US);
        files_end(db);
    }
    v = judge(folder);
    assert_int_equal(v.trace->jobs[0].in_flight, 0);
    assert_null(find(&v, CT_FINDING_RANK_NEVER_CAME));
    assert_null(find(&v, CT_FINDING_OP_NEVER_ENDED));
    release(&v, folder);
}

/* All came, and still it did not end. */
static void test_all_came(void **state)
{
    const char *folder = files_folder();
    struct verdict v;

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        sqlite3 *db = begin(folder, rank, 2, 11);

        files_sql(db, "UPDATE op SET gpu_ns = %ld WHERE id = 11", 7 * S);
        abort_at(db, 1, 7 * S);
        files_end(db);
    }
    v = judge(folder);
    assert_null(find(&v, CT_FINDING_RANK_NEVER_CAME));
    assert_says(find(&v, CT_FINDING_OP_NEVER_ENDED),
                "ranks 0-1 waited in all_reduce number 10");
    assert_says(find(&v, CT_FINDING_OP_NEVER_ENDED),
                "all its ranks had issued it");
    release(&v, folder);
}

/* A group is cut as a whole, and so is a receive whose sender never sent. */
static void test_receive(void **state)
{
    const char *folder = files_folder();
    struct verdict v;

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        sqlite3 *db = begin(folder, rank, 2, 5);

        if (rank == 1) {
            files_class(db, 2, 1, CT_OP_RECV, 500, 0);
            files_grouped(db, 6, 2, 0, 9);
            files_launch(db, 7, 9, 1, 1, 6000 * US, 3 * S);
            abort_at(db, 1, 3 * S);
        }
        files_end(db);
    }
    v = judge(folder);
    assert_int_equal(v.trace->jobs[0].in_flight, 1);
    assert_true(is_cut(&v.trace->processes[1].ops[5]));
    assert_int_equal(ct_launch_gpu_ns(&v.trace->processes[1].launches[0]),
                     CT_NO_TIME);
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "rank 1 waited in recv number 0 (1.953 KiB)");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME), "; rank 0 never came");
    release(&v, folder);
}

/* Ranks 0 and 1 wait for 2 in comm 2, 3 waits for 1 in comm 1: the cause is
 * rank 2, and only that is reported. */
static void test_cascade(void **state)
{
    const char *folder = files_folder();
    struct verdict v;
    int reported = 0;

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        sqlite3 *db = begin(folder, rank, 4, rank == 3 ? 6 : 5);

        if (rank < 3)
            files_sql(db,
                      "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                      " VALUES (2, 78, 'split', 3, %d, %d)",
                      rank, rank);
        files_class(db, 2, 2 - (rank == 3), CT_OP_ALL_REDUCE, 50, -1);
        if (rank < 2)
            files_op(db, 9, 2, 0, 6000 * US, 8 * S);
        if (rank == 3)
            files_sql(db, "UPDATE op SET gpu_ns = %ld WHERE id = 6", 8 * S);
        if (rank != 2) {
            abort_at(db, 1, 8 * S);
            files_sql(db, rank == 3 ? "SELECT 1"
                                    : "INSERT INTO comm_event VALUES (2,"
                                      " 'abort', 8000000000, 70000, 0)");
        }
        files_end(db);
    }
    v = judge(folder);
    for (int i = 0; i < v.findings->n; i++)
        reported += v.findings->rows[i].id == CT_FINDING_RANK_NEVER_CAME;
    assert_int_equal(reported, 1);
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "ranks 0-1 waited in all_reduce number 0 (200 B) of the "
                "communicator of ranks 0-2");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME), "rank 2 never came");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME), "1 more op hung behind");
    release(&v, folder);
}

/* Rank 1 has issued what 0 waits in, but its stream waits in another, to which
 * 2 never came: that is the cause. */
static void test_held_up(void **state)
{
    const char *folder = files_folder();
    struct verdict v;

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        sqlite3 *db = begin(folder, rank, 3, rank == 1 ? 6 : 5);

        if (rank < 2)
            files_sql(db,
                      "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
                      " VALUES (2, 78, 'split', 2, %d, %d)",
                      rank, rank);
        files_class(db, 2, rank < 2 ? 2 : 1, CT_OP_ALL_REDUCE, 50, -1);
        if (rank < 2)
            files_op(db, 9, 2, 0, 7000 * US, 8 * S);
        if (rank == 1)
            files_sql(db, "UPDATE op SET gpu_ns = %ld WHERE id = 6", 8 * S);
        for (int comm = 1; comm <= 2 && rank < 2; comm++)
            abort_at(db, comm, 8 * S);
        files_end(db);
    }
    v = judge(folder);
    assert_null(find(&v, CT_FINDING_OP_NEVER_ENDED));
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "rank 1 waited in all_reduce number 5");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "ranks 0, 2 never came; 1 more op hung behind");
    release(&v, folder);
}

/* Killed, not aborted. The recorder looked last when rank 0 had waited for
 * `looked`; rank 1 was never seen again after its fourth call. */
static struct verdict killed(const char *folder, long looked, bool both)
{
    for (int rank = 0; rank < 2; rank++) {
        sqlite3 *db = begin(folder, rank, 2, rank ? 4 : 5);

        files_sql(db, "INSERT INTO clock VALUES (%ld, 5, %d, 10000)",
                  rank ? 4500 * US : 5000 * US + looked, rank);
        if (rank == 0)
            files_sql(db,
                      "UPDATE op SET gpu_off_ns = NULL, gpu_ns = NULL,"
                      " flags = %d WHERE id = 5",
                      CT_FLAG_RUNNING);
        if (both || rank == 0)
            files_sql(db, "UPDATE process SET end_ns = NULL");
        files_end(db);
    }
    return judge(folder);
}

static void test_killed(void **state)
{
    const char *folder = files_folder();
    struct verdict v = killed(folder, 60 * S, true);

    (void)state;
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "rank 0 waited in all_reduce number 4");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "for 60 s at least, when last seen");
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "whether rank 1 came is not known: its trace is not whole");
    assert_says(find(&v, CT_FINDING_PROCESS_DIED),
                "rank 1 was the first to fall silent, 60 s before the next");
    assert_says(find(&v, CT_FINDING_PROCESS_DIED),
                "the last call of rank 0, all_reduce number 4 (3.906 KiB) of "
                "comm 0, is not known to have finished");
    release(&v, folder);
}

/* Rank 1 ended well, and rank 0 had to be killed. */
static void test_left_alone(void **state)
{
    const char *folder = files_folder();
    struct verdict v = killed(folder, 60 * S, false);

    (void)state;
    assert_says(find(&v, CT_FINDING_RANK_NEVER_CAME),
                "rank 1 never came: it issued 4 calls there, the others 5; it "
                "closed its trace and was in no call");
    assert_says(find(&v, CT_FINDING_PROCESS_DIED),
                "1 of 2 processes ended without closing their trace (rank 0), "
                "or run where they cannot be reached: their rings are not "
                "here; the last call of rank 0");
    release(&v, folder);
}

/* Killed in the middle of work: a rank is always a little behind. */
static void test_killed_at_work(void **state)
{
    const char *folder = files_folder();
    struct verdict v = killed(folder, S / 2, true);

    (void)state;
    assert_null(find(&v, CT_FINDING_RANK_NEVER_CAME));
    assert_null(find(&v, CT_FINDING_OP_NEVER_ENDED));
    assert_says(find(&v, CT_FINDING_PROCESS_DIED),
                "which was first cannot be told");
    release(&v, folder);
}

/* Keeps the traces open as their writers do; the test ends it. */
static pid_t keep_open(const char *folder, int *end_p)
{
    char pattern[300], ready = 0;
    int up[2], down[2];
    glob_t files;
    pid_t pid;

    snprintf(pattern, sizeof pattern, "%s/*.db", folder);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    assert_true(pipe(up) == 0 && pipe(down) == 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++) {
            sqlite3 *db;

            if (sqlite3_open(files.gl_pathv[i], &db) != SQLITE_OK ||
                sqlite3_exec(db,
                             "PRAGMA journal_mode=WAL; BEGIN;"
                             " SELECT * FROM op LIMIT 1",
                             NULL, NULL, NULL) != SQLITE_OK)
                _exit(1);
        }
        close(down[1]);
        if (write(up[1], "", 1) != 1 || read(down[0], &ready, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    assert_int_equal(read(up[0], &ready, 1), 1);
    close(up[0]);
    globfree(&files);
    *end_p = down[1];
    return pid;
}

/* Rank 1 is late to the last call, and all run still. */
static struct verdict live(const char *folder, long looked, long longest)
{
    struct verdict v;
    int end, status;
    pid_t pid;

    for (int rank = 0; rank < 3; rank++) {
        sqlite3 *db = begin(folder, rank, 3, rank == 1 ? 4 : 5);

        files_sql(db, "INSERT INTO clock VALUES (%ld, 5, %d, 10000)",
                  5000 * US + looked, rank);
        files_sql(db, "UPDATE op SET gpu_ns = %ld WHERE id = 2", longest);
        if (rank != 1)
            files_sql(db,
                      "UPDATE op SET gpu_off_ns = NULL, gpu_ns = NULL,"
                      " flags = %d WHERE id = 5",
                      CT_FLAG_RUNNING);
        files_sql(db, "UPDATE process SET end_ns = NULL");
        files_end(db);
    }
    pid = keep_open(folder, &end);
    v = judge(folder);
    close(end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return v;
}

static void test_live(void **state)
{
    const char *folder = files_folder();
    struct verdict v = live(folder, 90 * S, 300 * US);
    const struct ct_finding_row *row = find(&v, CT_FINDING_RANK_NEVER_CAME);

    (void)state;
    assert_false(v.trace->processes[0].dead);
    assert_says(row, "ranks 0, 2 wait in all_reduce number 4 (3.906 KiB) of "
                     "the communicator of ranks 0-2");
    assert_says(row, "for 90 s so far, which looks like a hang");
    assert_says(row, "rank 1 has not come: it issued 4 calls there, the "
                     "others 5; its last call was all_reduce number 3");
    assert_ptr_equal(row, &v.findings->rows[0]);
    assert_true(row->confidence < 1);
    assert_null(find(&v, CT_FINDING_PROCESS_DIED));
    release(&v, folder);
}

/* Not long, or no longer than such a call took before. */
static void test_live_at_work(void **state)
{
    const long looked[] = {S, 90 * S}, longest[] = {300 * US, 60 * S};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *folder = files_folder();
        struct verdict v = live(folder, looked[i], longest[i]);

        assert_int_equal(v.trace->jobs[0].in_flight, 2);
        assert_null(find(&v, CT_FINDING_RANK_NEVER_CAME));
        assert_null(find(&v, CT_FINDING_OP_NEVER_ENDED));
        release(&v, folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_teardown),
        cmocka_unit_test(test_all_came),
        cmocka_unit_test(test_receive),
        cmocka_unit_test(test_cascade),
        cmocka_unit_test(test_held_up),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_killed_at_work),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_live_at_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
