#include "trace_rows.h"

#include "clock.h"
#include "policy.h"
#include "real.h"
#include "told.h"

#include <stdio.h>

void add_meta(struct trace *trace, enum meta_row rowid, const char *key,
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

void add_process(struct trace *trace, int64_t end_ns)
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

void add_policy(struct trace *trace)
{
    struct row *row = batch_add(&trace->gather.batch, ROW_policy);
    unsigned shift = atomic_load_explicit(&policy_shift, memory_order_relaxed);
    if (!row)
        return;
    row->u.policy = (struct row_policy){
        .at_ns = trace_now(trace),
        .timing = timing_name(shift == POLICY_OFF ? TIMING_OFF
                                                  : trace->config->timing.mode),
        .sample_shift = shift == POLICY_OFF ? CT_NULL : shift,
    };
}

static void add_library(struct trace *trace, int i)
{
    int version;
    char *path = trace->libraries[i].path;
    real_library(&nccl_copies[i], path, sizeof(trace->libraries[i].path),
                 &version);
    struct row *row = batch_add(&trace->gather.batch, ROW_library);
    if (!row)
        return;
    row->u.library = (struct row_library){
        .id = i + 1,
        .path = text_or_null(path),
        .version = version ? version : CT_NULL,
    };
    trace->libraries[i].told = true;
}

/* Those that no hook sees, whose version nobody tells. */
static void add_told_libraries(struct trace *trace)
{
    const char *path;
    for (; (path = told_library(trace->told_libraries));
         trace->told_libraries++) {
        struct row *row = batch_add(&trace->gather.batch, ROW_library);
        if (!row)
            return;
        row->u.library = (struct row_library){
            .id = NCCL_COPIES + 1 + trace->told_libraries,
            .path = path,
            .version = CT_NULL,
        };
    }
}

void add_libraries(struct trace *trace)
{
    add_told_libraries(trace);
    for (int i = 0; i < NCCL_COPIES; i++)
        if (!trace->libraries[i].told &&
            atomic_load_explicit(&nccl_copies[i].used, memory_order_relaxed))
            add_library(trace, i);
}

void add_clock(struct trace *trace, int64_t at_ns, int64_t real_ns,
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

void tie_real_time(struct trace *trace)
{
    int64_t before = trace_now(trace);
    int64_t real_ns = clock_real_ns();
    int64_t width_ns = trace_now(trace) - before;
    add_clock(trace, before + width_ns / 2, real_ns, CT_NULL, width_ns);
    trace->tied_ns = before;
}

void add_first_rows(struct trace *trace)
{
    static char schema[16];
    snprintf(schema, sizeof(schema), "%d", CT_SCHEMA_VERSION);
    add_meta(trace, META_TOOL, "tool", "commtrace " COMMTRACE_VERSION);
    add_meta(trace, META_SCHEMA, "schema", schema);
    add_meta(trace, META_RING_PATH, "ring_path",
             *trace->ring->path ? trace->ring->path : "anonymous");
    add_meta(trace, META_CLOSED, "closed", "0");
    add_meta(trace, META_OPTIONS, "options", trace->process->options);
    add_meta(trace, META_STACKS, "stacks", trace->process->stacks);
    add_process(trace, CT_NULL);
    add_policy(trace);
    tie_real_time(trace);
}
