/*
 * Hooks of the calls that make, change or end communicators or bracket a
 * group. Each one ends in the real call; what surrounds it only watches.
 */
#include "births.h"
#include "comm.h"
#include "group.h"
#include "hooks.h"
#include "identity.h"
#include "record.h"

#include <errno.h>

ncclResult_t hook_ncclCommInitRank(HOOK_CALL, ncclComm_t *comm, int nranks,
                                   ncclUniqueId commId, int rank)
{
    real_ncclCommInitRank_t *real = real_ncclCommInitRank(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(site);
    struct comm_birth birth;
    if (follow)
        birth_of_id(&birth, copy, CT_COMM_INIT, &commId, nranks, rank, NULL);
    ncclResult_t result = real(comm, nranks, commId, rank);
    if (follow)
        birth_end(&birth, comm, NULL, result);
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
    bool follow = hook_enter(site);
    struct comm_birth birth;
    if (follow)
        birth_of_id(&birth, copy, CT_COMM_INIT, &commId, nranks, rank, config);
    ncclResult_t result = real(comm, nranks, commId, rank, config);
    if (follow)
        birth_end(&birth, comm, NULL, result);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommInitAll(HOOK_CALL, ncclComm_t *comm, int ndev,
                                  const int *devlist)
{
    real_ncclCommInitAll_t *real = real_ncclCommInitAll(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(site);
    struct comm_birth birth;
    if (follow)
        birth_of_all(&birth, copy, ndev);
    ncclResult_t result = real(comm, ndev, devlist);
    for (int i = 0; follow && result == ncclSuccess && i < ndev; i++) {
        birth.rank = i;
        birth_end(&birth, &comm[i], NULL, result);
    }
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommSplit(HOOK_CALL, ncclComm_t comm, int color, int key,
                                ncclComm_t *newcomm, ncclConfig_t *config)
{
    real_ncclCommSplit_t *real = real_ncclCommSplit(copy);
    if (!real)
        return ncclInvalidUsage;
    bool follow = hook_enter(site);
    struct comm_birth birth;
    if (follow)
        birth_of_split(&birth, copy, comm, color, config);
    ncclResult_t result = real(comm, color, key, newcomm, config);
    if (follow)
        birth_end(&birth, newcomm, comm, result);
    hook_leave();
    return result;
}

/* The end of a communicator. NCCL may hand out its address again as soon as it
 * is freed, so it leaves our table first. */
static ncclResult_t end_comm(ncclComm_t key, ncclResult_t (*real)(ncclComm_t),
                             enum ct_comm_event what, const void *site)
{
    struct comm *comm = NULL;
    struct event event;
    if (hook_enter_quietly(site) && init_has_begun()) {
        births_forget(key);
        comm = comm_take_out(key);
    }
    if (comm)
        event_enter(&event, comm->id, what);
    ncclResult_t result = real(key);
    if (comm) {
        event_leave(&event, result);
        if (result == ncclSuccess || result == ncclInProgress)
            comm_recycle(comm);
        else
            comm_put_back(comm, key);
    }
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommDestroy(HOOK_CALL, ncclComm_t comm)
{
    real_ncclCommDestroy_t *real = real_ncclCommDestroy(copy);
    return real ? end_comm(comm, real, CT_EVENT_DESTROY, site)
                : ncclInvalidUsage;
}

ncclResult_t hook_ncclCommAbort(HOOK_CALL, ncclComm_t comm)
{
    real_ncclCommAbort_t *real = real_ncclCommAbort(copy);
    return real ? end_comm(comm, real, CT_EVENT_ABORT, site) : ncclInvalidUsage;
}

/* Begins an event of a communicator that stays; false: not one to record. */
static bool watch(struct event *event, ncclComm_t key, enum ct_comm_event what,
                  const void *site)
{
    if (!hook_enter_quietly(site) || !init_has_begun())
        return false;
    const struct comm *comm = comm_find(key);
    if (comm)
        event_enter(event, comm->id, what);
    return comm != NULL;
}

static ncclResult_t watched(bool watching, struct event *event,
                            ncclResult_t result)
{
    if (watching)
        event_leave(event, result);
    hook_leave();
    return result;
}

ncclResult_t hook_ncclCommFinalize(HOOK_CALL, ncclComm_t comm)
{
    real_ncclCommFinalize_t *real = real_ncclCommFinalize(copy);
    if (!real)
        return ncclInvalidUsage;
    struct event event;
    bool watching = watch(&event, comm, CT_EVENT_FINALIZE, site);
    return watched(watching, &event, real(comm));
}

ncclResult_t hook_ncclCommRegister(HOOK_CALL, const ncclComm_t comm, void *buff,
                                   size_t size, void **handle)
{
    real_ncclCommRegister_t *real = real_ncclCommRegister(copy);
    if (!real)
        return ncclInvalidUsage;
    struct event event;
    bool watching = watch(&event, comm, CT_EVENT_REGISTER, site);
    return watched(watching, &event, real(comm, buff, size, handle));
}

ncclResult_t hook_ncclCommDeregister(HOOK_CALL, const ncclComm_t comm,
                                     void *handle)
{
    real_ncclCommDeregister_t *real = real_ncclCommDeregister(copy);
    if (!real)
        return ncclInvalidUsage;
    struct event event;
    bool watching = watch(&event, comm, CT_EVENT_DEREGISTER, site);
    return watched(watching, &event, real(comm, handle));
}

/* Watchdogs ask thousands of times; only a new error is an event. */
static void note_error(ncclComm_t key, ncclResult_t error)
{
    struct comm *comm = comm_find(key);
    struct event event;
    if (!comm || error == ncclSuccess ||
        atomic_exchange_explicit(&comm->async_error, error,
                                 memory_order_relaxed) == (int32_t)error)
        return;
    event_enter(&event, comm->id, CT_EVENT_ERROR);
    event_leave(&event, error);
}

ncclResult_t hook_ncclCommGetAsyncError(HOOK_CALL, ncclComm_t comm,
                                        ncclResult_t *asyncError)
{
    real_ncclCommGetAsyncError_t *real = real_ncclCommGetAsyncError(copy);
    if (!real)
        return ncclInvalidUsage;
    bool watching = hook_enter_quietly(site) && init_has_begun();
    ncclResult_t result = real(comm, asyncError);
    if (watching && result == ncclSuccess && *asyncError != ncclInProgress) {
        births_settle(comm, *asyncError);
        note_error(comm, *asyncError);
    }
    hook_leave();
    return result;
}

ncclResult_t hook_ncclGroupStart(HOOK_CALL)
{
    real_ncclGroupStart_t *real = real_ncclGroupStart(copy);
    if (!real)
        return ncclInvalidUsage;
    bool watching = hook_enter_quietly(site);
    ncclResult_t result = real();
    if (watching && result == ncclSuccess)
        ++*thread_brackets(copy);
    hook_leave();
    return result;
}

static void end_bracket(struct group *group, ncclResult_t result)
{
    int saved = errno;
    group_launch_end(group, result);
    births_of_group(group, result);
    errno = saved;
}

ncclResult_t hook_ncclGroupEnd(HOOK_CALL)
{
    real_ncclGroupEnd_t *real = real_ncclGroupEnd(copy);
    if (!real)
        return ncclInvalidUsage;
    int *brackets = thread_brackets(copy);
    bool watching = hook_enter_quietly(site) && *brackets > 0;
    bool outermost = watching && *brackets == 1;
    struct group *group = outermost ? thread_state.group[copy->number] : NULL;
    bool record = group && init_has_begun();
    if (record)
        group_launch_begin(group);
    ncclResult_t result = real();
    if (record && init_has_begun())
        end_bracket(group, result);
    if (group)
        group_reset(group);
    if (watching)
        --*brackets;
    hook_leave();
    return result;
}
