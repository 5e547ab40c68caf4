/*
 * bench_load [DIR]: `commtrace report` as a whole process, and ct_trace_open
 * alone, against the floor: one thread's bare scan, in the same run, of exactly
 * the columns that they read in the tables that grow with the job. Best of
 * three each. Without DIR on a generated job of 1 M ops.
 */
#include <dirent.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/trace.h"

#define ROUNDS 3
#define MAX_RATIO 2.0

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *const scans[] = {
    "SELECT id, class, ordinal, grp, enter_ns, host_ns, gpu_off_ns, gpu_ns,"
    " flags FROM op ORDER BY id",
    "SELECT grp, comm, stream, ops, enter_ns, host_ns, gpu_off_ns, gpu_ns,"
    " flags, id FROM launch ORDER BY id"};

static int64_t scan_file(const char *path)
{
    int64_t sum = 0;
    sqlite3 *db;
    size_t i;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL)) {
        fprintf(stderr, "bench_load: %s: %s\n", path, sqlite3_errmsg(db));
        exit(2);
    }
    for (i = 0; i < sizeof(scans) / sizeof(*scans); i++) {
        sqlite3_stmt *stmt;
        int column, n;

        if (sqlite3_prepare_v2(db, scans[i], -1, &stmt, NULL)) {
            fprintf(stderr, "bench_load: %s: %s\n", path, sqlite3_errmsg(db));
            exit(2);
        }
        n = sqlite3_column_count(stmt);
        while (sqlite3_step(stmt) == SQLITE_ROW)
            for (column = 0; column < n; column++)
                sum += sqlite3_column_int64(stmt, column);
        sqlite3_finalize(stmt);
    }
    sqlite3_close(db);
    return sum;
}

/* What a scan read; kept, so that no compiler leaves the reading out. */
static int64_t scanned;

static double scan_folder(const char *folder)
{
    double start = now_s();
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[4096];

    while (dir && (entry = readdir(dir))) {
        size_t n = strlen(entry->d_name);

        if (n < 3 || strcmp(entry->d_name + n - 3, ".db") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        scanned += scan_file(path);
    }
    if (dir)
        closedir(dir);
    return now_s() - start;
}

static double open_folder(char *folder, int64_t *nops)
{
    double start = now_s(), time;
    struct ct_trace *trace;
    char error[512];
    int i;

    if (ct_trace_open(&folder, 1, &trace, error, sizeof(error))) {
        fprintf(stderr, "bench_load: %s\n", error);
        exit(2);
    }
    time = now_s() - start;
    for (*nops = 0, i = 0; i < trace->nprocesses; i++)
        *nops += trace->processes[i].nops;
    ct_trace_free(trace);
    return time;
}

static int run(const char *format, const char *program, const char *folder)
{
    char command[8192];

    snprintf(command, sizeof(command), format, program, folder);
    return system(command);
}

static double report_folder(const char *folder)
{
    double start = now_s();

    if (run("%s report '%s' >/dev/null", COMMTRACE, folder)) {
        fprintf(stderr, "bench_load: commtrace report failed\n");
        exit(2);
    }
    return now_s() - start;
}

static int say(const char *name, double s, double floor, int64_t nops)
{
    printf("bench %s %.0f ns/op ratio=%.2f floor=%.0f\n", name,
           1e9 * s / (double)nops, s / floor, 1e9 * floor / (double)nops);
    return s / floor > MAX_RATIO;
}

static int measure(char *folder)
{
    double floor = 1e9, open = 1e9, report = 1e9;
    int64_t nops = 0;
    int i, failed;

    for (i = 0; i < ROUNDS; i++) {
        floor = fmin(floor, scan_folder(folder));
        open = fmin(open, open_folder(folder, &nops));
        report = fmin(report, report_folder(folder));
    }
    failed = say("load", report, floor, nops);
    return say("open", open, floor, nops) | failed;
}

static int measure_generated(void)
{
    char folder[] = "/tmp/bench_load.XXXXXX";
    int rc = 2;

    if (!mkdtemp(folder))
        return 2;
    if (!run("%s --tp 4 --pp 4 --dp 2 --hosts 4 --ops 1000000 --out %s",
             TRACEGEN, folder))
        rc = measure(folder);
    if (run("%s -rf %s", "rm", folder))
        rc = 2;
    return rc;
}

int main(int argc, char **argv)
{
    return argc < 2 ? measure_generated() : measure(argv[1]);
}
