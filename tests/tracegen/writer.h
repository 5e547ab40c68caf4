/* Rows into one SQLite file, table and column by their names in schema.def. */
#ifndef TRACEGEN_WRITER_H
#define TRACEGEN_WRITER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "bulk.h"

/* Number of each column in its table: op_class, op_ordinal, ... */
#define TABLE(table_, scope_, doc_) \
    enum table_##_columns           \
    {
#define COL(table_, column_, type_, doc_) table_##_##column_,
#define END(table_)       \
    table_##_column_count \
    }                     \
    ;
#include "commtrace/schema.def"

enum table {
#define TABLE(table_, scope_, doc_) T_##table_,
#include "commtrace/schema.def"
    TABLE_COUNT
};

struct writer {
    sqlite3 *db;
    sqlite3_stmt *inserts[TABLE_COUNT];
    struct bulk *bulks[TABLE_COUNT];
    bool failed;
};

/* Ends all statements and the connection. */
void writer_close(struct writer *w);

void writer_run(struct writer *w, const char *sql);
/* Creates the tables of rank files; fills the lookup tables. */
void writer_create(struct writer *w);
void writer_lookups(struct writer *w);

/* A row of table: get it, put its columns (what is not put is as in the row
 * before), add it. */
sqlite3_stmt *writer_row(struct writer *w, enum table table);
void put(sqlite3_stmt *row, int column, int64_t value);
void put_real(sqlite3_stmt *row, int column, double value);
void put_text(sqlite3_stmt *row, int column, const char *value);
void put_null(sqlite3_stmt *row, int column);
void put_or_null(sqlite3_stmt *row, int column, int64_t value);
void writer_add(struct writer *w, sqlite3_stmt *row);

/* Adds a row of a table whose columns all are integers; BULK_NULL is NULL. */
void writer_bulk(struct writer *w, enum table table, const int64_t *values);
/* Adds what waits. */
void writer_flush(struct writer *w);

struct simulation;
struct output;

/* What NCCL says of the records of rank, as far as the options ask for it; in
 * the end also its table of predictions and the classes of its choices. */
void nccl_put(struct writer *w, const struct simulation *s, struct output *out,
              int rank, bool last);

#endif
