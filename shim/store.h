/* The trace database of this process: schema, rows, transactions. */
#ifndef SHIM_STORE_H
#define SHIM_STORE_H

#include "rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct store {
    struct sqlite3 *db;
    struct sqlite3_stmt *put[ROW_COUNT];
    struct sqlite3_stmt *put_ops; /* STORE_OPS rows of `op` at once */
    struct sqlite3_stmt *begin, *commit, *rollback, *pages;
    int64_t page_bytes;
    bool network;
};

enum { STORE_OPS = 32 };

/* In a thread of the program's, before any other: SQLite asks the environment
 * once, which the program and NCCL may change while another thread runs. */
void store_begin(void);

/* Creates the file with tables, views and look-up rows. 0 or -1. */
int store_open(struct store *store, const char *path, bool network);
void store_close(struct store *store);

/* After the program has closed our files: opens them again. 0 or -1. */
int store_reopen(struct store *store, const char *path);

/* Writes rows in one transaction: all or none. A row whose key (or rowid) is
 * there replaces it. 0 or -1. */
int store_write(struct store *store, const struct row *rows, size_t n);

/* Bytes of the database with what is still in its log. */
int64_t store_bytes(struct store *store);

/* Into the database file with everything. */
void store_checkpoint(struct store *store);

const char *store_error(const struct store *store);

#endif
