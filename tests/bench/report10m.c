/*
 * bench_report10m [OPS | DIR]: `commtrace report` as a process of its own, on a
 * generated job of OPS ops (1 M; from 10 M on of 1,024 ranks, and beside it a
 * tenth of it for the growth) or on the traces in DIR. Time is held against the
 * floor: one thread's bare scan, in the same run, of exactly the columns that
 * it reads in the tables that grow with the job; memory against 64 bytes per op
 * and 200 MB. And how soon `commtrace ops` of a rank begins, against a second.
 * Best of three each.
 */
#include <dirent.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 3
#define MAX_RATIO 2.0
#define FIRST_ROW_NS 1e9
#define ROWS_BEFORE 2   /* lines: of the job, and of the columns */
#define MAX_GROWTH 1.15 /* of the time per op, from a tenth of the ops on */
#define BYTES_PER_OP 64
#define BYTES_BESIDE 200e6
#define TENTH_FROM 10000000
#define OPS_PER_RANK 10000

struct reading { /* of a folder */
    int64_t ops, sum;
    double ns;
};

struct usage { /* of a process */
    double ns, bytes;
};

static const char *const scans[] = {
    "SELECT id, class, ordinal, grp, enter_ns, host_ns, gpu_off_ns, gpu_ns,"
    " flags FROM op ORDER BY id",
    "SELECT grp, comm, stream, ops, enter_ns, host_ns, gpu_off_ns, gpu_ns,"
    " flags, id FROM launch ORDER BY id"};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_report10m: %s: %s\n", what, why);
    exit(2);
}

static int64_t scan_table(sqlite3 *db, const char *sql, int64_t *sum)
{
    sqlite3_stmt *stmt;
    int64_t rows = 0;
    int column, n;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
        fail(sql, sqlite3_errmsg(db));
    n = sqlite3_column_count(stmt);
    for (; sqlite3_step(stmt) == SQLITE_ROW; rows++)
        for (column = 0; column < n; column++)
            *sum += sqlite3_column_int64(stmt, column);
    sqlite3_finalize(stmt);
    return rows;
}

static void scan_file(const char *path, struct reading *reading)
{
    sqlite3 *db;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL))
        fail(path, sqlite3_errmsg(db));
    reading->ops += scan_table(db, scans[0], &reading->sum);
    scan_table(db, scans[1], &reading->sum);
    sqlite3_close(db);
}

static struct reading scan_folder(const char *folder)
{
    const double start = bench_ns();
    struct reading reading = {0};
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[4096];

    while (dir && (entry = readdir(dir))) {
        const size_t n = strlen(entry->d_name);

        if (n < 3 || strcmp(entry->d_name + n - 3, ".db") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        scan_file(path, &reading);
    }
    if (dir)
        closedir(dir);
    reading.ns = bench_ns() - start;
    return reading;
}

static struct usage report(char *folder)
{
    char program[] = COMMTRACE, command[] = "report";
    char *argv[] = {program, command, folder, NULL};
    const double start = bench_ns();
    struct rusage resources;
    int status = -1;
    pid_t child;

    fflush(stdout); /* else the child would, too */
    child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(127);
        execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &resources) != child || status)
        fail(folder, "commtrace report failed");
    return (struct usage){bench_ns() - start,
                          1024 * (double)resources.ru_maxrss};
}

static int say_memory(double bytes, int64_t ops)
{
    const double most = BYTES_PER_OP * (double)ops + BYTES_BESIDE;

    printf("bench report10m_memory %.0f MB ratio=%.3f floor=%.0f%s\n",
           bytes / 1e6, bytes / most, most / 1e6,
           bytes <= most ? "" : " FAILED");
    return bytes > most;
}

/* Until `commtrace ops` of a rank prints its first rows. */
static double first_row(const char *folder)
{
    const double start = bench_ns();
    char command[8192], line[4096];
    double ns = INFINITY;
    FILE *out;

    snprintf(command, sizeof command, "%s ops --rank 1 '%s'", COMMTRACE,
             folder);
    out = popen(command, "r");
    if (!out)
        fail(command, "failed");
    for (int i = 0; fgets(line, sizeof line, out); i++)
        if (i == ROWS_BEFORE)
            ns = bench_ns() - start;
    if (pclose(out))
        fail(command, "failed");
    return ns;
}

/* *per_op_p: ns of the report. */
static int measure(char *folder, double *per_op_p)
{
    double floor = INFINITY, ns = INFINITY, bytes = INFINITY;
    double first = INFINITY;
    struct reading reading = {0};
    int failed;

    for (int i = 0; i < ROUNDS; i++) {
        struct usage usage;

        reading = scan_folder(folder);
        usage = report(folder);
        floor = fmin(floor, reading.ns);
        ns = fmin(ns, usage.ns);
        bytes = fmin(bytes, usage.bytes);
        first = fmin(first, first_row(folder));
    }
    if (!reading.ops)
        fail(folder, "no operation");
    *per_op_p = ns / (double)reading.ops;
    failed = bench_report("report10m", "ns/op", *per_op_p,
                          floor / (double)reading.ops, AT_MOST, MAX_RATIO);
    failed |= bench_report("ops_first_row", "s", first / 1e9,
                           FIRST_ROW_NS / 1e9, AT_MOST, 1);
    return say_memory(bytes, reading.ops) | failed;
}

static void generate(const char *folder, long ops)
{
    const long replicas = ops / OPS_PER_RANK / 32;
    const long dp = replicas > 1 ? replicas : 1;
    char command[4096];

    snprintf(command, sizeof command,
             "%s --tp 8 --pp 4 --dp %ld --hosts %ld --layers 16 --lone-groups"
             " --ops %ld --out %s >/dev/null",
             TRACEGEN, dp, 4 * dp, ops, folder);
    if (system(command))
        fail(TRACEGEN, "failed");
}

static int measure_generated(long ops, double *per_op_p)
{
    char folder[] = "/tmp/bench_report10m.XXXXXX";
    int failed;

    if (!mkdtemp(folder))
        fail(folder, "cannot be made");
    generate(folder, ops);
    failed = measure(folder, per_op_p);
    bench_remove(folder);
    return failed;
}

int main(int argc, char **argv)
{
    const long ops = argc < 2 ? 1000000 : strtol(argv[1], NULL, 10);
    double per_op, of_tenth;
    int failed;

    if (argc > 1 && !ops)
        return measure(argv[1], &per_op);
    failed = measure_generated(ops, &per_op);
    if (ops < TENTH_FROM)
        return failed;
    failed |= measure_generated(ops / 10, &of_tenth);
    return bench_report("report10m_growth", "ns/op", per_op, of_tenth, AT_MOST,
                        MAX_GROWTH) |
           failed;
}
