/*
 * A digest: what a trace and its ring say, in one small file that never
 * changes, to be carried to where the traces of the other ranks are. It is a
 * database with the tables of the trace it was made of, so that whoever reads
 * a trace reads a digest, and finds the same. Of version CT_DIGEST_FORMAT:
 *   digest    one row: where the trace was, why it could not be read (then
 *             there is nothing else), whether its process lived, and its ring
 *   packed    the tables of integers alone, in blocks of rows in their order
 *             (trace/pack.h); ct_digest_mount makes tables of them again
 *   op_stat   sums over the ops of each class, for people
 *   and each other table of the trace as it was.
 */
#ifndef COMMTRACE_DIGEST_H
#define COMMTRACE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/stages.h"

struct ct_db;
struct ct_ring;
struct sqlite3;

#define CT_DIGEST_FORMAT 1
#define CT_DIGEST_SUFFIX ".digest" /* behind the name of the trace */

struct ct_digest {
    const char *origin;  /* path of the trace, as it was given */
    const char *refusal; /* why it cannot be read; NULL: it can */
    bool live;           /* another process held it open for writing */
};

/* Makes the packed tables of a digest readable as tables. */
int ct_digest_mount(struct sqlite3 *handle);

/* What the digest says beside its tables; the ring only if there is one.
 * Returns NULL, or why it cannot be read. */
const char *ct_digest_read(const struct ct_db *db, struct ct_arena *arena,
                           struct ct_digest *digest, struct ct_ring *ring);

enum ct_digest_result {
    CT_DIGESTED,
    CT_DIGESTED_REFUSAL, /* error says what the digest says */
    CT_NO_DIGEST,        /* neither a trace nor damaged: error says what */
    CT_DIGEST_FAILED     /* could not be written: error */
};

struct ct_digested {
    int64_t ops;
    uint64_t trace_bytes, digest_bytes;
    bool is_digest;   /* the file is one already */
    char error[1024]; /* "FILE: reason" */
};

/* Digests the trace at path, and the ring of its process, into target, which
 * is replaced as a whole or left as it was. */
enum ct_digest_result ct_digest_write(const char *path, const char *target,
                                      struct ct_digested *done);

#endif
