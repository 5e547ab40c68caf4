/* The tables of a trace -> those of its digest. */
#include <sqlite3.h>
#include <stdlib.h>

#include "trace/digest_parts.h"
#include "trace/pack.h"
#include "trace/tables.h"

static const char op_stat[] =
    "SELECT class, count(*), min(enter_ns), max(enter_ns), sum(host_ns),"
    " count(gpu_ns), sum(gpu_ns), min(gpu_ns), max(gpu_ns) FROM op"
    " GROUP BY class ORDER BY class";

/* All columns; those that the file of an older version lacks are NULL. */
static sqlite3_stmt *rows_of(struct ct_digesting *w,
                             const struct ct_table *table)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_stmt *rows = NULL;
    char *text;
    int i;

    for (i = 0; i < table->ncolumns; i++) {
        const char *name = table->columns[i].name;
        const bool is_there =
            !sqlite3_table_column_metadata(w->from.handle, NULL, table->name,
                                           name, NULL, NULL, NULL, NULL, NULL);

        sqlite3_str_appendf(sql, is_there ? "%s\"%w\"" : "%sNULL",
                            i ? ", " : "SELECT ", name);
    }
    sqlite3_str_appendf(sql, " FROM \"%w\"", table->name);
    if (table->columns[0].type == CT_COLUMN_KEY)
        sqlite3_str_appendf(sql, " ORDER BY \"%w\"", table->columns[0].name);
    text = sqlite3_str_finish(sql);
    if (text) /* no statement: the file has no such table */
        sqlite3_prepare_v2(w->from.handle, text, -1, &rows, NULL);
    sqlite3_free(text);
    return rows;
}

/* The nth row, from 0. */
static bool next_row(struct ct_digesting *w, const char *name,
                     sqlite3_stmt *rows, uint64_t nth)
{
    if (w->reason || w->torn || sqlite3_step(rows) != SQLITE_ROW)
        return false;
    if (nth >= w->from.bytes) /* pages that are their own children */
        w->torn = name;
    return !w->torn;
}

/* Ends rows, after the last of them or an error. */
static void end_rows(struct ct_digesting *w, const char *name,
                     sqlite3_stmt *rows)
{
    if (sqlite3_finalize(rows) != SQLITE_OK && !w->torn)
        w->torn = name;
}

static void put_block(struct ct_digesting *w, const struct ct_table *table,
                      sqlite3_stmt *insert_block)
{
    unsigned char *bytes;
    size_t n = ct_pack(w->block, &bytes);

    if (!n) {
        ct_digest_fail(w, "out of memory");
        return;
    }
    sqlite3_bind_text(insert_block, 1, table->name, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(insert_block, 2, bytes, n, free);
    ct_digest_insert(w, insert_block);
    w->block->nrows = 0;
}

/* False: the row holds what no trace has there. */
static bool add_row(struct ct_block *block, const struct ct_table *table,
                    sqlite3_stmt *row)
{
    int c, i = block->nrows;

    for (c = 0; c < table->ncolumns; c++) {
        const int type = sqlite3_column_type(row, c);

        if (type != SQLITE_INTEGER && type != SQLITE_NULL)
            return false;
        block->null[c][i] = type == SQLITE_NULL;
        block->values[c][i] = sqlite3_column_int64(row, c);
    }
    block->nrows++;
    return true;
}

static bool pack_rows(struct ct_digesting *w, const struct ct_table *table)
{
    sqlite3_stmt *rows = rows_of(w, table);
    sqlite3_stmt *insert_block =
        ct_digest_prepare(w, "INSERT INTO packed(name, data) VALUES (?1, ?2)");
    bool good = true;
    uint64_t n;

    w->block->nrows = 0;
    w->block->ncolumns = table->ncolumns;
    for (n = 0; good && next_row(w, table->name, rows, n); n++) {
        good = add_row(w->block, table, rows);
        if (w->block->nrows == CT_PACK_ROWS)
            put_block(w, table, insert_block);
    }
    if (good && w->block->nrows && !w->reason)
        put_block(w, table, insert_block);
    sqlite3_finalize(insert_block);
    end_rows(w, table->name, rows);
    return good;
}

static void unpack_rows(struct ct_digesting *w, const struct ct_table *table)
{
    char *sql =
        sqlite3_mprintf("DELETE FROM packed WHERE name = %Q", table->name);

    ct_digest_run(w, sql);
    sqlite3_free(sql);
}

/* Not strict: what the file has is copied, and judged by who reads it. */
static void create_table(struct ct_digesting *w, const struct ct_table *table)
{
    static const char *const types[] = {[CT_COLUMN_KEY] = "INTEGER PRIMARY KEY",
                                        [CT_COLUMN_I64] = "INTEGER",
                                        [CT_COLUMN_TXT] = "TEXT",
                                        [CT_COLUMN_F64] = "REAL"};
    sqlite3_str *sql = sqlite3_str_new(NULL);
    char *text;
    int i;

    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\" (", table->name);
    for (i = 0; i < table->ncolumns; i++)
        sqlite3_str_appendf(sql, "%s\"%w\" %s", i ? ", " : "",
                            table->columns[i].name,
                            types[table->columns[i].type]);
    sqlite3_str_appendall(sql, ")");
    text = sqlite3_str_finish(sql);
    ct_digest_run(w, text);
    sqlite3_free(text);
}

static sqlite3_stmt *inserter(struct ct_digesting *w, const char *name,
                              int ncolumns)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_stmt *stmt;
    char *text;
    int i;

    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\" VALUES (?", name);
    for (i = 1; i < ncolumns; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    text = sqlite3_str_finish(sql);
    stmt = ct_digest_prepare(w, text);
    sqlite3_free(text);
    return stmt;
}

static void copy_rows(struct ct_digesting *w, sqlite3_stmt *rows,
                      const char *name)
{
    const int n = sqlite3_column_count(rows);
    sqlite3_stmt *row = n ? inserter(w, name, n) : NULL;
    uint64_t nth;
    int i;

    for (nth = 0; row && next_row(w, name, rows, nth); nth++) {
        for (i = 0; i < n; i++)
            sqlite3_bind_value(row, i + 1, sqlite3_column_value(rows, i));
        ct_digest_insert(w, row);
    }
    sqlite3_finalize(row);
    end_rows(w, name, rows);
}

static void copy_table(struct ct_digesting *w, const struct ct_table *table)
{
    if (table->scope == CT_TABLE_JOB)
        return;
    if (ct_table_is_packed(table)) {
        if (!w->from.handle || pack_rows(w, table))
            return;
        unpack_rows(w, table);
    }
    create_table(w, table);
    if (w->from.handle)
        copy_rows(w, rows_of(w, table), table->name);
}

/* Sums may be too large, of a trace that is wrong. */
static void copy_stats(struct ct_digesting *w)
{
    const char *torn = w->torn;
    sqlite3_stmt *rows = NULL;

    if (w->from.handle)
        sqlite3_prepare_v2(w->from.handle, op_stat, -1, &rows, NULL);
    copy_rows(w, rows, "op_stat");
    w->torn = torn;
}

void ct_digest_copy(struct ct_digesting *w)
{
    int i;

    w->block = calloc(1, sizeof(*w->block));
    if (!w->block)
        ct_digest_fail(w, "out of memory");
    for (i = 0; i < ct_ntables && !w->reason; i++)
        copy_table(w, &ct_tables[i]);
    copy_stats(w);
    free(w->block);
}
