#include "schema.h"

#include "commtrace/ops.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "views.h"

struct column {
    const char *table;
    const char *name;
    const char *type;
    const char *doc;
};

struct table {
    const char *name;
    int in_rank_file;
    const char *doc;
};

#define IN_FILE_RANK 1
#define IN_FILE_LOOKUP 1
#define IN_FILE_JOB 0
static const struct table tables[] = {
#define TABLE(table_, scope_, doc_) {#table_, IN_FILE_##scope_, doc_},
#include "commtrace/schema.def"
};

#define SQL_KEY "INTEGER PRIMARY KEY"
#define SQL_I64 "INTEGER"
#define SQL_TXT "TEXT"
#define SQL_F64 "REAL"
static const struct column columns[] = {
#define COL(table_, column_, type_, doc_) \
    {#table_, #column_, SQL_##type_, doc_},
#include "commtrace/schema.def"
};

#define LENGTH(array_) (sizeof(array_) / sizeof(*(array_)))

static int run(sqlite3 *db, char *sql)
{
    int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

/* The comments stay in sqlite_schema, so that `.schema` explains the file. */
static int create_table(sqlite3 *db, const struct table *table)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    const char *separator = "";
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"( /* %s */\n", table->name,
                        table->doc);
    for (size_t i = 0; i < LENGTH(columns); i++) {
        const struct column *column = &columns[i];
        if (strcmp(column->table, table->name) != 0)
            continue;
        sqlite3_str_appendf(sql, "%s  \"%w\" %s", separator, column->name,
                            column->type);
        if (*column->doc)
            sqlite3_str_appendf(sql, " /* %s */", column->doc);
        separator = ",\n";
    }
    sqlite3_str_appendall(sql, "\n)");
    return run(db, sqlite3_str_finish(sql));
}

static int fill_lookups(sqlite3 *db)
{
    int rc = SQLITE_OK;
#define ADD(...)         \
    if (rc == SQLITE_OK) \
        rc = run(db, sqlite3_mprintf(__VA_ARGS__));
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...)    \
    ADD("INSERT INTO op_kind VALUES(%d,%Q,%Q,%d,%Q,%Q,%Q)", CT_OP_##id_, \
        name_, #fn_, CT_OP_##base_, #class_, #size_, #wire_)
#include "commtrace/nccl_ops.def"
#define TYPE(id_, value_, name_, bytes_) \
    ADD("INSERT INTO data_type VALUES(%d,%Q,%d)", value_, name_, bytes_)
#define REDOP(id_, value_, name_) \
    ADD("INSERT INTO red_op VALUES(%d,%Q)", value_, name_)
#include "commtrace/nccl_types.def"
#define FLAG(id_, bit_, name_, meaning_) \
    ADD("INSERT INTO flag VALUES(%d,%Q,%Q)", bit_, name_, meaning_)
#include "commtrace/flags.def"
#define LINK(id_, name_, network_, base_, hop_, busbw_, source_)              \
    ADD("INSERT INTO link_class VALUES(%d,%Q,%d,%g,%g,%g,%Q)", CT_LINK_##id_, \
        name_, network_, (double)(base_), (double)(hop_), (double)(busbw_),   \
        source_)
#include "commtrace/links.def"
#undef ADD
    return rc;
}

int schema_create(sqlite3 *db)
{
    int rc = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < LENGTH(tables); i++)
        if (tables[i].in_rank_file)
            rc = create_table(db, &tables[i]);
    if (rc == SQLITE_OK)
        rc = fill_lookups(db);
    if (rc == SQLITE_OK)
        rc = views_create(db);
    if (rc == SQLITE_OK)
        rc = run(db, sqlite3_mprintf("PRAGMA application_id=%d;"
                                     "PRAGMA user_version=%d;COMMIT",
                                     CT_APPLICATION_ID, CT_SCHEMA_VERSION));
    return rc;
}
