#include "writer.h"

#include <stdio.h>

#include "commtrace/ops.h"

#define SQL_KEY "INTEGER PRIMARY KEY"
#define SQL_I64 "INTEGER"
#define SQL_TXT "TEXT"
#define SQL_F64 "REAL"

struct column {
    const char *table, *name, *type;
};

/* A column without name ends its table. */
static const struct column columns[] = {
#define COL(table_, column_, type_, doc_) {#table_, #column_, SQL_##type_},
#define END(table_) {#table_, NULL, NULL},
#include "commtrace/schema.def"
};

static const struct {
    const char *name;
    bool in_rank_files;
    int ncolumns;
} tables[] = {
#define SCOPE_RANK true
#define SCOPE_LOOKUP true
#define SCOPE_JOB false
#define TABLE(table_, scope_, doc_) \
    {#table_, SCOPE_##scope_, table_##_column_count},
#include "commtrace/schema.def"
};

static void fail(struct writer *w)
{
    if (!w->failed)
        fprintf(stderr, "tracegen: %s\n", sqlite3_errmsg(w->db));
    w->failed = true;
}

void writer_run(struct writer *w, const char *sql)
{
    if (!w->failed && sqlite3_exec(w->db, sql, NULL, NULL, NULL))
        fail(w);
}

void writer_close(struct writer *w)
{
    int t;

    for (t = 0; t < TABLE_COUNT; t++) {
        sqlite3_finalize(w->inserts[t]);
        bulk_close(w->bulks[t]);
    }
    sqlite3_close(w->db);
}

void writer_create(struct writer *w)
{
    const struct column *c = columns;
    char sql[4096];
    int t;

    for (t = 0; t < TABLE_COUNT; t++) {
        size_t n = (size_t)snprintf(sql, sizeof(sql), "CREATE TABLE %s (",
                                    tables[t].name);

        for (; c->name; c++)
            n += (size_t)snprintf(sql + n, sizeof(sql) - n, "%s%s %s",
                                  sql[n - 1] == '(' ? "" : ", ", c->name,
                                  c->type);
        c++;
        snprintf(sql + n, sizeof(sql) - n, ") STRICT");
        if (tables[t].in_rank_files)
            writer_run(w, sql);
    }
}

sqlite3_stmt *writer_row(struct writer *w, enum table table)
{
    char sql[512];
    size_t n;
    int i;

    if (!w->inserts[table]) {
        n = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (",
                             tables[table].name);
        for (i = 0; i < tables[table].ncolumns; i++)
            n +=
                (size_t)snprintf(sql + n, sizeof(sql) - n, "%s?", i ? "," : "");
        snprintf(sql + n, sizeof(sql) - n, ")");
        if (sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                               &w->inserts[table], NULL))
            fail(w);
    }
    return w->inserts[table];
}

void writer_bulk(struct writer *w, enum table table, const int64_t *values)
{
    struct bulk **bulk = &w->bulks[table];

    if (!*bulk && !w->failed)
        *bulk = bulk_open(w->db, tables[table].name, tables[table].ncolumns);
    if (!*bulk || !bulk_add(*bulk, values))
        fail(w);
}

void writer_flush(struct writer *w)
{
    int t;

    for (t = 0; t < TABLE_COUNT; t++)
        if (w->bulks[t] && !bulk_flush(w->bulks[t]))
            fail(w);
}

void put(sqlite3_stmt *row, int column, int64_t value)
{
    sqlite3_bind_int64(row, column + 1, value);
}

void put_real(sqlite3_stmt *row, int column, double value)
{
    sqlite3_bind_double(row, column + 1, value);
}

void put_text(sqlite3_stmt *row, int column, const char *value)
{
    sqlite3_bind_text(row, column + 1, value, -1, SQLITE_TRANSIENT);
}

void put_null(sqlite3_stmt *row, int column)
{
    sqlite3_bind_null(row, column + 1);
}

void put_or_null(sqlite3_stmt *row, int column, int64_t value)
{
    if (value >= 0)
        put(row, column, value);
    else
        put_null(row, column);
}

void writer_add(struct writer *w, sqlite3_stmt *row)
{
    if (sqlite3_step(row) != SQLITE_DONE)
        fail(w);
    sqlite3_reset(row);
}

static const struct {
    const char *name, *function, *class, *size, *wire;
    enum ct_op base;
} kinds[CT_OP_COUNT] = {
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...) \
    [CT_OP_##id_] = {name_, #fn_, #class_, #size_, #wire_, CT_OP_##base_},
#include "commtrace/nccl_ops.def"
};

static void put_kinds(struct writer *w)
{
    sqlite3_stmt *row = writer_row(w, T_op_kind);
    int i;

    for (i = 0; i < CT_OP_COUNT; i++) {
        put(row, op_kind_id, i);
        put_text(row, op_kind_name, kinds[i].name);
        put_text(row, op_kind_function, kinds[i].function);
        put(row, op_kind_base, (int64_t)kinds[i].base);
        put_text(row, op_kind_class, kinds[i].class);
        put_text(row, op_kind_size, kinds[i].size);
        put_text(row, op_kind_wire, kinds[i].wire);
        writer_add(w, row);
    }
}

static void put_type(struct writer *w, int id, const char *name, int bytes)
{
    sqlite3_stmt *row = writer_row(w, T_data_type);

    put(row, data_type_id, id);
    put_text(row, data_type_name, name);
    put(row, data_type_bytes, bytes);
    writer_add(w, row);
}

static void put_redop(struct writer *w, int id, const char *name)
{
    sqlite3_stmt *row = writer_row(w, T_red_op);

    put(row, red_op_id, id);
    put_text(row, red_op_name, name);
    writer_add(w, row);
}

static void put_flag(struct writer *w, int bit, const char *name,
                     const char *meaning)
{
    sqlite3_stmt *row = writer_row(w, T_flag);

    put(row, flag_bit, bit);
    put_text(row, flag_name, name);
    put_text(row, flag_meaning, meaning);
    writer_add(w, row);
}

void writer_lookups(struct writer *w)
{
    put_kinds(w);
#define TYPE(id_, value_, name_, bytes_) put_type(w, (value_), name_, bytes_);
#include "commtrace/nccl_types.def"
#define REDOP(id_, value_, name_) put_redop(w, (value_), name_);
#include "commtrace/nccl_types.def"
#define FLAG(id_, bit_, name_, meaning_) put_flag(w, (bit_), name_, meaning_);
#include "commtrace/flags.def"
}
