/*
 * Splitting a communicator. Votes travel through the ranks' seats, never
 * through the pipes: these may be in use by ops that are still queued.
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
    uint32_t number; /* of this split among the parent's */
};

/* To be called for all splits of a group before the next part. */
ncclResult_t split_vote(struct split *split);
/* Waits for the other votes and takes a seat; *newcomm is NULL or new. */
ncclResult_t split_count(struct split *split);
/* Waits for the other members. */
void split_finish(struct split *split);

#endif
