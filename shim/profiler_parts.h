/* What the files of the plugin share: its tables and communicators
 * (profiler.c), and events (profiler_events.c). */
#ifndef SHIM_PROFILER_PARTS_H
#define SHIM_PROFILER_PARTS_H

#include "commtrace/profiler_abi.h"
#include "profiler.h"

enum profiler_loss {
    PROFILER_FULL,
    PROFILER_MEMORY,
    PROFILER_LATE,
    PROFILER_LOSSES
};

void profiler_lose(enum profiler_loss loss);

/* As NCCL calls them. */
int profiler_start_v4(void *context, void **handle,
                      struct ct_profiler_event_v4 *event);
int profiler_start_v5(void *context, void **handle,
                      struct ct_profiler_event_v5 *event);
int profiler_stop(void *handle);
int profiler_record(void *handle, int state, union ct_profiler_args *args);

#endif
