#include "pending.h"

#include "gputime.h"
#include "lock.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>

static struct {
    struct lock lock;
    struct pending *calls;
    size_t n, room;
} kept = {.lock = LOCK_INITIALIZER};

static bool keep(const struct pending *call)
{
    if (kept.n == kept.room) {
        size_t room = kept.room ? 2 * kept.room : 64;
        struct pending *calls = realloc(kept.calls, room * sizeof(*calls));
        if (!calls)
            return false;
        kept.calls = calls;
        kept.room = room;
    }
    kept.calls[kept.n++] = *call;
    atomic_fetch_add_explicit(&call->comm->pending, 1, memory_order_relaxed);
    return true;
}

bool pending_keep(const struct pending *call)
{
    int saved = errno;
    lock_take(&kept.lock);
    bool done = keep(call);
    lock_give(&kept.lock);
    errno = saved;
    return done;
}

/* The oldest call of comm; the driver is then called without our lock. */
static bool take(struct comm *comm, struct pending *call)
{
    size_t i = 0;
    lock_take(&kept.lock);
    while (i < kept.n && kept.calls[i].comm != comm)
        i++;
    bool found = i < kept.n;
    if (found) {
        *call = kept.calls[i];
        for (kept.n--; i < kept.n; i++)
            kept.calls[i] = kept.calls[i + 1];
        atomic_fetch_sub_explicit(&comm->pending, 1, memory_order_relaxed);
    }
    lock_give(&kept.lock);
    return found;
}

/* A call without a stop event keeps ncclInProgress as its result: the writer
 * reads no GPU time then. */
static void end(struct comm *comm, ncclResult_t state, bool timed)
{
    int saved = errno, cancel = thread_hold_cancel();
    int64_t leave_ns = record_now();
    struct pending call;
    while (take(comm, &call)) {
        ncclResult_t result = state;
        if (call.events >= 0 && state == ncclSuccess &&
            !(timed && gpu_stop_elsewhere(call.events, call.stream)))
            result = ncclInProgress;
        record_close(call.slot, call.position, leave_ns, result, call.events);
    }
    thread_allow_cancel(cancel);
    errno = saved;
}

void pending_settle(struct comm *comm, ncclResult_t state)
{
    end(comm, state, true);
}

void pending_give_up(struct comm *comm)
{
    end(comm, ncclInProgress, false);
}
