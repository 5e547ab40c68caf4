/*
 * The life of communicators on the stand-in NCCL: those that do not block,
 * what is revoked, shrunk, aborted, made by several roots, and collectives in
 * a CUDA graph. Started by launch, one process per rank:
 * test_fabric_life CASE.
 */
#include "fabric_cases.h"

/* ---- communicators that do not block ---- */

static ncclComm_t start_nonblocking(struct test *t)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = shared_id(t);
    ncclComm_t comm = NULL;
    int n;

    config.blocking = 0;
    if (t->job.rank == 1)
        sleep_ms(100);
    expect(ncclCommInitRankConfig(&comm, t->job.world, id, t->job.rank,
                                  &config) == ncclInProgress,
           "init is in progress");
    expect(comm != NULL, "the handle is there at once");
    if (!t->job.rank)
        expect(ncclCommCount(comm, &n) == ncclInvalidArgument,
               "nothing works before the others came");
    return comm;
}

static void test_nonblocking_ops(struct test *t, ncclComm_t comm)
{
    int n = t->job.world;

    set(t, t->job.rank + 1);
    expect(all_reduce(t, comm) == ncclInProgress, "the first op connects");
    expect(settle(comm) == ncclSuccess, "it is launched");
    expect(all_reduce(t, comm) == ncclSuccess, "the next ones are quick");
    expect_all(t, n * n * (n + 1) / 2, "numbers are right");
}

static void test_nonblocking_split(struct test *t, ncclComm_t comm)
{
    ncclComm_t child = NULL;
    int rank;

    if (!t->job.rank)
        sleep_ms(50);
    expect(ncclCommSplit(comm, 0, -t->job.rank, &child, NULL) == ncclInProgress,
           "split is in progress");
    expect(settle(comm) == ncclSuccess, "the parent tells its end");
    expect(child != NULL, "then the child is there");
    check_nccl(ncclCommUserRank(child, &rank), "CommUserRank");
    expect(rank == t->job.world - 1 - t->job.rank, "rank in the child");
    set(t, 1);
    expect(all_reduce(t, child) == ncclInProgress, "the child inherits that");
    expect(settle(child) == ncclSuccess, "launched");
    expect_all(t, t->job.world, "the child's sum");
    expect(ncclCommFinalize(child) == ncclInProgress, "finalize");
    expect(settle(child) == ncclSuccess, "finalized");
    check_nccl(ncclCommDestroy(child), "CommDestroy");
}

static void case_nonblocking(struct test *t)
{
    ncclComm_t comm = start_nonblocking(t);

    expect(settle(comm) == ncclSuccess, "init");
    test_nonblocking_ops(t, comm);
    test_nonblocking_split(t, comm);
    expect(ncclCommFinalize(comm) == ncclInProgress, "finalize");
    expect(settle(comm) == ncclSuccess, "finalized");
    check_nccl(ncclCommDestroy(comm), "CommDestroy");
    barrier(t);
}

/* A rank that never comes: the others give up. */
static void case_abort_init(struct test *t)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = shared_id(t);
    ncclComm_t comm = NULL;
    ncclResult_t state;

    config.blocking = 0;
    if (t->job.rank) {
        expect(ncclCommInitRankConfig(&comm, t->job.world, id, t->job.rank,
                                      &config) == ncclInProgress,
               "init");
        sleep_ms(50);
        check_nccl(ncclCommGetAsyncError(comm, &state), "GetAsyncError");
        expect(state == ncclInProgress, "still in progress");
        check_nccl(ncclCommAbort(comm), "CommAbort");
    }
    barrier(t);
}

/* ---- revoke, shrink, abort ---- */

static void case_revoke(struct test *t)
{
    ncclComm_t comm = second_world(t);
    ncclComm_t child;

    set(t, 1);
    if (t->job.rank)
        check_nccl(all_reduce(t, comm), "an op that never ends");
    sleep_ms(50);
    expect(ncclCommRevoke(comm, 1) == ncclInvalidArgument, "flags");
    check_nccl(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), "CommRevoke");
    sync(t);
    expect(all_reduce(t, comm) == ncclInvalidUsage, "no ops any more");
    expect(ncclCommFinalize(comm) == ncclInvalidUsage, "nor finalize");
    check_nccl(ncclCommSplit(comm, 0, 0, &child, NULL), "split of a revoked");
    set(t, 1);
    check_nccl(all_reduce(t, child), "the child works");
    expect_all(t, t->job.world, "the child's sum");
    check_nccl(ncclCommDestroy(child), "CommDestroy");
    check_nccl(ncclCommDestroy(comm), "CommDestroy");
    barrier(t);
}

static void shrink(struct test *t, ncclComm_t comm, int flags)
{
    int last = t->job.world - 1;
    ncclComm_t child;
    int rank;
    int n;

    check_nccl(ncclCommShrink(comm, &last, 1, &child, NULL, flags), "shrink");
    check_nccl(ncclCommUserRank(child, &rank), "CommUserRank");
    check_nccl(ncclCommCount(child, &n), "CommCount");
    expect(rank == t->job.rank && n == t->job.world - 1, "shrunk");
    set(t, 1);
    check_nccl(all_reduce(t, child), "the child works");
    expect_all(t, n, "the child's sum");
    check_nccl(ncclCommDestroy(child), "CommDestroy");
}

/* The last rank is left out, twice; then it is lost with an op under way. */
static void case_shrink(struct test *t)
{
    ncclComm_t comm = second_world(t);
    int is_last = t->job.rank == t->job.world - 1;
    int me = t->job.rank;
    ncclComm_t child;

    expect(ncclCommShrink(comm, &me, 1, &child, NULL, NCCL_SHRINK_DEFAULT) ==
               ncclInvalidArgument,
           "nobody excludes itself");
    if (!is_last) {
        shrink(t, comm, NCCL_SHRINK_DEFAULT);
        shrink(t, comm, NCCL_SHRINK_DEFAULT);
        check_nccl(all_reduce(t, comm), "an op that never ends");
        shrink(t, comm, NCCL_SHRINK_ABORT);
    }
    check_nccl(ncclCommAbort(comm), "CommAbort");
    barrier(t);
}

/* Two hang, one queued behind the other: each can be aborted on its own. */
static void case_abort_queued(struct test *t)
{
    ncclComm_t first = second_world(t);
    ncclComm_t second = second_world(t);

    if (t->job.rank) {
        check_nccl(all_reduce(t, first), "an op that never ends");
        check_nccl(all_reduce(t, second), "one behind it");
        sleep_ms(20);
    }
    check_nccl(ncclCommAbort(second), "CommAbort");
    check_nccl(ncclCommAbort(first), "CommAbort");
    sync(t);
    barrier(t);
}

static void case_scalable(struct test *t)
{
    ncclUniqueId ids[2];
    ncclComm_t comm;

    ids[0] = shared_id(t);
    ids[1] = shared_id(t);
    expect(ncclCommInitRankScalable(&comm, t->job.world, t->job.rank, 0, ids,
                                    NULL) == ncclInvalidArgument,
           "no id");
    check_nccl(ncclCommInitRankScalable(&comm, t->job.world, t->job.rank, 2,
                                        ids, NULL),
               "ncclCommInitRankScalable");
    set(t, 1);
    check_nccl(all_reduce(t, comm), "it works");
    expect_all(t, t->job.world, "sum");
    check_nccl(ncclCommDestroy(comm), "CommDestroy");
}

/* ---- graphs ---- */

static cudaGraphExec_t capture(struct test *t, ncclComm_t comm,
                               cudaStream_t side)
{
    cudaEvent_t fork;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    check_cuda(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming),
               "cudaEventCreate");
    check_cuda(cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeGlobal),
               "begin");
    check_nccl(all_reduce(t, comm), "captured");
    check_cuda(cudaEventRecord(fork, t->stream), "record");
    check_cuda(cudaStreamWaitEvent(side, fork, 0), "fork");
    check_nccl(ncclAllReduce(t->d, t->d, COUNT, ncclInt32, ncclSum, comm, side),
               "captured on the side");
    check_cuda(cudaEventRecord(fork, side), "record");
    check_cuda(cudaStreamWaitEvent(t->stream, fork, 0), "join");
    check_cuda(cudaStreamEndCapture(t->stream, &graph), "end");
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    check_cuda(cudaGraphDestroy(graph), "destroy");
    check_cuda(cudaEventDestroy(fork), "destroy");
    return exec;
}

/* Nothing runs at capture, everything at each launch, in order with ops. */
static void case_graph(struct test *t)
{
    ncclComm_t comm = second_world(t);
    int n = t->job.world;
    cudaGraphExec_t exec;
    cudaStream_t side;

    check_cuda(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking),
               "stream");
    set(t, 1);
    sync(t);
    exec = capture(t, comm, side);
    expect_all(t, 1, "nothing ran yet");
    for (int i = 0; i < 3; i++) {
        set(t, i + 1);
        check_cuda(cudaGraphLaunch(exec, t->stream), "launch");
        check_nccl(all_reduce(t, comm), "an op behind it");
        expect_all(t, (i + 1) * n * n * n, "replayed");
    }
    check_cuda(cudaGraphExecDestroy(exec), "destroy");
    check_cuda(cudaStreamDestroy(side), "destroy");
    check_nccl(ncclCommDestroy(comm), "CommDestroy");
}

static const struct test_case cases[] = {
    {"nonblocking", case_nonblocking},
    {"abort_init", case_abort_init},
    {"revoke", case_revoke},
    {"shrink", case_shrink},
    {"abort_queued", case_abort_queued},
    {"scalable", case_scalable},
    {"graph", case_graph},
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
