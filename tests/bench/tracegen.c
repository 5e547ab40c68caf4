/*
 * bench_tracegen [OPS [RANKS]]: tracegen, with one thread, beside bare inserts
 * of the same rows into as many files. Without arguments 1 M ops of 128 ranks.
 */
#include "bench.h"

#include <glob.h>
#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>

enum { ROUNDS = 3, COLUMNS = 12, TABLES = 2 };

static const char *const tables[TABLES] = {"op", "launch"};

static double cpu_ns(int whose)
{
    struct rusage used;

    getrusage(whose, &used);
    return 1e9 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double generate(const char *dir, long ops, int ranks)
{
    char command[4096];
    double start = cpu_ns(RUSAGE_CHILDREN);

    snprintf(command, sizeof(command),
             "'%s' --threads 1 --tp 8 --pp 4 --dp %d --hosts %d --layers 32"
             " --ops %ld --out '%s'",
             TRACEGEN, ranks / 32, ranks / 8, ops, dir);
    if (system(command) != 0)
        exit(2);
    return cpu_ns(RUSAGE_CHILDREN) - start;
}

struct rows { /* of a table of one file; NULL is INT64_MIN */
    int ncolumns;
    long n, capacity;
    int64_t *values;
};

static void read_row(struct rows *rows, sqlite3_stmt *ask)
{
    int i;

    if (rows->n == rows->capacity) {
        rows->capacity = rows->capacity ? 2 * rows->capacity : 4096;
        rows->values = realloc(rows->values, sizeof(*rows->values) * COLUMNS *
                                                 (size_t)rows->capacity);
        if (!rows->values)
            exit(2);
    }
    for (i = 0; i < rows->ncolumns; i++)
        rows->values[rows->n * COLUMNS + i] =
            sqlite3_column_type(ask, i) == SQLITE_NULL
                ? INT64_MIN
                : sqlite3_column_int64(ask, i);
    rows->n++;
}

static void read_back(const char *path, const char *table, struct rows *rows)
{
    char sql[64];
    sqlite3 *db;
    sqlite3_stmt *ask;

    snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
    if (sqlite3_open(path, &db) || sqlite3_prepare_v2(db, sql, -1, &ask, NULL))
        exit(2);
    rows->ncolumns = sqlite3_column_count(ask);
    if (rows->ncolumns > COLUMNS)
        exit(2);
    for (rows->n = 0; sqlite3_step(ask) == SQLITE_ROW;)
        read_row(rows, ask);
    sqlite3_finalize(ask);
    sqlite3_close(db);
}

static void insert(sqlite3 *db, const char *table, const struct rows *rows)
{
    const int more = 2 * (rows->ncolumns - 1);
    char sql[256];
    sqlite3_stmt *put;

    snprintf(sql, sizeof(sql), "CREATE TABLE %s(a INTEGER PRIMARY KEY%.*s)",
             table, more, ",b,c,d,e,f,g,h,i,j,k,l");
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?%.*s)", table, more,
             ",?,?,?,?,?,?,?,?,?,?,?");
    if (sqlite3_prepare_v2(db, sql, -1, &put, NULL))
        exit(2);
    for (long i = 0; i < rows->n; i++) {
        const int64_t *values = rows->values + i * COLUMNS;

        for (int c = 0; c < rows->ncolumns; c++)
            if (values[c] == INT64_MIN)
                sqlite3_bind_null(put, c + 1);
            else
                sqlite3_bind_int64(put, c + 1, values[c]);
        sqlite3_step(put);
        sqlite3_reset(put);
    }
    sqlite3_finalize(put);
}

static double insert_file(const char *path, const struct rows *rows)
{
    double start = cpu_ns(RUSAGE_SELF);
    sqlite3 *db;

    if (sqlite3_open_v2(path, &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                            SQLITE_OPEN_NOMUTEX,
                        NULL))
        exit(2);
    sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN",
                 NULL, NULL, NULL);
    for (int t = 0; t < TABLES; t++)
        insert(db, tables[t], &rows[t]);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    return cpu_ns(RUSAGE_SELF) - start;
}

/* The rows of all files, file by file; gives how many they are. */
static long insert_all(const char *dir, double *spent)
{
    static struct rows rows[TABLES];
    char pattern[256], path[512];
    long n = 0;
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/*.db", dir);
    if (glob(pattern, 0, NULL, &found) != 0)
        exit(2);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        for (int t = 0; t < TABLES; t++) {
            read_back(found.gl_pathv[i], tables[t], &rows[t]);
            n += rows[t].n;
        }
        snprintf(path, sizeof(path), "%s.bare", found.gl_pathv[i]);
        *spent += insert_file(path, rows);
        unlink(path);
    }
    globfree(&found);
    return n;
}

static double higher(double a, double b)
{
    return a > b ? a : b;
}

int main(int argc, char **argv)
{
    const long ops = argc > 1 ? atol(argv[1]) : 1000000;
    const int ranks = argc > 2 ? atoi(argv[2]) : 128;
    double ours = 0, bare = 0;

    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    for (int i = 0; i < ROUNDS; i++) {
        char dir[] = "/tmp/bench-tracegen-XXXXXX";
        double took, spent = 0;
        long n;

        if (!mkdtemp(dir))
            return 2;
        took = generate(dir, ops, ranks);
        n = insert_all(dir, &spent);
        ours = higher(ours, (double)n / took * 1e9);
        bare = higher(bare, (double)n / spent * 1e9);
        bench_remove(dir);
    }
    return bench_report("tracegen", "rows/s", ours, bare, AT_LEAST, 0.7);
}
