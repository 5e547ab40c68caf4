#include "nccl/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/config.h"
#include "common/identity.h"
#include "nccl/api.h"
#include "nccl/comm.h"

static ncclResult_t strike(const struct fabric_fault *fault, ncclComm_t comm)
{
    switch (fault->action) {
    case FABRIC_DIE:
        raise(SIGKILL);
        break;
    case FABRIC_STOP:
        raise(SIGSTOP);
        break;
    case FABRIC_ASYNC:
        atomic_store(&comm->state, ncclRemoteError);
        break;
    case FABRIC_ERROR:
        return nccl_fail(ncclSystemError, "fault of rank %d at op %llu",
                         fault->rank, (unsigned long long)fault->op);
    }
    return ncclSuccess;
}

ncclResult_t fault_strike(ncclComm_t comm)
{
    static _Atomic uint64_t issued;
    const struct fabric_config *config = fabric_config();
    uint64_t op;

    if (!config->faults)
        return ncclSuccess;
    op = atomic_fetch_add(&issued, 1) + 1;
    for (int i = 0; i < config->faults; i++) {
        const struct fabric_fault *fault = &config->fault[i];

        if (fault->rank == fabric_rank() && fault->op == op)
            return strike(fault, comm);
    }
    return ncclSuccess;
}
