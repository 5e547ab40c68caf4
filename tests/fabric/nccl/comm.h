/* A communicator, as one rank holds it. */
#ifndef FABRIC_NCCL_COMM_H
#define FABRIC_NCCL_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cuda.h>
#include <nccl.h>

struct segment;
struct premul;

struct ncclComm {
    uint64_t magic;
    uint64_t id;    /* equal on all ranks, different for each communicator */
    uint64_t noise; /* names it the same in every run of the job */
    int rank;
    int nranks;
    int device;
    uint64_t host_id;
    struct segment *segment;
    _Atomic int aborted;
    _Atomic int async_error;
    int finalized;
    uint32_t splits;

    /* Per destination; only the stream task that runs now uses them. */
    int64_t *link_free_ns;
    uint64_t *messages;

    /* Tasks of one communicator run in the order in which they were issued,
     * on whatever streams: each waits for the one before. */
    pthread_mutex_t lock;
    pthread_cond_t drained;
    int pending;
    CUevent issued;
    unsigned long long last_stream; /* its id; 0: none yet */

    struct premul *premul; /* reduction operators of the user's own */
    int premuls;
};

/* ncclSuccess, or what NCCL says of a handle that is none. */
ncclResult_t comm_check(struct ncclComm *comm);

/* Waits until every stream task of the communicator is done. */
void comm_drain(struct ncclComm *comm);

/* Parts of creation: all ranks attach, then each waits for the others. */
struct ncclComm *comm_attach(uint64_t id, int nranks, int rank, int device,
                             uint64_t host_id);
void comm_await_all(struct ncclComm *comm);
void comm_free(struct ncclComm *comm);

/* Makes the communicator's device current until comm_leave. */
CUresult comm_enter(struct ncclComm *comm);
void comm_leave(void);

#endif
