/*
 * Calls that no hook sees, those of an NCCL that is linked into the program: as
 * NCCL's profiler tells of them. Communicators are named by NCCL's own number;
 * calls become ops like others, with the flag that says so, and what is not
 * told stays unknown.
 *
 *   version 5 on   groups, and in them calls: collectives with their stream,
 *                  sends and receives without a peer, which their launch names
 *   version 4      launches alone: no times of calls, no streams, no groups
 *
 * NCCL's threads come here, so the shim's law for hooks holds.
 */
#ifndef SHIM_TOLD_H
#define SHIM_TOLD_H

#include "comm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The op, and the type, that NCCL calls so; -1: none. */
int told_op(const char *func);
int told_type(const char *type);

/* Whether the NCCL whose code this is makes communicators that no hook sees. */
bool told_is_alone(const void *code);

struct told_birth {
    const void *key;  /* an address that is no communicator's */
    const void *code; /* of NCCL */
    const char *name; /* or NULL */
    uint64_t hash;
    int nranks;
    int rank;
    bool launches_only; /* version 4 */
};

/* NULL: no memory. */
struct comm *told_comm(const struct told_birth *birth);
void told_end(struct comm *comm);

/* The outermost group of the thread: NCCL's own about each call (depth 1), or
 * the program's. */
void told_group(int depth);
void told_group_ends(void);
void told_group_over(void);

struct told_call {
    const char *func;
    const char *type;
    uint64_t count;
    int peer; /* or root; -1: none */
    uint64_t stream;
    bool captured;
};

/* What makes an op gives its op.id; 0: there is none. A collective is called,
 * and has been. */
uint64_t told_collective(struct comm *comm, const struct told_call *call);
void told_returned(void);

/* The same of a send or receive, which gets a number; 0: none. */
uint64_t told_transfer(struct comm *comm, const struct told_call *call);
void told_transfer_returned(uint64_t number);

/* It is launched; number 0: nothing was told of its call. captured: as it was
 * called, so that this may be the graph's nth launch. */
uint64_t told_transfer_launched(struct comm *comm, uint64_t number,
                                const struct told_call *call);
/* Any, where calls are not told. */
uint64_t told_launched(struct comm *comm, const struct told_call *call);

/* Calls of a kind that is not known. */
uint64_t told_unknown(void);

/*
 * The writer's side.
 */

/* The files that hold such an NCCL, from 0; NULL: no more. Their rows of
 * `library` follow those of the copies that hooks see. */
const char *told_library(int i);

/* What of them is missing; NULL: there are none. */
const char *told_absence(void);

#endif
