/* Hooks of the communicator calls since NCCL 2.22. They forward only. */
#include "hooks.h"
#include "record.h"

ncclResult_t hook_ncclGroupSimulateEnd(HOOK_CALL, ncclSimInfo_t *simInfo)
{
    real_ncclGroupSimulateEnd_t *real = real_ncclGroupSimulateEnd(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(simInfo);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommInitRankScalable(HOOK_CALL, ncclComm_t *newcomm,
                                           int nranks, int myrank, int nId,
                                           ncclUniqueId *commIds,
                                           ncclConfig_t *config)
{
    real_ncclCommInitRankScalable_t *real = real_ncclCommInitRankScalable(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(newcomm, nranks, myrank, nId, commIds, config);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommShrink(HOOK_CALL, ncclComm_t comm,
                                 int *excludeRanksList, int excludeRanksCount,
                                 ncclComm_t *newcomm, ncclConfig_t *config,
                                 int shrinkFlags)
{
    real_ncclCommShrink_t *real = real_ncclCommShrink(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, excludeRanksList, excludeRanksCount,
                               newcomm, config, shrinkFlags);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommGetUniqueId(HOOK_CALL, ncclComm_t comm,
                                      ncclUniqueId *uniqueId)
{
    real_ncclCommGetUniqueId_t *real = real_ncclCommGetUniqueId(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, uniqueId);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommGrow(HOOK_CALL, ncclComm_t comm, int nRanks,
                               const ncclUniqueId *uniqueId, int rank,
                               ncclComm_t *newcomm, ncclConfig_t *config)
{
    real_ncclCommGrow_t *real = real_ncclCommGrow(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, nRanks, uniqueId, rank, newcomm, config);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommRevoke(HOOK_CALL, ncclComm_t comm, int revokeFlags)
{
    real_ncclCommRevoke_t *real = real_ncclCommRevoke(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, revokeFlags);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommSuspend(HOOK_CALL, ncclComm_t comm, int flags)
{
    real_ncclCommSuspend_t *real = real_ncclCommSuspend(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, flags);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommResume(HOOK_CALL, ncclComm_t comm)
{
    real_ncclCommResume_t *real = real_ncclCommResume(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommWindowRegister(HOOK_CALL, ncclComm_t comm, void *buff,
                                         size_t size, ncclWindow_t *win,
                                         int winFlags)
{
    real_ncclCommWindowRegister_t *real = real_ncclCommWindowRegister(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, buff, size, win, winFlags);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommWindowDeregister(HOOK_CALL, ncclComm_t comm,
                                           ncclWindow_t win)
{
    real_ncclCommWindowDeregister_t *real = real_ncclCommWindowDeregister(copy);
    if (!real)
        return ncclInvalidUsage;
    hook_enter_quietly(site);
    ncclResult_t result = real(comm, win);
    hook_leave();
    return result;
}
