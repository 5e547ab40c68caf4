/* What every job of several ranks needs: who it is, and that errors end it. */
#ifndef JOBS_JOB_H
#define JOBS_JOB_H

#include <cuda_runtime.h>
#include <nccl.h>

struct job {
    int rank;
    int world;
    int local_rank;
};

/* From the variables of torchrun, mpirun or srun; without any, one rank. */
struct job job_from_environment(void);

/* A communicator of all ranks, on the GPU of the local rank. */
ncclComm_t job_connect(const struct job *job);

/* Print what failed, and end the process with status 1. */
void check_cuda(cudaError_t error, const char *what);
void check_nccl(ncclResult_t result, const char *what);
void die(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

double now_ms(void);
double median(double *values, int n);

/* A positive whole number, or the end of the process. */
long parse_count(const char *option, const char *text);

#endif
