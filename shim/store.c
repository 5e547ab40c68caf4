#include "store.h"

#include "descriptor.h"
#include "schema.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#define LENGTH(array_) (sizeof(array_) / sizeof(*(array_)))

static int bind_I64(sqlite3_stmt *put, int at, int64_t value)
{
    return value == CT_NULL ? sqlite3_bind_null(put, at)
                            : sqlite3_bind_int64(put, at, value);
}

static int bind_KEY(sqlite3_stmt *put, int at, int64_t value)
{
    return bind_I64(put, at, value);
}

static int bind_TXT(sqlite3_stmt *put, int at, const char *value)
{
    return sqlite3_bind_text(put, at, value, -1, SQLITE_STATIC);
}

static inline int bind_F64(sqlite3_stmt *put, int at, double value)
{
    return isnan(value) ? sqlite3_bind_null(put, at)
                        : sqlite3_bind_double(put, at, value);
}

#define TABLE(table_, scope_, doc_)                                 \
    static inline int bind_##table_(sqlite3_stmt *put, int at,      \
                                    const struct row_##table_ *row) \
    {
#define COL(table_, column_, type_, doc_) bind_##type_(put, at++, row->column_);
#define END(table_) \
    return at;      \
    }
#include "commtrace/schema.def"

/* The tables that get rows while the process runs, and whether their first
 * column is the key by which a row is replaced. */
#define WRITTEN(X)     \
    X(meta, 0)         \
    X(process, 0)      \
    X(library, 1)      \
    X(policy, 0)       \
    X(clock, 0)        \
    X(device, 1)       \
    X(gpu_link, 0)     \
    X(nic, 1)          \
    X(gpu_nic, 0)      \
    X(absence, 0)      \
    X(comm, 1)         \
    X(comm_event, 0)   \
    X(op_class, 1)     \
    X(op, 1)           \
    X(launch, 1)       \
    X(graph, 1)        \
    X(graph_launch, 1) \
    X(loss, 0)         \
    X(module, 1)       \
    X(stack, 1)        \
    X(frame, 0)        \
    X(nccl_comm, 0)    \
    X(conn, 0)         \
    X(nccl_graph, 0)   \
    X(ring, 0)         \
    X(tree, 0)         \
    X(nccl_message, 0) \
    X(tuning, 0)       \
    X(choice_class, 1) \
    X(choice, 1)

static const char *const table_names[ROW_COUNT] = {
#define TABLE(table_, scope_, doc_) [ROW_##table_] = #table_,
#include "commtrace/schema.def"
};

static const unsigned char table_columns[] = {
#define TABLE(table_, scope_, doc_) 0
#define COL(table_, column_, type_, doc_) +1
#define END(table_) ,
#include "commtrace/schema.def"
};

static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **stmt)
{
    int rc = sql ? sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                      stmt, NULL)
                 : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

/* REPLACE INTO t(columns, rowid) VALUES(?,...): the rowid last, so that the
 * columns are bound from 1 on. */
static int prepare_put(struct store *store, enum row_table table, int has_key)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    int n = table_columns[table];
    if (has_key) {
        sqlite3_str_appendf(sql, "REPLACE INTO \"%w\" VALUES(?",
                            table_names[table]);
    } else {
        sqlite3_stmt *ask = NULL;
        sqlite3_str_appendf(sql, "REPLACE INTO \"%w\"(", table_names[table]);
        if (prepare(store->db,
                    sqlite3_mprintf("SELECT * FROM \"%w\"", table_names[table]),
                    &ask) == SQLITE_OK)
            for (int i = 0; i < n; i++)
                sqlite3_str_appendf(sql, "\"%w\",",
                                    sqlite3_column_name(ask, i));
        sqlite3_finalize(ask);
        sqlite3_str_appendall(sql, "rowid) VALUES(?,?");
    }
    for (int i = 1; i < n; i++)
        sqlite3_str_appendall(sql, ",?");
    sqlite3_str_appendall(sql, ")");
    return prepare(store->db, sqlite3_str_finish(sql), &store->put[table]);
}

/* Most rows are ops, and half of what an insert costs is the statement around
 * it: so they go in several to a statement. */
static int prepare_ops(struct store *store)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "REPLACE INTO op VALUES");
    for (int i = 0; i < STORE_OPS; i++) {
        sqlite3_str_appendall(sql, i ? ",(?" : "(?");
        for (int column = 1; column < table_columns[ROW_op]; column++)
            sqlite3_str_appendall(sql, ",?");
        sqlite3_str_appendall(sql, ")");
    }
    return prepare(store->db, sqlite3_str_finish(sql), &store->put_ops);
}

static int prepare_all(struct store *store)
{
    int rc = prepare_ops(store);
#define X(table_, has_key_) \
    if (rc == SQLITE_OK)    \
        rc = prepare_put(store, ROW_##table_, has_key_);
    WRITTEN(X)
#undef X
    const struct {
        const char *sql;
        sqlite3_stmt **stmt;
    } others[] = {
        {"BEGIN IMMEDIATE", &store->begin},
        {"COMMIT", &store->commit},
        {"ROLLBACK", &store->rollback},
        {"PRAGMA page_count", &store->pages},
    };
    for (size_t i = 0; i < LENGTH(others) && rc == SQLITE_OK; i++)
        rc = prepare(store->db, sqlite3_mprintf("%s", others[i].sql),
                     others[i].stmt);
    return rc;
}

/* One process writes and a power cut may lose the file: nothing is synced. A
 * log beside the database needs shared memory, which network file systems
 * lack. */
static int configure(struct store *store, bool network)
{
    const char *sql =
        network ? "PRAGMA synchronous=OFF;PRAGMA journal_mode=TRUNCATE"
                : "PRAGMA synchronous=OFF;PRAGMA journal_mode=WAL;"
                  "PRAGMA journal_size_limit=4194304";
    sqlite3_busy_timeout(store->db, 2000);
    int rc = sqlite3_exec(store->db,
                          "PRAGMA temp_store=MEMORY;"
                          "PRAGMA cache_size=-2048",
                          NULL, NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_exec(store->db, sql, NULL, NULL, NULL)
                           : rc;
}

static int64_t ask_number(sqlite3_stmt *stmt)
{
    int64_t number = 0;
    if (sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return number;
}

static int64_t page_size(sqlite3 *db)
{
    sqlite3_stmt *ask;
    if (prepare(db, sqlite3_mprintf("PRAGMA page_size"), &ask) != SQLITE_OK)
        return 4096;
    int64_t bytes = ask_number(ask);
    sqlite3_finalize(ask);
    return bytes;
}

static int open_file(struct store *store, const char *path, bool create)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    descriptor_guard_sqlite();
    int rc = sqlite3_open_v2(path, &store->db,
                             flags | (create ? SQLITE_OPEN_CREATE : 0), NULL);
    if (rc == SQLITE_OK)
        rc = configure(store, store->network);
    if (rc == SQLITE_OK && create)
        rc = schema_create(store->db);
    if (rc == SQLITE_OK)
        rc = prepare_all(store);
    if (rc != SQLITE_OK)
        return -1;
    store->page_bytes = page_size(store->db);
    return 0;
}

void store_begin(void)
{
    sqlite3_initialize();
}

int store_open(struct store *store, const char *path, bool network)
{
    *store = (struct store){.network = network};
    return open_file(store, path, true);
}

void store_close(struct store *store)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        sqlite3_finalize(store->put[i]);
    sqlite3_finalize(store->put_ops);
    sqlite3_finalize(store->begin);
    sqlite3_finalize(store->commit);
    sqlite3_finalize(store->rollback);
    sqlite3_finalize(store->pages);
    sqlite3_close(store->db);
    *store = (struct store){0};
}

int store_reopen(struct store *store, const char *path)
{
    bool network = store->network;
    store_close(store);
    store->network = network;
    if (open_file(store, path, false) == 0)
        return 0;
    store_close(store);
    store->network = network;
    return -1;
}

static int step(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? 0 : -1;
}

static int put_row(struct store *store, const struct row *row)
{
    sqlite3_stmt *put = store->put[row->table];
    switch (row->table) {
#define X(table_, has_key_)                             \
    case ROW_##table_: {                                \
        int at = bind_##table_(put, 1, &row->u.table_); \
        if (!(has_key_))                                \
            bind_I64(put, at, row->rowid);              \
        break;                                          \
    }
        WRITTEN(X)
#undef X
    default:
        return -1;
    }
    return step(put);
}

static size_t count_ops(const struct row *rows, size_t n)
{
    size_t ops = 0;
    while (ops < n && ops < STORE_OPS && rows[ops].table == ROW_op)
        ops++;
    return ops;
}

static int put_ops(struct store *store, const struct row *rows)
{
    int at = 1;
    for (int i = 0; i < STORE_OPS; i++)
        at = bind_op(store->put_ops, at, &rows[i].u.op);
    return step(store->put_ops);
}

static int put_rows(struct store *store, const struct row *rows, size_t n)
{
    size_t i = 0;
    while (i < n) {
        bool many = count_ops(rows + i, n - i) == STORE_OPS;
        if ((many ? put_ops(store, rows + i) : put_row(store, rows + i)) != 0)
            return -1;
        i += many ? STORE_OPS : 1;
    }
    return 0;
}

int store_write(struct store *store, const struct row *rows, size_t n)
{
    if (step(store->begin) != 0)
        return -1;
    if (put_rows(store, rows, n) == 0 && step(store->commit) == 0)
        return 0;
    /* Some errors have ended the transaction already. */
    if (!sqlite3_get_autocommit(store->db))
        step(store->rollback);
    return -1;
}

int64_t store_bytes(struct store *store)
{
    return ask_number(store->pages) * store->page_bytes;
}

void store_checkpoint(struct store *store)
{
    if (store->db)
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                  NULL, NULL);
}

const char *store_error(const struct store *store)
{
    return sqlite3_errmsg(store->db); /* of NULL: "out of memory" */
}
