/* The times of the described machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test_fabric.h"

struct timing {
    struct test *test;
    ncclComm_t comm;
    int n;
    char *send;
    char *recv;
};

typedef void timed_fn(struct timing *x, size_t bytes);

static void timed_all_reduce(struct timing *x, size_t bytes)
{
    check_nccl(ncclAllReduce(x->send, x->recv, bytes / 4, ncclFloat32, ncclSum,
                             x->comm, x->test->stream),
               "ncclAllReduce");
}

static void timed_sendrecv(struct timing *x, size_t bytes)
{
    int rank;

    check_nccl(ncclCommUserRank(x->comm, &rank), "ncclCommUserRank");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclSend(x->send, bytes, ncclInt8, (rank + 1) % x->n, x->comm,
                        x->test->stream),
               "ncclSend");
    check_nccl(ncclRecv(x->recv, bytes, ncclInt8, (rank + x->n - 1) % x->n,
                        x->comm, x->test->stream),
               "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

/* Mean over iterations and ranks, in us. */
static double time_of(struct timing *x, timed_fn *op, size_t bytes)
{
    enum { ITERATIONS = 4 };
    cudaStream_t s = x->test->stream;
    cudaEvent_t start;
    cudaEvent_t stop;
    float ms;

    check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    timed_all_reduce(x, 4);
    check_cuda(cudaEventRecord(start, s), "cudaEventRecord");
    for (int i = 0; i < ITERATIONS; i++)
        op(x, bytes);
    check_cuda(cudaEventRecord(stop, s), "cudaEventRecord");
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    memcpy(x->send, &ms, sizeof(ms));
    timed_all_reduce(x, sizeof(ms));
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    memcpy(&ms, x->recv, sizeof(ms));
    check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    return (double)ms * 1e3 / ITERATIONS / x->n;
}

static void expect_time(struct timing *x, const char *what, size_t bytes,
                        double us, double model_us)
{
    double off = us / model_us - 1;
    int rank;

    check_nccl(ncclCommUserRank(x->comm, &rank), "ncclCommUserRank");
    if (rank == 0)
        printf("%-10s n=%d %8zu bytes: model %9.1f us, measured %9.1f us, "
               "%+.2f %%\n",
               what, x->n, bytes, model_us, us, off * 100);
    if (fabs(off) > 0.10)
        die("%s of %zu bytes on %d ranks takes %.1f us, model %.1f us", what,
            bytes, x->n, us, model_us);
}

static void test_times(struct timing *x, const struct link *l)
{
    static const size_t sizes[] = {4096, 65536, 1 << 20};
    double n = x->n;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double s = (double)sizes[i];

        expect_time(
            x, "all-reduce", sizes[i], time_of(x, timed_all_reduce, sizes[i]),
            2 * (n - 1) * l->alpha_us + 2 * (n - 1) / n * s / l->bytes_per_us);
        expect_time(x, "send/recv", sizes[i],
                    time_of(x, timed_sendrecv, sizes[i]),
                    l->alpha_us + s / l->bytes_per_us);
    }
}

/* All ranks of the job have the same link to each other: the test's own
 * arguments say which. */
struct link link_of_test;

void case_time(struct test *t)
{
    size_t bytes = 1 << 20;
    struct timing x = {t, NULL, 0, device(bytes), device(bytes)};

    for (x.n = 2; x.n <= t->job.world; x.n *= 2) {
        int in = t->job.rank < x.n;

        check_nccl(ncclCommSplit(t->world, in ? 0 : NCCL_SPLIT_NOCOLOR,
                                 t->job.rank, &x.comm, NULL),
                   "split");
        if (!x.comm)
            continue;
        test_times(&x, &link_of_test);
        check_nccl(ncclCommDestroy(x.comm), "ncclCommDestroy");
    }
}

/* A late rank: its peers' op takes as much longer as it is late. */
void case_late(struct test *t)
{
    static long late_ms = 150;
    int *d = device(4096);
    cudaEvent_t start;
    cudaEvent_t stop;
    float ms;

    check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    barrier(t);
    if (t->job.rank == 0)
        check_cuda(cudaLaunchHostFunc(t->stream, hold, &late_ms), "hold");
    check_cuda(cudaEventRecord(start, t->stream), "cudaEventRecord");
    check_nccl(
        ncclAllReduce(d, d, 1024, ncclInt32, ncclSum, t->world, t->stream),
        "ncclAllReduce");
    check_cuda(cudaEventRecord(stop, t->stream), "cudaEventRecord");
    sync_stream(t);
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    expect(t->job.rank == 0 ? ms < 100 : ms > 140 && ms < 300,
           "the late rank's peers wait for it, it does not wait");
    check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    barrier(t);
}
