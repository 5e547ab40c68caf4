/* Communicators made from others. */
#include <string.h>

#include "test_fabric.h"

static void expect_comm(ncclComm_t comm, int rank, int nranks)
{
    int r = -1;
    int n = -1;

    check_nccl(ncclCommUserRank(comm, &r), "ncclCommUserRank");
    check_nccl(ncclCommCount(comm, &n), "ncclCommCount");
    if (r != rank || n != nranks)
        die("rank %d of %d, expected %d of %d", r, n, rank, nranks);
}

/* The sum of the members' world ranks proves who they are. */
static void expect_members(struct test *t, ncclComm_t comm, int sum)
{
    int *data = device(sizeof(int));

    *data = t->job.rank;
    check_nccl(
        ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comm, t->stream),
        "ncclAllReduce");
    sync_stream(t);
    if (*data != sum)
        die("members add up to %d, expected %d", *data, sum);
    check_cuda(cudaFree(data), "cudaFree");
}

static int sum_of_ranks(int n, int remainder, int modulus)
{
    int sum = 0;

    for (int r = 0; r < n; r++)
        sum += r % modulus == remainder ? r : 0;
    return sum;
}

static void test_split_groups(struct test *t)
{
    int n = t->job.world;
    int rank = t->job.rank;
    ncclComm_t a = (ncclComm_t)1;
    ncclComm_t b = (ncclComm_t)1;
    ncclComm_t none = (ncclComm_t)1;

    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclCommSplit(t->world, rank % 2, 0, &a, NULL), "split");
    check_nccl(ncclCommSplit(t->world, 0, -rank, &b, NULL), "split");
    check_nccl(ncclCommSplit(t->world, NCCL_SPLIT_NOCOLOR, 0, &none, NULL),
               "split");
    expect(!a && !b, "a split communicator comes at the end of the group");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    expect(!none, "no colour, no communicator");
    expect_comm(a, rank / 2, (n + 1 - rank % 2) / 2);
    expect_comm(b, n - 1 - rank, n);
    expect_members(t, a, sum_of_ranks(n, rank % 2, 2));
    expect_members(t, b, n * (n - 1) / 2);
    check_nccl(ncclCommDestroy(a), "ncclCommDestroy");
    check_nccl(ncclCommFinalize(b), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(b), "ncclCommDestroy");
}

/* A split must not use the pipes that queued ops of the parent use: here an
 * op is queued behind a host function while the parent is split. */
static void test_split_while_busy(struct test *t)
{
    static long held_ms = 200;
    int *data = device(1000 * sizeof(int));
    ncclComm_t child;

    fill_ints(data, 1000, t->job.rank);
    if (t->job.rank == 0)
        check_cuda(cudaLaunchHostFunc(t->stream, hold, &held_ms), "hold");
    check_nccl(ncclAllReduce(data, data, 1000, ncclInt32, ncclMax, t->world,
                             t->stream),
               "ncclAllReduce");
    check_nccl(ncclCommSplit(t->world, 7, t->job.rank, &child, NULL), "split");
    sync_stream(t);
    expect_ints(data, 1000, t->job.world - 1, "op beside a split");
    expect_members(t, child, t->job.world * (t->job.world - 1) / 2);
    check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
}

void case_split(struct test *t)
{
    ncclComm_t child;
    ncclComm_t grandchild;

    test_split_groups(t);
    test_split_while_busy(t);
    for (int i = 0; i < 600; i++) {
        int out = i % 5 == 0 && t->job.rank == 0;

        check_nccl(ncclCommSplit(t->world, out ? NCCL_SPLIT_NOCOLOR : i,
                                 t->job.rank, &child, NULL),
                   "split");
        expect((child != NULL) != out, "colour or none");
        if (child)
            check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
    }
    check_nccl(ncclCommSplit(t->world, 0, 0, &child, NULL), "split");
    check_nccl(ncclCommSplit(child, t->job.rank, 0, &grandchild, NULL),
               "split");
    expect_comm(grandchild, 0, 1);
    expect_members(t, grandchild, t->job.rank);
    check_nccl(ncclCommDestroy(grandchild), "ncclCommDestroy");
    check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
}
