#include "tracegen.h"

#include "output.h"
#include "rows.h"
#include "writer.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_PATH 4096

static void put_meta(struct writer *w, const char *key, const char *value)
{
    sqlite3_stmt *row = writer_row(w, T_meta);

    put_text(row, meta_key, key);
    put_text(row, meta_value, value);
    writer_add(w, row);
}

static int local_rank(const struct layout *layout, int rank)
{
    int first = rank;

    while (first && layout_host(layout, first - 1) == layout_host(layout, rank))
        first--;
    return rank - first;
}

static int64_t end_of(const struct rank *rank)
{
    return rank->streams[COMPUTE_STREAM].now_ns + 1000000;
}

static void put_process(struct writer *w, const struct simulation *s, int rank,
                        const struct output *out)
{
    const struct layout *layout = s->layout;
    uint64_t seed = layout->options->seed;
    int host = layout_host(layout, rank);
    sqlite3_stmt *row = writer_row(w, T_process);
    char text[96];

    snprintf(text, sizeof(text), "%016llx%016llx",
             (unsigned long long)mix(seed, (uint64_t)rank),
             (unsigned long long)mix(seed + 1, (uint64_t)rank));
    put_text(row, process_uuid, text);
    snprintf(text, sizeof(text), "host%d", host);
    put_text(row, process_host, text);
    snprintf(text, sizeof(text), "boot-%016llx",
             (unsigned long long)mix(seed, 1000000u + (uint64_t)host));
    put_text(row, process_host_id, text);
    put_text(row, process_boot_id, text);
    put(row, process_pid, 1000 + rank);
    put(row, process_start_ticks, 5000 + rank);
    put_text(row, process_exe, "/usr/bin/train");
    put_text(row, process_cmdline, "train");
    put(row, process_rank, rank);
    put_text(row, process_rank_source, "RANK");
    put(row, process_world_size, layout->nranks);
    put(row, process_local_rank, local_rank(layout, rank));
    put(row, process_restart, 0);
    put(row, process_t0_ns, out->clock.boot_ns + out->t0_host_ns);
    put(row, process_t0_real_ns, out->clock.real_ns + out->t0_host_ns);
    if (out->cut_ns < INT64_MAX || s->ranks[rank].hangs)
        put_null(row, process_end_ns);
    else
        put(row, process_end_ns, output_time(out, end_of(&s->ranks[rank])));
    writer_add(w, row);
}

static void put_clock(struct writer *w, const struct output *out, int64_t at,
                      int device)
{
    sqlite3_stmt *row = writer_row(w, T_clock);

    if (device < 0)
        put_null(row, clock_device);
    else
        put(row, clock_device, device);
    put(row, clock_width_ns, 100);
    put(row, clock_at_ns, output_time(out, at));
    put(row, clock_real_ns, out->clock.real_ns + host_time(&out->clock, at));
    writer_add(w, row);
}

/* Every minute, as the recorder does. Of what hangs it looks at the GPU until
 * somebody kills the job. */
static void put_clocks(struct writer *w, const struct simulation *s, int rank,
                       const struct output *out)
{
    const struct options *o = s->layout->options;
    const int64_t end_ns = end_of(&s->ranks[rank]);
    int64_t until = end_ns, at;

    if (s->ranks[rank].hangs)
        until += o->disturbance.hang_ns;
    if (until > out->cut_ns)
        until = out->cut_ns;
    for (at = out->t0_ns; at < until; at += 60000000000)
        put_clock(w, out, at, -1);
    if (s->ranks[rank].hangs)
        put_clock(w, out, until, local_rank(s->layout, rank));
}

/* A domain of several hosts is a cluster of NVLink's fabric. */
static void put_domain(sqlite3_stmt *row, const struct layout *layout, int rank)
{
    char text[40];

    if (layout->options->domain_hosts == 1)
        return;
    snprintf(text, sizeof(text), "c1b5%04x-0000-4000-8000-000000000000",
             (unsigned)layout_domain(layout, rank));
    put_text(row, device_cluster, text);
    put(row, device_clique, 1);
}

static void put_device(struct writer *w, const struct layout *layout, int rank)
{
    sqlite3_stmt *row = writer_row(w, T_device);
    int local = local_rank(layout, rank);
    char text[64];

    put(row, device_id, local);
    snprintf(text, sizeof(text), "GPU-%08x-%04x", layout_host(layout, rank),
             (unsigned)local);
    put_text(row, device_uuid, text);
    snprintf(text, sizeof(text), "0000:%02x:00.0", 16 + (unsigned)local);
    put_text(row, device_pci, text);
    put_text(row, device_name, "Generated GPU");
    put_domain(row, layout, rank);
    put_text(row, device_source, "nvml");
    writer_add(w, row);
    row = writer_row(w, T_gpu_link);
    put(row, gpu_link_device, local);
    put_text(row, gpu_link_kind, "nvswitch");
    put(row, gpu_link_links, 18);
    put(row, gpu_link_version, 4);
    put_text(row, gpu_link_source, "nvml");
    writer_add(w, row);
}

static void put_comms(struct writer *w, const struct layout *layout, int rank)
{
    int kind;

    for (kind = 0; kind < COMM_KINDS; kind++) {
        const int comm = layout->comm_of[rank][kind];
        const struct comm *c = &layout->comms[comm];
        sqlite3_stmt *row = writer_row(w, T_comm);

        if (comm < 0 || (int)c->kind != kind)
            continue;
        put(row, comm_id, kind + 1);
        put(row, comm_uid, (int64_t)c->uid);
        put_text(row, comm_origin, kind ? "split" : "init");
        if (kind) {
            put(row, comm_parent, 1);
            put(row, comm_child, kind);
        } else {
            put_null(row, comm_parent);
            put_null(row, comm_child);
        }
        put(row, comm_nranks, c->nranks);
        put(row, comm_rank, layout->place_in[rank][kind]);
        put(row, comm_device, local_rank(layout, rank));
        put(row, comm_library, 1);
        put(row, comm_enter_ns, 1000 * kind);
        put(row, comm_ready_ns, 1000 * kind + 900);
        writer_add(w, row);
    }
}

static void put_class(struct writer *w, const struct op_class *class, int id)
{
    sqlite3_stmt *row = writer_row(w, T_op_class);

    put(row, op_class_id, id);
    put(row, op_class_comm, (int)class->comm + 1);
    put(row, op_class_kind, (int64_t) class->op);
    put(row, op_class_type, class->type);
    put_or_null(row, op_class_redop, class->redop);
    put(row, op_class_count, (int64_t) class->count);
    put_or_null(row, op_class_peer, class->peer);
    put(row, op_class_stream, stream_handle(class->stream));
    put(row, op_class_site, 0x400000 + 16 * (id - 1));
    put(row, op_class_stack, (int64_t) class->op + 1);
    writer_add(w, row);
}

static void put_classes(struct writer *w, const struct rank *rank,
                        const struct output *out)
{
    int i;

    for (i = 0; i < rank->nclasses; i++)
        put_class(w, &rank->classes[i], i + 1);
    for (i = 0; i < out->nplanted; i++)
        put_class(w, &out->planted[i], FIRST_PLANTED_CLASS + i);
}

/* Each operation is called from a place of its own, the same on all ranks. */
static void put_stacks(struct writer *w, const struct rank *rank)
{
    static const char *const paths[] = {"/opt/job/train", "/opt/job/layers.so"};
    bool seen[CT_OP_COUNT] = {false};
    sqlite3_stmt *row;

    for (int i = 0; i < 2; i++) {
        row = writer_row(w, T_module);
        put(row, module_id, i + 1);
        put_text(row, module_path, paths[i]);
        put_text(row, module_build_id, i ? "00112233" : "44556677");
        writer_add(w, row);
    }
    for (int i = 0; i < rank->nclasses; i++) {
        int op = (int)rank->classes[i].op;

        if (seen[op])
            continue;
        seen[op] = true;
        row = writer_row(w, T_stack);
        put(row, stack_id, op + 1);
        put(row, stack_depth, 3);
        put(row, stack_cut, 0);
        writer_add(w, row);
        row = writer_row(w, T_frame);
        for (int depth = 0; depth < 3; depth++) {
            put(row, frame_stack, op + 1);
            put(row, frame_depth, depth);
            put_or_null(row, frame_module, depth == 2 ? -1 : 2 - depth);
            put(row, frame_offset, 0x1000 * (op + 1) + depth);
            writer_add(w, row);
        }
    }
}

void trace_path(const struct simulation *s, int rank, char *path, size_t size)
{
    snprintf(path, size, "%s/host%d.%d.%x.db", s->layout->options->out,
             layout_host(s->layout, rank), 1000 + rank, 5000 + rank);
}

/* With the log that is beside it, as it may be from another time. */
static void remove_file(const char *path)
{
    char wal[MAX_PATH + 8];

    unlink(path);
    snprintf(wal, sizeof(wal), "%s-wal", path);
    unlink(wal);
}

static int copy_blank(const struct blank_file *blank, const char *path)
{
    FILE *f;
    size_t n;

    remove_file(path);
    f = fopen(path, "wx");
    if (!f) {
        perror(path);
        return -1;
    }
    n = fwrite(blank->bytes, 1, blank->n, f);
    if (fclose(f) || n != blank->n) {
        perror(path);
        return -1;
    }
    return 0;
}

/* As a killed process leaves it: part of it in the log beside it. */
static void leave_open(struct writer *w)
{
    int on = 1;

    writer_run(w, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=64");
    sqlite3_db_config(w->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_file_control(w->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

static int open_file(struct writer *w, const char *path, bool stays_open)
{
    if (sqlite3_open_v2(path, &w->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)) {
        fprintf(stderr, "tracegen: %s: %s\n", path, sqlite3_errmsg(w->db));
        sqlite3_close(w->db);
        return -1;
    }
    /* Nobody else reads it yet. */
    writer_run(w, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF");
    if (stays_open)
        leave_open(w);
    else
        writer_run(w, "PRAGMA journal_mode=OFF");
    writer_run(w, "BEGIN");
    return 0;
}

static void put_head(struct writer *w, const struct simulation *s, int rank)
{
    put_meta(w, "tool", "tracegen");
    put_device(w, s->layout, rank);
    put_comms(w, s->layout, rank);
}

static void put_tail(struct writer *w, const struct simulation *s, int rank,
                     const struct output *out)
{
    const struct rank *r = &s->ranks[rank];

    put_process(w, s, rank, out);
    put_clocks(w, s, rank, out);
    put_stacks(w, r);
    put_classes(w, r, out);
    rows_put_losses(w, out);
}

int trace_write(struct simulation *s, struct output *out,
                const struct blank_file *blank, int rank, bool last)
{
    const bool first = !out->begun;
    struct writer w = {0};
    char path[MAX_PATH];

    trace_path(s, rank, path, sizeof(path));
    if (is_missing(s->layout->options, rank)) {
        remove_file(path);
        return 0;
    }
    if ((first && copy_blank(blank, path)) ||
        open_file(&w, path, out->cut_ns < INT64_MAX))
        return -1;
    out->begun = true;
    if (first)
        put_head(&w, s, rank);
    rows_put(&w, out, s->layout->options, &s->ranks[rank], rank);
    if (last)
        put_tail(&w, s, rank, out);
    nccl_put(&w, s, out, rank, last);
    writer_flush(&w);
    writer_run(&w, "COMMIT");
    writer_close(&w);
    return w.failed ? -1 : 0;
}
