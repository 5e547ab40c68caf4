#include "trace_losses.h"

#include "absence.h"
#include "births.h"
#include "choices.h"
#include "gputime.h"
#include "graphs.h"
#include "group.h"
#include "log.h"
#include "profiler.h"
#include "real.h"
#include "told.h"
#include "trace_rows.h"
#include "ways.h"

static uint64_t value_of(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static uint64_t unrecorded_copies(void)
{
    uint64_t n = value_of(&ways_unrecorded);
    if (n)
        log_line(LOG_COPIES,
                 "more than %d copies of NCCL are in use; calls to the others "
                 "are not recorded",
                 NCCL_COPIES);
    return n;
}

/* A ring is full for a reason: where nothing can be written, that. */
static void count_lost_ops(struct trace *trace, int64_t since, int64_t at)
{
    uint64_t n = value_of(&trace->ring->header->lost_ops);
    losses_add(&trace->losses, trace->failing ? LOSS_WRITE_OPS : LOSS_RING_OPS,
               n - trace->seen_ops, since, at);
    trace->seen_ops = n;
}

static bool has_hooked(void)
{
    bool has = false;
    for (int i = 0; i < NCCL_COPIES; i++)
        has |= atomic_load_explicit(&nccl_copies[i].used, memory_order_relaxed);
    return has;
}

void add_absence(struct trace *trace)
{
    const char *why = profiler_absence(), *calls = told_absence();
    if (why)
        absence_add(&trace->gather.batch, "profiler", why);
    if (calls)
        absence_add(&trace->gather.batch, "calls", calls);
    if (calls && !has_hooked())
        absence_add(&trace->gather.batch, "nccl_log",
                    "NCCL is asked for it in calls that hooks see");
}

void count_losses(struct trace *trace)
{
    const struct ct_ring_header *header = trace->ring->header;
    /* In the order of enum ct_no_stack. */
    const uint64_t *no_stack = trace->gather.no_stack;
    const struct profiler_losses profiler = profiler_losses();
    const struct choices_losses choices = choices_losses(trace->gather.choices);
    const struct {
        enum loss loss;
        uint64_t n; /* so far */
    } all[] = {
        {LOSS_RING_LAUNCHES, value_of(&header->lost_launches)},
        {LOSS_RING_COMMS, value_of(&header->lost_comms)},
        {LOSS_RING_LEAVES, value_of(&header->lost_leaves)},
        {LOSS_RING_GRAPHS, value_of(&header->lost_graphs)},
        {LOSS_RING_GRAPH_LAUNCHES, value_of(&header->lost_graph_launches)},
        {LOSS_GRAPH_TABLE, value_of(&graphs_untracked)},
        {LOSS_EVENT_PAIRS, gpu_exhausted()},
        {LOSS_NO_CONTEXT, gpu_untimed()},
        {LOSS_GROUP_TARGETS, value_of(&group_untimed)},
        {LOSS_GROWN_IDS, births_unlike()},
        {LOSS_STACK_LIMIT, no_stack[0]},
        {LOSS_STACK_ROOM, no_stack[1]},
        {LOSS_STACK_TABLE, no_stack[2]},
        {LOSS_COPIES, unrecorded_copies()},
        {LOSS_CHOICE_QUEUE, profiler.full},
        {LOSS_CHOICE_MEMORY, profiler.memory},
        {LOSS_CHOICE_COMM, choices.strangers},
        {LOSS_KERNEL_LATE, profiler.late},
        {LOSS_KERNEL_UNTOLD, choices.untimed},
        {LOSS_TOLD_KIND, told_unknown()},
    };
    int64_t since = trace->looked_ns, at = trace_now(trace);
    count_lost_ops(trace, since, at);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        losses_reach(&trace->losses, all[i].loss, all[i].n, since, at);
    trace->looked_ns = at;
}
