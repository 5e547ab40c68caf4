/*
 * Work on non-blocking communicators: a helper thread does it, the call says
 * ncclInProgress, and so does ncclCommGetAsyncError until it is done.
 */
#ifndef FABRIC_NCCL_JOB_H
#define FABRIC_NCCL_JOB_H

#include <nccl.h>

typedef ncclResult_t job_fn(void *arg);

/* ncclInProgress, or why there is no helper; then run has not been called. */
ncclResult_t job_start(ncclComm_t *comms, int n, job_fn *run, void *arg);

#endif
