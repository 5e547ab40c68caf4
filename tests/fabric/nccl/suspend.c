/* A communicator that lies still: nothing may be asked of it until it is
 * resumed. */
#include <nccl_newer.h>

#include "nccl/api.h"
#include "nccl/comm.h"

NCCL_API(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return result;
    if (flags != NCCL_SUSPEND_MEM || comm->suspended)
        return nccl_fail(ncclInvalidArgument, "CommSuspend: flags %d", flags);
    comm_drain(comm);
    comm->suspended = 1;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommResume, (ncclComm_t comm))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return result;
    if (!comm->suspended)
        return nccl_fail(ncclInvalidUsage, "CommResume: not suspended");
    comm->suspended = 0;
    return ncclSuccess;
}
