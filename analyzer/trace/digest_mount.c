/* The packed tables of a digest, as virtual tables of SQLite. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "trace/digest.h"
#include "trace/pack.h"
#include "trace/tables.h"

#define MODULE "commtrace_packed"

struct packed {
    sqlite3_vtab base;
    sqlite3 *handle;
    const struct ct_table *table;
};

struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *blocks;
    struct ct_block *block;
    uint64_t wanted; /* columns */
    int at;          /* row in block */
    int64_t nth;     /* row in the table, from 1 */
    bool end;
};

static bool has_key(const struct packed *packed)
{
    return packed->table->columns[0].type == CT_COLUMN_KEY;
}

static int connect_table(sqlite3 *handle, void *context, int argc,
                         const char *const *argv, sqlite3_vtab **vtab_p,
                         char **error_p)
{
    const struct ct_table *table = ct_table_named(argc > 2 ? argv[2] : "");
    sqlite3_str *sql = sqlite3_str_new(handle);
    struct packed *packed = calloc(1, sizeof(*packed));
    int i, rc = SQLITE_NOMEM;
    char *text;

    (void)context, (void)error_p;
    for (i = 0; table && i < table->ncolumns; i++)
        sqlite3_str_appendf(sql, "%s\"%w\" INTEGER",
                            i ? ", " : "CREATE TABLE x(",
                            table->columns[i].name);
    sqlite3_str_appendall(sql, ")");
    text = sqlite3_str_finish(sql);
    if (text && packed)
        rc = sqlite3_declare_vtab(handle, text);
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        free(packed);
        return rc;
    }
    packed->handle = handle;
    packed->table = table;
    *vtab_p = &packed->base;
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *vtab)
{
    free(vtab);
    return SQLITE_OK;
}

/* Always a scan; rows come by their key, as far as that is so in the trace. */
static int plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    info->estimatedCost = 1e6;
    info->estimatedRows = 1000000;
    info->orderByConsumed =
        has_key((struct packed *)vtab) && info->nOrderBy == 1 &&
        info->aOrderBy[0].iColumn <= 0 && !info->aOrderBy[0].desc;
    info->idxNum = (int)(info->colUsed & INT32_MAX);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **cursor_p)
{
    static const char sql[] =
        "SELECT data, id FROM main.packed WHERE name = ?1 ORDER BY id";
    struct packed *packed = (struct packed *)vtab;
    struct cursor *cursor = calloc(1, sizeof(*cursor));
    int rc = SQLITE_NOMEM;

    if (cursor)
        cursor->block = malloc(sizeof(*cursor->block));
    if (cursor && cursor->block)
        rc = sqlite3_prepare_v2(packed->handle, sql, -1, &cursor->blocks, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(cursor->blocks, 1, packed->table->name, -1,
                               SQLITE_STATIC);
    if (rc == SQLITE_OK) {
        *cursor_p = &cursor->base;
        return SQLITE_OK;
    }
    if (cursor) {
        sqlite3_finalize(cursor->blocks);
        free(cursor->block);
    }
    free(cursor);
    return rc;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;

    sqlite3_finalize(cursor->blocks);
    free(cursor->block);
    free(cursor);
    return SQLITE_OK;
}

static int read_block(struct cursor *cursor)
{
    const struct packed *packed = (struct packed *)cursor->base.pVtab;
    struct ct_block *block = cursor->block;
    int c, rc = sqlite3_step(cursor->blocks);

    cursor->at = 0;
    cursor->end = rc != SQLITE_ROW;
    if (rc == SQLITE_DONE)
        return SQLITE_OK;
    if (rc != SQLITE_ROW)
        return rc;
    if (!ct_unpack(block, sqlite3_column_blob(cursor->blocks, 0),
                   (size_t)sqlite3_column_bytes(cursor->blocks, 0),
                   cursor->wanted)) {
        cursor->base.pVtab->zErrMsg = sqlite3_mprintf(
            "packed rows of table %s are damaged: block %lld",
            packed->table->name, sqlite3_column_int64(cursor->blocks, 1));
        return SQLITE_CORRUPT;
    }
    /* Columns that a newer schema has, and the one of that time had not. */
    for (c = block->ncolumns; c < packed->table->ncolumns; c++)
        memset(block->null[c], true, (size_t)block->nrows);
    return SQLITE_OK;
}

static int rewind_cursor(sqlite3_vtab_cursor *base, int columns,
                         const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;

    (void)text, (void)argc, (void)argv;
    sqlite3_reset(cursor->blocks);
    cursor->wanted = (uint64_t)columns | has_key((struct packed *)base->pVtab);
    cursor->nth = 1;
    return read_block(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;

    cursor->nth++;
    if (++cursor->at < cursor->block->nrows)
        return SQLITE_OK;
    return read_block(cursor);
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)base)->end;
}

static int get_value(sqlite3_vtab_cursor *base, sqlite3_context *context, int c)
{
    const struct cursor *cursor = (struct cursor *)base;

    if (cursor->block->null[c][cursor->at])
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, cursor->block->values[c][cursor->at]);
    return SQLITE_OK;
}

static int get_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *id_p)
{
    const struct cursor *cursor = (struct cursor *)base;

    *id_p = has_key((struct packed *)base->pVtab)
                ? cursor->block->values[0][cursor->at]
                : cursor->nth;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xCreate = connect_table,
                                      .xConnect = connect_table,
                                      .xBestIndex = plan,
                                      .xDisconnect = disconnect,
                                      .xDestroy = disconnect,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = rewind_cursor,
                                      .xNext = next_row,
                                      .xEof = at_end,
                                      .xColumn = get_value,
                                      .xRowid = get_rowid};

/* In temp, which is searched before the file itself. */
static int mount(sqlite3 *handle, const struct ct_table *table)
{
    char *sql;
    int rc;

    /* A table that could not be packed is there as itself. */
    if (!sqlite3_table_column_metadata(handle, "main", table->name, NULL, NULL,
                                       NULL, NULL, NULL, NULL))
        return 0;
    sql = sqlite3_mprintf("CREATE VIRTUAL TABLE temp.\"%w\" USING " MODULE,
                          table->name);
    rc = sql ? sqlite3_exec(handle, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

int ct_digest_mount(sqlite3 *handle)
{
    int i;
    int rc = sqlite3_create_module(handle, MODULE, &module, NULL);

    if (!rc)
        rc = sqlite3_exec(handle, "PRAGMA temp_store = MEMORY", NULL, NULL,
                          NULL);
    for (i = 0; i < ct_ntables && !rc; i++)
        if (ct_table_is_packed(&ct_tables[i]))
            rc = mount(handle, &ct_tables[i]);
    return rc ? -1 : 0;
}
