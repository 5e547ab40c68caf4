/* The rows of a trace that no call makes: facts of the process, its library,
 * policy and clocks. They go into the trace's batch. */
#ifndef SHIM_TRACE_ROWS_H
#define SHIM_TRACE_ROWS_H

#include "clock.h"
#include "trace.h"

enum meta_row {
    META_TOOL = 1,
    META_SCHEMA,
    META_RING_PATH,
    META_RING_TAIL,
    META_CLOSED,
    META_OPTIONS,
    META_STACKS
};

static inline int64_t trace_now(const struct trace *trace)
{
    return clock_ns() - trace->process->t0_ns;
}

void add_meta(struct trace *trace, enum meta_row rowid, const char *key,
              const char *value);
void add_process(struct trace *trace, int64_t end_ns);
void add_policy(struct trace *trace);
/* Of copies of NCCL that have come into use. */
void add_libraries(struct trace *trace);
void add_clock(struct trace *trace, int64_t at_ns, int64_t real_ns,
               int64_t device, int64_t width_ns);

/* CLOCK_REALTIME between two readings of CLOCK_MONOTONIC. */
void tie_real_time(struct trace *trace);

/* All that is known when a trace begins. */
void add_first_rows(struct trace *trace);

#endif
