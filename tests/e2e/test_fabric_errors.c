/* Order across streams, errors, aborts, ranks that disagree, calls without a
 * body. */
#include <dlfcn.h>
#include <string.h>

#include "test_fabric.h"

void case_order(struct test *t)
{
    static long held_ms = 20;
    int *data = device(1000 * sizeof(int));
    cudaStream_t other;

    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
               "cudaStreamCreate");
    fill_ints(data, 1000, 1);
    for (int i = 0; i < 9; i++) {
        cudaStream_t streams[] = {t->stream, other, NULL};
        cudaStream_t s = streams[(i + t->job.rank) % 3];

        if (i % t->job.world == t->job.rank)
            check_cuda(cudaLaunchHostFunc(s, hold, &held_ms), "hold");
        check_nccl(ncclAllReduce(data, data, 1000, ncclInt32,
                                 i % 2 ? ncclMax : ncclSum, t->world, s),
                   "ncclAllReduce");
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (int i = 0, factor = 1; i < 9; i++) {
        factor *= i % 2 ? 1 : t->job.world;
        if (i == 8)
            for (int k = 0; k < 1000; k++)
                expect(data[k] == (k + 1) * factor,
                       "ops of one communicator run in the order of issue");
    }
    check_cuda(cudaStreamDestroy(other), "cudaStreamDestroy");
}

/* ---- errors ---- */

void case_errors(struct test *t)
{
    int *d = device(64);
    int n = t->job.world;
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    ncclResult_t async = ncclInternalError;
    ncclConfig_t config = {0};

    expect(ncclAllReduce(d, d, 1, ncclInt32, ncclSum, NULL, t->stream) ==
               ncclInvalidArgument,
           "no communicator");
    expect(ncclAllReduce(d, d, 1, ncclNumTypes, ncclSum, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad type");
    expect(ncclAllReduce(d, d, 1, ncclInt32, (ncclRedOp_t)77, t->world,
                         t->stream) == ncclInvalidArgument,
           "bad operator");
    expect(ncclBroadcast(d, d, 1, ncclInt32, n, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad root");
    expect(ncclReduce(d, d, 1, ncclInt32, ncclSum, -1, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad root");
    expect(ncclSend(d, 1, ncclInt32, n, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad peer");
    expect(strlen(ncclGetLastError(NULL)) > 0, "last error");
    expect(ncclSend(d, 1, ncclInt32, t->job.rank, t->world, t->stream) ==
               ncclInvalidUsage,
           "send to self alone");
    expect(ncclGroupEnd() == ncclInvalidUsage, "end without start");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclAllReduce(d, d, 1, ncclInt32, ncclSum, t->world, t->stream),
               "ncclAllReduce");
    expect(ncclSend(d, 1, ncclInt32, -1, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad peer");
    expect(ncclGroupEnd() == ncclInvalidArgument,
           "an error inside fails the group");
    check_nccl(ncclAllReduce(d, d, 0, ncclInt32, ncclSum, t->world, t->stream),
               "nothing to do");
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    expect(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument, "rank");
    expect(ncclCommInitRank(NULL, 1, id, 0) == ncclInvalidArgument, "NULL");
    expect(ncclCommInitRankConfig(&comm, 1, id, 0, &config) ==
               ncclInvalidArgument,
           "config that nobody initialised");
    expect(ncclCommSplit(t->world, -2, 0, &comm, NULL) == ncclInvalidArgument,
           "bad colour");
    expect(!strcmp(ncclGetErrorString(ncclSuccess), "no error"), "text");
    check_nccl(ncclCommGetAsyncError(t->world, &async), "async error");
    expect(async == ncclSuccess, "async error");
    check_nccl(ncclCommDestroy(NULL), "nothing to destroy");
    check_nccl(ncclCommAbort(NULL), "nothing to abort");
    barrier(t);
}

/* Rank 1 never comes; the others are freed by abort. */
void case_abort(struct test *t)
{
    int *d = device(1 << 20);
    double start = now_ms();
    ncclComm_t child;

    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &child, NULL), "split");
    if (t->job.rank != 1)
        check_nccl(
            ncclAllReduce(d, d, 1 << 18, ncclInt32, ncclSum, child, t->stream),
            "ncclAllReduce");
    if (t->job.rank != 1) {
        sleep_ms(100);
        expect(cudaStreamQuery(t->stream) == cudaErrorNotReady,
               "waits for the missing rank");
    }
    check_nccl(ncclCommAbort(child), "ncclCommAbort");
    sync_stream(t);
    expect(now_ms() - start < 5000, "abort frees at once");
    barrier(t);
}

/* Ranks that disagree about a size hang until they abort, and are told why. */
void case_mismatch(struct test *t)
{
    size_t count = t->job.rank ? 2000 : 1000;
    int *d = device(8000);
    ncclComm_t child;

    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &child, NULL), "split");
    check_nccl(ncclAllReduce(d, d, count, ncclInt32, ncclSum, child, t->stream),
               "ncclAllReduce");
    sleep_ms(100);
    expect(cudaStreamQuery(t->stream) == cudaErrorNotReady, "hangs");
    check_nccl(ncclCommAbort(child), "ncclCommAbort");
    sync_stream(t);
    barrier(t);
}

/* One process holds all ranks: ncclCommInitAll and groups over them. */
void case_threads(struct test *t)
{
    enum { N = 4, COUNT = 1000 };
    ncclComm_t comm[N];
    cudaStream_t stream[N];
    int *data[N];

    if (t->job.rank)
        return;
    check_nccl(ncclCommInitAll(comm, N, NULL), "ncclCommInitAll");
    for (int i = 0; i < N; i++) {
        int device_of = -1;

        check_cuda(cudaSetDevice(i), "cudaSetDevice");
        check_nccl(ncclCommCuDevice(comm[i], &device_of), "ncclCommCuDevice");
        expect(device_of == i, "device of the communicator");
        check_cuda(cudaStreamCreate(&stream[i]), "cudaStreamCreate");
        data[i] = device(COUNT * sizeof(int));
        fill_ints(data[i], COUNT, i);
    }
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < N; i++)
        check_nccl(ncclAllReduce(data[i], data[i], COUNT, ncclInt32, ncclMax,
                                 comm[i], stream[i]),
                   "ncclAllReduce");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < N; i++) {
        check_cuda(cudaStreamSynchronize(stream[i]), "sync");
        expect_ints(data[i], COUNT, N - 1, "all-reduce over threads");
        check_nccl(ncclCommDestroy(comm[i]), "ncclCommDestroy");
        check_cuda(cudaStreamDestroy(stream[i]), "cudaStreamDestroy");
    }
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
}

/* A call without a body is loud and says so once. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);

void case_stub(struct test *t)
{
    void *symbol = dlsym(RTLD_DEFAULT, "ncclWinGetUserPtr");
    int (*stub)(void);

    (void)t;
    expect(symbol != NULL, "every public name is there");
    *(void **)&stub = symbol;
    expect(stub() == ncclInvalidUsage, "stub");
    expect(stub() == ncclInvalidUsage, "stub");
}
