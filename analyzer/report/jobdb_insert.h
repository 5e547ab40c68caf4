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
/* gpu_off_ns and gpu_ns */
void jobdb_gpu_time(struct jobdb *db, int64_t enter_ns, int64_t start_ns,
                    int64_t gpu_ns);
/* Its number in the file of p; CT_NONE: NULL. */
void jobdb_graph(struct jobdb *db, const struct ct_process *p, int graph);
void jobdb_real(struct jobdb *db, double value); /* NAN: NULL */
void jobdb_text(struct jobdb *db, const char *value);
void jobdb_none(struct jobdb *db);
void jobdb_exec(struct jobdb *db, const char *sql);
void jobdb_note_error(struct jobdb *db);

/* What ops say of their instance. */
struct jobdb_arrival {
    int64_t least_ns; /* wait; CT_NO_TIME: none is known */
    int last;         /* process that waited it; CT_NONE */
    int step;         /* of the first op; CT_NONE */
};

/* A job that is being written. Instances and usages of all jobs are numbered
 * through. */
struct jobdb_job {
    const struct view *view;
    int64_t first_instance, first_usage;
    struct jobdb_arrival *arrivals; /* per instance */
};

/* The parts of the database, each in a file of its own. */
void jobdb_put_lookups(struct jobdb *db);
void jobdb_put_process(struct jobdb *db, const struct ct_process *process,
                       int number);
void jobdb_put_job(struct jobdb *db, const struct jobdb_job *job);
void jobdb_put_clocks(struct jobdb *db, const struct view *view);
void jobdb_put_links(struct jobdb *db, const struct view *view);
/* Sets job->arrivals, which the caller frees; -1 without memory. */
int jobdb_note_arrivals(struct jobdb_job *job);
void jobdb_put_instances(struct jobdb *db, const struct jobdb_job *job);
void jobdb_put_ops(struct jobdb *db, const struct jobdb_job *job, int process);
void jobdb_put_sums(struct jobdb *db, const struct jobdb_job *job, int process);
void jobdb_put_verdicts(struct jobdb *db, const struct view *view);
void jobdb_put_views(struct jobdb *db);

/* Numbers in the whole database; negative: none. */
static inline int64_t jobdb_instance(const struct jobdb_job *job, int instance)
{
    return instance == CT_NONE ? CT_NONE : job->first_instance + instance;
}

static inline int64_t jobdb_usage(const struct jobdb_job *job, int instance)
{
    const int usage = instance == CT_NONE
                          ? CT_NONE
                          : job->view->job->instances[instance].usage;

    return usage == CT_NONE ? CT_NONE : job->first_usage + usage;
}

#endif
