#include "trace.h"

#include "absence.h"
#include "births.h"
#include "choices.h"
#include "clock.h"
#include "descriptor.h"
#include "gputime.h"
#include "init.h"
#include "log.h"
#include "nccl_file.h"
#include "policy.h"
#include "profiler.h"
#include "topo.h"
#include "trace_losses.h"
#include "trace_rows.h"

#include "commtrace/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TIE_EVERY_NS INT64_C(60000000000)
#define RATE_EVERY_NS INT64_C(1000000000)

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

static void new_comm(void *context, const struct comm_facts *facts)
{
    nccl_rows_meet(((struct trace *)context)->nccl, facts);
}

static void adapt_policy(struct trace *trace)
{
    int64_t at = trace_now(trace);
    if (at - trace->rate_ns < RATE_EVERY_NS)
        return;
    if (policy_adapt(trace->config->timing,
                     trace->gather.launches - trace->rate_launches,
                     at - trace->rate_ns))
        add_policy(trace);
    trace->rate_ns = at;
    trace->rate_launches = trace->gather.launches;
}

/* A program may have closed our files together with its own. SQLite would take
 * that for a lock that somebody holds, and wait for it. */
static int write_rows(struct trace *trace)
{
    struct store *store = &trace->store;
    if ((!store->db || descriptor_sqlite_robbed()) &&
        store_reopen(store, trace->process->db_path) != 0)
        return -1;
    return store_write(store, trace->gather.batch.rows, trace->gather.batch.n);
}

static int write_batch(struct trace *trace)
{
    struct batch *batch = &trace->gather.batch;
    snprintf(trace->tail, sizeof(trace->tail), "%llu",
             (unsigned long long)trace->gather.next);
    add_meta(trace, META_RING_TAIL, "ring_tail", trace->tail);
    if (write_rows(trace) != 0) {
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
        int64_t at = trace_now(trace);
        int64_t since = trace->looked_ns;
        struct discarded n = gather_discard(&trace->gather);
        losses_add(&trace->losses, LOSS_SIZE_OPS, n.ops, since, at);
        losses_add(&trace->losses, LOSS_SIZE_COMMS, n.comms, since, at);
        losses_add(&trace->losses, LOSS_SIZE_GRAPH_LAUNCHES, n.graph_launches,
                   since, at);
        nccl_rows_discard(trace->nccl);
        if (trace->gather.choices)
            losses_add(&trace->losses, LOSS_SIZE_CHOICES,
                       choices_discard(trace->gather.choices), since, at);
        return;
    }
    uint64_t head =
        atomic_load_explicit(&trace->ring->header->head, memory_order_relaxed);
    if (head != trace->gather.next || trace->gather.on_gpu.n)
        tie_gpus(trace);
    gather_finished(&trace->gather);
    gather_slots(&trace->gather, force);
    if (trace->gather.choices)
        choices_add(trace->gather.choices, trace->gather.next, force, false,
                    &trace->gather.batch);
}

static uint64_t slots_so_far(const struct trace *trace)
{
    return atomic_load_explicit(&trace->ring->header->head,
                                memory_order_relaxed);
}

/* All those of the first so many slots, and none was lost. */
static bool has_calls(const struct trace *trace, uint64_t made)
{
    return trace->gather.next >= made &&
           !atomic_load_explicit(&trace->ring->header->lost_ops,
                                 memory_order_relaxed);
}

/* Who deletes a trace wants it gone: it does not come back, and its room on
 * the disk is given up. */
static void let_go(struct trace *trace)
{
    trace->removed = true;
    init_stop();
    log_line(LOG_TRACE, "%s has been deleted; not recording any more",
             trace->process->db_path);
}

int trace_flush(struct trace *trace, bool force)
{
    if (trace->removed)
        return -1;
    if (descriptor_sqlite_removed()) {
        let_go(trace);
        return -1;
    }
    add_libraries(trace);
    count_losses(trace);
    /* While nothing can be written, the same batch is tried again. */
    if (!trace->failing) {
        nccl_file_mark();
        uint64_t made = slots_so_far(trace);
        gather(trace, force);
        if (!trace->full)
            nccl_rows_add(trace->nccl, &trace->gather.batch,
                          has_calls(trace, made), false);
        adapt_policy(trace);
        losses_tell(&trace->losses, &trace->gather.batch);
        add_absence(trace);
        if (trace_now(trace) - trace->tied_ns >= TIE_EVERY_NS)
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
    return !trace->full &&
           (trace->gather.on_gpu.n > 0 ||
            (trace->gather.choices && choices_wait(trace->gather.choices)));
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

/* A program that closes all files may do so while SQLite opens ours. */
static int open_store(struct trace *trace, bool network)
{
    enum { TRIES = 3 };
    struct store *store = &trace->store;
    for (int i = 0; i < TRIES; i++) {
        if (store_open(store, trace->process->db_path, network) == 0) {
            add_first_rows(trace);
            if (store_write(store, trace->gather.batch.rows,
                            trace->gather.batch.n) == 0)
                return 0;
            trace->gather.batch.n = 0;
        }
        if (i + 1 == TRIES || !descriptor_sqlite_robbed())
            break;
        store_close(store);
        remove_database(trace->process->db_path);
    }
    return -1;
}

int trace_open(struct trace *trace, struct ring *ring,
               const struct config *config, const struct process *process,
               bool network)
{
    *trace = (struct trace){.config = config, .process = process, .ring = ring};
    if (gather_init(&trace->gather, ring) != 0) {
        log_line(LOG_TRACE, "not recording: no memory for the writer");
        return -1;
    }
    if (profiler_is_on())
        trace->gather.choices = choices_open();
    trace->gather.new_device = new_device;
    trace->gather.new_comm = new_comm;
    trace->gather.context = trace;
    trace->nccl = nccl_rows_open();
    trace->gather.exe = process->exe;
    if (open_store(trace, network) == 0) {
        trace->gather.batch.n = 0;
        return 0;
    }
    log_line(LOG_TRACE, "cannot write %s: %s; not recording", process->db_path,
             store_error(&trace->store));
    store_close(&trace->store);
    remove_database(process->db_path);
    gather_release(&trace->gather);
    nccl_rows_close(trace->nccl);
    return -1;
}

/* What other threads have a place for in the ring comes in a moment, unless a
 * thread has ended in the middle of a hook, as a handler's exit() may: then the
 * ring keeps what follows. */
static bool take_all(struct trace *trace)
{
    enum { TRIES = 100 };
    const struct timespec moment = {.tv_nsec = 1000000};
    const struct ct_ring_header *header = trace->ring->header;
    trace->failing = false; /* one last try */
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = trace->gather.next;
        if (trace_flush(trace, true) != 0)
            return false;
        if (trace->gather.next ==
            atomic_load_explicit(&header->head, memory_order_relaxed))
            return true;
        if (trace->gather.next == before)
            nanosleep(&moment, NULL);
    }
    return false;
}

static void end_choices(struct trace *trace)
{
    struct batch *batch = &trace->gather.batch;
    if (!trace->gather.choices)
        return;
    choices_add(trace->gather.choices, trace->gather.next, true, true, batch);
    if (choices_are_untold(trace->gather.choices))
        absence_add(batch, "profiler",
                    "NCCL asked for no plugin, as before 2.27");
    count_losses(trace);
    losses_tell(&trace->losses, batch);
}

/* A launcher that makes an id for others, and takes no part. */
static bool is_of_nobody(const struct trace *trace)
{
    return births_only_ids() && atomic_load_explicit(&trace->ring->header->head,
                                                     memory_order_relaxed) == 0;
}

void trace_close(struct trace *trace)
{
    int failed = !take_all(trace);
    if (!failed) {
        end_choices(trace);
        tie_real_time(trace);
        if (!trace->full)
            nccl_rows_add(trace->nccl, &trace->gather.batch,
                          has_calls(trace, slots_so_far(trace)), true);
        add_process(trace, trace_now(trace));
        add_meta(trace, META_CLOSED, "closed", "1");
        failed = write_batch(trace);
    }
    store_checkpoint(&trace->store);
    store_close(&trace->store);
    if (is_of_nobody(trace))
        remove_database(trace->process->db_path);
    if (!failed || trace->removed) {
        atomic_store(&trace->ring->header->closed, 1);
        ring_remove(trace->ring);
    }
    gather_release(&trace->gather);
    nccl_rows_close(trace->nccl);
    nccl_file_end();
}
