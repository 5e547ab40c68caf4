#include "trace.h"

#include "clock.h"
#include "gputime.h"
#include "log.h"
#include "policy.h"
#include "real.h"
#include "topo.h"

#include "commtrace/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIE_EVERY_NS INT64_C(60000000000)
#define RATE_EVERY_NS INT64_C(1000000000)

enum meta_row {
    META_TOOL = 1,
    META_SCHEMA,
    META_RING_PATH,
    META_RING_TAIL,
    META_CLOSED,
    META_OPTIONS
};

static int64_t now(const struct trace *trace)
{
    return clock_ns() - trace->process->t0_ns;
}

static void add_meta(struct trace *trace, enum meta_row rowid, const char *key,
                     const char *value)
{
    struct row *row = batch_add(&trace->gather.batch, ROW_meta);
    if (!row)
        return;
    row->rowid = rowid;
    row->u.meta = (struct row_meta){.key = key, .value = value};
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

static void add_process(struct trace *trace, int64_t end_ns)
{
    const struct process *process = trace->process;
    struct row *row = batch_add(&trace->gather.batch, ROW_process);
    if (!row)
        return;
    row->rowid = 1;
    row->u.process = (struct row_process){
        .uuid = process->uuid,
        .host = process->host,
        .host_id = process->host_id,
        .boot_id = process->boot_id,
        .pid = process->pid,
        .pid_ns = process->pid_ns,
        .start_ticks = (int64_t)process->start_ticks,
        .exe = text_or_null(process->exe),
        .cmdline = text_or_null(process->cmdline),
        .rank = process->rank,
        .rank_source = process->rank_source,
        .world_size = process->world_size,
        .local_rank = process->local_rank,
        .run_id = text_or_null(process->run_id),
        .job_id = text_or_null(process->job_id),
        .restart = process->restart,
        .t0_ns = process->t0_ns,
        .t0_real_ns = process->t0_real_ns,
        .end_ns = end_ns,
    };
}

static void add_policy(struct trace *trace)
{
    struct row *row = batch_add(&trace->gather.batch, ROW_policy);
    unsigned shift = atomic_load_explicit(&policy_shift, memory_order_relaxed);
    if (!row)
        return;
    row->u.policy = (struct row_policy){
        .at_ns = now(trace),
        .timing = timing_name(shift == POLICY_OFF ? TIMING_OFF
                                                  : trace->config->timing.mode),
        .sample_shift = shift == POLICY_OFF ? CT_NULL : shift,
    };
}

static void add_library(struct trace *trace)
{
    int version;
    real_library(trace->library, sizeof(trace->library), &version);
    struct row *row = batch_add(&trace->gather.batch, ROW_library);
    if (!row)
        return;
    row->u.library = (struct row_library){
        .id = 1,
        .path = text_or_null(trace->library),
        .version = version ? version : CT_NULL,
    };
}

static void add_clock(struct trace *trace, int64_t at_ns, int64_t real_ns,
                      int64_t device, int64_t width_ns)
{
    struct row *row = batch_add(&trace->gather.batch, ROW_clock);
    if (!row)
        return;
    row->u.clock = (struct row_clock){.at_ns = at_ns,
                                      .real_ns = real_ns,
                                      .device = device,
                                      .width_ns = width_ns};
}

/* CLOCK_REALTIME between two readings of CLOCK_MONOTONIC. */
static void tie_real_time(struct trace *trace)
{
    int64_t before = now(trace);
    int64_t real_ns = clock_real_ns();
    int64_t width_ns = now(trace) - before;
    add_clock(trace, before + width_ns / 2, real_ns, CT_NULL, width_ns);
    trace->tied_ns = before;
}

static void tie_gpus(struct trace *trace)
{
    struct gpu_anchor anchors[16];
    int n = gpu_tie(anchors, sizeof(anchors) / sizeof(*anchors));
    for (int i = 0; i < n; i++)
        add_clock(trace, anchors[i].at_ns - trace->process->t0_ns,
                  anchors[i].real_ns, anchors[i].device, anchors[i].width_ns);
}

static void new_device(void *context, int64_t device, struct batch *batch)
{
    static uint64_t described; /* bit per device */
    (void)context;
    if (device < 0 || device > 63 || described >> device & 1)
        return;
    described |= UINT64_C(1) << device;
    topo_describe(device, batch);
}

static uint64_t grown(const _Atomic uint64_t *counter, uint64_t *seen)
{
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    uint64_t more = n - *seen;
    *seen = n;
    return more;
}

static void count_losses(struct trace *trace)
{
    struct ct_ring_header *header = trace->ring->header;
    struct losses *losses = &trace->losses;
    int64_t since = trace->looked_ns, at = now(trace);
    uint64_t pairs = gpu_exhausted();
    /* A ring is full for a reason: where nothing can be written, that. */
    losses_add(losses, trace->failing ? LOSS_WRITE_OPS : LOSS_RING_OPS,
               grown(&header->lost_ops, &trace->seen_ops), since, at);
    losses_add(losses, LOSS_RING_LAUNCHES,
               grown(&header->lost_launches, &trace->seen_launches), since, at);
    losses_add(losses, LOSS_RING_COMMS,
               grown(&header->lost_comms, &trace->seen_comms), since, at);
    losses_add(losses, LOSS_RING_LEAVES,
               grown(&header->lost_leaves, &trace->seen_leaves), since, at);
    losses_add(losses, LOSS_EVENT_PAIRS, pairs - trace->seen_pairs, since, at);
    trace->seen_pairs = pairs;
    trace->looked_ns = at;
}

static void adapt_policy(struct trace *trace)
{
    int64_t at = now(trace);
    if (at - trace->rate_ns < RATE_EVERY_NS)
        return;
    if (policy_adapt(trace->config->timing,
                     trace->gather.launches - trace->rate_launches,
                     at - trace->rate_ns))
        add_policy(trace);
    trace->rate_ns = at;
    trace->rate_launches = trace->gather.launches;
}

static int write_batch(struct trace *trace)
{
    struct batch *batch = &trace->gather.batch;
    snprintf(trace->tail, sizeof(trace->tail), "%llu",
             (unsigned long long)trace->gather.next);
    add_meta(trace, META_RING_TAIL, "ring_tail", trace->tail);
    if (store_write(&trace->store, batch->rows, batch->n) != 0) {
        batch->n--;
        trace->failing = true;
        log_line(LOG_TRACE, "cannot write %s: %s; still trying",
                 trace->process->db_path, store_error(&trace->store));
        return -1;
    }
    trace->failing = false;
    gather_stored(&trace->gather);
    /* Release: the slots may be written again. */
    atomic_store_explicit(&trace->ring->header->tail, trace->gather.next,
                          memory_order_release);
    return 0;
}

static void check_size(struct trace *trace)
{
    if (trace->full || store_bytes(&trace->store) >> 20 < trace->config->max_mb)
        return;
    trace->full = true;
    policy_set((struct timing){.mode = TIMING_OFF});
    add_policy(trace);
    log_line(LOG_SIZE,
             "%s has reached COMMTRACE_MAX_MB=%lld; later calls are counted, "
             "not recorded",
             trace->process->db_path, (long long)trace->config->max_mb);
}

static void gather(struct trace *trace, bool force)
{
    if (trace->full) {
        int64_t at = now(trace);
        losses_add(&trace->losses, LOSS_SIZE_OPS,
                   gather_discard(&trace->gather), trace->looked_ns, at);
        return;
    }
    uint64_t head =
        atomic_load_explicit(&trace->ring->header->head, memory_order_relaxed);
    if (head != trace->gather.next || trace->gather.on_gpu.n)
        tie_gpus(trace);
    gather_finished(&trace->gather);
    gather_slots(&trace->gather, force);
}

int trace_flush(struct trace *trace, bool force)
{
    if (!trace->told_library) {
        add_library(trace);
        trace->told_library = true;
    }
    count_losses(trace);
    /* While nothing can be written, the same batch is tried again. */
    if (!trace->failing) {
        gather(trace, force);
        adapt_policy(trace);
        losses_tell(&trace->losses, &trace->gather.batch);
        if (now(trace) - trace->tied_ns >= TIE_EVERY_NS)
            tie_real_time(trace);
    }
    if (trace->gather.batch.n == 0)
        return 0;
    int failed = write_batch(trace);
    if (!failed)
        check_size(trace);
    return failed;
}

bool trace_waits(const struct trace *trace)
{
    return trace->gather.on_gpu.n > 0 && !trace->full;
}

static void remove_database(const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    char name[2100];
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        snprintf(name, sizeof(name), "%s%s", path, endings[i]);
        unlink(name);
    }
}

static void add_first_rows(struct trace *trace)
{
    static char schema[16];
    snprintf(schema, sizeof(schema), "%d", CT_SCHEMA_VERSION);
    config_describe(trace->options, sizeof(trace->options));
    add_meta(trace, META_TOOL, "tool", "commtrace " COMMTRACE_VERSION);
    add_meta(trace, META_SCHEMA, "schema", schema);
    add_meta(trace, META_RING_PATH, "ring_path",
             *trace->ring->path ? trace->ring->path : "anonymous");
    add_meta(trace, META_CLOSED, "closed", "0");
    add_meta(trace, META_OPTIONS, "options", trace->options);
    add_process(trace, CT_NULL);
    add_policy(trace);
    tie_real_time(trace);
}

int trace_open(struct trace *trace, struct ring *ring,
               const struct config *config, const struct process *process,
               bool network)
{
    *trace = (struct trace){.config = config, .process = process, .ring = ring};
    if (gather_init(&trace->gather, ring) != 0)
        return -1;
    trace->gather.new_device = new_device;
    if (store_open(&trace->store, process->db_path, network) == 0) {
        add_first_rows(trace);
        if (store_write(&trace->store, trace->gather.batch.rows,
                        trace->gather.batch.n) == 0) {
            trace->gather.batch.n = 0;
            return 0;
        }
    }
    log_line(LOG_TRACE, "cannot write %s: %s; not recording", process->db_path,
             store_error(&trace->store));
    store_close(&trace->store);
    remove_database(process->db_path);
    gather_release(&trace->gather);
    return -1;
}

void trace_close(struct trace *trace)
{
    trace->failing = false; /* one last try */
    int failed = trace_flush(trace, true);
    if (!failed) {
        tie_real_time(trace);
        add_process(trace, now(trace));
        add_meta(trace, META_CLOSED, "closed", "1");
        failed = write_batch(trace);
    }
    store_checkpoint(&trace->store);
    store_close(&trace->store);
    if (!failed) {
        atomic_store(&trace->ring->header->closed, 1);
        ring_remove(trace->ring);
    }
    gather_release(&trace->gather);
}
