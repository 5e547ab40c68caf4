#include "nccl/bringup.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "nccl/comm.h"
#include "nccl/log.h"

struct work {
    ncclComm_t comm;
    pthread_t thread;
    int has_thread;
    ncclResult_t result;
};

static void *run(void *arg)
{
    struct work *work = arg;

    work->result = ncclUnhandledCudaError;
    if (!comm_enter(work->comm)) {
        work->result = comm_bring_up(work->comm);
        comm_leave();
    }
    return NULL;
}

/* Signals are the program's own threads' business. */
static void start(struct work *work, int n)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < n; i++)
        work[i].has_thread =
            !pthread_create(&work[i].thread, NULL, run, &work[i]);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static ncclResult_t in_threads(ncclComm_t *comms, int n)
{
    struct work *work = calloc((size_t)n, sizeof(*work));
    ncclResult_t result = ncclSuccess;

    if (!work)
        return ncclSystemError;
    for (int i = 0; i < n; i++)
        work[i].comm = comms[i];
    start(work, n);
    for (int i = 0; i < n; i++) {
        if (work[i].has_thread)
            pthread_join(work[i].thread, NULL);
        else
            run(&work[i]);
        if (!result)
            result = work[i].result;
    }
    free(work);
    return result;
}

ncclResult_t bring_up(ncclComm_t *comms, int n, int is_group)
{
    ncclResult_t result = ncclSuccess;

    if (n && is_group && log_wants((unsigned)LOG_ALL))
        return in_threads(comms, n);
    for (int i = 0; i < n && !result; i++)
        result = comm_bring_up(comms[i]);
    return result;
}
