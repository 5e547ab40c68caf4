/*
 * What NCCL has gained since 2.22, on the stand-in: simulated groups, shrinks
 * of several kinds, growing, suspending, one-sided calls, settings per
 * collective, errors that come later. test_fabric_newer CASE.
 */
#include "fabric_cases.h"

#include <nccl_newer.h>

static void expect_sum(struct test *t, ncclComm_t comm, int n)
{
    set(t, 1);
    check_nccl(all_reduce(t, comm), "ncclAllReduce");
    expect_all(t, n, "the sum");
}

/* Nothing runs, and the thread is free for the next group. */
static void case_simulate(struct test *t)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER, wrong = {0};

    expect(ncclGroupSimulateEnd(&info) == ncclInvalidUsage, "no group");
    check_nccl(ncclGroupStart(), "start");
    expect(ncclGroupSimulateEnd(&wrong) == ncclInvalidArgument, "magic");
    set(t, 1);
    check_nccl(ncclGroupStart(), "nested");
    check_nccl(all_reduce(t, t->world), "an op");
    check_nccl(ncclGroupSimulateEnd(&info), "inner end");
    expect(info.estimatedTime < 0, "no time before the outermost end");
    check_nccl(ncclGroupSimulateEnd(&info), "simulate");
    expect(info.estimatedTime > 0, "a time");
    expect_all(t, 1, "nothing ran");
    expect_sum(t, t->world, t->job.world);
}

static int contains(const int *list, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        if (list[i] == rank)
            return 1;
    }
    return 0;
}

static void shrink(struct test *t, ncclComm_t comm, int a, int b)
{
    int list[2] = {a, b}, n = b < 0 ? 1 : 2;
    ncclComm_t child;

    if (contains(list, n, t->job.rank))
        return;
    check_nccl(ncclCommShrink(comm, list, n, &child, NULL, 0), "shrink");
    expect_sum(t, child, t->job.world - n);
    check_nccl(ncclCommDestroy(child), "CommDestroy");
}

/* Ranks have called different numbers of shrinks when they meet again. */
static void case_shrink_sets(struct test *t)
{
    shrink(t, t->world, 2, -1);
    shrink(t, t->world, 1, -1);
    shrink(t, t->world, 1, -1);
    shrink(t, t->world, 0, -1);
    shrink(t, t->world, t->job.rank == 1 ? 2 : 0, t->job.rank == 1 ? 0 : 2);
    shrink(t, t->world, 2, -1);
    barrier(t);
}

/* The first two ranks are joined by the others, twice from one parent. */
static ncclComm_t grow(struct test *t, ncclComm_t parent)
{
    ncclUniqueId id = {{0}};
    ncclComm_t comm = NULL;
    int is_new = t->job.rank > 1, n;

    if (!t->job.rank)
        check_nccl(ncclCommGetUniqueId(parent, &id), "CommGetUniqueId");
    id = pass_id(t, id);
    check_nccl(ncclCommGrow(parent, t->job.world, is_new ? &id : NULL,
                            is_new ? t->job.rank : -1, &comm, NULL),
               "ncclCommGrow");
    check_nccl(ncclCommCount(comm, &n), "CommCount");
    expect(n == t->job.world, "grown");
    check_nccl(ncclCommUserRank(comm, &n), "CommUserRank");
    expect(n == t->job.rank, "rank");
    expect_sum(t, comm, t->job.world);
    return comm;
}

static void case_grow(struct test *t)
{
    ncclComm_t parent, first, second, child;
    ncclUniqueId id = {{0}};

    check_nccl(ncclCommSplit(t->world, t->job.rank > 1 ? -1 : 0, t->job.rank,
                             &parent, NULL),
               "split");
    expect(ncclCommGrow(NULL, 2, NULL, 0, &child, NULL) == ncclInvalidArgument,
           "a new rank without an id");
    if (parent)
        expect(ncclCommGrow(parent, 2, &id, -1, &child, NULL) ==
                   ncclInvalidArgument,
               "no new ranks");
    first = grow(t, parent);
    second = grow(t, parent);
    check_nccl(ncclCommSplit(second, 0, t->job.rank, &child, NULL), "split");
    expect_sum(t, child, t->job.world);
    check_nccl(ncclCommDestroy(child), "CommDestroy");
    check_nccl(ncclCommDestroy(second), "CommDestroy");
    check_nccl(ncclCommDestroy(first), "CommDestroy");
    check_nccl(ncclCommDestroy(parent), "CommDestroy");
    barrier(t);
}

static void case_suspend(struct test *t)
{
    expect(ncclCommResume(t->world) == ncclInvalidUsage, "not suspended");
    expect(ncclCommSuspend(t->world, 0) == ncclInvalidArgument, "flags");
    check_nccl(ncclCommSuspend(t->world, NCCL_SUSPEND_MEM), "suspend");
    expect(all_reduce(t, t->world) == ncclInvalidUsage, "no ops");
    check_nccl(ncclCommResume(t->world), "resume");
    expect_sum(t, t->world, t->job.world);
}

#define BIG (3 << 18) /* ints: more than a mailbox holds */

static void wait_for(struct test *t, int peer, int times)
{
    ncclWaitSignalDesc_t desc = {.opCnt = times, .peer = peer};

    check_nccl(ncclWaitSignal(1, &desc, t->world, t->stream), "WaitSignal");
}

/* Each rank puts into its neighbour's window, small and large, and signals. A
 * put may come before the one before it was looked at. */
static void case_one_sided(struct test *t)
{
    int n = t->job.world, me = t->job.rank, to = (me + 1) % n;
    int from = (me + n - 1) % n;
    int *window, *h = malloc(BIG * sizeof(int));
    ncclWindow_t win;
    ncclWaitSignalDesc_t both[2] = {{1, from, 0, 0}, {1, from, 0, 0}};

    check_cuda(cudaMalloc((void **)&window, 3 * BIG * sizeof(int)), "malloc");
    check_nccl(ncclCommWindowRegister(t->world, window, 3 * BIG * sizeof(int),
                                      &win, NCCL_WIN_COLL_SYMMETRIC),
               "WindowRegister");
    set(t, 100 + me);
    check_nccl(ncclPutSignal(t->d, 10, ncclInt32, to, win, 4 * sizeof(int), 0,
                             0, 0, t->world, t->stream),
               "PutSignal");
    wait_for(t, from, 1);
    check_cuda(cudaMemcpyAsync(h, window, 20 * sizeof(int),
                               cudaMemcpyDeviceToHost, t->stream),
               "copy");
    sync(t);
    for (int i = 4; i < 14; i++)
        expect(h[i] == 100 + from, "the bytes that were put");
    for (int i = 0; i < BIG; i++)
        h[i] = i * (me + 1);
    check_cuda(cudaMemcpyAsync(window + BIG, h, BIG * sizeof(int),
                               cudaMemcpyHostToDevice, t->stream),
               "copy");
    check_nccl(ncclPutSignal(window + BIG, BIG, ncclInt32, to, win,
                             2 * BIG * sizeof(int), 0, 0, 0, t->world,
                             t->stream),
               "PutSignal");
    check_nccl(ncclSignal(to, 0, 0, 0, t->world, t->stream), "Signal");
    check_nccl(ncclWaitSignal(2, both, t->world, t->stream), "WaitSignal");
    check_cuda(cudaMemcpyAsync(h, window + 2 * BIG, BIG * sizeof(int),
                               cudaMemcpyDeviceToHost, t->stream),
               "copy");
    sync(t);
    for (int i = 0; i < BIG; i++)
        expect(h[i] == i * (from + 1), "many bytes");
    expect(ncclSignal(n, 0, 0, 0, t->world, t->stream) == ncclInvalidArgument,
           "no such rank");
    expect(ncclSignal(to, 1, 0, 0, t->world, t->stream) == ncclInvalidArgument,
           "only signal 0");
    check_nccl(ncclCommWindowDeregister(t->world, win), "WindowDeregister");
    check_cuda(cudaFree(window), "cudaFree");
    free(h);
    expect_sum(t, t->world, n);
}

static void case_settings(struct test *t)
{
    int h[COUNT], n = t->job.world;

    set(t, 1);
    check_nccl(ncclAllReduceConfig(t->d, t->d, COUNT, ncclInt32, ncclSum,
                                   t->world, t->stream, NULL),
               "AllReduceConfig");
    expect_all(t, n, "the sum");
    set(t, t->job.rank);
    check_nccl(ncclAlltoAllConfig(t->d, t->d + COUNT / 2, 10, ncclInt32,
                                  t->world, t->stream, NULL),
               "AlltoAllConfig");
    check_cuda(
        cudaMemcpyAsync(h, t->d, sizeof(h), cudaMemcpyDeviceToHost, t->stream),
        "copy");
    sync(t);
    for (int i = 0; i < n; i++)
        expect(h[COUNT / 2 + 10 * i] == i, "a share of each");
}

/* The machine has rank 0 learn of a failure after its first op. */
static void case_async(struct test *t)
{
    ncclResult_t state;

    expect_sum(t, t->world, t->job.world);
    check_nccl(ncclCommGetAsyncError(t->world, &state), "GetAsyncError");
    expect(state == (t->job.rank ? ncclSuccess : ncclRemoteError), "state");
    if (!t->job.rank)
        expect(all_reduce(t, t->world) == ncclRemoteError, "no more ops");
    check_nccl(ncclCommAbort(t->world), "CommAbort");
    exit(0);
}

/* The first use of CUDA: the devices are active from then on. */
static void case_init_all(struct test *t)
{
    ncclComm_t comm[2];
    int active = 0;

    (void)t;
    check_nccl(ncclCommInitAll(comm, 2, NULL), "CommInitAll");
    for (int i = 0; i < 2; i++) {
        check_cuda(cudaSetDevice(i), "cudaSetDevice");
        check_nccl(ncclCommCount(comm[i], &active), "CommCount");
        expect(active == 2, "two ranks");
        check_nccl(ncclCommDestroy(comm[i]), "CommDestroy");
    }
}

static const struct test_case cases[] = {
    {"simulate", case_simulate},   {"shrink_sets", case_shrink_sets},
    {"grow", case_grow},           {"suspend", case_suspend},
    {"one_sided", case_one_sided}, {"settings", case_settings},
    {"async", case_async},         {"init_all", case_init_all},
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
