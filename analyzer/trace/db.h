/*
 * A trace's SQLite file, open for reading. Nothing beside the file is made or
 * changed, whatever state its writer left it in:
 *   no write-ahead log            read as it is (immutable)
 *   log, and the writer lives     SQLite's own protocol, through the shared
 *                                 index that the writer holds
 *   log of a dead writer          SQLite reads the log with an index of its
 *                                 own in memory, never with the one left there
 *   rollback journal, or an       a temporary copy is opened, so that the
 *   index that we may not map     original stays as evidence
 */
#ifndef COMMTRACE_DB_H
#define COMMTRACE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct ct_db {
    struct sqlite3 *handle;
    bool live;          /* another process holds the file open for writing */
    uint64_t bytes;     /* of the file and its log, when it was opened */
    int64_t steps_left; /* of SQLite's machine (ct_db_refill) */
    bool digest; /* its packed tables are there as tables (trace/digest.h) */
};

/* Once per process, before anything else uses SQLite: no shared statistics,
 * which would be a lock between loading threads. */
void ct_db_setup(void);

/* Returns 0, or -1 and writes why into reason. db stays where it is. */
int ct_db_open(struct ct_db *db, const char *path, char *reason,
               size_t reason_size);
void ct_db_close(struct ct_db *db);

/* Before a statement that may read all of the file: it fails where it takes
 * longer than that, since pages are part of a table again and again. */
void ct_db_refill(struct ct_db *db);

/* Of a database and its log; 0: there is none. */
uint64_t ct_db_bytes(const char *path);

/* Why the last call failed, in words for a person. */
void ct_db_reason(const struct ct_db *db, char *reason, size_t reason_size);

/* The integer that a PRAGMA or one-value query answers; fallback: none. */
long long ct_db_int(const struct ct_db *db, const char *sql,
                    long long fallback);

#endif
