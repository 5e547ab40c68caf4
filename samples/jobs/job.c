#include "job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bootstrap.h"

void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void check_cuda(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        die("%s: %s", what, cudaGetErrorString(error));
}

void check_nccl(ncclResult_t result, const char *what)
{
    if (result != ncclSuccess)
        die("%s: %s", what, ncclGetErrorString(result));
}

long parse_count(const char *option, const char *text)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < 0)
        die("%s: '%s' is not a count", option, text);
    return value;
}

static int first_set(const char *const *names, int fallback)
{
    for (; *names; names++) {
        const char *text = getenv(*names);

        if (text && *text)
            return (int)parse_count(*names, text);
    }
    return fallback;
}

struct job job_from_environment(void)
{
    static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK",
                                       "PMI_RANK", "SLURM_PROCID", NULL};
    static const char *const world[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", "SLURM_NTASKS", NULL};
    static const char *const local[] = {
        "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
        "SLURM_LOCALID", NULL};
    struct job job = {.rank = first_set(rank, 0), .world = first_set(world, 1)};

    job.local_rank = first_set(local, job.rank);
    if (job.world < 1 || job.rank >= job.world)
        die("rank %d of %d", job.rank, job.world);
    return job;
}

ncclComm_t job_connect(const struct job *job)
{
    ncclUniqueId id;
    ncclComm_t comm;
    int devices;

    check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    check_cuda(cudaSetDevice(job->local_rank % devices), "cudaSetDevice");
    if (job->rank == 0)
        check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    bootstrap_broadcast(job->rank, job->world, &id, sizeof(id));
    check_nccl(ncclCommInitRank(&comm, job->world, id, job->rank),
               "ncclCommInitRank");
    return comm;
}

double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, int n)
{
    if (!n)
        return 0;
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
