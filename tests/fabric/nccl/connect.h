/*
 * Connections of a communicator, as the log tells of them: who reaches whom on
 * which channel by what. Each is told once, by whom NCCL has tell it.
 */
#ifndef FABRIC_NCCL_CONNECT_H
#define FABRIC_NCCL_CONNECT_H

#include "nccl/transport.h"
#include "nccl/tuning.h"

struct ncclComm;
struct connections;

struct connections *connections_new(struct ncclComm *comm);
void connections_free(struct connections *connections);

/* What the algorithm needs and nothing before it has needed: prints it, and
 * whether it uses a proxy or GPUDirect. */
void connect_algorithm(struct connections *connections, struct ncclComm *comm,
                       enum algorithm algorithm);
/* Notes a send to, or a receive from, a peer; then prints what is new. */
void connect_note_peer(struct connections *connections, struct ncclComm *comm,
                       int peer, enum end end);
void connect_peers(struct connections *connections, struct ncclComm *comm);
int connections_are_new(const struct connections *connections);
/* A bit for each that is connected. */
unsigned connections_algorithms(const struct connections *connections);

#endif
