/* Groups, sends and receives. */
#include <string.h>

#include "test_fabric.h"

/* Everyone sends to everyone, itself included, in opposite orders, in nested
 * groups; messages larger than the send buffer must not block each other. */
static void test_exchange(struct test *t, size_t n)
{
    int world = t->job.world;
    int *send = device(n * (size_t)world * sizeof(int));
    int *recv = device(n * (size_t)world * sizeof(int));

    for (int r = 0; r < world; r++)
        fill_ints(send + (size_t)r * n, n, 1000 * t->job.rank + r);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < world; r++)
        check_nccl(ncclSend(send + (size_t)r * n, n, ncclInt32, r, t->world,
                            t->stream),
                   "ncclSend");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    expect(cudaStreamQuery(t->stream) == cudaSuccess,
           "nothing launches before the outermost end");
    for (int r = world - 1; r >= 0; r--)
        check_nccl(ncclRecv(recv + (size_t)r * n, n, ncclInt32, r, t->world,
                            t->stream),
                   "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync_stream(t);
    for (int r = 0; r < world; r++)
        expect_ints(recv + (size_t)r * n, n, 1000 * r + t->job.rank,
                    "exchange");
    check_cuda(cudaFree(send), "cudaFree");
    check_cuda(cudaFree(recv), "cudaFree");
}

/* Several messages to one peer in one group arrive in order; more of them
 * than a pipe has envelopes. */
static void test_many(struct test *t)
{
    enum { MANY = 1000 };
    int next = (t->job.rank + 1) % t->job.world;
    int previous = (t->job.rank + t->job.world - 1) % t->job.world;
    int *send = device(MANY * sizeof(int));
    int *recv = device(MANY * sizeof(int));

    fill_ints(send, MANY, t->job.rank);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < MANY; i++) {
        check_nccl(ncclSend(send + i, 1, ncclInt32, next, t->world, t->stream),
                   "ncclSend");
        check_nccl(
            ncclRecv(recv + i, 1, ncclInt32, previous, t->world, t->stream),
            "ncclRecv");
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync_stream(t);
    expect_ints(recv, MANY, previous, "many messages");
}

/* Collectives and sends of two streams and two kinds in one group. */
static void test_mixed(struct test *t)
{
    int peer = t->job.rank ^ 1;
    int *data = device(4 * 1000 * sizeof(int));
    int *sum = data + 1000;
    int *in = data + 2000;
    cudaStream_t other;

    if (peer >= t->job.world)
        peer = t->job.rank;
    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
               "cudaStreamCreate");
    fill_ints(data, 1000, t->job.rank);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclSend(data, 1000, ncclInt32, peer, t->world, t->stream),
               "ncclSend");
    check_nccl(
        ncclAllReduce(data, sum, 1000, ncclInt32, ncclMax, t->world, other),
        "ncclAllReduce");
    check_nccl(ncclRecv(in, 1000, ncclInt32, peer, t->world, t->stream),
               "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync_stream(t);
    check_cuda(cudaStreamSynchronize(other), "cudaStreamSynchronize");
    expect_ints(sum, 1000, t->job.world - 1, "all-reduce in a group");
    expect_ints(in, 1000, peer, "receive in a group");
    check_cuda(cudaStreamDestroy(other), "cudaStreamDestroy");
}

void case_group(struct test *t)
{
    test_exchange(t, 1);
    test_exchange(t, 70001);
    test_exchange(t, 3 << 20);
    test_many(t);
    test_mixed(t);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclGroupEnd(), "an empty group");
}

/* A send is over before its receive is posted while it fits; not beyond. */
void case_early(struct test *t)
{
    size_t small = 1 << 20;
    char *data = device(16 * small);
    double start;

    barrier(t);
    start = now_ms();
    if (t->job.rank == 0) {
        for (int i = 0; i < 3; i++)
            check_nccl(ncclSend(data, small, ncclInt8, 1, t->world, t->stream),
                       "ncclSend");
        sync_stream(t);
        expect(now_ms() - start < 300, "small sends end without a receiver");
        check_nccl(ncclSend(data, 16 * small, ncclInt8, 1, t->world, t->stream),
                   "ncclSend");
        sync_stream(t);
        expect(now_ms() - start > 500, "a large send waits for its receiver");
    } else if (t->job.rank == 1) {
        sleep_ms(500);
        for (int i = 0; i < 3; i++)
            check_nccl(ncclRecv(data, small, ncclInt8, 0, t->world, t->stream),
                       "ncclRecv");
        check_nccl(ncclRecv(data, 16 * small, ncclInt8, 0, t->world, t->stream),
                   "ncclRecv");
        sync_stream(t);
    }
    barrier(t);
}
