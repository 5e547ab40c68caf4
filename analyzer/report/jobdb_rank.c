/*
 * The tables of rank files. What the analysis holds in memory (ops with those
 * that came from a ring) is written from there; the rest is copied row by row.
 */
#include <string.h>

#include "report/jobdb_insert.h"
#include "trace/db.h"

/* What memory has whole, the ring's part included. */
static bool is_in_memory(enum jobdb_table_id table)
{
    return table == JOBDB_T_op_class || table == JOBDB_T_op ||
           table == JOBDB_T_launch || table == JOBDB_T_loss ||
           table == JOBDB_T_comm_event || table == JOBDB_T_graph ||
           table == JOBDB_T_graph_launch;
}

/* A column that an older file lacks reads as NULL. */
static bool has_column(sqlite3 *from, const char *table, const char *column)
{
    return sqlite3_table_column_metadata(from, NULL, table, column, NULL, NULL,
                                         NULL, NULL, NULL) == SQLITE_OK;
}

static char *select_sql(sqlite3 *from, const struct jobdb_table *table)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);

    sqlite3_str_appendall(sql, "SELECT ");
    for (int i = 0; i < table->ncolumns; i++) {
        const char *name = table->columns[i].name;

        sqlite3_str_appendall(sql, i ? ", " : "");
        if (has_column(from, table->name, name))
            sqlite3_str_appendf(sql, "\"%w\"", name);
        else
            sqlite3_str_appendall(sql, "NULL");
    }
    if (table == &jobdb_tables[JOBDB_T_choice])
        sqlite3_str_appendall(
            sql, ", (SELECT comm FROM choice_class c WHERE c.id = class)");
    sqlite3_str_appendf(sql, " FROM \"%w\"", table->name);
    return sqlite3_str_finish(sql);
}

/* A value of the wrong type in a damaged file becomes NULL, not an error. */
static void copy_value(struct jobdb *db, sqlite3_stmt *rows, int i,
                       enum jobdb_type type)
{
    int found = sqlite3_column_type(rows, i);
    int wanted = type == JOBDB_TXT   ? SQLITE_TEXT
                 : type == JOBDB_F64 ? SQLITE_FLOAT
                                     : SQLITE_INTEGER;

    if (found != wanted)
        jobdb_none(db);
    else
        sqlite3_bind_value(db->row, ++db->at, sqlite3_column_value(rows, i));
}

/* Which column names a communicator (of choices the one behind all, which is
 * their class's); -1: none. */
static int comm_column(const struct jobdb_table *table)
{
    if (table == &jobdb_tables[JOBDB_T_choice])
        return table->ncolumns;
    for (int i = 0; i < table->ncolumns; i++)
        if (!strcmp(table->columns[i].name, "comm"))
            return i;
    return -1;
}

/* A part of a process has the rows of its communicators; those of none are the
 * first one's. */
static bool is_of_part(const struct ct_process *p, sqlite3_stmt *rows, int comm)
{
    if (p->nparts == 1 || comm < 0)
        return true;
    if (sqlite3_column_type(rows, comm) == SQLITE_NULL)
        return p->part == 0;
    for (int i = 0; i < p->ncomms; i++)
        if (p->comms[i].id == sqlite3_column_int64(rows, comm))
            return true;
    return false;
}

static void copy_table(struct jobdb *db, sqlite3 *from,
                       const struct ct_process *p, int id, int number)
{
    const struct jobdb_table *table = &jobdb_tables[id];
    const int comm = comm_column(table);
    char *sql = select_sql(from, table);
    sqlite3_stmt *rows = NULL;

    if (sql && sqlite3_prepare_v2(from, sql, -1, &rows, NULL) == SQLITE_OK)
        while (sqlite3_step(rows) == SQLITE_ROW) {
            if (!is_of_part(p, rows, comm))
                continue;
            jobdb_start(db, (enum jobdb_table_id)id);
            jobdb_int(db, number);
            for (int i = 0; i < table->ncolumns; i++)
                copy_value(db, rows, i, table->columns[i].type);
            jobdb_end(db);
        }
    sqlite3_finalize(rows);
    sqlite3_free(sql);
}

/* A part of a process writes the communicators that it holds itself. */
static bool is_copied(const struct ct_process *p, int table)
{
    return jobdb_tables[table].scope == JOBDB_RANK &&
           !is_in_memory((enum jobdb_table_id)table) &&
           !(p->nparts > 1 && table == JOBDB_T_comm);
}

static void copy_file(struct jobdb *db, const struct ct_process *p, int number)
{
    struct ct_db from;
    char reason[400];

    if (ct_db_open(&from, p->file, reason, sizeof reason) < 0)
        return;
    for (int i = 0; i < JOBDB_TABLES; i++)
        if (is_copied(p, i))
            copy_table(db, from.handle, p, i, number);
    ct_db_close(&from);
}

/* What its ring says of a process that stored nothing. */
static void put_unstored(struct jobdb *db, const struct ct_process *p,
                         int number)
{
    jobdb_start(db, JOBDB_T_process);
    jobdb_int(db, number);
    jobdb_text(db, p->uuid);
    jobdb_text(db, p->host);
    jobdb_text(db, p->host_id);
    jobdb_text(db, p->boot_id);
    jobdb_int(db, p->pid);
    for (int i = 0; i < 4; i++) /* pid_ns, start_ticks, exe, cmdline */
        jobdb_none(db);
    jobdb_index(db, p->rank);
    for (int i = 0; i < 6; i++) /* rank_source .. restart */
        jobdb_none(db);
    jobdb_int(db, p->t0_ns);
    jobdb_int(db, p->t0_real_ns);
    jobdb_none(db);
    jobdb_end(db);
}

/* Communicators that only the ring knows; those of the file stay. */
static void put_comms(struct jobdb *db, const struct ct_process *p, int number)
{
    for (int i = 0; i < p->ncomms; i++) {
        const struct ct_comm_row *c = &p->comms[i];

        jobdb_start(db, JOBDB_T_comm);
        jobdb_int(db, number);
        jobdb_int(db, c->id);
        jobdb_int(db, (int64_t)c->uid);
        jobdb_text(db, c->origin);
        if (c->parent == CT_NONE)
            jobdb_none(db);
        else
            jobdb_int(db, p->comms[c->parent].id);
        jobdb_int(db, c->color);
        jobdb_int(db, c->child);
        jobdb_text(db, c->name);
        jobdb_int(db, c->nranks);
        jobdb_int(db, c->rank);
        jobdb_index(db, c->device);
        jobdb_index(db, c->library);
        jobdb_time(db, c->enter_ns);
        jobdb_time(db, c->ready_ns);
        jobdb_time(db, c->end_ns);
        jobdb_end(db);
    }
}

static void put_events(struct jobdb *db, const struct ct_process *p, int number)
{
    for (int i = 0; i < p->nevents; i++) {
        const struct ct_comm_event_row *e = &p->events[i];

        jobdb_start(db, JOBDB_T_comm_event);
        jobdb_int(db, number);
        if (e->comm == CT_NONE)
            jobdb_none(db);
        else
            jobdb_int(db, p->comms[e->comm].id);
        jobdb_text(db, e->what);
        jobdb_int(db, e->at_ns);
        jobdb_time(db, e->host_ns);
        jobdb_index(db, e->result);
        jobdb_end(db);
    }
}

void jobdb_graph(struct jobdb *db, const struct ct_process *p, int graph)
{
    if (graph == CT_NONE)
        jobdb_none(db);
    else
        jobdb_int(db, p->graphs[graph].id);
}

static void put_classes(struct jobdb *db, const struct ct_process *p,
                        int number)
{
    for (int i = 0; i < p->nclasses; i++) {
        const struct ct_op_class_row *c = &p->classes[i];

        jobdb_start(db, JOBDB_T_op_class);
        jobdb_int(db, number);
        jobdb_int(db, i);
        jobdb_int(db, p->comms[c->comm].id);
        jobdb_int(db, c->kind);
        jobdb_index(db, c->type);
        jobdb_index(db, c->redop);
        jobdb_int(db, (int64_t)c->count);
        jobdb_index(db, c->peer);
        jobdb_int(db, (int64_t)c->stream);
        jobdb_int(db, (int64_t)c->site);
        jobdb_graph(db, p, c->graph);
        jobdb_index(db, c->stack == CT_NONE ? CT_NONE : p->stacks[c->stack].id);
        jobdb_end(db);
    }
}

static void put_graphs(struct jobdb *db, const struct ct_process *p, int number)
{
    for (int i = 0; i < p->ngraphs; i++) {
        const struct ct_graph_row *g = &p->graphs[i];

        if (!g->made)
            continue;
        jobdb_start(db, JOBDB_T_graph);
        jobdb_int(db, number);
        jobdb_int(db, g->id);
        jobdb_time(db, g->made_ns);
        jobdb_graph(db, p, g->first);
        jobdb_graph(db, p, g->second);
        jobdb_end(db);
    }
}

static void put_graph_launches(struct jobdb *db, const struct ct_process *p,
                               int number)
{
    for (int i = 0; i < p->ngraph_launches; i++) {
        const struct ct_graph_launch_row *l = &p->graph_launches[i];

        jobdb_start(db, JOBDB_T_graph_launch);
        jobdb_int(db, number);
        jobdb_int(db, l->id);
        jobdb_graph(db, p, l->graph);
        jobdb_int(db, (int64_t)l->stream);
        jobdb_int(db, l->enter_ns);
        jobdb_time(db, l->host_ns);
        if (l->host_ns == CT_NO_TIME)
            jobdb_none(db);
        else
            jobdb_int(db, l->result);
        jobdb_end(db);
    }
}

static void put_launches(struct jobdb *db, const struct ct_process *p,
                         int number)
{
    for (int i = 0; i < p->nlaunches; i++) {
        const struct ct_launch_row *l = &p->launches[i];

        jobdb_start(db, JOBDB_T_launch);
        jobdb_int(db, number);
        jobdb_int(db, i);
        jobdb_int(db, l->grp);
        jobdb_int(db, p->comms[l->comm].id);
        jobdb_int(db, (int64_t)p->streams[l->stream]);
        jobdb_int(db, l->nops);
        jobdb_int(db, l->enter_ns);
        jobdb_time(db, ct_launch_host_ns(l));
        jobdb_gpu_time(db, l->enter_ns, ct_launch_start_ns(l),
                       ct_launch_gpu_ns(l));
        jobdb_int(db, l->flags);
        jobdb_end(db);
    }
}

static void put_losses(struct jobdb *db, const struct ct_process *p, int number)
{
    for (int i = 0; i < p->nlosses; i++) {
        const struct ct_loss_row *l = &p->losses[i];

        jobdb_start(db, JOBDB_T_loss);
        jobdb_int(db, number);
        jobdb_text(db, l->cause);
        jobdb_text(db, l->what);
        if (l->comm == CT_NONE)
            jobdb_none(db);
        else
            jobdb_int(db, p->comms[l->comm].id);
        jobdb_int(db, l->n);
        jobdb_time(db, l->first_ns);
        jobdb_time(db, l->last_ns);
        jobdb_end(db);
    }
}

void jobdb_put_process(struct jobdb *db, const struct ct_process *process,
                       int number)
{
    if (process->unstored)
        put_unstored(db, process, number);
    else
        copy_file(db, process, number);
    put_comms(db, process, number);
    put_events(db, process, number);
    put_classes(db, process, number);
    put_launches(db, process, number);
    put_graphs(db, process, number);
    put_graph_launches(db, process, number);
    put_losses(db, process, number);
}
