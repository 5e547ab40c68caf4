/*
 * Splitting and shrinking a communicator. Votes travel through the ranks'
 * seats, never through the pipes: these may be in use by ops that are still
 * queued. A shrink has no votes, since those that it leaves out do not call.
 */
#ifndef FABRIC_NCCL_SPLIT_H
#define FABRIC_NCCL_SPLIT_H

#include <stdint.h>

#include <nccl.h>

struct split {
    ncclComm_t parent;
    int color;
    int key;
    ncclComm_t *newcomm;
    int is_shrink; /* then the place is known from the start */
    uint64_t set;  /* of ranks that the shrink leaves out */
    uint32_t nccl_number;
    int rank;
    int nranks;
    uint32_t number; /* of this split among the parent's */
    ncclComm_t child;
    int blocking; /* what the child will be */
};

/* To be called for all splits of a group before the next part. */
ncclResult_t split_vote(struct split *split);
/* Waits for the other votes and takes a seat; child is NULL or new. */
ncclResult_t split_count(struct split *split);
/* Waits for the other members, then tells the user of the child. */
ncclResult_t split_finish(struct split *split);

#endif
