/*
 * Hooks of the calls that make communicators. Each one ends in the real call;
 * what surrounds it only watches.
 */
#include "births.h"
#include "hooks.h"
#include "nccl_file.h"
#include "profiler.h"
#include "record.h"

/* No traffic, but NCCL sets itself up in it. */
ncclResult_t hook_ncclGetUniqueId(HOOK_CALL, ncclUniqueId *uniqueId)
{
    real_ncclGetUniqueId_t *real = real_ncclGetUniqueId(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    if (follow) {
        births_ask_id();
        nccl_file_before(copy);
    }
    ncclResult_t result = real(uniqueId);
    if (follow)
        nccl_file_after(copy);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommInitRank(HOOK_CALL, ncclComm_t *comm, int nranks,
                                   ncclUniqueId commId, int rank)
{
    real_ncclCommInitRank_t *real = real_ncclCommInitRank(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    struct comm_birth birth;
    if (follow)
        birth_of_id(&birth, copy, CT_COMM_INIT, &commId, nranks, rank, NULL);
    ncclResult_t result = real(comm, nranks, commId, rank);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, comm, NULL, result);
    }
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommInitRankConfig(HOOK_CALL, ncclComm_t *comm,
                                         int nranks, ncclUniqueId commId,
                                         int rank, ncclConfig_t *config)
{
    real_ncclCommInitRankConfig_t *real = real_ncclCommInitRankConfig(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    struct comm_birth birth;
    if (follow)
        birth_of_id(&birth, copy, CT_COMM_INIT, &commId, nranks, rank, config);
    ncclResult_t result = real(comm, nranks, commId, rank, config);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, comm, NULL, result);
    }
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommInitAll(HOOK_CALL, ncclComm_t *comm, int ndev,
                                  const int *devlist)
{
    real_ncclCommInitAll_t *real = real_ncclCommInitAll(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    struct comm_birth birth;
    if (follow)
        birth_of_all(&birth, copy, ndev);
    ncclResult_t result = real(comm, ndev, devlist);
    if (follow)
        nccl_file_after(copy);
    for (int i = 0; follow && result == ncclSuccess && i < ndev; i++) {
        birth.rank = i;
        birth_end(&birth, &comm[i], NULL, result);
    }
    if (follow && result != ncclSuccess)
        profiler_after(copy);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommSplit(HOOK_CALL, ncclComm_t comm, int color, int key,
                                ncclComm_t *newcomm, ncclConfig_t *config)
{
    real_ncclCommSplit_t *real = real_ncclCommSplit(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    struct comm_birth birth;
    if (follow)
        birth_of_split(&birth, copy, comm, color, config);
    ncclResult_t result = real(comm, color, key, newcomm, config);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, newcomm, comm, result);
    }
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
    bool follow = hook_enter(from) && nId > 0 && commIds;
    struct comm_birth birth;
    if (follow)
        birth_of_id(&birth, copy, CT_COMM_SCALABLE, &commIds[0], nranks, myrank,
                    config);
    ncclResult_t result = real(newcomm, nranks, myrank, nId, commIds, config);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, newcomm, NULL, result);
    }
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
    bool follow = hook_enter(from);
    struct comm_birth birth;
    struct event event = {0};
    if (follow)
        birth_of_shrink(&birth, copy, comm, excludeRanksList, excludeRanksCount,
                        config);
    /* Ends what is under way on the parent. */
    if (follow && birth.counted && shrinkFlags & CT_NCCL_SHRINK_ABORT)
        event_enter(&event, birth.counted, CT_EVENT_SHRINK_ABORT);
    ncclResult_t result = real(comm, excludeRanksList, excludeRanksCount,
                               newcomm, config, shrinkFlags);
    if (event.comm)
        event_leave(&event, result);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, newcomm, comm, result);
    }
    hook_leave();
    return result;
}

/* As a new communicator in a new rank, *newcomm is set at once. */
ncclResult_t hook_ncclCommGrow(HOOK_CALL, ncclComm_t comm, int nRanks,
                               const ncclUniqueId *uniqueId, int rank,
                               ncclComm_t *newcomm, ncclConfig_t *config)
{
    real_ncclCommGrow_t *real = real_ncclCommGrow(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(from);
    struct comm_birth birth;
    if (follow)
        birth_of_grow(&birth, copy, comm, nRanks, uniqueId, rank, config);
    ncclResult_t result = real(comm, nRanks, uniqueId, rank, newcomm, config);
    if (follow) {
        nccl_file_after(copy);
        birth_end(&birth, newcomm, NULL, result);
    }
    hook_leave();
    return result;
}
