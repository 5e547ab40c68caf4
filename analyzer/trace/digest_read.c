/* What a digest says beside its tables. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "trace/arena.h"
#include "trace/db.h"
#include "trace/digest.h"
#include "trace/ring.h"

#define MOST_RING ((int64_t)1 << 30)
#define MOST_DEFLATED 1032 /* bytes that become one, at the very best */
#define MOST_TEXT 4096

enum column {
    FORMAT,
    ORIGIN,
    REFUSAL,
    LIVE,
    RING_ALIVE,
    RING_REFUSED,
    RING_BYTES,
    RING
};

static const char *text_of(sqlite3_stmt *row, int column,
                           struct ct_arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    int n = sqlite3_column_bytes(row, column);

    return text ? ct_arena_text(arena, text,
                                strnlen(text, n < MOST_TEXT ? n : MOST_TEXT))
                : NULL;
}

static bool read_ring(sqlite3_stmt *row, struct ct_ring *ring)
{
    const int64_t bytes = sqlite3_column_int64(row, RING_BYTES);
    const int packed = sqlite3_column_bytes(row, RING);
    uLongf size = (uLongf)bytes;
    void *copy;

    if (sqlite3_column_type(row, RING) == SQLITE_NULL)
        return true;
    if (bytes < 1 || bytes > MOST_RING || bytes / MOST_DEFLATED > packed)
        return false;
    copy = ct_alloc(size, 1);
    if (uncompress(copy, &size, sqlite3_column_blob(row, RING),
                   (uLong)packed) != Z_OK) {
        free(copy);
        return false;
    }
    ring->owner_lives = sqlite3_column_int(row, RING_ALIVE) != 0;
    return ct_ring_adopt(ring, copy, size);
}

static const char *read_row(sqlite3_stmt *row, struct ct_arena *arena,
                            struct ct_digest *digest, struct ct_ring *ring)
{
    const char *refused;

    if (sqlite3_column_int64(row, FORMAT) > CT_DIGEST_FORMAT)
        return "was written by a newer version of commtrace";
    digest->origin = text_of(row, ORIGIN, arena);
    digest->refusal = text_of(row, REFUSAL, arena);
    digest->live = sqlite3_column_int(row, LIVE) != 0;
    if (!digest->origin)
        return "a digest that does not say of what";
    refused = text_of(row, RING_REFUSED, arena);
    if (refused)
        snprintf(ring->refused, sizeof(ring->refused), "%s", refused);
    return read_ring(row, ring) ? NULL : "a digest whose ring is damaged";
}

const char *ct_digest_read(const struct ct_db *db, struct ct_arena *arena,
                           struct ct_digest *digest, struct ct_ring *ring)
{
    const char *why = "a digest that is damaged";
    sqlite3_stmt *row = NULL;

    if (!sqlite3_prepare_v2(db->handle,
                            "SELECT format, origin, refusal, live, ring_alive,"
                            " ring_refused, ring_bytes, ring FROM main.digest",
                            -1, &row, NULL) &&
        sqlite3_step(row) == SQLITE_ROW)
        why = read_row(row, arena, digest, ring);
    sqlite3_finalize(row);
    return why;
}
