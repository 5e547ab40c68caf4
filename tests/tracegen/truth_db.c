/*
 * truth.sqlite: what happened, on the true clock, op by op; for tests that ask
 * in SQL. Instances come while the job runs, the ops of a rank when its file is
 * written.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bulk.h"
#include "output.h"
#include "tracegen.h"

#define SAMPLES 100 /* of each host's clock */

static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
    "CREATE TABLE host(host INTEGER PRIMARY KEY, offset_us REAL,"
    " drift_ppm REAL, wander_ppm REAL) STRICT;"
    "CREATE TABLE clock(host INTEGER, true_ns INTEGER, monotonic_ns INTEGER,"
    " realtime_ns INTEGER) STRICT;"
    /* cut_ns: the file ends there; NULL: it is whole */
    "CREATE TABLE process(rank INTEGER PRIMARY KEY, host INTEGER, file TEXT,"
    " missing INTEGER, t0_ns INTEGER, cut_ns INTEGER) STRICT;"
    "CREATE TABLE communicator(uid INTEGER PRIMARY KEY, nranks INTEGER,"
    " crosses INTEGER) STRICT;"
    "CREATE TABLE member(uid INTEGER, rank INTEGER, process INTEGER) STRICT;"
    /* src and dst of messages are ranks of the communicator, else -1;
     * start_ns: the last rank had come */
    "CREATE TABLE instance(uid INTEGER, src INTEGER, dst INTEGER,"
    " ordinal INTEGER, kind INTEGER, bytes INTEGER, start_ns INTEGER,"
    " transfer_ns INTEGER) STRICT;"
    /* n counts the ops of the process from 0; id is that of the file, NULL:
     * lost; start_ns and gpu_ns NULL: it was never over; unlike: written as
     * another call than it was */
    "CREATE TABLE op(process INTEGER, n INTEGER, id INTEGER, uid INTEGER,"
    " src INTEGER, dst INTEGER, ordinal INTEGER, kind INTEGER,"
    " start_ns INTEGER, gpu_ns INTEGER, grp INTEGER, unlike INTEGER) STRICT;"
    "CREATE VIEW op_wait AS SELECT op.*, i.start_ns AS ready_ns,"
    " i.transfer_ns, max(0, i.start_ns - op.start_ns) AS wait_ns"
    " FROM op JOIN instance AS i USING (uid, src, dst, ordinal)";

static const char indexes[] =
    "CREATE INDEX instance_at ON instance(uid, src, dst, ordinal);"
    "CREATE INDEX op_at ON op(process, n);"
    "CREATE INDEX op_id ON op(process, id);"
    "COMMIT";

enum table { CLOCK, INSTANCE, OP, TABLES };

static const struct {
    const char *name;
    int columns;
} tables[TABLES] = {
    [CLOCK] = {"clock", 4}, [INSTANCE] = {"instance", 8}, [OP] = {"op", 12}};

struct truth_db {
    sqlite3 *db;
    struct bulk *bulks[TABLES];
    bool failed;
};

static void fail(struct truth_db *t)
{
    if (!t->failed)
        fprintf(stderr, "tracegen: truth.sqlite: %s\n", sqlite3_errmsg(t->db));
    t->failed = true;
}

static void run(struct truth_db *t, const char *sql)
{
    if (!t->failed && sqlite3_exec(t->db, sql, NULL, NULL, NULL))
        fail(t);
}

static void insert(struct truth_db *t, enum table table, const int64_t *values)
{
    if (!t->failed && !bulk_add(t->bulks[table], values))
        fail(t);
}

int truth_db_begin(struct simulation *s)
{
    struct truth_db *t;
    char path[4096];
    int i;

    if (!s->layout->options->truth_db)
        return 0;
    t = s->truth = zeros(1, sizeof(*t));
    snprintf(path, sizeof(path), "%s/truth.sqlite", s->layout->options->out);
    unlink(path);
    if (sqlite3_open(path, &t->db)) {
        fprintf(stderr, "tracegen: %s: %s\n", path, sqlite3_errmsg(t->db));
        return -1;
    }
    run(t, schema);
    for (i = 0; i < TABLES && !t->failed; i++) {
        t->bulks[i] = bulk_open(t->db, tables[i].name, tables[i].columns);
        if (!t->bulks[i])
            fail(t);
    }
    return t->failed ? -1 : 0;
}

void truth_instance(struct simulation *s, const struct instance *in)
{
    const struct comm *c = &s->layout->comms[in->comm];

    if (s->truth)
        insert(s->truth, INSTANCE,
               (int64_t[]){
                   (int64_t)c->uid, in->src, in->dst, (int64_t)in->ordinal,
                   (int64_t)in->op,
                   (int64_t)op_bytes(in->op, in->type, in->count, c->nranks),
                   in->start_ns, in->transfer_ns});
}

static void put_op(struct truth_db *t, const struct layout *layout, int r,
                   int64_t n, const struct record *record,
                   const struct op_class *class)
{
    int place = layout->place_in[r][class->comm];
    int src = class->op == CT_OP_SEND   ? place
              : class->op == CT_OP_RECV ? class->peer
                                        : -1;
    const bool ended = record->gpu_ns < NEVER;
    int dst = class->op == CT_OP_SEND   ? class->peer
              : class->op == CT_OP_RECV ? place
                                        : -1;

    insert(
        t, OP,
        (int64_t[]){r, n, record->id ? record->id : BULK_NULL,
                    (int64_t)layout->comms[layout->comm_of[r][class->comm]].uid,
                    src, dst, record->ordinal, (int64_t) class->op,
                    ended ? record->start_ns : BULK_NULL,
                    ended ? record->gpu_ns : BULK_NULL, record->group,
                    record->unlike});
}

void truth_db_ops(struct simulation *s)
{
    int r, i;

    for (r = 0; s->truth && r < s->layout->nranks; r++) {
        const struct rank *rank = &s->ranks[r];
        const int64_t before = rank->nops - rank->nrecords;

        for (i = 0; i < rank->nrecords; i++)
            put_op(s->truth, s->layout, r, before + i, &rank->records[i],
                   &rank->classes[rank->records[i].cls]);
    }
}

static void put_process(struct truth_db *t, const struct simulation *s, int r)
{
    const struct options *o = s->layout->options;
    struct output out;
    char *sql, path[4096];

    output_init(&out, o, layout_host(s->layout, r), r);
    trace_path(s, r, path, sizeof(path));
    sql = sqlite3_mprintf("INSERT INTO process VALUES (%d, %d, %Q, %d, %lld,"
                          " nullif(%lld, 9223372036854775807))",
                          r, layout_host(s->layout, r), path, is_missing(o, r),
                          (long long)out.t0_ns, (long long)out.cut_ns);
    run(t, sql);
    sqlite3_free(sql);
}

static void put_host(struct truth_db *t, const struct options *o, int host,
                     int64_t end_ns)
{
    struct host_clock clock = host_clock(o, host);
    char *sql = sqlite3_mprintf("INSERT INTO host VALUES (%d, %!.15g, %!.15g,"
                                " %!.15g)",
                                host, clock.offset_us, clock.drift_ppm,
                                clock.wander_ppm);
    int i;

    run(t, sql);
    sqlite3_free(sql);
    for (i = 0; i <= SAMPLES; i++) {
        int64_t at = end_ns / SAMPLES * i, on_host = host_time(&clock, at);

        insert(t, CLOCK,
               (int64_t[]){host, at, clock.boot_ns + on_host,
                           clock.real_ns + on_host});
    }
}

static void put_comm(struct truth_db *t, const struct comm *c)
{
    char *sql = sqlite3_mprintf("INSERT INTO communicator VALUES (%lld,%d,%d)",
                                (long long)c->uid, c->nranks, c->crosses);
    int i;

    run(t, sql);
    sqlite3_free(sql);
    for (i = 0; i < c->nranks; i++) {
        sql = sqlite3_mprintf("INSERT INTO member VALUES (%lld, %d, %d)",
                              (long long)c->uid, i, c->ranks[i]);
        run(t, sql);
        sqlite3_free(sql);
    }
}

static void put_job(struct truth_db *t, const struct simulation *s)
{
    const struct layout *layout = s->layout;
    int64_t end_ns = 0;
    int i;

    for (i = 0; i < layout->nranks; i++)
        if (s->ranks[i].streams[COMPUTE_STREAM].now_ns > end_ns)
            end_ns = s->ranks[i].streams[COMPUTE_STREAM].now_ns;
    for (i = 0; i < layout->options->hosts; i++)
        put_host(t, layout->options, i, end_ns);
    for (i = 0; i < layout->ncomms; i++)
        put_comm(t, &layout->comms[i]);
    for (i = 0; i < layout->nranks; i++)
        put_process(t, s, i);
}

int truth_db_end(struct simulation *s)
{
    struct truth_db *t = s->truth;
    int i, failed;

    if (!t)
        return 0;
    put_job(t, s);
    for (i = 0; i < TABLES; i++)
        if (t->bulks[i] && !bulk_flush(t->bulks[i]))
            fail(t);
    run(t, indexes);
    for (i = 0; i < TABLES; i++)
        bulk_close(t->bulks[i]);
    failed = sqlite3_close(t->db) != SQLITE_OK || t->failed;
    free(t);
    s->truth = NULL;
    return failed ? -1 : 0;
}
