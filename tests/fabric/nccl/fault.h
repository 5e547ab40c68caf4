/* Faults of the FABRIC file. */
#ifndef FABRIC_NCCL_FAULT_H
#define FABRIC_NCCL_FAULT_H

#include <nccl.h>

/* To be called once for each op that this process issues, on comm. */
ncclResult_t fault_strike(ncclComm_t comm);

#endif
