/* What a benchmark's recorder has stored. */
#ifndef BENCH_BENCH_TRACE_H
#define BENCH_BENCH_TRACE_H

#include <glob.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

/* The number that sql gives of the trace in dir; -1: there is none. */
static inline int64_t bench_trace_ask(const char *dir, const char *sql)
{
    char pattern[4200];
    glob_t found;
    sqlite3 *db;
    sqlite3_stmt *rows;
    snprintf(pattern, sizeof(pattern), "%s/*.db", dir);
    if (glob(pattern, 0, NULL, &found) != 0 ||
        sqlite3_open(found.gl_pathv[0], &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK ||
        sqlite3_step(rows) != SQLITE_ROW)
        return -1;
    int64_t n = sqlite3_column_int64(rows, 0);
    sqlite3_finalize(rows);
    sqlite3_close(db);
    globfree(&found);
    return n;
}

#endif
