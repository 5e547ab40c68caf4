/*
 * The tables of job.db as data: those of schema.def and jobdb_extra.def.
 */
#ifndef COMMTRACE_REPORT_JOBDB_SCHEMA_H
#define COMMTRACE_REPORT_JOBDB_SCHEMA_H

#include <stddef.h>

enum jobdb_scope { JOBDB_RANK, JOBDB_DERIVED, JOBDB_LOOKUP, JOBDB_JOB };
enum jobdb_type { JOBDB_KEY, JOBDB_I64, JOBDB_TXT, JOBDB_F64 };

struct jobdb_column {
    const char *name;
    enum jobdb_type type;
    const char *doc;
};

struct jobdb_table {
    const char *name, *doc;
    const struct jobdb_column *columns;
    enum jobdb_scope scope;
    int ncolumns; /* without the leading `process` of RANK and DERIVED */
};

enum jobdb_table_id {
#define TABLE(table_, ...) JOBDB_T_##table_,
#include "commtrace/schema.def"
#define TABLE(table_, ...) JOBDB_T_##table_,
#include "report/jobdb_extra.def"
    JOBDB_TABLES
};

extern const struct jobdb_table jobdb_tables[JOBDB_TABLES];

/* CREATE TABLE and INSERT of one table. sqlite3_free what they return; NULL
 * without memory. */
char *jobdb_create_sql(const struct jobdb_table *table);
char *jobdb_insert_sql(const struct jobdb_table *table);

#endif
