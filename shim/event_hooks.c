/* Hooks of the calls that change or end communicators, or ask how they are. */
#include "births.h"
#include "hooks.h"
#include "pending.h"
#include "record.h"

/* The end of a communicator. NCCL may hand out its address again as soon as it
 * is freed, so it leaves our table first. */
static ncclResult_t end_comm(ncclComm_t key, ncclResult_t (*real)(ncclComm_t),
                             enum ct_comm_event what, struct hook_from from)
{
    struct comm *comm = NULL;
    struct event event;
    if (hook_enter_quietly(from) && init_has_begun()) {
        births_forget(key);
        comm = comm_take_out(key);
    }
    if (comm) {
        pending_give_up(comm);
        event_enter(&event, comm, what);
    }
    ncclResult_t result = real(key);
    if (comm) {
        bool over = result == ncclSuccess || result == ncclInProgress;
        if (over)
            comm_note_end(comm);
        event_leave(&event, result);
        if (over)
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
    return real ? end_comm(comm, real, CT_EVENT_DESTROY, from)
                : ncclInvalidUsage;
}

ncclResult_t hook_ncclCommAbort(HOOK_CALL, ncclComm_t comm)
{
    real_ncclCommAbort_t *real = real_ncclCommAbort(copy);
    return real ? end_comm(comm, real, CT_EVENT_ABORT, from) : ncclInvalidUsage;
}

/* Begins an event of a communicator that stays; false: not one to record. */
static bool watch(struct event *event, ncclComm_t key, enum ct_comm_event what,
                  struct hook_from from)
{
    if (!hook_enter_quietly(from) || !init_has_begun())
        return false;
    struct comm *comm = comm_find(key);
    if (comm)
        event_enter(event, comm, what);
    return comm != NULL;
}

static bool stays_pending(const struct event *event, ncclResult_t result)
{
    return result == ncclInProgress && event->slot &&
           pending_keep(&(struct pending){
               .comm = event->comm,
               .slot = event->slot,
               .position = event->position,
               .events = -1,
           });
}

static ncclResult_t watched(bool watching, struct event *event,
                            ncclResult_t result)
{
    if (watching && !stays_pending(event, result))
        event_leave(event, result);
    hook_leave();
    return result;
}

#define EVENT(fn_, since_, event_, params_, args_)                    \
    ncclResult_t hook_##fn_(HOOK_CALL, HOOK_LIST params_)             \
    {                                                                 \
        real_##fn_##_t *real = real_##fn_(copy);                      \
        if (!real)                                                    \
            return ncclInvalidUsage;                                  \
        struct event event;                                           \
        bool watching = watch(&event, comm, CT_EVENT_##event_, from); \
        return watched(watching, &event, real args_);                 \
    }
#include "commtrace/nccl_ops.def"

ncclResult_t hook_ncclCommGetUniqueId(HOOK_CALL, ncclComm_t comm,
                                      ncclUniqueId *uniqueId)
{
    real_ncclCommGetUniqueId_t *real = real_ncclCommGetUniqueId(copy);
    if (!real)
        return ncclInvalidUsage;
    struct event event;
    bool watching = watch(&event, comm, CT_EVENT_UNIQUE_ID, from);
    ncclResult_t result = real(comm, uniqueId);
    if (watching && result == ncclSuccess)
        births_learn_id(event.comm, uniqueId);
    return watched(watching, &event, result);
}

/* Watchdogs ask thousands of times; only a new error is an event. */
static void note_error(struct comm *comm, ncclResult_t error)
{
    struct event event;
    if (error == ncclSuccess ||
        atomic_exchange_explicit(&comm->async_error, error,
                                 memory_order_relaxed) == (int32_t)error)
        return;
    event_enter(&event, comm, CT_EVENT_ERROR);
    event_leave(&event, error);
}

/* comm has left ncclInProgress, if it ever was in it. */
static void settle(ncclComm_t key, ncclResult_t state)
{
    births_settle(key, state);
    struct comm *comm = comm_find(key);
    if (!comm)
        return;
    if (pending_any(comm))
        pending_settle(comm, state);
    note_error(comm, state);
}

ncclResult_t hook_ncclCommGetAsyncError(HOOK_CALL, ncclComm_t comm,
                                        ncclResult_t *asyncError)
{
    real_ncclCommGetAsyncError_t *real = real_ncclCommGetAsyncError(copy);
    if (!real)
        return ncclInvalidUsage;
    bool watching = hook_enter_quietly(from) && init_has_begun();
    ncclResult_t result = real(comm, asyncError);
    if (watching && result == ncclSuccess && *asyncError != ncclInProgress)
        settle(comm, *asyncError);
    hook_leave();
    return result;
}
