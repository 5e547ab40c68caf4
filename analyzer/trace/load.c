#include "trace/load.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commtrace/schema.def"
#include "trace/stages.h"

#define MAX_TEXT 65536

void ct_load_fail(struct ct_loader *loader, const char *format, ...)
{
    va_list arguments;
    int n;

    if (loader->failed)
        return;
    loader->failed = true;
    n = snprintf(loader->error, loader->error_size, "%s: ", loader->path);
    if (n < 0 || (size_t)n >= loader->error_size)
        return;
    va_start(arguments, format);
    vsnprintf(loader->error + n, loader->error_size - (size_t)n, format,
              arguments);
    va_end(arguments);
}

void ct_rows_fail(struct ct_rows *rows, const char *format, ...)
{
    char reason[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    ct_load_fail(rows->loader, "%s row %lld: %s", rows->table,
                 (long long)rows->row, reason);
}

static void fail_sqlite(struct ct_loader *loader, const char *table)
{
    char reason[256];

    ct_db_reason(&loader->db, reason, sizeof(reason));
    ct_load_fail(loader, "table %s: %s", table, reason);
}

void ct_rows_open(struct ct_rows *rows, struct ct_loader *loader,
                  const char *table, const char *sql)
{
    *rows = (struct ct_rows){.loader = loader, .table = table};
    if (!loader->failed &&
        sqlite3_prepare_v2(loader->db.handle, sql, -1, &rows->stmt, NULL))
        fail_sqlite(loader, table);
}

bool ct_rows_next(struct ct_rows *rows)
{
    int rc = SQLITE_DONE;

    if (rows->stmt && !rows->loader->failed) {
        rc = sqlite3_step(rows->stmt);
        if (rc == SQLITE_ROW && rows->row < INT32_MAX) {
            rows->row++;
            return true;
        }
        if (rc == SQLITE_ROW)
            ct_rows_fail(rows, "too many rows");
        else if (rc != SQLITE_DONE)
            fail_sqlite(rows->loader, rows->table);
    }
    sqlite3_finalize(rows->stmt);
    rows->stmt = NULL;
    return false;
}

bool ct_rows_null(const struct ct_rows *rows, int column)
{
    return sqlite3_column_type(rows->stmt, column) == SQLITE_NULL;
}

int64_t ct_rows_int(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high)
{
    int64_t value = sqlite3_column_int64(rows->stmt, column);

    if (value >= low && value <= high &&
        (value || sqlite3_column_type(rows->stmt, column) == SQLITE_INTEGER))
        return value;
    if (ct_rows_null(rows, column))
        ct_rows_fail(rows, "%s is missing", name);
    else
        ct_rows_fail(rows, "%s is %lld, not in %lld..%lld", name,
                     (long long)value, (long long)low, (long long)high);
    return low;
}

int64_t ct_rows_opt(struct ct_rows *rows, int column, const char *name,
                    int64_t low, int64_t high, int64_t if_null)
{
    if (ct_rows_null(rows, column))
        return if_null;
    return ct_rows_int(rows, column, name, low, high);
}

const char *ct_rows_text(struct ct_rows *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows->stmt, column);
    int n = sqlite3_column_bytes(rows->stmt, column);

    if (!text)
        return NULL;
    n = (int)strnlen(text, (size_t)(n < MAX_TEXT ? n : MAX_TEXT));
    return ct_arena_text(rows->loader->arena, text, (size_t)n);
}

void ct_ids_add(struct ct_ids *ids, int64_t id)
{
    ids->ids = ct_grow(ids->ids, &ids->capacity, ids->n, sizeof(*ids->ids));
    ids->sorted = ids->n == 0 || (ids->sorted && id > ids->ids[ids->n - 1]);
    ids->ids[ids->n++] = id;
}

static int search(const struct ct_ids *ids, int64_t id)
{
    int low = 0, high = ids->n - 1;

    while (low <= high) {
        int middle = low + (high - low) / 2;

        if (ids->ids[middle] == id)
            return middle;
        if (ids->ids[middle] < id)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return CT_NONE;
}

int ct_ids_find(const struct ct_ids *ids, int64_t id)
{
    int i;

    if (!ids->n)
        return CT_NONE;
    /* Ids without gaps: the place is known. */
    if (id >= ids->ids[0] && id - ids->ids[0] < ids->n &&
        ids->ids[id - ids->ids[0]] == id)
        return (int)(id - ids->ids[0]);
    if (ids->sorted)
        return search(ids, id);
    for (i = 0; i < ids->n; i++)
        if (ids->ids[i] == id)
            return i;
    return CT_NONE;
}

static void load_meta(struct ct_loader *loader)
{
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "meta", "SELECT key, value FROM meta");
    while (ct_rows_next(&rows)) {
        const char *key = ct_rows_text(&rows, 0);
        const char *value = ct_rows_text(&rows, 1);

        if (!key || !value)
            continue;
        if (!strcmp(key, "ring_path"))
            loader->ring_path = value;
        else if (!strcmp(key, "ring_tail"))
            loader->ring_tail = strtoll(value, NULL, 10);
    }
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void load_process(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_rows rows;

    ct_rows_open(&rows, loader, "process",
                 "SELECT uuid, host, host_id, boot_id, exe, cmdline, run_id,"
                 " job_id, rank_source, rank, world_size, local_rank, restart,"
                 " pid, t0_ns, t0_real_ns, end_ns FROM process LIMIT 1");
    while (ct_rows_next(&rows)) {
        p->uuid = or_empty(ct_rows_text(&rows, 0));
        p->host = or_empty(ct_rows_text(&rows, 1));
        p->host_id = or_empty(ct_rows_text(&rows, 2));
        p->boot_id = or_empty(ct_rows_text(&rows, 3));
        p->exe = or_empty(ct_rows_text(&rows, 4));
        p->cmdline = or_empty(ct_rows_text(&rows, 5));
        p->run_id = ct_rows_text(&rows, 6);
        p->job_id = ct_rows_text(&rows, 7);
        p->rank_source = ct_rows_text(&rows, 8);
        p->rank = (int)ct_rows_opt(&rows, 9, "rank", 0, INT32_MAX, CT_NONE);
        p->world_size =
            (int)ct_rows_opt(&rows, 10, "world_size", 0, INT32_MAX, CT_NONE);
        p->local_rank =
            (int)ct_rows_opt(&rows, 11, "local_rank", 0, INT32_MAX, CT_NONE);
        p->restart = (int)ct_rows_opt(&rows, 12, "restart", 0, INT32_MAX, 0);
        p->pid = (int)ct_rows_opt(&rows, 13, "pid", 0, INT32_MAX, 0);
        p->t0_ns = ct_rows_opt(&rows, 14, "t0_ns", 0, (int64_t)1 << 61, 0);
        p->t0_real_ns = ct_rows_opt(&rows, 15, "t0_real_ns", 0, INT64_MAX, 0);
        p->end_ns =
            ct_rows_opt(&rows, 16, "end_ns", 0, CT_MAX_TIME_NS, CT_NO_TIME);
    }
    if (!loader->failed && !p->uuid)
        ct_load_fail(loader, "holds no process: nothing was recorded");
}

static void load_devices(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_device_row *device;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "device",
                 "SELECT id, uuid, pci, name, cluster, source, clique"
                 " FROM device");
    while (ct_rows_next(&rows)) {
        p->devices =
            ct_grow(p->devices, &capacity, p->ndevices, sizeof(*p->devices));
        device = &p->devices[p->ndevices++];
        device->id = (int)ct_rows_int(&rows, 0, "id", 0, INT32_MAX);
        device->uuid = ct_rows_text(&rows, 1);
        device->pci = ct_rows_text(&rows, 2);
        device->name = ct_rows_text(&rows, 3);
        device->cluster = ct_rows_text(&rows, 4);
        device->source = ct_rows_text(&rows, 5);
        device->clique =
            (int)ct_rows_opt(&rows, 6, "clique", INT32_MIN, INT32_MAX, 0);
    }
}

static void load_gpu_links(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_gpu_link_row *link;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "gpu_link",
                 "SELECT device, peer_pci, kind, links, version"
                 " FROM gpu_link");
    while (ct_rows_next(&rows)) {
        p->gpu_links = ct_grow(p->gpu_links, &capacity, p->ngpu_links,
                               sizeof(*p->gpu_links));
        link = &p->gpu_links[p->ngpu_links++];
        link->device = (int)ct_rows_int(&rows, 0, "device", 0, INT32_MAX);
        link->peer_pci = ct_rows_text(&rows, 1);
        link->kind = or_empty(ct_rows_text(&rows, 2));
        link->links = (int)ct_rows_opt(&rows, 3, "links", 0, INT32_MAX, 0);
        link->version = (int)ct_rows_opt(&rows, 4, "version", 0, INT32_MAX, 0);
    }
}

struct ct_comm_row *ct_load_add_comm(struct ct_loader *loader, int64_t id)
{
    struct ct_process *p = loader->process;
    struct ct_comm_row *comm;

    p->comms =
        ct_grow(p->comms, &loader->comm_capacity, p->ncomms, sizeof(*p->comms));
    comm = &p->comms[p->ncomms++];
    *comm = (struct ct_comm_row){.id = (int)id,
                                 .parent = CT_NONE,
                                 .device = CT_NONE,
                                 .comm = CT_NONE,
                                 .end_ns = CT_NO_TIME};
    ct_ids_add(&loader->comm_ids, id);
    return comm;
}

void ct_load_check_ranks(struct ct_loader *loader,
                         const struct ct_comm_row *comm)
{
    loader->ranks_sum += comm->nranks;
    if (comm->nranks < 1 || comm->nranks > CT_MAX_RANKS || comm->rank < 0 ||
        comm->rank >= comm->nranks)
        ct_load_fail(loader, "comm %d: rank %d of %d", comm->id, comm->rank,
                     comm->nranks);
    else if (loader->ranks_sum > CT_MAX_RANKS_SUM)
        ct_load_fail(loader, "comm %d: too many ranks in all", comm->id);
}

/* Parents by id, once all are known. */
static void resolve_parents(struct ct_loader *loader, const int64_t *parents)
{
    struct ct_process *p = loader->process;
    int i;

    for (i = 0; parents && i < p->ncomms; i++)
        if (parents[i])
            p->comms[i].parent = ct_ids_find(&loader->comm_ids, parents[i]);
}

static void load_comms(struct ct_loader *loader)
{
    struct ct_comm_row *comm;
    struct ct_rows rows;
    int64_t *parents = NULL;
    int capacity = 0;

    ct_rows_open(&rows, loader, "comm",
                 "SELECT id, uid, origin, parent, color, child, name, nranks,"
                 " rank, device, enter_ns, ready_ns, end_ns FROM comm"
                 " ORDER BY id");
    while (ct_rows_next(&rows)) {
        parents = ct_grow(parents, &capacity, loader->process->ncomms,
                          sizeof(*parents));
        comm =
            ct_load_add_comm(loader, ct_rows_int(&rows, 0, "id", 0, INT32_MAX));
        comm->uid =
            (uint64_t)ct_rows_int(&rows, 1, "uid", INT64_MIN, INT64_MAX);
        comm->origin = or_empty(ct_rows_text(&rows, 2));
        parents[loader->process->ncomms - 1] =
            ct_rows_opt(&rows, 3, "parent", 0, INT32_MAX, 0);
        comm->color =
            (int)ct_rows_opt(&rows, 4, "color", INT32_MIN, INT32_MAX, CT_NONE);
        comm->child = (int)ct_rows_opt(&rows, 5, "child", 0, INT32_MAX, 0);
        comm->name = ct_rows_text(&rows, 6);
        comm->nranks = (int)ct_rows_int(&rows, 7, "nranks", 1, CT_MAX_RANKS);
        comm->rank = (int)ct_rows_int(&rows, 8, "rank", 0, CT_MAX_RANKS);
        comm->device =
            (int)ct_rows_opt(&rows, 9, "device", INT32_MIN, INT32_MAX, CT_NONE);
        comm->enter_ns = ct_rows_opt(&rows, 10, "enter_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, 0);
        comm->ready_ns = ct_rows_opt(&rows, 11, "ready_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, CT_NO_TIME);
        comm->end_ns = ct_rows_opt(&rows, 12, "end_ns", -CT_MAX_TIME_NS,
                                   CT_MAX_TIME_NS, CT_NO_TIME);
        ct_load_check_ranks(loader, comm);
    }
    resolve_parents(loader, parents);
    free(parents);
}

static void load_losses(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_loss_row *loss;
    struct ct_rows rows;
    int capacity = 0;

    ct_rows_open(&rows, loader, "loss",
                 "SELECT cause, what, comm, n, first_ns, last_ns FROM loss");
    while (ct_rows_next(&rows)) {
        p->losses =
            ct_grow(p->losses, &capacity, p->nlosses, sizeof(*p->losses));
        loss = &p->losses[p->nlosses++];
        loss->cause = or_empty(ct_rows_text(&rows, 0));
        loss->what = or_empty(ct_rows_text(&rows, 1));
        loss->comm = CT_NONE;
        if (!ct_rows_null(&rows, 2))
            loss->comm = ct_ids_find(
                &loader->comm_ids, ct_rows_int(&rows, 2, "comm", 0, INT32_MAX));
        loss->n = ct_rows_opt(&rows, 3, "n", 0, (int64_t)1 << 40, 0);
        loss->first_ns = ct_rows_opt(&rows, 4, "first_ns", -CT_MAX_TIME_NS,
                                     CT_MAX_TIME_NS, CT_NO_TIME);
        loss->last_ns = ct_rows_opt(&rows, 5, "last_ns", -CT_MAX_TIME_NS,
                                    CT_MAX_TIME_NS, CT_NO_TIME);
        if (!strcmp(loss->what, "op"))
            p->lost = ct_add_time(p->lost, loss->n);
    }
}

static const char *check_identity(struct ct_loader *loader,
                                  enum ct_load_result *result_p)
{
    long long id = ct_db_int(&loader->db, "PRAGMA application_id", 0);
    long long version = ct_db_int(&loader->db, "PRAGMA user_version", 0);

    *result_p = CT_FAILED;
    if (id == CT_JOB_APPLICATION_ID) {
        *result_p = CT_OTHER_FILE;
        return "is a job database, not the trace of a process";
    }
    if (id != CT_APPLICATION_ID)
        return "a database, but not of commtrace";
    if (version < 1)
        return "has no schema version";
    if (version > CT_SCHEMA_VERSION)
        return "was written by a newer version of commtrace";
    return NULL;
}

static void load_tables(struct ct_loader *loader)
{
    /* One transaction: all tables as of one moment, also of a live writer. */
    sqlite3_exec(loader->db.handle, "BEGIN", NULL, NULL, NULL);
    load_meta(loader);
    load_process(loader);
    ct_load_codes(loader);
    load_devices(loader);
    load_gpu_links(loader);
    load_comms(loader);
    load_losses(loader);
    ct_load_classes(loader);
    ct_load_launches(loader);
    ct_load_ops(loader);
}

static void adopt_arrays(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;

    ct_arena_adopt(loader->arena, p->comms);
    ct_arena_adopt(loader->arena, p->devices);
    ct_arena_adopt(loader->arena, p->gpu_links);
    ct_arena_adopt(loader->arena, p->losses);
    ct_arena_adopt(loader->arena, p->classes);
    ct_arena_adopt(loader->arena, p->launches);
    if (p->nops)
        p->ops = ct_resize(p->ops, (size_t)p->nops, sizeof(*p->ops));
    ct_arena_adopt(loader->arena, p->ops);
}

static void release(struct ct_loader *loader)
{
    adopt_arrays(loader);
    ct_ring_release(&loader->ring);
    ct_db_close(&loader->db);
    ct_intern_release(&loader->launch_keys);
    free(loader->comm_ids.ids);
    free(loader->class_ids.ids);
    free(loader->launch_ids.ids);
    free(loader->op_ids.ids);
}

static void load_open(struct ct_loader *loader)
{
    const char *in_database;

    /* The ring is read before the database: what the writer moves between the
     * two is then seen twice, not missed. */
    load_meta(loader);
    in_database = loader->ring_path;
    if (!loader->failed &&
        ct_db_int(&loader->db, "SELECT end_ns IS NULL FROM process", 1))
        ct_ring_read(&loader->ring, loader->path, in_database);
    load_tables(loader);
    if (!loader->failed && loader->process->end_ns == CT_NO_TIME)
        ct_load_ring(loader);
}

enum ct_load_result ct_trace_load(const char *path, struct ct_arena *arena,
                                  struct ct_process *process, char *error,
                                  size_t error_size)
{
    struct ct_loader *loader = ct_alloc(1, sizeof(*loader));
    enum ct_load_result result = CT_FAILED;
    const char *why = NULL;
    char reason[256];

    *process = (struct ct_process){
        .path = path, .rank = CT_NONE, .end_ns = CT_NO_TIME, .job = CT_NONE};
    loader->path = path;
    loader->arena = arena;
    loader->process = process;
    loader->error = error;
    loader->error_size = error_size;
    if (ct_db_open(&loader->db, path, reason, sizeof(reason)))
        ct_load_fail(loader, "%s", reason);
    else if ((why = check_identity(loader, &result)))
        ct_load_fail(loader, "%s", why);
    else
        load_open(loader);
    if (!loader->failed)
        result = CT_LOADED;
    release(loader);
    free(loader);
    return result;
}
