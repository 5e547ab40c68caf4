/* What could not be recorded: one row of `loss` per cause and kind, replaced as
 * it grows. */
#ifndef SHIM_LOSS_H
#define SHIM_LOSS_H

#include "batch.h"

#include <stdint.h>

#define LOSSES(X)                                        \
    X(RING_OPS, "ring_full", "op")                       \
    X(RING_LAUNCHES, "ring_full", "launch")              \
    X(RING_COMMS, "ring_full", "comm")                   \
    X(RING_LEAVES, "ring_full", "end of call")           \
    X(RING_GRAPHS, "ring_full", "graph")                 \
    X(RING_GRAPH_LAUNCHES, "ring_full", "graph launch")  \
    X(WRITE_OPS, "write_error", "op")                    \
    X(SIZE_OPS, "size_limit", "op")                      \
    X(SIZE_COMMS, "size_limit", "comm")                  \
    X(SIZE_GRAPH_LAUNCHES, "size_limit", "graph launch") \
    X(GRAPH_TABLE, "graph_table", "graph")               \
    X(EVENT_PAIRS, "event_pool", "timing")               \
    X(NO_CONTEXT, "no_context", "timing")                \
    X(GROUP_TARGETS, "group_targets", "timing")          \
    X(GROWN_IDS, "grown_id", "comm")                     \
    X(STACK_LIMIT, "stack_limit", "stack")               \
    X(STACK_ROOM, "stack_room", "stack")                 \
    X(STACK_TABLE, "stack_table", "stack")               \
    X(COPIES, "nccl_copies", "function")                 \
    X(SIZE_CHOICES, "size_limit", "choice")              \
    X(CHOICE_QUEUE, "profiler_queue", "choice")          \
    X(CHOICE_MEMORY, "no_memory", "profiled comm")       \
    X(CHOICE_COMM, "unknown_comm", "choice")             \
    X(KERNEL_LATE, "profiler_queue", "kernel")           \
    X(KERNEL_UNTOLD, "not_told", "kernel")               \
    X(TOLD_KIND, "unknown_kind", "op")

enum loss {
#define X(id_, cause_, what_) LOSS_##id_,
    LOSSES(X)
#undef X
        LOSS_COUNT
};

struct losses {
    struct {
        uint64_t n;
        uint64_t told;
        int64_t first_ns;
        int64_t last_ns;
    } of[LOSS_COUNT];
};

/* n more since the last look, at some moment between since_ns and now_ns. */
void losses_add(struct losses *losses, enum loss loss, uint64_t n,
                int64_t since_ns, int64_t now_ns);

/* The same where all that was lost so far is known. */
void losses_reach(struct losses *losses, enum loss loss, uint64_t total,
                  int64_t since_ns, int64_t now_ns);

/* Adds rows for what has grown. */
void losses_tell(struct losses *losses, struct batch *batch);

#endif
