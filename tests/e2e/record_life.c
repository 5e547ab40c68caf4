/*
 * What communicators and groups can be made to do, in an order that
 * test_life.py knows. Started by launch, one process per rank:
 * record_life CASE.
 */
#include "fabric_cases.h"

#include <nccl_newer.h>
#include <pthread.h>

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;

    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    return stream;
}

static ncclResult_t reduce(struct test *t, size_t count, int type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return ncclAllReduce(t->d, t->d, count, (ncclDataType_t)type, ncclSum, comm,
                         stream);
}

static void start(void)
{
    check_nccl(ncclGroupStart(), "ncclGroupStart");
}

static void end(void)
{
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

static void nested(struct test *t)
{
    start();
    end();
    start();
    start();
    check_nccl(all_reduce(t, t->world), "inner");
    end();
    check_nccl(all_reduce(t, t->world), "outer");
    end();
}

static void mixed(struct test *t, ncclComm_t second, cudaStream_t side)
{
    int peer = 1 - t->job.rank;
    int *d;

    check_cuda(cudaMalloc((void **)&d, 500 * sizeof(int)), "cudaMalloc");
    start();
    check_nccl(all_reduce(t, t->world), "all-reduce");
    check_nccl(ncclAllReduce(d, d, 500, ncclInt32, ncclSum, second, side),
               "another communicator");
    check_nccl(ncclSend(t->d, 100, ncclInt32, peer, t->world, t->stream),
               "send");
    check_nccl(ncclRecv(t->d + 500, 100, ncclInt32, peer, t->world, t->stream),
               "recv");
    end();
    check_cuda(cudaStreamSynchronize(side), "side");
    sync(t);
    check_cuda(cudaFree(d), "cudaFree");
}

static ncclComm_t made_inside(struct test *t)
{
    ncclComm_t child = NULL;

    start();
    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &child, NULL), "split");
    end();
    check_nccl(all_reduce(t, child), "the child");
    sync(t);
    return child;
}

static void failing(struct test *t)
{
    start();
    check_nccl(reduce(t, 7, ncclInt32, t->world, t->stream), "a good one");
    expect(reduce(t, 9, 99, t->world, t->stream) == ncclInvalidArgument,
           "a type that is none");
    expect(ncclGroupEnd() == ncclInvalidArgument, "the group fails");
}

static void simulated(struct test *t)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    start();
    check_nccl(all_reduce(t, t->world), "simulated");
    check_nccl(ncclGroupSimulateEnd(&info), "ncclGroupSimulateEnd");
}

static void case_groups(struct test *t)
{
    ncclComm_t second = second_world(t), child;
    cudaStream_t side = new_stream();

    set(t, 1);
    nested(t);
    mixed(t, second, side);
    child = made_inside(t);
    failing(t);
    start();
    check_nccl(reduce(t, 0, ncclInt32, t->world, t->stream), "empty");
    end();
    if (t->job.rank)
        simulated(t);
    barrier(t);
    check_nccl(ncclCommDestroy(child), "destroy");
    check_nccl(ncclCommDestroy(second), "destroy");
}

static ncclComm_t nonblocking(struct test *t)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;

    config.blocking = 0;
    config.commName = "late";
    expect(ncclCommSplit(t->world, 0, t->job.rank, &comm, &config) ==
               ncclSuccess,
           "a blocking parent");
    return comm;
}

static ncclComm_t started(struct test *t)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = shared_id(t);
    ncclComm_t comm = NULL;

    config.blocking = 0;
    config.commName = "late";
    expect(ncclCommInitRankConfig(&comm, t->job.world, id, t->job.rank,
                                  &config) == ncclInProgress,
           "init is in progress");
    return comm;
}

static void *ask(void *comm)
{
    expect(settle(comm) == ncclSuccess, "settled");
    return NULL;
}

/* Another thread is told that the state has changed. */
static void settle_elsewhere(ncclComm_t comm)
{
    pthread_t thread;

    pthread_create(&thread, NULL, ask, comm);
    pthread_join(thread, NULL);
}

static void case_late(struct test *t)
{
    ncclComm_t comm = nonblocking(t);

    set(t, 1);
    start();
    check_nccl(all_reduce(t, comm), "in a group");
    check_nccl(all_reduce(t, comm), "and another");
    expect(ncclGroupEnd() == ncclInProgress, "the group launches later");
    settle_elsewhere(comm);
    sync(t);
    check_nccl(ncclCommDestroy(comm), "destroy");

    comm = nonblocking(t);
    expect(all_reduce(t, comm) == ncclInProgress, "launched later");
    settle_elsewhere(comm);
    sync(t);
    check_nccl(ncclCommDestroy(comm), "destroy");

    /* Nobody asks before the next call is let in. */
    comm = nonblocking(t);
    expect(all_reduce(t, comm) == ncclInProgress, "launched later");
    while (all_reduce(t, comm) != ncclSuccess)
        sleep_ms(5);
    sync(t);
    check_nccl(ncclCommDestroy(comm), "destroy");

    /* Nor before the first call on a new communicator. */
    comm = started(t);
    while (all_reduce(t, comm) == ncclInvalidArgument)
        sleep_ms(5);
    settle_elsewhere(comm);
    sync(t);
    check_nccl(ncclCommDestroy(comm), "destroy");

    /* Nor before the end. */
    comm = nonblocking(t);
    expect(all_reduce(t, comm) == ncclInProgress, "launched later");
    check_nccl(ncclCommAbort(comm), "abort");
    barrier(t);
}

struct watchdog {
    ncclComm_t comm;
    _Atomic int over;
};

/* As frameworks have it, a thread that asks all the time. */
static void *watch(void *data)
{
    struct watchdog *watchdog = data;
    ncclResult_t state;

    while (!watchdog->over)
        ncclCommGetAsyncError(watchdog->comm, &state);
    return NULL;
}

/* Both hear that the communicator is there; one uses it at once. */
static void case_two_ask(struct test *t)
{
    for (int i = 0; i < 60; i++) {
        struct watchdog watchdog = {.comm = started(t)};
        pthread_t thread;

        pthread_create(&thread, NULL, watch, &watchdog);
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress)
            ncclCommGetAsyncError(watchdog.comm, &state);
        all_reduce(t, watchdog.comm);
        expect(settle(watchdog.comm) == ncclSuccess, "launched");
        sync(t);
        watchdog.over = 1;
        pthread_join(thread, NULL);
        check_nccl(ncclCommDestroy(watchdog.comm), "destroy");
    }
}

/* Two halves of the job shrink, each by its own list; one grows back. */
static void case_tree(struct test *t)
{
    int n = t->job.world, me = t->job.rank, upper[32], lower[32];
    ncclComm_t half = NULL, comm = NULL;
    ncclUniqueId id = {{0}};

    for (int i = 0; i < n / 2; i++) {
        lower[i] = i;
        upper[i] = n / 2 + i;
    }
    /* What NCCL refuses in one rank alone does not count in it. */
    if (me == 1) {
        expect(ncclCommSplit(t->world, -5, 0, &comm, NULL) ==
                   ncclInvalidArgument,
               "a colour that is none");
        expect(ncclCommShrink(t->world, &me, 1, &half, NULL, 0) ==
                   ncclInvalidArgument,
               "without itself");
    }
    check_nccl(ncclCommSplit(t->world, me ? -1 : 0, 0, &comm, NULL), "split");
    if (comm)
        check_nccl(ncclCommDestroy(comm), "destroy");
    check_nccl(ncclCommShrink(t->world, me < n / 2 ? upper : lower, n / 2,
                              &half, NULL, NCCL_SHRINK_DEFAULT),
               "shrink");
    check_nccl(all_reduce(t, half), "a half");
    sync(t);
    if (!me)
        check_nccl(ncclCommGetUniqueId(half, &id), "CommGetUniqueId");
    id = pass_id(t, id);
    check_nccl(ncclCommGrow(me < n / 2 ? half : NULL, n,
                            me < n / 2 ? NULL : &id, me < n / 2 ? -1 : me,
                            &comm, NULL),
               "grow");
    check_nccl(all_reduce(t, comm), "grown");
    sync(t);
    check_nccl(ncclCommDestroy(comm), "destroy");
    check_nccl(ncclCommDestroy(half), "destroy");
}

/* NCCL_COMM_ID is set: every communicator has the same id. */
static void case_comm_id(struct test *t)
{
    ncclUniqueId id = shared_id(t);
    ncclComm_t comm[2];

    for (int i = 0; i < 2; i++) {
        check_nccl(ncclCommInitRank(&comm[i], t->job.world, id, t->job.rank),
                   "init");
        check_nccl(all_reduce(t, comm[i]), "an op");
        sync(t);
    }
    for (int i = 0; i < 2; i++)
        check_nccl(ncclCommDestroy(comm[i]), "destroy");
}

/* Two GPUs of rank 0, by ncclCommInitAll, which shows nobody its id, are joined
 * by rank 1. */
static void case_all_grow(struct test *t)
{
    ncclComm_t pair[2] = {NULL, NULL}, comm[2];
    ncclUniqueId id = {{0}};

    if (!t->job.rank) {
        check_nccl(ncclCommInitAll(pair, 2, NULL), "init all");
        check_nccl(ncclCommGetUniqueId(pair[0], &id), "CommGetUniqueId");
    }
    id = pass_id(t, id);
    start();
    for (int i = 0; i < 2 && !t->job.rank; i++)
        check_nccl(ncclCommGrow(pair[i], 3, NULL, -1, &comm[i], NULL), "grow");
    if (t->job.rank)
        check_nccl(ncclCommGrow(NULL, 3, &id, 2, &comm[0], NULL), "join");
    end();
    for (int i = 0; i < 2 - t->job.rank; i++)
        check_nccl(ncclCommDestroy(comm[i]), "destroy");
    for (int i = 0; i < 2 && !t->job.rank; i++)
        check_nccl(ncclCommDestroy(pair[i]), "destroy");
}

static const struct test_case cases[] = {
    {"groups", case_groups},     {"late", case_late},
    {"tree", case_tree},         {"comm_id", case_comm_id},
    {"all_grow", case_all_grow}, {"two_ask", case_two_ask},
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
