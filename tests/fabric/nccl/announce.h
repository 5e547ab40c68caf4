/*
 * The lines of NCCL's log that tell what a communicator is made of, in the
 * shape of the release. Nothing is done where nobody reads them.
 */
#ifndef FABRIC_NCCL_ANNOUNCE_H
#define FABRIC_NCCL_ANNOUNCE_H

#include <nccl.h>

struct ncclComm;
struct op;

/* The library's first use, and the process's first communicator. */
void announce_library(void);
void announce_first(void);

/* About the wait for the other ranks. */
void announce_start(struct ncclComm *comm);
void announce_complete(struct ncclComm *comm);

/* Rings and trees are connected with the communicator where not at first use.
 */
void announce_connections(struct ncclComm *comm);

/* Before a launch: connections that its ops are the first to need, and what is
 * chosen for each. */
void announce_ops(const struct op *ops, int n);

/* "Destroy" or "Abort". */
void announce_end(const struct ncclComm *comm, const char *end);

struct announced;
void announced_free(struct announced *announced);

#endif
