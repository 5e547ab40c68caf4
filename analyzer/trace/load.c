#include "trace/load.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commtrace/schema.def"
#include "trace/digest.h"
#include "trace/graphs.h"
#include "trace/pack.h"
#include "trace/stages.h"
#include "trace/unstored.h"

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

static const char *check_identity(struct ct_loader *loader,
                                  enum ct_load_result *result_p)
{
    long long id = ct_db_int(&loader->db, "PRAGMA application_id", 0);
    long long version = ct_db_int(&loader->db, "PRAGMA user_version", 0);

    loader->version = version;
    *result_p = CT_FAILED;
    if (id == CT_JOB_APPLICATION_ID) {
        *result_p = CT_OTHER_FILE;
        return "is a job database, not the trace of a process";
    }
    if (id != CT_APPLICATION_ID && id != CT_DIGEST_APPLICATION_ID)
        return "a database, but not of commtrace";
    if (version < 1)
        return "has no schema version";
    if (version > CT_SCHEMA_VERSION)
        return "was written by a newer version of commtrace";
    return NULL;
}

/* What ops are about, beside who takes part. */
static void load_surroundings(struct ct_loader *loader)
{
    ct_load_devices(loader);
    ct_load_gpu_links(loader);
    ct_load_libraries(loader);
    ct_load_links(loader);
    ct_load_stacks(loader);
    ct_load_tunings(loader);
}

static void load_tables(struct ct_loader *loader)
{
    /* One transaction: all tables as of one moment, also of a live writer. */
    sqlite3_exec(loader->db.handle, "BEGIN", NULL, NULL, NULL);
    load_meta(loader);
    ct_load_process(loader);
    ct_load_comms(loader);
    if (loader->only && loader->only->comms)
        return;
    ct_load_codes(loader);
    if (!loader->only)
        load_surroundings(loader);
    ct_load_events(loader);
    ct_load_clocks(loader);
    ct_load_losses(loader);
    ct_load_graphs(loader);
    ct_load_classes(loader);
    ct_load_launches(loader);
    ct_load_ops(loader);
    ct_load_choices(loader);
}

static void *adopt_trimmed(struct ct_loader *loader, void *block, int n,
                           size_t size)
{
    return ct_arena_adopt(loader->arena, ct_resize(block, (size_t)n, size));
}

static void adopt_arrays(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;

    ct_arena_adopt(loader->arena, p->comms);
    ct_arena_adopt(loader->arena, p->events);
    ct_arena_adopt(loader->arena, p->devices);
    ct_arena_adopt(loader->arena, p->gpu_links);
    ct_arena_adopt(loader->arena, p->losses);
    ct_arena_adopt(loader->arena, p->modules);
    ct_arena_adopt(loader->arena, p->stacks);
    ct_arena_adopt(loader->arena, p->frames);
    ct_arena_adopt(loader->arena, p->classes);
    p->launches =
        adopt_trimmed(loader, p->launches, p->nlaunches, sizeof(*p->launches));
    ct_arena_adopt(loader->arena, p->streams);
    ct_arena_adopt(loader->arena, p->graphs);
    ct_arena_adopt(loader->arena, p->graph_launches);
    ct_arena_adopt(loader->arena, p->libraries);
    ct_arena_adopt(loader->arena, p->tunings);
    ct_arena_adopt(loader->arena, p->choice_classes);
    ct_arena_adopt(loader->arena, p->choice_stops);
    ct_arena_adopt(loader->arena, p->kernels);
    ct_arena_adopt(loader->arena, p->op_choices);
    p->ops = adopt_trimmed(loader, p->ops, p->nops, sizeof(*p->ops));
}

static void release(struct ct_loader *loader)
{
    adopt_arrays(loader);
    ct_ring_release(&loader->ring);
    ct_db_close(&loader->db);
    ct_intern_release(&loader->launch_keys);
    ct_intern_release(&loader->stream_keys);
    ct_intern_release(&loader->graph_keys);
    free(loader->module_ids.ids);
    free(loader->stack_ids.ids);
    free(loader->comm_ids.ids);
    free(loader->class_ids.ids);
    free(loader->launch_ids.ids);
    free(loader->op_ids.ids);
    free(loader->choices);
}

static void complete(struct ct_loader *loader)
{
    if (!loader->failed && loader->process->end_ns == CT_NO_TIME)
        ct_load_ring(loader);
    if (!loader->failed && loader->process->end_ns == CT_NO_TIME)
        ct_load_ends(loader);
    if (!loader->failed)
        ct_load_last_sign(loader);
    if (!loader->failed)
        ct_load_drop_refused(loader);
    if (!loader->failed)
        ct_load_join_choices(loader);
    if (!loader->failed)
        ct_load_kernel_times(loader);
    if (!loader->failed)
        ct_graphs_count(loader->process);
}

static char *kept(struct ct_loader *loader, const char *text, size_t n)
{
    return ct_arena_text(loader->arena, text, n);
}

/* A trace is named HOST.PID.TIME.db. */
static const char *host_of(struct ct_loader *loader)
{
    const char *slash = strrchr(loader->ring.db_path, '/');
    const char *name = slash ? slash + 1 : loader->ring.db_path, *end;
    char pid[16];

    snprintf(pid, sizeof(pid), ".%u.", loader->ring.pid);
    end = strstr(name, pid);
    return kept(loader, name, end ? (size_t)(end - name) : 0);
}

/* Nothing had been stored yet: what the ring knows is all. */
static bool load_unstored(struct ct_loader *loader)
{
    struct ct_process *p = loader->process;
    struct ct_ring *ring = &loader->ring;

    if (!loader->digested)
        ct_unstored_read(ring, loader->path);
    if (!ring->copy)
        return false;
    loader->failed = false;
    p->unstored = true;
    p->uuid = kept(loader, ring->uuid, strlen(ring->uuid));
    p->boot_id = p->host_id =
        kept(loader, ring->boot_id, strlen(ring->boot_id));
    p->host = host_of(loader);
    p->exe = p->cmdline = "";
    p->rank = ring->rank < 0 ? CT_NONE : ring->rank;
    p->world_size = p->local_rank = CT_NONE;
    p->pid = (int)(ring->pid & INT32_MAX);
    p->t0_ns =
        ring->t0_ns < 0 || ring->t0_ns > (int64_t)1 << 61 ? 0 : ring->t0_ns;
    p->t0_real_ns = ring->t0_real_ns < 0 ? 0 : ring->t0_real_ns;
    ct_load_own_codes(loader);
    complete(loader);
    return !loader->failed;
}

static void load_open(struct ct_loader *loader)
{
    const char *in_database;

    /* The ring is read before the database: what the writer moves between the
     * two is then seen twice, not missed. */
    load_meta(loader);
    in_database = loader->ring_path;
    if (!loader->failed && !loader->digested &&
        ct_db_int(&loader->db, "SELECT end_ns IS NULL FROM process", 1))
        ct_ring_read(&loader->ring, loader->path, in_database);
    load_tables(loader);
    complete(loader);
}

/* What stands in a digest for the things around a trace. */
static void load_digest(struct ct_loader *loader)
{
    struct ct_digest digest = {0};
    const char *why =
        ct_digest_read(&loader->db, loader->arena, &digest, &loader->ring);

    loader->digested = true;
    if (why) {
        ct_load_fail(loader, "%s", why);
        return;
    }
    loader->path = loader->process->path = digest.origin;
    loader->db.live = digest.live;
    if (digest.refusal) {
        loader->failed = true;
        snprintf(loader->error, loader->error_size, "%s", digest.refusal);
        ct_ring_release(&loader->ring);
    }
}

/* A row has at least a place, a length, a number, and a header with the type of
 * a value (fileformat2.html, "B-tree Pages", "Record Format"). */
#define LEAST_ROW_BYTES 6

/* Pages that are their own children, and packed blocks, may say that there are
 * as many as anybody likes. */
static void bound_rows(struct ct_loader *loader)
{
    const uint64_t bytes = loader->db.bytes;
    const uint64_t rows = loader->db.digest ? bytes * CT_PACK_ROWS_PER_BYTE
                                            : bytes / LEAST_ROW_BYTES;

    loader->most_rows = rows < INT32_MAX ? (int64_t)rows : INT32_MAX;
}

/* False, and said why: its tables cannot be loaded. */
static bool open_database(struct ct_loader *loader,
                          enum ct_load_result *result_p)
{
    const char *why;
    char reason[256];

    if (ct_db_open(&loader->db, loader->path, reason, sizeof(reason)))
        ct_load_fail(loader, "%s", reason);
    bound_rows(loader);
    if (loader->failed)
        return false;
    if ((why = check_identity(loader, result_p)))
        ct_load_fail(loader, "%s", why);
    else if (loader->db.digest)
        load_digest(loader);
    if (!loader->failed &&
        !ct_db_int(&loader->db, "SELECT EXISTS (SELECT 1 FROM process)", 1))
        ct_load_fail(loader, "holds no process: nothing was recorded");
    return !loader->failed;
}

enum ct_load_result ct_trace_load(const char *path,
                                  const struct ct_load_only *only,
                                  struct ct_arena *arena,
                                  struct ct_process *process, char *error,
                                  size_t error_size)
{
    struct ct_loader *loader = ct_alloc(1, sizeof(*loader));
    enum ct_load_result result = CT_FAILED;

    *process = (struct ct_process){.path = path,
                                   .file = path,
                                   .rank = CT_NONE,
                                   .end_ns = CT_NO_TIME,
                                   .job = CT_NONE,
                                   .nparts = 1};
    loader->path = path;
    loader->only = only;
    loader->arena = arena;
    loader->process = process;
    loader->error = error;
    loader->error_size = error_size;
    if (open_database(loader, &result))
        load_open(loader);
    else if (result == CT_FAILED)
        load_unstored(loader);
    if (!loader->failed)
        result = CT_LOADED;
    release(loader);
    free(loader);
    return result;
}
