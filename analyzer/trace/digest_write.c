#include "trace/digest.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "commtrace/schema.def"
#include "trace/arena.h"
#include "trace/db.h"
#include "trace/digest_parts.h"
#include "trace/ring.h"
#include "trace/unstored.h"

/* Many digests are small: small pages for their small tables. */
static const char prologue[] =
    "PRAGMA page_size = 1024;"
    "BEGIN;"
    "CREATE TABLE digest (format INTEGER, origin TEXT, refusal TEXT,"
    " live INTEGER, ring_alive INTEGER, ring_refused TEXT, ring_bytes INTEGER,"
    " ring BLOB);"
    "CREATE TABLE packed (id INTEGER PRIMARY KEY, name TEXT, data BLOB);"
    "CREATE TABLE op_stat (class INTEGER, ops INTEGER, first_ns INTEGER,"
    " last_ns INTEGER, host_ns INTEGER, timed INTEGER, gpu_ns INTEGER,"
    " gpu_min_ns INTEGER, gpu_max_ns INTEGER)";

void ct_digest_fail(struct ct_digesting *w, const char *reason)
{
    if (!w->reason)
        w->reason = reason;
}

void ct_digest_run(struct ct_digesting *w, const char *sql)
{
    if (!w->reason && (!sql || sqlite3_exec(w->to, sql, NULL, NULL, NULL)))
        ct_digest_fail(w, "cannot make a digest in memory");
}

sqlite3_stmt *ct_digest_prepare(struct ct_digesting *w, const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    if (!w->reason && (!sql || sqlite3_prepare_v2(w->to, sql, -1, &stmt, NULL)))
        ct_digest_fail(w, "cannot make a digest in memory");
    return stmt;
}

void ct_digest_insert(struct ct_digesting *w, sqlite3_stmt *row)
{
    if (!w->reason && sqlite3_step(row) != SQLITE_DONE)
        ct_digest_fail(w, "cannot make a digest in memory");
    sqlite3_reset(row);
}

/* Of a text, which the caller frees; NULL: it is not there. */
static char *text_in(const struct ct_db *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    const char *text = NULL;
    char *copy = NULL;

    if (!sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) &&
        sqlite3_step(stmt) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(stmt, 0);
    if (text)
        copy = strdup(text);
    sqlite3_finalize(stmt);
    return copy;
}

/* The ring before the tables, as whoever loads a trace does. */
static void read_ring(struct ct_digesting *w, const char *path)
{
    char *ring_path =
        text_in(&w->from, "SELECT value FROM meta WHERE key = 'ring_path'");

    if (ct_db_int(&w->from, "SELECT end_ns IS NULL FROM process", 1))
        ct_ring_read(&w->ring, path, ring_path);
    free(ring_path);
}

static void put_ring(struct ct_digesting *w, sqlite3_stmt *row, uint64_t from)
{
    unsigned char *bytes;
    size_t size;
    void *copy;
    uLongf n;

    copy = ct_ring_cut(&w->ring, from, &size);
    n = compressBound(size);
    bytes = malloc(n);
    if (!bytes || compress(bytes, &n, copy, size) != Z_OK)
        ct_digest_fail(w, "out of memory");
    free(copy);
    sqlite3_bind_int64(row, 7, (int64_t)size);
    sqlite3_bind_blob64(row, 8, bytes, n, free);
}

static int64_t ring_tail(const struct ct_digesting *w)
{
    return w->from.handle
               ? ct_db_int(&w->from,
                           "SELECT max(0, CAST(value AS INTEGER)) FROM meta"
                           " WHERE key = 'ring_tail'",
                           0)
               : 0;
}

static void put_facts(struct ct_digesting *w, const char *path,
                      const char *refusal)
{
    sqlite3_stmt *row = ct_digest_prepare(
        w, "INSERT INTO digest VALUES (?1,?2,?3,?4,?5,?6,?7,?8)");

    if (w->reason)
        return;
    sqlite3_bind_int(row, 1, CT_DIGEST_FORMAT);
    sqlite3_bind_text(row, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, refusal, -1, SQLITE_STATIC);
    sqlite3_bind_int(row, 4, w->from.live);
    sqlite3_bind_int(row, 5, ct_ring_alive(&w->ring));
    if (*w->ring.refused)
        sqlite3_bind_text(row, 6, w->ring.refused, -1, SQLITE_STATIC);
    if (w->ring.copy)
        put_ring(w, row, (uint64_t)ring_tail(w));
    ct_digest_insert(w, row);
    sqlite3_finalize(row);
}

static void open_digest(struct ct_digesting *w, int64_t version)
{
    char sql[128];

    if (sqlite3_open(":memory:", &w->to))
        ct_digest_fail(w, "out of memory");
    ct_digest_run(w, prologue);
    snprintf(sql, sizeof(sql),
             "PRAGMA application_id = %d; PRAGMA user_version = %d",
             CT_DIGEST_APPLICATION_ID, (int)version);
    ct_digest_run(w, sql);
}

#define REASON 256

/* The trace as of one moment. reason: REASON bytes for a failure's. */
static void take_in(struct ct_digesting *w, const char *path, bool unstored,
                    char *reason)
{
    if (unstored) {
        ct_unstored_read(&w->ring, path);
        open_digest(w, CT_SCHEMA_VERSION);
    } else if (ct_db_open(&w->from, path, reason, REASON)) {
        ct_digest_fail(w, reason);
    } else {
        read_ring(w, path);
        sqlite3_exec(w->from.handle, "BEGIN", NULL, NULL, NULL);
        open_digest(w, ct_db_int(&w->from, "PRAGMA user_version", 0));
    }
    ct_digest_copy(w);
}

static void store(struct ct_digesting *w, const char *target,
                  struct ct_digested *done)
{
    unsigned char *bytes = NULL;
    sqlite3_int64 n = 0;

    ct_digest_run(w, "COMMIT");
    if (!w->reason)
        bytes = sqlite3_serialize(w->to, "main", &n, 0);
    if (!w->reason && !bytes)
        ct_digest_fail(w, "out of memory");
    if (!w->reason)
        w->reason = ct_digest_store(target, bytes, (size_t)n);
    done->digest_bytes = (uint64_t)n;
    sqlite3_free(bytes);
}

static void release(struct ct_digesting *w)
{
    ct_ring_release(&w->ring);
    ct_db_close(&w->from);
    sqlite3_close(w->to);
}

/* What cannot be copied whole is no digest: it says so instead. */
static const char *make(const char *path, const char *target, bool unstored,
                        struct ct_digested *done, char *reason)
{
    struct ct_digesting w = {0};

    take_in(&w, path, unstored, reason);
    if (w.torn) {
        snprintf(done->error, sizeof(done->error),
                 "%s: table %s: truncated or damaged", path, w.torn);
    } else {
        put_facts(&w, path, NULL);
        store(&w, target, done);
    }
    release(&w);
    return w.reason;
}

static const char *make_refusal(const char *path, const char *target,
                                struct ct_digested *done)
{
    struct ct_digesting w = {0};

    open_digest(&w, CT_SCHEMA_VERSION);
    put_facts(&w, path, done->error);
    store(&w, target, done);
    release(&w);
    return w.reason;
}

enum ct_digest_result ct_digest_write(const char *path, const char *target,
                                      struct ct_digested *done)
{
    struct ct_arena *arena = ct_arena_new();
    struct ct_process process;
    const char *reason;
    char opening[REASON];
    /* What cannot be loaded is not worth to be carried; and what whoever loads
     * it would say is said there. */
    const enum ct_load_result loaded = ct_trace_load(
        path, NULL, arena, &process, done->error, sizeof(done->error));
    const bool unstored = loaded == CT_LOADED && process.unstored;

    done->ops = process.nops;
    done->trace_bytes = ct_db_bytes(path);
    done->is_digest = process.file != process.path;
    reason = ct_digest_refusal(target, path, process.uuid);
    ct_arena_free(arena);
    if (done->is_digest)
        snprintf(done->error, sizeof(done->error), "%s: is a digest", path);
    if (done->is_digest || loaded == CT_OTHER_FILE)
        return CT_NO_DIGEST;
    if (loaded == CT_LOADED)
        *done->error = 0; /* why the ring alone was loaded */
    if (!reason && loaded == CT_LOADED)
        reason = make(path, target, unstored, done, opening);
    if (!reason && *done->error)
        reason = make_refusal(path, target, done);
    if (!reason)
        return *done->error ? CT_DIGESTED_REFUSAL : CT_DIGESTED;
    snprintf(done->error, sizeof(done->error), "%s: %s", path, reason);
    return CT_DIGEST_FAILED;
}
