/*
 * Who this process is among the ranks of the job, and on which host it runs.
 * Virtual hosts live on one machine, so the host is decided, in this order, by
 * NCCL_HOSTID, by the rank and the FABRIC file, by the machine's own name.
 */
#ifndef FABRIC_IDENTITY_H
#define FABRIC_IDENTITY_H

#include <stdint.h>

/* The launcher's rank, or -1 when no launcher set one. */
int fabric_rank(void);

/* rank is used where the environment tells none. */
uint64_t fabric_host_id(int rank);

#endif
