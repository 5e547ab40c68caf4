/* Rows of a table, each value checked where it is read; and ids. */
#include <float.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/load.h"

#define MAX_TEXT 65536
#define MOST_READS 16 /* of one text in a file; few are read twice */

void ct_load_fail(struct ct_loader *loader, const char *format, ...)
{
    va_list arguments;
    int n;

    if (loader->failed)
        return;
    loader->failed = true;
    n = snprintf(loader->error, loader->error_size, "%s: ", loader->path);
    if (n < 0 || (size_t)n >= loader->error_size)
        return;
    va_start(arguments, format);
    vsnprintf(loader->error + n, loader->error_size - (size_t)n, format,
              arguments);
    va_end(arguments);
}

void ct_rows_fail(struct ct_rows *rows, const char *format, ...)
{
    char reason[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    ct_load_fail(rows->loader, "%s row %lld: %s", rows->table,
                 (long long)rows->row, reason);
}

/* Of a digest, too, it is this file that is wrong, not what it was made of. */
static void blame_file(struct ct_loader *loader)
{
    loader->path = loader->process->file;
}

static void fail_room(struct ct_rows *rows, const char *for_what)
{
    blame_file(rows->loader);
    ct_rows_fail(rows, "the file has no room for so %s", for_what);
}

static void fail_sqlite(struct ct_loader *loader, const char *table)
{
    char reason[256];

    ct_db_reason(&loader->db, reason, sizeof(reason));
    blame_file(loader);
    ct_load_fail(loader, "table %s: %s", table, reason);
}

void ct_rows_open(struct ct_rows *rows, struct ct_loader *loader,
                  const char *table, const char *sql)
{
    *rows = (struct ct_rows){.loader = loader, .table = table};
    ct_db_refill(&loader->db);
    if (!loader->failed &&
        sqlite3_prepare_v2(loader->db.handle, sql, -1, &rows->stmt, NULL))
        fail_sqlite(loader, table);
}

bool ct_rows_next(struct ct_rows *rows)
{
    int rc = SQLITE_DONE;

    if (rows->stmt && !rows->loader->failed) {
        rc = sqlite3_step(rows->stmt);
        if (rc == SQLITE_ROW && rows->row < rows->loader->most_rows) {
            rows->row++;
            return true;
        }
        if (rc == SQLITE_ROW)
            fail_room(rows, "many");
        else if (rc != SQLITE_DONE)
            fail_sqlite(rows->loader, rows->table);
    }
    sqlite3_finalize(rows->stmt);
    rows->stmt = NULL;
    return false;
}

bool ct_rows_null(const struct ct_rows *rows, int column)
{
    return sqlite3_column_type(rows->stmt, column) == SQLITE_NULL;
}

/* Of an unprotected value, which is faster to ask several things than a column
 * is: no other thread uses this connection. */
static int64_t check_int(struct ct_rows *rows, sqlite3_value *from, int column,
                         const char *name, int64_t low, int64_t high)
{
    const int64_t value = sqlite3_value_int64(from);

    if (value >= low && value <= high &&
        (value || sqlite3_value_type(from) == SQLITE_INTEGER))
        return value;
    if (ct_rows_null(rows, column))
        ct_rows_fail(rows, "%s is missing", name);
    else
        ct_rows_fail(rows, "%s is %lld, not in %lld..%lld", name,
                     (long long)value, (long long)low, (long long)high);
    return low;
}

int64_t ct_rows_int(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high)
{
    return check_int(rows, sqlite3_column_value(rows->stmt, column), column,
                     name, low, high);
}

int64_t ct_rows_opt(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high, int64_t if_null)
{
    sqlite3_value *from = sqlite3_column_value(rows->stmt, column);

    if (sqlite3_value_type(from) == SQLITE_NULL)
        return if_null;
    return check_int(rows, from, column, name, low, high);
}

double ct_rows_real(struct ct_rows *rows, int column, const char *name)
{
    const double value = sqlite3_column_double(rows->stmt, column);

    if (!ct_rows_null(rows, column) && value >= 0 && value <= DBL_MAX)
        return value;
    ct_rows_fail(rows, "%s is %s", name,
                 ct_rows_null(rows, column) ? "missing"
                                            : "no number that can be");
    return 0;
}

const char *ct_rows_text(struct ct_rows *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows->stmt, column);
    int n = sqlite3_column_bytes(rows->stmt, column);

    if (!text)
        return NULL;
    n = (int)strnlen(text, (size_t)(n < MAX_TEXT ? n : MAX_TEXT));
    rows->loader->text_bytes += (uint64_t)n;
    if (rows->loader->text_bytes > MOST_READS * rows->loader->db.bytes)
        fail_room(rows, "much text");
    return ct_arena_text(rows->loader->arena, text, (size_t)n);
}

void ct_ids_add(struct ct_ids *ids, int64_t id)
{
    ids->ids = ct_grow(ids->ids, &ids->capacity, ids->n, sizeof(*ids->ids));
    ids->sorted = ids->n == 0 || (ids->sorted && id > ids->ids[ids->n - 1]);
    ids->ids[ids->n++] = id;
}

static int search(const struct ct_ids *ids, int64_t id)
{
    int low = 0, high = ids->n - 1;

    while (low <= high) {
        int middle = low + (high - low) / 2;

        if (ids->ids[middle] == id)
            return middle;
        if (ids->ids[middle] < id)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return CT_NONE;
}

int ct_ids_find(const struct ct_ids *ids, int64_t id)
{
    int i;

    if (!ids->n)
        return CT_NONE;
    /* Ids without gaps: the place is known. */
    if (id >= ids->ids[0] && id - ids->ids[0] < ids->n &&
        ids->ids[id - ids->ids[0]] == id)
        return (int)(id - ids->ids[0]);
    if (ids->sorted)
        return search(ids, id);
    for (i = 0; i < ids->n; i++)
        if (ids->ids[i] == id)
            return i;
    return CT_NONE;
}
