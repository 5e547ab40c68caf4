/*
 * ncclGroupStart ... ncclGroupEnd, per thread: nothing launches and nothing
 * waits before the outermost end.
 */
#ifndef FABRIC_NCCL_GROUP_H
#define FABRIC_NCCL_GROUP_H

#include <nccl.h>

struct op;
struct split;

void group_start(void);
/* At the outermost end: waits for new communicators, splits, launches; or has
 * a helper do that, see job.h. */
ncclResult_t group_end(void);

/* Each of these acts at the outermost end of the thread's group. */
ncclResult_t group_add_op(const struct op *op);
ncclResult_t group_add_init(ncclComm_t comm);
ncclResult_t group_add_split(const struct split *split);
/* Makes the whole group fail with this result. */
ncclResult_t group_fail(ncclResult_t result);

#endif
