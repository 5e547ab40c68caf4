/* What loading makes of good files and of all sorts of bad ones. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/parallel.h"
#include "trace_files.h"

#define LOG_HEADER_BYTES 32 /* fileformat2.html, "WAL Header Format" */

static sqlite3 *good(const char *folder, int rank)
{
    sqlite3 *db = files_begin_reducing(folder, rank, rank < 2 ? 2 : 4, 0);

    files_op(db, 1, 1, 0, 5000, 700);
    return db;
}

static void make_good(const char *folder, int rank)
{
    files_end(good(folder, rank));
}

static void expect_error(const char *path, const char *text)
{
    char error[512];
    struct ct_trace *trace = files_try(path, error, sizeof(error));

    ct_trace_free(trace);
    if (!strstr(error, text) || strchr(error, '\n'))
        fail_msg("\"%s\" instead of \"%s\"", error, text);
    assert_memory_equal(error, path, strlen(path));
}

static void test_rows(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = good(folder, 1);
    struct ct_trace *trace;
    const struct ct_process *p;

    (void)state;
    files_class(db, 7, 1, CT_OP_ALL_GATHER, 10, -1);
    files_class(db, 9, 1, CT_OP_RECV, 20, 0);
    files_op(db, 2, 7, 1, 6000, 100);
    files_sql(db, "INSERT INTO op VALUES (5, 9, 0, NULL, 7000, NULL, NULL,"
                  " NULL, 128)");
    files_sql(db, "INSERT INTO loss VALUES ('ring_full', 'op', 1, 3, 1, 2)");
    files_sql(db, "UPDATE op_class SET redop = 2 WHERE id = 1");
    files_end(db);
    trace = files_open(folder);
    p = &trace->processes[0];
    assert_string_equal(p->uuid, "uuid1");
    assert_int_equal(p->rank, 1);
    assert_int_equal(p->pid, 101);
    assert_int_equal(p->end_ns, 999999999);
    assert_false(p->dead);
    assert_int_equal(p->nops, 3);
    assert_int_equal(p->nclasses, 3);
    assert_int_equal(p->classes[0].redop, CT_REDOP_MAX);
    assert_int_equal(p->classes[1].base, CT_OP_ALL_GATHER);
    assert_int_equal(p->classes[1].redop, CT_NONE);
    assert_int_equal(p->classes[1].bytes, 80); /* S: all shares */
    assert_int_equal(p->classes[2].peer, 0);
    assert_int_equal(p->ops[0].enter_ns, 4000);
    assert_int_equal(ct_op_host_ns(&p->ops[0]), 500);
    assert_int_equal(ct_op_start_ns(&p->ops[0]), 5000);
    assert_int_equal(ct_op_gpu_ns(&p->ops[0]), 700);
    assert_int_equal(p->ops[1].ordinal, 1);
    assert_int_equal(p->ops[1].cls, 1);
    assert_int_equal(p->ops[2].cls, 2);
    assert_int_equal(ct_op_host_ns(&p->ops[2]), CT_NO_TIME);
    assert_int_equal(ct_op_start_ns(&p->ops[2]), CT_NO_TIME);
    assert_int_equal(p->lost, 3);
    assert_int_equal(trace->jobs[0].in_flight, 1);
    assert_int_equal(trace->jobs[0].lost_ops, 3);
    assert_int_equal(trace->jobs[0].missing, 1);
    files_close(trace, folder);
}

/* Another version may number kinds, types and flags otherwise. */
static void test_numbers_by_name(void **state)
{
    const char *folder = files_folder();
    sqlite3 *db = good(folder, 0);
    struct ct_trace *trace;

    (void)state;
    files_sql(db, "UPDATE op_kind SET id = id + 100");
    files_sql(db, "UPDATE op_kind SET base = base + 100");
    files_sql(db, "UPDATE data_type SET id = id + 20");
    files_sql(db, "UPDATE red_op SET id = id + 30");
    files_sql(db, "UPDATE flag SET bit = 8192 WHERE name = 'event'");
    files_sql(db, "UPDATE op SET flags = 8192");
    files_sql(db, "UPDATE op_class SET kind = kind + 100, type = type + 20,"
                  " redop = 30");
    /* One that we do not know, an instance of one that we do. */
    files_sql(db, "INSERT INTO op_kind VALUES (300, 'x', 'ncclX', 100, 'COLL',"
                  " 'ONE_SHARE', 'UNIT')");
    files_sql(db, "INSERT INTO op_class VALUES (2, 1, 300, 27, 30, 5, NULL, 1,"
                  " 1, NULL, NULL)");
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].classes[0].kind, CT_OP_ALL_REDUCE);
    assert_int_equal(trace->processes[0].classes[0].type, CT_TYPE_FLOAT32);
    assert_int_equal(trace->processes[0].classes[0].redop, CT_REDOP_SUM);
    assert_int_equal(trace->processes[0].classes[0].bytes, 4000);
    assert_int_equal(trace->processes[0].classes[1].kind, CT_OP_ALL_REDUCE);
    assert_int_equal(trace->processes[0].ops[0].flags, CT_FLAG_EVENT);
    files_close(trace, folder);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A file of the first version, as it was written then. */
static void test_version_1(void **state)
{
    const char *folder = files_folder();
    char *sql = calloc(1, 100000);
    FILE *f = fopen(VERSION1_SQL, "r");
    struct ct_trace *trace;
    const struct ct_process *p;
    sqlite3 *db;

    (void)state;
    assert_non_null(f);
    assert_true(fread(sql, 1, 99999, f) > 0);
    fclose(f);
    assert_int_equal(sqlite3_open(files_path(folder, 0), &db), SQLITE_OK);
    files_sql(db, "%s", sql);
    files_sql(db, "PRAGMA application_id=%d; PRAGMA user_version=1",
              0x43545243);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(sql);

    trace = files_open(folder);
    p = &trace->processes[0];
    assert_int_equal(p->rank, 0);
    assert_int_equal(p->restart, 1);
    assert_string_equal(trace->jobs[0].run_id, "run");
    assert_int_equal(trace->jobs[0].restart, 1);
    assert_int_equal(p->nops, 3);
    assert_int_equal(p->ops[2].ordinal, 2);
    assert_int_equal(p->classes[p->ops[2].cls].kind, CT_OP_ALL_REDUCE);
    assert_true(ct_op_gpu_ns(&p->ops[2]) > 2000000);
    assert_int_equal(p->nevents, 3);
    files_close(trace, folder);
}

static void test_bad_files(void **state)
{
    const char *folder = files_folder();
    char path[256], missing[256], junk[512];
    sqlite3 *db;
    struct stat st;

    (void)state;
    expect_error(folder, "no trace file");
    snprintf(missing, sizeof(missing), "%s/none", folder);
    expect_error(missing, "No such file");
    snprintf(path, sizeof(path), "%s", files_path(folder, 0));
    write_file(path, "", 0);
    expect_error(path, "empty file");
    memset(junk, 'x', sizeof(junk));
    write_file(path, junk, 40);
    expect_error(path, "not a database");
    write_file(path, junk, sizeof(junk));
    expect_error(path, "not a database");
    unlink(path);

    db = good(folder, 0);
    files_sql(db, "PRAGMA application_id=7");
    files_end(db);
    expect_error(path, "not of commtrace");
    unlink(path);
    db = good(folder, 0);
    files_sql(db, "PRAGMA user_version=9999");
    files_end(db);
    expect_error(path, "newer version");
    unlink(path);
    db = good(folder, 0);
    files_sql(db, "PRAGMA application_id=%d", 0x43544a42);
    files_end(db);
    expect_error(path, "job database");
    unlink(path);
    files_end(files_begin(folder, 0, 2, 0));
    expect_error(path, "no operation");
    unlink(path);
    db = good(folder, 0);
    files_sql(db, "DROP TABLE op");
    files_end(db);
    expect_error(path, "no such table");
    unlink(path);

    make_good(folder, 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    expect_error(path, "truncated");
    assert_int_equal(truncate(path, 5000), 0);
    expect_error(path, "truncated");
    files_remove(folder);
}

/* Rows that no recorder writes. Each is refused by name, none is followed. */
static const struct {
    const char *sql, *text;
} hostile[] = {
    {"UPDATE op SET class = 99", "op row 1: class 99"},
    {"UPDATE op SET class = -1", "op row 1: class is -1"},
    {"UPDATE op SET class = NULL", "op row 1: class is missing"},
    {"UPDATE op SET ordinal = -5", "ordinal is -5"},
    {"UPDATE op SET ordinal = 4294967296", "ordinal is 4294967296"},
    {"UPDATE op SET enter_ns = 9223372036854775807", "enter_ns is"},
    {"UPDATE op SET enter_ns = NULL", "enter_ns is missing"},
    {"UPDATE op SET gpu_off_ns = -9223372036854775808", "gpu_off_ns is"},
    {"UPDATE op SET gpu_ns = -1", "gpu_ns is -1"},
    {"UPDATE op SET host_ns = 9223372036854775807", "host_ns is"},
    {"UPDATE op SET flags = -1", "flags is -1"},
    {"UPDATE op SET grp = -1", "grp is -1"},
    {"UPDATE op_class SET comm = 2", "op_class row 1: comm 2 does not exist"},
    {"UPDATE op_class SET kind = 511", "kind 511 is not known"},
    {"UPDATE op_class SET kind = 100000", "kind is 100000"},
    {"UPDATE op_class SET type = 100000", "type is 100000"},
    {"UPDATE op_class SET peer = 2", "peer is 2"},
    {"UPDATE op_class SET kind = 6, peer = NULL", "without peer"},
    {"UPDATE comm SET nranks = 0", "nranks is 0"},
    {"UPDATE comm SET nranks = 2147483647", "nranks is"},
    {"UPDATE comm SET rank = 2", "rank 2 of 2"},
    {"UPDATE comm SET rank = -1", "rank is -1"},
    {"INSERT INTO comm (id, uid, nranks, rank) SELECT value, value, 1000000, 0"
     " FROM generate",
     "too many ranks"},
    {"UPDATE process SET t0_ns = -1", "t0_ns is -1"},
    {"DELETE FROM process", "no process"},
    {"UPDATE op_kind SET id = 100000 WHERE id = 0", "id is 100000"},
    {"INSERT INTO launch VALUES (1, 1, 5, 1, 1, 0, 0, 0, 0, 0)",
     "launch row 1: comm 5"},
    {"ALTER TABLE op RENAME TO o; CREATE VIEW op AS WITH RECURSIVE r(id) AS"
     " (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT id, 1 class, 1 ordinal,"
     " NULL grp, 1 enter_ns, 1 host_ns, 1 gpu_off_ns, 1 gpu_ns, 1 flags"
     " FROM r",
     "table op"},
};

static void test_hostile_rows(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
        const char *folder = files_folder();
        sqlite3 *db = good(folder, 0);

        files_sql(db, "CREATE TABLE generate (value)");
        files_sql(db, "WITH RECURSIVE r(v) AS (SELECT 2 UNION ALL SELECT v + 1"
                      " FROM r WHERE v < 40) INSERT INTO generate"
                      " SELECT v FROM r");
        files_sql(db, "%s", hostile[i].sql);
        files_end(db);
        expect_error(files_path(folder, 0), hostile[i].text);
        files_remove(folder);
    }
}

/* A call may pass any count, and NCCL need not look at it. */
static void test_odd_counts(void **state)
{
    static const long long counts[] = {-1, INT64_MAX, INT64_MIN, 1LL << 60};
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        const char *folder = files_folder();
        sqlite3 *db = good(folder, 0);
        struct ct_trace *trace;

        files_sql(db, "UPDATE op_class SET count = %lld", counts[i]);
        files_end(db);
        trace = files_open(folder);
        assert_int_equal(trace->processes[0].classes[0].count, 0);
        assert_int_equal(trace->processes[0].classes[0].bytes, 0);
        files_close(trace, folder);
    }
}

static void test_bad_beside_good(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    char path[256];
    sqlite3 *db;

    (void)state;
    make_good(folder, 1);
    make_good(folder, 3);
    snprintf(path, sizeof(path), "%s/a.db", folder);
    write_file(path, "hello", 5);
    /* A job database in the folder is no concern of ours. */
    db = good(folder, 0);
    files_sql(db, "PRAGMA application_id=%d", 0x43544a42);
    files_end(db);
    /* A copy of a trace counts once. */
    db = good(folder, 2);
    files_sql(db, "UPDATE process SET uuid = 'uuid1'");
    files_end(db);
    trace = files_open(folder);
    assert_int_equal(trace->nprocesses, 2);
    assert_int_equal(trace->nskipped, 2);
    assert_non_null(strstr(trace->skipped[0], "a.db: not a database"));
    assert_non_null(strstr(trace->skipped[1], "same process as"));
    files_close(trace, folder);
}

static void copy(const char *from, const char *to)
{
    static char buffer[1 << 22];
    FILE *f = fopen(from, "r");
    size_t n;

    assert_non_null(f);
    n = fread(buffer, 1, sizeof(buffer), f);
    fclose(f);
    write_file(to, buffer, n);
}

static void list(const char *folder, char *names, size_t size)
{
    struct dirent **entries;
    int i, n = scandir(folder, &entries, NULL, alphasort);
    struct stat st;
    char path[512];

    *names = 0;
    for (i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (!strcmp(entries[i]->d_name, ".."))
            snprintf(path, sizeof(path), "%s", folder);
        assert_int_equal(stat(path, &st), 0);
        snprintf(names + strlen(names), size - strlen(names), "%s %ld %ld\n",
                 entries[i]->d_name, (long)st.st_size,
                 (long)st.st_mtim.tv_nsec);
        free(entries[i]);
    }
    free(entries);
}

static void open_unchanged(const char *folder, int nops)
{
    char before[2048], after[2048];
    struct ct_trace *trace;

    list(folder, before, sizeof(before));
    trace = files_open(folder);
    assert_int_equal(trace->processes[0].nops, nops);
    ct_trace_free(trace);
    list(folder, after, sizeof(after));
    assert_string_equal(before, after);
}

static void open_refused(const char *folder)
{
    char before[2048], after[2048], error[512];

    list(folder, before, sizeof(before));
    assert_null(files_try(folder, error, sizeof(error)));
    list(folder, after, sizeof(after));
    assert_string_equal(before, after);
}

static const char *trace_path(const char *folder, const char *suffix)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s%s", files_path(folder, 0), suffix);
    return path;
}

/* As a kill leaves it: the writer goes on with the original. */
static void copy_trace(const char *from, const char *to)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char source[300];
    int i;

    for (i = 0; i < 3; i++) {
        snprintf(source, sizeof(source), "%s", trace_path(from, suffixes[i]));
        copy(source, trace_path(to, suffixes[i]));
    }
}

/* A writer in WAL mode: alive, killed, killed and copied without its index,
 * copied without its log, closed. Nothing may change on the disk. */
static void test_write_ahead_log(void **state)
{
    const char *folder = files_folder(), *killed = files_folder();
    sqlite3 *db = good(folder, 0);

    (void)state;
    files_sql(db, "COMMIT");
    files_sql(db, "PRAGMA journal_mode=WAL");
    files_sql(db, "PRAGMA wal_autocheckpoint=0");
    files_op(db, 2, 1, 1, 7000, 700);
    copy_trace(folder, killed);
    open_unchanged(killed, 2);
    unlink(trace_path(killed, "-shm"));
    open_unchanged(killed, 2);
    assert_int_equal(truncate(trace_path(killed, ""), 0), 0);
    open_refused(killed);
    copy_trace(folder, killed);
    unlink(trace_path(killed, "-shm"));
    unlink(trace_path(killed, "-wal"));
    open_unchanged(killed, 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    open_unchanged(folder, 2);
    files_remove(folder);
    files_remove(killed);
}

static int sleeps;

static int count_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    sleeps++;
    return us;
}

/* Killed after the header of its log, before what the log is for: nothing was
 * in it, and nobody is waited for. */
static void test_log_begun(void **state)
{
    const char *folder = files_folder(), *killed = files_folder();
    sqlite3 *db = good(folder, 0);
    sqlite3_vfs *vfs;

    (void)state;
    files_sql(db, "COMMIT");
    files_sql(db, "PRAGMA journal_mode=WAL");
    files_sql(db, "PRAGMA wal_autocheckpoint=0");
    files_op(db, 2, 1, 1, 7000, 700);
    copy_trace(folder, killed);
    assert_int_equal(truncate(trace_path(killed, "-wal"), LOG_HEADER_BYTES), 0);
    for (vfs = sqlite3_vfs_find(NULL); vfs; vfs = vfs->pNext)
        vfs->xSleep = count_sleep;
    open_unchanged(killed, 1);
    assert_int_equal(sleeps, 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    files_remove(folder);
    files_remove(killed);
}

static void test_live_writer(void **state)
{
    const char *folder = files_folder();
    int ready[2], go[2];
    char byte = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    child = fork();
    if (!child) {
        sqlite3 *db = good(folder, 0);

        files_sql(db, "COMMIT");
        files_sql(db, "PRAGMA journal_mode=WAL");
        files_op(db, 2, 1, 1, 7000, 700);
        files_sql(db, "UPDATE process SET end_ns = NULL");
        byte = write(ready[1], "x", 1) != 1;
        byte = read(go[0], &byte, 1) != 1;
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    {
        struct ct_trace *trace = files_open(folder);

        assert_int_equal(trace->processes[0].nops, 2);
        assert_false(trace->processes[0].dead);
        assert_true(trace->processes[0].ring_missing);
        ct_trace_free(trace);
    }
    assert_int_equal(write(go[1], "x", 1), 1);
    files_remove(folder);
}

/* Many files, few descriptors, more threads than one: the same each time. */
static void test_many_files(void **state)
{
    const char *folder = files_folder();
    struct ct_trace *trace;
    int i;

    (void)state;
    for (i = 0; i < 100; i++) {
        sqlite3 *db = files_begin_reducing(folder, i, 100, i / 8);

        files_op(db, 1, 1, 0, 5000, 700 + i);
        files_end(db);
    }
    trace = files_open(folder);
    assert_int_equal(trace->nprocesses, 100);
    assert_int_equal(trace->jobs[0].nnodes, 13);
    for (i = 0; i < 100; i++) {
        assert_int_equal(trace->processes[i].rank, i);
        assert_int_equal(trace->jobs[0].processes[i], i);
    }
    assert_int_equal(trace->jobs[0].instances[0].ranks, 100);
    assert_int_equal(trace->jobs[0].instances[0].transfer_ns, 700);
    files_close(trace, folder);
}

static atomic_bool helped;

static void note_thread(void *caller, int i)
{
    (void)i;
    if (!pthread_equal(pthread_self(), *(pthread_t *)caller))
        helped = true;
}

/* However many threads are asked for: each may hold several files open. */
static void test_few_descriptors(void **state)
{
    pthread_t caller = pthread_self();
    struct rlimit before, few;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 40;
    setenv(CT_THREADS_VARIABLE, "64", 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    ct_parallel_for(100000, note_thread, &caller);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(helped);
    ct_parallel_for(100000, note_thread, &caller);
    assert_true(helped);
    unsetenv(CT_THREADS_VARIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_numbers_by_name),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_odd_counts),
        cmocka_unit_test(test_bad_beside_good),
        cmocka_unit_test(test_write_ahead_log),
        cmocka_unit_test(test_log_begun),
        cmocka_unit_test(test_live_writer),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_few_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
