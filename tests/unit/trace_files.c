#include "trace_files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commtrace/schema.def"

#define SCOPE_RANK 1
#define SCOPE_LOOKUP 1
#define SCOPE_JOB 0
#define SQL_KEY "INTEGER PRIMARY KEY"
#define SQL_I64 "INTEGER"
#define SQL_TXT "TEXT"
#define SQL_F64 "REAL"

const char *files_folder(void)
{
    static char folders[64][64];
    static int n;
    char *folder = folders[n++ % 64];

    snprintf(folder, sizeof(folders[0]), "/tmp/trace_test.XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

void files_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

const char *files_path(const char *folder, int rank)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/rank%03d.db", folder, rank);
    return path;
}

void files_sql(sqlite3 *db, const char *format, ...)
{
    va_list arguments;
    char *sql;

    va_start(arguments, format);
    sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
}

static void create_tables(sqlite3 *db)
{
    char sql[4096];

#define TABLE(table_, scope_, doc_)  \
    {                                \
        int wanted = SCOPE_##scope_; \
        snprintf(sql, sizeof(sql), "CREATE TABLE %s (", #table_);
#define COL(table_, column_, type_, doc_)                             \
    snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%s%s %s", \
             sql[strlen(sql) - 1] == '(' ? "" : ", ", #column_, SQL_##type_);
#define END(table_)                       \
    if (wanted)                           \
        files_sql(db, "%s) STRICT", sql); \
    }
#include "commtrace/schema.def"
}

static void fill_lookups(sqlite3 *db)
{
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, ...)     \
    files_sql(                                                            \
        db, "INSERT INTO op_kind VALUES(%d,'%s','%s',%d,'%s','%s','%s')", \
        CT_OP_##id_, name_, #fn_, CT_OP_##base_, #class_, #size_, #wire_);
#include "commtrace/nccl_ops.def"
#define TYPE(id_, value_, name_, bytes_)                                     \
    files_sql(db, "INSERT INTO data_type VALUES(%d,'%s',%d)", value_, name_, \
              bytes_);
#include "commtrace/nccl_types.def"
#define REDOP(id_, value_, name_) \
    files_sql(db, "INSERT INTO red_op VALUES(%d,'%s')", value_, name_);
#include "commtrace/nccl_types.def"
#define FLAG(id_, bit_, name_, meaning_) \
    files_sql(db, "INSERT INTO flag VALUES(%d,'%s','')", bit_, name_);
#include "commtrace/flags.def"
}

sqlite3 *files_begin(const char *folder, int rank, int world, int host)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(files_path(folder, rank), &db), SQLITE_OK);
    files_sql(db, "PRAGMA synchronous=OFF");
    files_sql(db, "PRAGMA application_id=%d", CT_APPLICATION_ID);
    files_sql(db, "PRAGMA user_version=%d", CT_SCHEMA_VERSION);
    files_sql(db, "BEGIN");
    create_tables(db);
    fill_lookups(db);
    files_sql(db,
              "INSERT INTO process (uuid, host, host_id, boot_id, pid, exe,"
              " cmdline, rank, world_size, t0_ns, end_ns) VALUES ('uuid%d',"
              " 'h%d', 'id%d', 'boot%d', %d, 'x', 'x', %d, %d, %d, 999999999)",
              rank, host, host, host, 100 + rank, rank, world,
              1000000000 + FILES_SKEW * rank);
    files_sql(db,
              "INSERT INTO device (id, uuid, pci, name, cluster, clique, "
              "source) VALUES (%d, 'GPU-%d-%d', '0000:%02d:00.0',"
              " 'gpu', NULL, NULL, 'nvml')",
              rank % 4, host, rank, rank);
    files_sql(db,
              "INSERT INTO comm (id, uid, origin, nranks, rank, device)"
              " VALUES (1, 77, 'init', %d, %d, %d)",
              world, rank, rank % 4);
    return db;
}

sqlite3 *files_begin_reducing(const char *folder, int rank, int world, int host)
{
    sqlite3 *db = files_begin(folder, rank, world, host);

    files_class(db, 1, 1, CT_OP_ALL_REDUCE, 1000, -1);
    return db;
}

void files_end(sqlite3 *db)
{
    files_sql(db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void files_class(sqlite3 *db, int id, int comm, enum ct_op kind, long count,
                 int peer)
{
    files_sql(db,
              "INSERT INTO op_class VALUES (%d, %d, %d, %d, NULL, %ld,"
              " nullif(%d, -1), 1, 1, NULL, NULL)",
              id, comm, (int)kind, CT_TYPE_FLOAT32, count, peer);
}

void files_op(sqlite3 *db, int id, int class, int ordinal, long start, long ns)
{
    files_sql(db,
              "INSERT INTO op VALUES (%d, %d, %d, NULL, %ld, 500, 1000, %ld,"
              " %d)",
              id, class, ordinal, start - 1000, ns, CT_FLAG_EVENT);
}

void files_grouped(sqlite3 *db, int id, int class, int ordinal, int grp)
{
    files_sql(db,
              "INSERT INTO op VALUES (%d, %d, %d, %d, 0, 100, NULL, NULL, %d)",
              id, class, ordinal, grp, CT_FLAG_GROUP_TIME | CT_FLAG_GROUPED);
}

void files_launch(sqlite3 *db, int id, int grp, int comm, int nops, long start,
                  long ns)
{
    files_sql(db,
              "INSERT INTO launch VALUES (%d, %d, %d, 1, %d, %ld, 500, 1000,"
              " %ld, %d)",
              id, grp, comm, nops, start - 1000, ns, CT_FLAG_EVENT);
}

struct ct_trace *files_try(const char *path, char *error, size_t size)
{
    struct ct_trace *trace = NULL;
    char copy[512], *paths[1] = {copy};

    snprintf(copy, sizeof(copy), "%s", path);
    *error = 0;
    if (ct_trace_open(paths, 1, &trace, error, size)) {
        assert_null(trace);
        assert_true(*error);
    }
    return trace;
}

struct ct_trace *files_open(const char *folder)
{
    char error[512];
    struct ct_trace *trace = files_try(folder, error, sizeof(error));

    if (!trace)
        fail_msg("%s", error);
    return trace;
}

void files_close(struct ct_trace *trace, const char *folder)
{
    ct_trace_free(trace);
    files_remove(folder);
}

const struct ct_instance *files_instance(const struct ct_trace *trace,
                                         int process, int op)
{
    const struct ct_process *p = &trace->processes[process];

    assert_in_range(op, 0, p->nops - 1);
    assert_int_not_equal(p->ops[op].instance, CT_NONE);
    return &trace->jobs[p->job].instances[p->ops[op].instance];
}

int64_t files_wait(const struct ct_trace *trace, int process, int op)
{
    struct ct_op_cost cost;

    assert_true(ct_op_cost(trace, process, op, &cost));
    return cost.wait_ns;
}
