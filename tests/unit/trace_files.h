/* Trace files made by hand, row by row, for tests of analyzer/trace. */
#ifndef TRACE_FILES_H
#define TRACE_FILES_H

#include <sqlite3.h>

#include "trace/trace.h"

/* A new empty folder in $TMPDIR, and its end. */
const char *files_folder(void);
void files_remove(const char *folder);

/* Process r's clock begins this many ns after that of process r - 1; times of
 * ops are of their process. */
#define FILES_SKEW 10

/* An open rank file with schema, lookup tables, its process (rank of world on
 * host) with GPU rank % 4, and communicator 1 of all ranks, uid 77. */
sqlite3 *files_begin(const char *folder, int rank, int world, int host);
/* The same with class 1: all-reduces of 1000 elements of 4 bytes. */
sqlite3 *files_begin_reducing(const char *folder, int rank, int world,
                              int host);
void files_end(sqlite3 *db);
const char *files_path(const char *folder, int rank);

void files_sql(sqlite3 *db, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Class id: kind on comm with count elements of 4 bytes; peer -1: none. */
void files_class(sqlite3 *db, int id, int comm, enum ct_op kind, long count,
                 int peer);
/* Op id, called at start - 1000, on the GPU from start for ns. */
void files_op(sqlite3 *db, int id, int class, int ordinal, long start, long ns);
/* The same in group grp, timed by its launch. */
void files_grouped(sqlite3 *db, int id, int class, int ordinal, int grp);
void files_launch(sqlite3 *db, int id, int grp, int comm, int nops, long start,
                  long ns);

/* Opens folder; the test fails if that fails. */
struct ct_trace *files_open(const char *folder);
/* Ends what it was opened for. */
void files_close(struct ct_trace *trace, const char *folder);
/* Opens it; error is what came out, "" when it worked. */
struct ct_trace *files_try(const char *path, char *error, size_t size);

/* How long an op waited for later ranks. */
int64_t files_wait(const struct ct_trace *trace, int process, int op);

/* The instance of an op. */
const struct ct_instance *files_instance(const struct ct_trace *trace,
                                         int process, int op);

#endif
