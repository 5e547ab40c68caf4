#include "nccl/launch.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/engine.h"
#include "nccl/announce.h"
#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/op.h"
#include "nccl/profiler.h"
#include "nccl/reduce.h"
#include "nccl/rma.h"
#include "nccl/wire.h"

/* Collectives run one after the other, then all sends and receives at once,
 * then puts, and waits for signals.
 * A captured launch runs as often as its graph is launched. */
struct launch {
    struct ncclComm *comm;
    struct plan *plan; /* what a profiler is told of it */
    int captured;
    int n;
    struct op op[];
};

static struct message message_of(const struct op *op)
{
    int is_send = op->kind == OP_SEND;

    return (struct message){
        .peer = op->peer,
        .direction = is_send ? WIRE_OUT : WIRE_IN,
        .data = is_send ? (char *)op->send : op->recv,
        .bytes = op->count * type_bytes(op->type),
    };
}

/* Sends and receives begin and end together. */
static void note_p2p(const struct launch *launch, struct plan *plan,
                     void (*what)(struct plan *, int, int64_t), int64_t at_ns)
{
    for (int i = 0; plan && i < launch->n; i++) {
        if (op_is_p2p(&launch->op[i]))
            what(plan, i, at_ns);
    }
}

static int run_p2p(const struct launch *launch, int64_t *time_ns)
{
    struct message *messages = malloc((size_t)launch->n * sizeof(*messages));
    int n = 0;
    int rc;

    if (!messages)
        return -1;
    for (int i = 0; i < launch->n; i++) {
        if (op_is_p2p(&launch->op[i]))
            messages[n++] = message_of(&launch->op[i]);
    }
    rc = wire_transfer(launch->comm, messages, n, time_ns);
    free(messages);
    return rc;
}

static int run_rma(const struct launch *launch, enum op_kind kind,
                   int64_t *time_ns)
{
    for (int i = 0; i < launch->n; i++) {
        if (launch->op[i].kind == kind && rma_run(&launch->op[i], time_ns))
            return -1;
    }
    return 0;
}

static int run_all(const struct launch *launch, struct plan *plan,
                   int64_t *time_ns)
{
    for (int i = 0; i < launch->n; i++) {
        const struct op *op = &launch->op[i];

        if (op_is_p2p(op) || op_is_rma(op))
            continue;
        profiler_began(plan, i, *time_ns);
        if (collective_run(op, time_ns))
            return -1;
        profiler_ended(plan, i, *time_ns);
    }
    note_p2p(launch, plan, profiler_began, *time_ns);
    if (run_p2p(launch, time_ns))
        return -1;
    note_p2p(launch, plan, profiler_ended, *time_ns);
    if (run_rma(launch, OP_PUT, time_ns))
        return -1;
    return run_rma(launch, OP_WAIT, time_ns);
}

static int64_t run_launch(void *arg, int64_t start_ns)
{
    struct launch *launch = arg;
    struct ncclComm *comm = launch->comm;
    int64_t time_ns = start_ns;
    struct plan *plan;

    comm_task_running(comm);
    plan = launch->captured ? profiler_replay(launch->op, launch->n)
                            : launch->plan;
    if (comm_is_stopped(comm) || run_all(launch, plan, &time_ns))
        time_ns = fabric_now_ns();
    fabric_sleep_until_ns(time_ns);
    profiler_finished(plan);
    comm_task_gone(comm, 1);
    return time_ns;
}

static CUresult relaunch(CUstream stream, void *arg);

static const struct fabric_task launch_task = {run_launch, free, relaunch};

/* How a launch gets on its stream: once, or from its graph. */
typedef CUresult push_fn(CUstream stream, const struct fabric_task *task,
                         void *arg);

/* Behind the communicator's last task, wherever that was issued. */
static CUresult push_ordered(struct launch *launch, CUstream stream,
                             push_fn *push)
{
    struct ncclComm *comm = launch->comm;
    unsigned long long id;
    CUresult rc = cuStreamGetId(stream, &id);

    if (!rc && comm->last_stream && comm->last_stream != id)
        rc = cuStreamWaitEvent(stream, comm->issued, 0);
    if (!rc)
        rc = push(stream, &launch_task, launch);
    if (!rc)
        rc = cuEventRecord(comm->issued, stream);
    if (!rc)
        comm->last_stream = id;
    return rc;
}

static CUresult push_pending(struct launch *launch, CUstream stream,
                             push_fn *push)
{
    struct ncclComm *comm = launch->comm;
    CUresult rc;

    comm_task_queued(comm);
    rc = push_ordered(launch, stream, push);
    if (rc)
        comm_task_gone(comm, 0);
    return rc;
}

static CUresult relaunch(CUstream stream, void *arg)
{
    struct launch *launch = arg;
    CUresult rc = comm_enter(launch->comm);

    if (rc)
        return rc;
    rc = push_pending(launch, stream, fabric_relaunch);
    comm_leave();
    return rc;
}

/* What is captured is neither pending nor in any order before it runs. */
static CUresult push_anyhow(struct launch *launch, CUstream stream,
                            int *captured)
{
    CUstreamCaptureStatus status;
    CUresult rc = cuStreamIsCapturing(stream, &status);

    if (rc)
        return rc;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE)
        return push_pending(launch, stream, fabric_launch);
    *captured = launch->captured = 1;
    return fabric_launch(stream, &launch_task, launch);
}

static CUresult push_launch(struct launch *launch, CUstream stream,
                            int *captured)
{
    CUresult rc = comm_enter(launch->comm);

    if (rc)
        return rc;
    rc = push_anyhow(launch, stream, captured);
    comm_leave();
    return rc;
}

/* The launch is gone once it is on the stream. */
static CUresult push_told(struct launch *launch, CUstream stream)
{
    struct plan *plan = profiler_plan(launch->op, launch->n);
    int captured = 0;
    CUresult rc;

    launch->plan = plan;
    profiler_launching(plan);
    rc = push_launch(launch, stream, &captured);
    if (rc)
        profiler_plan_drop(plan);
    else if (captured)
        profiler_captured(plan);
    else
        profiler_launched(plan);
    return rc;
}

/* A rank that sends to itself must also receive, in the same launch. */
static int self_is_matched(const struct launch *launch)
{
    int open = 0;

    for (int i = 0; i < launch->n; i++) {
        const struct op *op = &launch->op[i];

        if (op_is_p2p(op) && op->peer == launch->comm->rank)
            open += op->kind == OP_SEND ? 1 : -1;
    }
    return !open;
}

ncclResult_t launch_ops(const struct op *ops, int n)
{
    struct launch *launch = malloc(sizeof(*launch) + (size_t)n * sizeof(*ops));

    if (!launch)
        return ncclSystemError;
    launch->comm = ops[0].comm;
    launch->captured = 0;
    launch->n = n;
    memcpy(launch->op, ops, (size_t)n * sizeof(*ops));
    if (!self_is_matched(launch)) {
        free(launch);
        return nccl_fail(ncclInvalidUsage,
                         "send to self without receive in the same group");
    }
    announce_ops(ops, n);
    if (push_told(launch, ops[0].stream)) {
        free(launch);
        return nccl_fail(ncclUnhandledCudaError, "stream of another device");
    }
    return ncclSuccess;
}
