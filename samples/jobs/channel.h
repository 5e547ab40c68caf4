/*
 * A communicator with its members, and the NCCL calls on it. With a log, each
 * call leaves a line: kind, count, type, peer or root (or -), and the global
 * ranks of the members.
 */
#ifndef JOBS_CHANNEL_H
#define JOBS_CHANNEL_H

#include <stdio.h>

#include <cuda_runtime.h>
#include <nccl.h>

struct channel {
    ncclComm_t comm; /* NULL when this rank is alone */
    int rank;
    int nranks;
    char *members;
    FILE *log;
};

/* A group of the world communicator's ranks; all ranks must call it. */
void channel_split(struct channel *channel, ncclComm_t world, int color,
                   int place, const int *members, int nranks, FILE *log);
void channel_close(struct channel *channel);

const char *type_name(ncclDataType_t type);

void channel_all_reduce(struct channel *channel, const void *send, void *recv,
                        size_t count, ncclDataType_t type, cudaStream_t stream);
void channel_bcast(struct channel *channel, void *data, size_t count,
                   ncclDataType_t type, int root, cudaStream_t stream);
void channel_send(struct channel *channel, const void *data, size_t count,
                  ncclDataType_t type, int peer, cudaStream_t stream);
void channel_recv(struct channel *channel, void *data, size_t count,
                  ncclDataType_t type, int peer, cudaStream_t stream);

#endif
