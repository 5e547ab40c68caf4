/* The end of a communicator's creation: all ranks are there. */
#ifndef FABRIC_NCCL_BRINGUP_H
#define FABRIC_NCCL_BRINGUP_H

#include <nccl.h>

/* Those of a group come up in threads of their own, where the log tells. */
ncclResult_t bring_up(ncclComm_t *comms, int n, int is_group);

#endif
