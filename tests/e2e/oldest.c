/* A job of several ranks that needs no more than NCCL 2.4: every collective of
 * it, two of them in a group; the sums are checked. */
#include <stdio.h>

#include "bootstrap.h"
#include "job.h"

#define COUNT 1000

static float *buffers[2];

static void fill(int rank)
{
    for (int i = 0; i < COUNT * 8; i++)
        buffers[0][i] = (float)(rank + 1);
}

static void expect_sum(const struct job *job, cudaStream_t stream,
                       const char *what)
{
    float host[COUNT];
    float want = (float)(job->world * (job->world + 1) / 2);

    check_cuda(cudaMemcpyAsync(host, buffers[1], sizeof(host),
                               cudaMemcpyDeviceToHost, stream),
               "copy");
    check_cuda(cudaStreamSynchronize(stream), "synchronize");
    for (int i = 0; i < COUNT; i++)
        if (host[i] != want)
            die("%s: %g, not %g", what, (double)host[i], (double)want);
}

static void step(const struct job *job, ncclComm_t comm, cudaStream_t stream)
{
    const float *from = buffers[0];
    float *to = buffers[1];

    check_nccl(ncclAllReduce(from, to, COUNT, ncclFloat, ncclSum, comm, stream),
               "all-reduce");
    expect_sum(job, stream, "all-reduce");
    check_nccl(ncclBcast(to, COUNT, ncclFloat, 0, comm, stream), "bcast");
    check_nccl(ncclGroupStart(), "group");
    check_nccl(ncclAllGather(from, to + COUNT, COUNT, ncclFloat, comm, stream),
               "all-gather");
    check_nccl(ncclReduce(from, to, COUNT, ncclFloat, ncclSum, 0, comm, stream),
               "reduce");
    check_nccl(ncclGroupEnd(), "group");
    check_nccl(
        ncclReduceScatter(from, to, COUNT, ncclFloat, ncclSum, comm, stream),
        "reduce-scatter");
    expect_sum(job, stream, "reduce-scatter");
}

int main(void)
{
    struct job job = job_from_environment();
    ncclComm_t comm = job_connect(&job);
    cudaStream_t stream;

    check_cuda(cudaStreamCreate(&stream), "stream");
    for (int i = 0; i < 2; i++)
        check_cuda(cudaMalloc((void **)&buffers[i], 9 * COUNT * sizeof(float)),
                   "memory");
    fill(job.rank);
    for (int i = 0; i < 3; i++)
        step(&job, comm, stream);
    check_nccl(ncclCommDestroy(comm), "destroy");
    printf("rank %d: sums right\n", job.rank);
    return 0;
}
