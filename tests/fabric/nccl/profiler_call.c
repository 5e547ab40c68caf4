/* Calls, and the group that they are made in. */
#include "nccl/profiler.h"

#include <stdlib.h>
#include <string.h>

#include "nccl/comm.h"
#include "nccl/op.h"
#include "nccl/profiler_words.h"
#include "nccl/release.h"

enum {
    OF_LAUNCH = CT_PROFILER_COLL | CT_PROFILER_P2P | CT_PROFILER_KERNEL_CHANNEL,
    GROUP_CALLS = CT_PROFILER_GROUP_API | CT_PROFILER_COLL_API |
                  CT_PROFILER_P2P_API | CT_PROFILER_KERNEL_LAUNCH |
                  CT_PROFILER_GROUP | OF_LAUNCH,
    COLL_CALLS =
        CT_PROFILER_COLL_API | CT_PROFILER_COLL | CT_PROFILER_KERNEL_CHANNEL,
    P2P_CALLS =
        CT_PROFILER_P2P_API | CT_PROFILER_P2P | CT_PROFILER_KERNEL_CHANNEL
};

static _Thread_local struct {
    int open; /* the outermost group has an op */
    int mask; /* as it was at the first */
    void *handle;
} group;

static int is_captured(const struct op *op)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (comm_enter(op->comm))
        return 0;
    cuStreamIsCapturing(op->stream, &status);
    comm_leave();
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A group's event is of the communicator of its first op. */
static void open_group(const struct op *op, int captured, int depth)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_GROUP_API};

    group.open = 1;
    group.handle = NULL;
    if (!(group.mask & GROUP_CALLS) || !profiler_is_told_of_calls())
        return;
    event.u.group_api.captured = captured;
    event.u.group_api.depth = depth;
    profiler_start(op->comm, &group.handle, &event);
    profiler_record(group.handle, CT_PROFILER_GROUP_STARTED, NULL);
}

static void tell_coll(struct op *op, int captured)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_COLL_API,
                                         .parent = group.handle};

    event.u.coll_api.func = word_of_kind(op->kind);
    event.u.coll_api.count = op->count;
    event.u.coll_api.datatype = word_of_type(op->type);
    event.u.coll_api.root = op->peer;
    event.u.coll_api.stream = op->stream;
    event.u.coll_api.captured = captured;
    profiler_start(op->comm, &op->profiled.call, &event);
}

static void tell_p2p(struct op *op, int captured)
{
    struct ct_profiler_event_v5 event = {.type = CT_PROFILER_P2P_API,
                                         .parent = group.handle};

    event.u.p2p_api.func = word_of_kind(op->kind);
    event.u.p2p_api.count = op->count;
    event.u.p2p_api.datatype = word_of_type(op->type);
    event.u.p2p_api.stream = op->stream;
    event.u.p2p_api.captured = captured;
    profiler_start(op->comm, &op->profiled.call, &event);
}

/* Since 2.29.2 a broadcast waits with others to become an all-gather of
 * different sizes, and plugins hear of nothing but its call: what it then
 * becomes, alone or not, is given no mask (collTaskAppend() and
 * ncclPrepareTasks() in src/enqueue.cc). */
static int is_kept_back(const struct op *op)
{
    const char *enabled = getenv("NCCL_ALLGATHERV_ENABLE");

    return op->kind == OP_BROADCAST && nccl_release() >= 22902 &&
           !(enabled && !strcmp(enabled, "0"));
}

static void tell_call(struct op *op, int captured)
{
    if (!profiler_is_told_of_calls())
        return;
    if (op_is_p2p(op) && group.mask & P2P_CALLS)
        tell_p2p(op, captured);
    else if (!op_is_p2p(op) && group.mask & COLL_CALLS)
        tell_coll(op, captured);
    profiler_stop(op->profiled.call);
}

void profiler_call(struct op *op, int depth)
{
    int captured;

    op->profiled.mask = 0;
    op->profiled.call = NULL;
    if (op_is_rma(op) || !op->comm->profiled.told)
        return;
    if (!group.open)
        group.mask = profiler_mask();
    op->profiled.mask = group.mask;
    if (!group.mask)
        return;
    captured = is_captured(op);
    if (!group.open)
        open_group(op, captured, depth);
    op->profiled.group = group.handle;
    tell_call(op, captured);
    if (is_kept_back(op))
        op->profiled.mask = 0;
}

void profiler_group_ends(void)
{
    if (group.open)
        profiler_record(group.handle, CT_PROFILER_GROUP_END_BEGINS, NULL);
}

void profiler_group_ended(void)
{
    if (group.open)
        profiler_stop(group.handle);
    group.open = 0;
    group.handle = NULL;
}
