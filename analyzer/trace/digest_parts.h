/* The parts of writing a digest, each in a file of its own. */
#ifndef COMMTRACE_DIGEST_PARTS_H
#define COMMTRACE_DIGEST_PARTS_H

#include "trace/db.h"
#include "trace/ring.h"

struct ct_block;
struct sqlite3;
struct sqlite3_stmt;

struct ct_digesting {
    struct ct_db from;  /* handle NULL: nothing was stored */
    struct sqlite3 *to; /* in memory */
    struct ct_ring ring;
    struct ct_block *block;
    const char *reason; /* of the first failure; NULL: none */
    const char *torn;   /* table that cannot be read to its end; NULL: none */
};

/* With a failure before, and where sql is NULL, they do nothing. */
void ct_digest_fail(struct ct_digesting *w, const char *reason);
void ct_digest_run(struct ct_digesting *w, const char *sql);
struct sqlite3_stmt *ct_digest_prepare(struct ct_digesting *w, const char *sql);
void ct_digest_insert(struct ct_digesting *w, struct sqlite3_stmt *row);

/* All tables, and what is summed up of them. */
void ct_digest_copy(struct ct_digesting *w);

/* NULL, or why target must not be replaced by a digest of the trace at path
 * with that uuid: it is none, or of another trace. */
const char *ct_digest_refusal(const char *target, const char *path,
                              const char *uuid);
/* NULL, or why not: then target is as it was. */
const char *ct_digest_store(const char *target, const unsigned char *bytes,
                            size_t n);

#endif
