#include "bulk.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 512

struct bulk {
    sqlite3_stmt *insert;
    int columns, n; /* n rows wait */
    int64_t *values;
};

struct view {
    sqlite3_vtab table;
    const struct bulk *bulk;
};

struct cursor {
    sqlite3_vtab_cursor cursor;
    const struct bulk *bulk;
    int at;
};

static int declare(sqlite3 *db, int columns)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    char *text;
    int i, result;

    for (i = 0; i < columns; i++)
        sqlite3_str_appendf(sql, "%sc%d", i ? "," : "CREATE TABLE t(", i);
    sqlite3_str_appendall(sql, ")");
    text = sqlite3_str_finish(sql);
    result = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    return result;
}

static int connect_table(sqlite3 *db, void *bulk, int argc,
                         const char *const *argv, sqlite3_vtab **table_p,
                         char **error_p)
{
    struct view *view = calloc(1, sizeof(*view));

    (void)argc, (void)argv, (void)error_p;
    if (!view)
        return SQLITE_NOMEM;
    view->bulk = bulk;
    *table_p = &view->table;
    return declare(db, view->bulk->columns);
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *index)
{
    (void)table;
    index->estimatedCost = ROWS;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor_p)
{
    struct cursor *cursor = calloc(1, sizeof(*cursor));

    if (!cursor)
        return SQLITE_NOMEM;
    cursor->bulk = ((struct view *)table)->bulk;
    *cursor_p = &cursor->cursor;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int begin(sqlite3_vtab_cursor *cursor, int index, const char *name,
                 int argc, sqlite3_value **argv)
{
    (void)index, (void)name, (void)argc, (void)argv;
    ((struct cursor *)cursor)->at = 0;
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *cursor)
{
    ((struct cursor *)cursor)->at++;
    return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *cursor)
{
    const struct cursor *c = (struct cursor *)cursor;

    return c->at >= c->bulk->n;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int i)
{
    const struct cursor *c = (struct cursor *)cursor;
    const int64_t value = c->bulk->values[c->at * c->bulk->columns + i];

    if (value != BULK_NULL)
        sqlite3_result_int64(context, value);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
    *id = ((struct cursor *)cursor)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = connect_table,
                                      .xDisconnect = disconnect_table,
                                      .xBestIndex = best_index,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = begin,
                                      .xNext = next,
                                      .xEof = is_over,
                                      .xColumn = column,
                                      .xRowid = rowid};

static bool prepare(struct bulk *bulk, sqlite3 *db, const char *table)
{
    char *name = sqlite3_mprintf("bulk_%s", table);
    char *sql = sqlite3_mprintf("INSERT INTO %s SELECT * FROM %s", table, name);
    bool good = name && sql &&
                !sqlite3_create_module(db, name, &module, bulk) &&
                !sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &bulk->insert, NULL);

    sqlite3_free(name);
    sqlite3_free(sql);
    return good;
}

struct bulk *bulk_open(sqlite3 *db, const char *table, int columns)
{
    struct bulk *bulk = calloc(1, sizeof(*bulk));

    if (!bulk)
        return NULL;
    bulk->columns = columns;
    bulk->values = malloc(sizeof(int64_t) * ROWS * (size_t)columns);
    if (bulk->values && prepare(bulk, db, table))
        return bulk;
    bulk_close(bulk);
    return NULL;
}

void bulk_close(struct bulk *bulk)
{
    if (!bulk)
        return;
    sqlite3_finalize(bulk->insert);
    free(bulk->values);
    free(bulk);
}

bool bulk_add(struct bulk *bulk, const int64_t *values)
{
    memcpy(bulk->values + bulk->n * bulk->columns, values,
           sizeof(*values) * (size_t)bulk->columns);
    return ++bulk->n < ROWS || bulk_flush(bulk);
}

bool bulk_flush(struct bulk *bulk)
{
    bool good = sqlite3_step(bulk->insert) == SQLITE_DONE;

    sqlite3_reset(bulk->insert);
    bulk->n = 0;
    return good;
}
