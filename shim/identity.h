/*
 * Names for communicators that all their ranks compute alike, without a
 * message (NCCL's own hash is not reachable, and collides).
 */
#ifndef SHIM_IDENTITY_H
#define SHIM_IDENTITY_H

#include "commtrace/nccl_abi.h"

#include <stdint.h>

/* By unique id. A rank that joins under the same id again (NCCL_COMM_ID makes
 * all ids alike) gets the next name of a sequence. */
uint64_t identity_of_id(const ncclUniqueId *id, int rank);

/* The nth child (from 1; every split counts, also one that leaves this rank
 * without a communicator) of a parent, of one colour. */
uint64_t identity_of_split(uint64_t parent, uint32_t child, int color);

/* Never equal to one of another process. */
uint64_t identity_local(uint64_t process, uint64_t n);

#endif
