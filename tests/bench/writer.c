/*
 * Rows a second through the writer's path, from slots of the ring into the
 * database, beside bare inserts of the same rows in the same portions. What
 * hooks do is not measured.
 */
#include "bench.h"
#include "trace_ops.h"

#include <sqlite3.h>

enum { ROUNDS = 9, PORTIONS = 60, OPS = 2048 };

static double run_writer(const char *dir, char *db_path, size_t size)
{
    static struct ops ops;
    double spent = 0;
    if (ops_open(&ops, dir, 8192) != 0)
        exit(2);
    for (int i = 0; i < PORTIONS; i++) {
        for (int j = 0; j < OPS; j++)
            ops_issue(&ops);
        double start = bench_ns();
        if (trace_flush(&ops.trace, true) != 0)
            exit(2);
        spent += bench_ns() - start;
    }
    snprintf(db_path, size, "%s", ops.process.db_path);
    trace_close(&ops.trace);
    ring_close(&ops.ring);
    return (double)PORTIONS * OPS / spent * 1e9;
}

static struct row_op *read_back(const char *path, int *n)
{
    sqlite3 *db;
    sqlite3_stmt *ask;
    struct row_op *rows = calloc(PORTIONS * OPS, sizeof(*rows));
    *n = 0;
    if (!rows || sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT * FROM op", -1, &ask, NULL))
        exit(2);
    while (sqlite3_step(ask) == SQLITE_ROW) {
        struct row_op *row = &rows[(*n)++];
        row->id = sqlite3_column_int64(ask, 0);
        row->class = sqlite3_column_int64(ask, 1);
        row->ordinal = sqlite3_column_int64(ask, 2);
        row->enter_ns = sqlite3_column_int64(ask, 4);
        row->host_ns = sqlite3_column_int64(ask, 5);
        row->flags = sqlite3_column_int64(ask, 8);
    }
    sqlite3_finalize(ask);
    sqlite3_close(db);
    return rows;
}

static void bare_portion(sqlite3 *db, sqlite3_stmt *put,
                         const struct row_op *rows)
{
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    for (int i = 0; i < OPS; i++) {
        sqlite3_bind_int64(put, 1, rows[i].id);
        sqlite3_bind_int64(put, 2, rows[i].class);
        sqlite3_bind_int64(put, 3, rows[i].ordinal);
        sqlite3_bind_null(put, 4);
        sqlite3_bind_int64(put, 5, rows[i].enter_ns);
        sqlite3_bind_int64(put, 6, rows[i].host_ns);
        sqlite3_bind_null(put, 7);
        sqlite3_bind_null(put, 8);
        sqlite3_bind_int64(put, 9, rows[i].flags);
        sqlite3_step(put);
        sqlite3_reset(put);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

static double run_bare(const char *path, const struct row_op *rows)
{
    sqlite3 *db;
    sqlite3_stmt *put;
    double spent = 0;
    if (sqlite3_open_v2(path, &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                            SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        exit(2);
    sqlite3_exec(db,
                 "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL;"
                 "CREATE TABLE op(id INTEGER PRIMARY KEY, class INTEGER,"
                 "ordinal INTEGER, grp INTEGER, enter_ns INTEGER, host_ns "
                 "INTEGER, gpu_off_ns INTEGER, gpu_ns INTEGER, flags INTEGER)",
                 NULL, NULL, NULL);
    if (sqlite3_prepare_v2(db, "INSERT INTO op VALUES(?,?,?,?,?,?,?,?,?)", -1,
                           &put, NULL) != SQLITE_OK)
        exit(2);
    for (int i = 0; i < PORTIONS; i++) {
        double start = bench_ns();
        bare_portion(db, put, rows + i * OPS);
        spent += bench_ns() - start;
    }
    sqlite3_finalize(put);
    sqlite3_close(db);
    return (double)PORTIONS * OPS / spent * 1e9;
}

int main(void)
{
    char dir[] = "/tmp/bench-writer-XXXXXX";
    double ours[ROUNDS], bare[ROUNDS];
    if (!mkdtemp(dir))
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        char db_path[2048], bare_path[128];
        int n;
        ours[i] = run_writer(dir, db_path, sizeof(db_path));
        struct row_op *rows = read_back(db_path, &n);
        if (n != PORTIONS * OPS)
            exit(2);
        snprintf(bare_path, sizeof(bare_path), "%s/bare%d.db", dir, i);
        bare[i] = run_bare(bare_path, rows);
        free(rows);
        unlink(db_path);
        unlink(bare_path);
    }
    bench_remove(dir);
    return bench_report("writer", "rows/s", bench_median(ours, ROUNDS),
                        bench_median(bare, ROUNDS), AT_LEAST, 0.9);
}
