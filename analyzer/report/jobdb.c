#include "report/jobdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commtrace/schema.def"
#include "report/jobdb_insert.h"
#include "report/unfinished.h"
#include "trace/progress.h"

void jobdb_note_error(struct jobdb *db)
{
    if (!db->error[0])
        snprintf(db->error, sizeof db->error, "%s", sqlite3_errmsg(db->handle));
}

void jobdb_exec(struct jobdb *db, const char *sql)
{
    if (!db->error[0] && sqlite3_exec(db->handle, sql, NULL, NULL, NULL))
        jobdb_note_error(db);
}

void jobdb_start(struct jobdb *db, enum jobdb_table_id table)
{
    db->row = db->inserts[table];
    db->at = 0;
}

void jobdb_end(struct jobdb *db)
{
    if (!db->error[0] && sqlite3_step(db->row) != SQLITE_DONE)
        jobdb_note_error(db);
    sqlite3_reset(db->row);
}

void jobdb_int(struct jobdb *db, int64_t value)
{
    sqlite3_bind_int64(db->row, ++db->at, value);
}

void jobdb_none(struct jobdb *db)
{
    sqlite3_bind_null(db->row, ++db->at);
}

void jobdb_index(struct jobdb *db, int64_t value)
{
    if (value < 0)
        jobdb_none(db);
    else
        jobdb_int(db, value);
}

void jobdb_time(struct jobdb *db, int64_t value)
{
    if (value == CT_NO_TIME)
        jobdb_none(db);
    else
        jobdb_int(db, value);
}

void jobdb_gpu_time(struct jobdb *db, int64_t enter_ns, int64_t start_ns,
                    int64_t gpu_ns)
{
    if (start_ns == CT_NO_TIME)
        jobdb_none(db);
    else
        jobdb_int(db, start_ns - enter_ns);
    jobdb_time(db, gpu_ns);
}

void jobdb_real(struct jobdb *db, double value)
{
    sqlite3_bind_double(db->row, ++db->at, value);
}

void jobdb_text(struct jobdb *db, const char *value)
{
    sqlite3_bind_text(db->row, ++db->at, value, -1, SQLITE_STATIC);
}

/* Whether path may be replaced: it is not there, or it is a job.db. */
static const char *refusal(const char *path)
{
    unsigned char header[72];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe? */
    unsigned id;
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    n = read(fd, header, sizeof header);
    close(fd);
    if (n != sizeof header || memcmp(header, "SQLite format 3", 16) != 0)
        return "exists and is not a job.db; not overwritten";
    id = (unsigned)header[68] << 24 | (unsigned)header[69] << 16 |
         (unsigned)header[70] << 8 | header[71];
    return id == CT_JOB_APPLICATION_ID
               ? NULL
               : "exists and is not a job.db; not overwritten";
}

static void create_tables(struct jobdb *db)
{
    for (int i = 0; i < JOBDB_TABLES && !db->error[0]; i++) {
        char *create = jobdb_create_sql(&jobdb_tables[i]);
        char *insert = jobdb_insert_sql(&jobdb_tables[i]);

        if (!create || !insert)
            snprintf(db->error, sizeof db->error, "out of memory");
        else
            jobdb_exec(db, create);
        if (!db->error[0] && sqlite3_prepare_v3(db->handle, insert, -1,
                                                SQLITE_PREPARE_PERSISTENT,
                                                &db->inserts[i], NULL))
            jobdb_note_error(db);
        sqlite3_free(create);
        sqlite3_free(insert);
    }
}

/* Indexes are sorted beside the database, which is as large: neither memory nor
 * /tmp need have room for that. */
static void sort_beside(const char *path)
{
    const char *slash = strrchr(path, '/');

    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory =
        !slash ? sqlite3_mprintf(".")
               : sqlite3_mprintf("%.*s", slash > path ? (int)(slash - path) : 1,
                                 path);
}

static void open_database(struct jobdb *db, const char *path)
{
    char sql[300];

    if (sqlite3_open_v2(path, &db->handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                            SQLITE_OPEN_NOMUTEX,
                        NULL)) {
        jobdb_note_error(db);
        return;
    }
    snprintf(sql, sizeof sql,
             "PRAGMA page_size=8192; PRAGMA journal_mode=OFF;"
             "PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
             "PRAGMA cache_size=-16384; PRAGMA temp_store=FILE;"
             "PRAGMA threads=2;"
             "PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN",
             CT_JOB_APPLICATION_ID, CT_SCHEMA_VERSION);
    jobdb_exec(db, sql);
    create_tables(db);
}

static void close_database(struct jobdb *db)
{
    jobdb_exec(db, "COMMIT");
    for (int i = 0; i < JOBDB_TABLES; i++)
        sqlite3_finalize(db->inserts[i]);
    sqlite3_close(db->handle);
}

/* In the order of their numbers, which is that of their rows in the file. */
static void put_ops(struct jobdb *db, const struct jobdb_job *job)
{
    const struct ct_trace *trace = job->view->trace;

    for (int i = 0; i < trace->nprocesses && !db->error[0]; i++)
        if (trace->processes[i].job == job->view->number) {
            jobdb_put_ops(db, job, i);
            jobdb_put_sums(db, job, i);
            ct_progress_item();
        }
}

static void put_job(struct jobdb *db, struct jobdb_job *job)
{
    if (jobdb_note_arrivals(job) < 0) {
        snprintf(db->error, sizeof db->error, "out of memory");
        return;
    }
    jobdb_put_job(db, job);
    jobdb_put_instances(db, job);
    ct_progress_stage("writing operations", job->view->job->nprocesses);
    put_ops(db, job);
    free(job->arrivals);
}

static void put_all(struct jobdb *db, const struct view_input *input)
{
    struct jobdb_job job = {0};
    const struct ct_trace *trace = input->trace;

    ct_progress_stage("writing facts", 0);
    jobdb_put_lookups(db);
    for (int i = 0; i < trace->nprocesses; i++)
        if (view_has_job(input, trace->processes[i].job))
            jobdb_put_process(db, &trace->processes[i], i);
    for (int i = 0; i < trace->njobs && !db->error[0]; i++) {
        struct view view;

        if (!view_has_job(input, i))
            continue;
        if (view_open(&view, input, i) < 0) {
            snprintf(db->error, sizeof db->error, "out of memory");
            return;
        }
        job.view = &view;
        ct_progress_stage("writing the database", 0);
        put_job(db, &job);
        job.first_instance += view.job->ninstances;
        job.first_usage += view.job->nusages;
        view_close(&view);
    }
    ct_progress_stage("sorting indexes", 0);
    jobdb_put_views(db);
}

/* Whoever reads path sees the old database or the new one, never a part. */
static int replace(struct jobdb *db, const char *temporary, const char *path)
{
    int fd;

    if (db->error[0])
        return -1;
    fd = open(temporary, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    if (rename(temporary, path) == 0)
        return 0;
    snprintf(db->error, sizeof db->error, "%s", strerror(errno));
    return -1;
}

int jobdb_write(const char *path, const struct view_input *input,
                const struct cli *cli)
{
    struct jobdb db = {0};
    const char *why = refusal(path);
    char temporary[4096];

    if (why) {
        cli_fail(cli, "%s: %s", path, why);
        return -1;
    }
    snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid());
    unlink(temporary);
    unfinished_begin(temporary);
    sort_beside(path);
    open_database(&db, temporary);
    fflush(stdout); /* may be the terminal that shows the progress */
    ct_progress_begin(cli->command);
    if (!db.error[0])
        put_all(&db, input);
    close_database(&db);
    ct_progress_end();
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = NULL;
    if (replace(&db, temporary, path) < 0) {
        unlink(temporary);
        cli_fail(cli, "%s: %s", path, db.error);
    }
    unfinished_end();
    return db.error[0] ? -1 : 0;
}
