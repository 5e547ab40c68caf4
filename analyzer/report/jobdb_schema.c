#include "report/jobdb_schema.h"

#include <sqlite3.h>
#include <stdbool.h>

#define TABLE(table_, ...) static const struct jobdb_column table_##_cols[] = {
#define COL(table_, column_, type_, doc_) {#column_, JOBDB_##type_, doc_},
#define END(table_) \
    }               \
    ;
#include "commtrace/schema.def"
#define TABLE(table_, ...) static const struct jobdb_column table_##_cols[] = {
#define COL(table_, column_, type_, doc_) {#column_, JOBDB_##type_, doc_},
#define END(table_) \
    }               \
    ;
#include "report/jobdb_extra.def"

#define COUNT(array_) (int)(sizeof(array_) / sizeof(array_)[0])
#define TABLE(table_, scope_, doc_) \
    {#table_, doc_, table_##_cols, JOBDB_##scope_, COUNT(table_##_cols)},
const struct jobdb_table jobdb_tables[JOBDB_TABLES] = {
#include "commtrace/schema.def"
#define TABLE(table_, scope_, doc_) \
    {#table_, doc_, table_##_cols, JOBDB_##scope_, COUNT(table_##_cols)},
#include "report/jobdb_extra.def"
};

static const char *const type_names[] = {
    [JOBDB_KEY] = "INTEGER",
    [JOBDB_I64] = "INTEGER",
    [JOBDB_TXT] = "TEXT",
    [JOBDB_F64] = "REAL",
};

static const char *key_of(const struct jobdb_table *table)
{
    for (int i = 0; i < table->ncolumns; i++)
        if (table->columns[i].type == JOBDB_KEY)
            return table->columns[i].name;
    return NULL;
}

static bool is_of_process(const struct jobdb_table *table)
{
    return table->scope == JOBDB_RANK || table->scope == JOBDB_DERIVED;
}

/* A process's rows lie together in the order of their numbers, so reading them
 * back needs no index and joining them no search. */
static void add_columns(sqlite3_str *sql, const struct jobdb_table *table)
{
    bool rank = is_of_process(table);

    if (rank)
        sqlite3_str_appendall(
            sql, "  process INTEGER NOT NULL, -- -> process.process\n");
    for (int i = 0; i < table->ncolumns; i++) {
        const struct jobdb_column *c = &table->columns[i];
        bool last = i + 1 == table->ncolumns && !(rank && key_of(table));

        sqlite3_str_appendf(sql, "  \"%w\" %s%s%s%s%s\n", c->name,
                            type_names[c->type],
                            c->type != JOBDB_KEY ? ""
                            : rank               ? " NOT NULL"
                                                 : " PRIMARY KEY",
                            last ? "" : ",", *c->doc ? " -- " : "", c->doc);
    }
    if (rank && key_of(table))
        sqlite3_str_appendf(sql, "  PRIMARY KEY (process, \"%w\")\n",
                            key_of(table));
}

char *jobdb_create_sql(const struct jobdb_table *table)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);

    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\" ( -- %s\n", table->name,
                        table->doc);
    add_columns(sql, table);
    sqlite3_str_appendall(sql, is_of_process(table) && key_of(table)
                                   ? ") STRICT, WITHOUT ROWID"
                                   : ") STRICT");
    return sqlite3_str_finish(sql);
}

char *jobdb_insert_sql(const struct jobdb_table *table)
{
    int n = table->ncolumns + is_of_process(table);
    sqlite3_str *sql = sqlite3_str_new(NULL);

    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\" VALUES (?",
                        table->name);
    for (int i = 1; i < n; i++)
        sqlite3_str_appendall(sql, ",?");
    sqlite3_str_appendall(sql, ")");
    return sqlite3_str_finish(sql);
}
