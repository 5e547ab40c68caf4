#include "schema.h"

#include "commtrace/ops.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

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

_Static_assert(CT_FLAG_GROUP_TIME == 2 && CT_FLAG_IN_CALL == 128 &&
                   CT_FLAG_RUNNING == 256 && CT_FLAG_SIMULATED == 1024,
               "the flags that view_op names by number");

/* Everything of an op that a person wants to read, in one place. The times of
 * a grouped op are those of what its bracket launched on its communicator and
 * stream. */
static const char view_op[] =
    "CREATE VIEW v_op AS SELECT\n"
    "  o.id, o.class, c.comm, m.name AS comm_name, m.uid, m.nranks, m.rank,\n"
    "  k.name AS op, k.function, k.class AS op_class,\n"
    "  coalesce(t.name, c.type) AS type, coalesce(r.name, c.redop) AS redop,\n"
    "  c.count, c.peer, o.ordinal, o.grp, c.stream, c.site, c.graph,\n"
    "  c.stack AS stack,\n"
    "  CASE k.size WHEN 'ONE_SHARE' THEN c.count * t.bytes\n"
    "    WHEN 'ALL_SHARES' THEN c.count * t.bytes * m.nranks\n"
    "    ELSE 0 END AS bytes,\n"
    "  o.enter_ns, p.t0_real_ns + o.enter_ns AS enter_unix_ns, o.host_ns,\n"
    "  CASE WHEN o.flags & 2 THEN l.enter_ns + l.gpu_off_ns\n"
    "    ELSE o.enter_ns + o.gpu_off_ns END AS gpu_start_ns,\n"
    "  CASE WHEN o.flags & 2 THEN l.gpu_ns ELSE o.gpu_ns END AS gpu_ns,\n"
    "  CASE WHEN o.flags & 2 AND l.gpu_ns IS NOT NULL THEN 'group'\n"
    "    WHEN o.gpu_ns IS NOT NULL THEN 'event'\n"
    "    ELSE 'host' END AS time_source,\n"
    "  CASE WHEN o.flags >> 16 NOT IN (0, 7) THEN 'failed'\n"
    "    WHEN l.flags >> 16 NOT IN (0, 7) THEN 'failed'\n"
    "    WHEN l.flags & 1024 THEN 'simulated'\n"
    "    WHEN o.flags & 128 THEN 'in call'\n"
    "    WHEN o.flags & 256 THEN 'running'\n"
    "    WHEN o.flags & 2 AND l.flags & 384 THEN 'running'\n"
    "    ELSE 'done' END AS state,\n"
    "  o.flags >> 16 AS result,\n"
    "  (SELECT group_concat(f.name, ' ') FROM flag f\n"
    "    WHERE o.flags & f.bit) AS flags\n"
    "FROM op o JOIN op_class c ON c.id = o.class\n"
    "  LEFT JOIN comm m ON m.id = c.comm\n"
    "  LEFT JOIN op_kind k ON k.id = c.kind\n"
    "  LEFT JOIN data_type t ON t.id = c.type\n"
    "  LEFT JOIN red_op r ON r.id = c.redop\n"
    "  LEFT JOIN launch l ON l.grp = o.grp AND l.comm = c.comm\n"
    "    AND l.stream = c.stream\n"
    "  CROSS JOIN process p";

static const char view_comm[] =
    "CREATE VIEW v_comm AS SELECT\n"
    "  m.id, m.uid, m.name, m.origin, m.nranks, m.rank, m.parent, m.color,\n"
    "  m.child, m.device, d.name AS gpu, d.pci,\n"
    "  m.enter_ns, m.ready_ns - m.enter_ns AS init_ns, m.end_ns,\n"
    "  (SELECT count(*) FROM op o JOIN op_class c ON c.id = o.class\n"
    "    WHERE c.comm = m.id) AS ops,\n"
    "  (SELECT uid FROM comm o WHERE o.id = m.parent) AS parent_uid\n"
    "FROM comm m LEFT JOIN device d ON d.id = m.device";

int schema_create(sqlite3 *db)
{
    int rc = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < LENGTH(tables); i++)
        if (tables[i].in_rank_file)
            rc = create_table(db, &tables[i]);
    if (rc == SQLITE_OK)
        rc = fill_lookups(db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, view_op, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, view_comm, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = run(db, sqlite3_mprintf("PRAGMA application_id=%d;"
                                     "PRAGMA user_version=%d;COMMIT",
                                     CT_APPLICATION_ID, CT_SCHEMA_VERSION));
    return rc;
}
