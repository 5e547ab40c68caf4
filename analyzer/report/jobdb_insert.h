/*
 * Rows of job.db, column by column:
 *   jobdb_start(db, JOBDB_T_step); jobdb_int(db, ...); ... ; jobdb_end(db);
 * The first failure is kept in db->error and makes the rest do nothing.
 */
#ifndef COMMTRACE_REPORT_JOBDB_INSERT_H
#define COMMTRACE_REPORT_JOBDB_INSERT_H

#include <sqlite3.h>
#include <stdint.h>

#include "report/jobdb_schema.h"
#include "report/view.h"

struct jobdb {
    sqlite3 *handle;
    sqlite3_stmt *inserts[JOBDB_TABLES];
    sqlite3_stmt *row; /* that is being filled */
    int at;            /* its last column */
    char error[400];   /* "": none */
};

void jobdb_start(struct jobdb *db, enum jobdb_table_id table);
void jobdb_end(struct jobdb *db);
void jobdb_int(struct jobdb *db, int64_t value);
void jobdb_index(struct jobdb *db, int64_t value); /* negative: NULL */
void jobdb_time(struct jobdb *db, int64_t value);  /* CT_NO_TIME: NULL */
void jobdb_real(struct jobdb *db, double value);   /* NAN: NULL */
void jobdb_text(struct jobdb *db, const char *value);
void jobdb_none(struct jobdb *db);
void jobdb_exec(struct jobdb *db, const char *sql);
void jobdb_note_error(struct jobdb *db);

/* The parts of the database, each in a file of its own. */
void jobdb_put_lookups(struct jobdb *db);
void jobdb_put_process(struct jobdb *db, const struct ct_process *process,
                       int number);
void jobdb_put_ops(struct jobdb *db, const struct view *view, int process,
                   int64_t first_instance, int64_t first_usage);
void jobdb_put_job(struct jobdb *db, const struct view *view,
                   int64_t first_instance, int64_t first_usage);
void jobdb_put_links(struct jobdb *db, const struct view *view);
void jobdb_put_verdicts(struct jobdb *db, const struct view *view);
void jobdb_put_views(struct jobdb *db);

#endif
