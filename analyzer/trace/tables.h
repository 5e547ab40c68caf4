/* The tables of schema.def as data, for those who copy them whole. */
#ifndef COMMTRACE_TABLES_H
#define COMMTRACE_TABLES_H

#include <stdbool.h>

enum ct_table_scope { CT_TABLE_RANK, CT_TABLE_LOOKUP, CT_TABLE_JOB };
enum ct_column_type {
    CT_COLUMN_KEY,
    CT_COLUMN_I64,
    CT_COLUMN_TXT,
    CT_COLUMN_F64
};

struct ct_column {
    const char *name;
    enum ct_column_type type;
};

struct ct_table {
    const char *name;
    const struct ct_column *columns;
    enum ct_table_scope scope;
    int ncolumns;
};

extern const struct ct_table ct_tables[];
extern const int ct_ntables;

/* NULL: no table has that name. */
const struct ct_table *ct_table_named(const char *name);

/* A rank's table of integers alone, as many as a block holds: those that grow
 * with the run are. */
bool ct_table_is_packed(const struct ct_table *table);

#endif
