/* The queue between NCCL's threads and the writer: fixed places, no lock. */
#ifndef SHIM_PROFILER_QUEUE_H
#define SHIM_PROFILER_QUEUE_H

#include "profiler.h"

/* Before the first event; one thread at a time. False: no memory. */
bool profiler_queue_make(void);

/* A place for one more event; NULL: full. It is published when filled in. */
struct profiler_event *profiler_queue_reserve(uint64_t *position);
void profiler_queue_publish(struct profiler_event *event, uint64_t position);

/* The event at a position, which stays what it is until it is let go; NULL: it
 * is over. */
struct profiler_event *profiler_queue_hold(uint64_t position);
void profiler_queue_let_go(struct profiler_event *event);

#endif
