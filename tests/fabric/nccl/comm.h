/* A communicator, as one rank holds it. */
#ifndef FABRIC_NCCL_COMM_H
#define FABRIC_NCCL_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cuda.h>
#include <nccl.h>

#include "nccl/profiler.h"

struct segment;
struct premul;
struct layout;
struct tuning_table;

/* How it was made, for the log alone. */
struct origin {
    const char *call;
    const void *parent; /* not to be followed: it may be gone */
    uint32_t number;    /* among the parent's children */
    int color, key;
};

struct ncclComm {
    uint64_t magic;
    uint64_t id;    /* equal on all ranks, different for each communicator */
    uint64_t noise; /* names it the same in every run of the job */
    uint64_t nccl_hash; /* as NCCL numbers it, see commtrace/nccl_hash.h */
    uint64_t nccl_magic;
    uint32_t children; /* splits and grows */
    struct origin origin;
    _Atomic(struct layout *) layout; /* NULL: nobody asked, see layout.h */
    _Atomic(struct tuning_table *) tuning; /* the same, see tuning.h */
    struct announced *announced;           /* see announce.h */
    int rank;
    int nranks;
    int device;
    uint64_t host_id;
    struct segment *segment;
    int blocking;
    _Atomic int state;   /* an ncclResult_t: what GetAsyncError tells */
    _Atomic int aborted; /* nothing more runs; freed with the last task */
    _Atomic int revoked; /* no op runs any more; splits still do */
    int finalized;
    int suspended;
    uint32_t splits;
    struct shrunk *shrunk; /* sets of ranks left out, see split.c */
    int n_shrunk;
    int connected; /* an op has been launched */

    /* Per destination; only the stream task that runs now uses them. */
    int64_t *link_free_ns;
    uint64_t *messages;

    /* Tasks of one communicator run in the order in which they were issued,
     * on whatever streams: each waits for the one before. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* of the counts below */
    int pending;            /* tasks that are queued or running */
    int running;
    int jobs; /* helper threads at work on it, see job.h */
    int dead; /* the user has no handle any more */
    CUevent issued;
    unsigned long long last_stream; /* its id; 0: none yet */

    struct premul *premul; /* reduction operators of the user's own */
    int premuls;
    struct rma *rma; /* windows and signals; NULL: none yet */
    struct profiled profiled;
};

/* ncclSuccess, or what NCCL says of a handle that is none. */
ncclResult_t comm_check(struct ncclComm *comm);
/* The same, and an error while a call on it is in progress or has failed. */
ncclResult_t comm_check_ready(struct ncclComm *comm);

/* Whether ops must end where they are. */
int comm_is_stopped(struct ncclComm *comm);

/* Bounds of a task's life: queued, then running, then gone. */
void comm_task_queued(struct ncclComm *comm);
void comm_task_running(struct ncclComm *comm);
/* Frees a dead communicator with its last task. */
void comm_task_gone(struct ncclComm *comm, int ran);

/* Bounds of a helper's work; result becomes the state. */
void comm_job_begin(struct ncclComm *comm);
void comm_job_end(struct ncclComm *comm, ncclResult_t result);

/* Waits until every stream task of the communicator is done. */
void comm_drain(struct ncclComm *comm);
/* Stops the ops that run and skips the queued ones. */
void comm_stop(struct ncclComm *comm, _Atomic int *reason);

/* Parts of creation: all ranks attach, then each waits for the others. */
struct ncclComm *comm_attach(uint64_t id, int nranks, int rank, int device,
                             uint64_t host_id);
ncclResult_t comm_await_all(struct ncclComm *comm);
/* The same, with what the log tells about it. */
ncclResult_t comm_bring_up(struct ncclComm *comm);
void comm_free(struct ncclComm *comm);
/* What a new communicator takes from its config, or from its parent. */
CUresult comm_current_device(int *device);
ncclResult_t comm_check_config(const ncclConfig_t *config);
void comm_configure(struct ncclComm *comm, const ncclConfig_t *config,
                    const struct ncclComm *parent);

/* Makes the communicator's device current until comm_leave. */
CUresult comm_enter(struct ncclComm *comm);
void comm_leave(void);

#endif
