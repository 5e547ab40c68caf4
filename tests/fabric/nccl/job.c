#include "nccl/job.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/api.h"
#include "nccl/comm.h"

struct job {
    job_fn *run;
    void *arg;
    int n;
    ncclComm_t comms[];
};

static void end(struct job *job, ncclResult_t result)
{
    for (int i = 0; i < job->n; i++)
        comm_job_end(job->comms[i], result);
    free(job);
}

static void *work(void *arg)
{
    struct job *job = arg;

    end(job, job->run(job->arg));
    return NULL;
}

/* Signals are the program's own threads' business. */
static int start_thread(struct job *job)
{
    pthread_t thread;
    sigset_t all;
    sigset_t old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, work, job);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rc)
        pthread_detach(thread);
    return rc;
}

ncclResult_t job_start(ncclComm_t *comms, int n, job_fn *run, void *arg)
{
    struct job *job = malloc(sizeof(*job) + (size_t)n * sizeof(ncclComm_t));

    if (!job)
        return ncclSystemError;
    *job = (struct job){.run = run, .arg = arg, .n = n};
    memcpy(job->comms, comms, (size_t)n * sizeof(ncclComm_t));
    for (int i = 0; i < n; i++)
        comm_job_begin(comms[i]);
    if (start_thread(job)) {
        end(job, ncclSystemError);
        return nccl_fail(ncclSystemError, "no helper thread");
    }
    return ncclInProgress;
}
