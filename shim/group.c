#include "group.h"

#include "gputime.h"
#include "pending.h"
#include "record.h"

_Atomic uint64_t group_untimed;

struct group_target *group_target(struct group *group, struct comm *comm,
                                  uint64_t stream)
{
    unsigned n = group->ntargets;
    for (unsigned i = 0; i < n; i++) {
        /* From the latest one on: neighbours mostly agree. */
        unsigned at =
            group->last + i < n ? group->last + i : group->last + i - n;
        struct group_target *target = &group->targets[at];
        if (target->comm == comm && target->stream == stream) {
            group->last = at;
            return target;
        }
    }
    if (n == GROUP_TARGETS)
        return NULL;
    group->last = n;
    group->ntargets = n + 1;
    group->targets[n] = (struct group_target){
        .comm = comm, .stream = stream, .comm_id = comm->id, .events = -1};
    return &group->targets[n];
}

static void tell_launch(const struct group *group, struct group_target *target,
                        int64_t enter_ns)
{
    struct ct_slot *slot =
        record_open(CT_SLOT_LAUNCH, target->comm_id, &target->position);
    target->slot = slot;
    if (!slot) {
        gpu_drop(target->events);
        target->events = -1;
        return;
    }
    slot->enter_ns = enter_ns;
    slot->flags = target->flags;
    slot->grp = group->id;
    slot->u.launch.stream = target->stream;
    slot->u.launch.nops = target->nops;
    slot->u.launch.events = target->events;
    ring_publish(slot, target->position, CT_SLOT_OPEN);
}

static void launch_begin(struct group *group, struct group_target *target,
                         int64_t enter_ns)
{
    if (!(target->flags & CT_FLAG_CAPTURED) && target->comm->gpu) {
        if (group->timed)
            target->events = gpu_start(target->comm->gpu, target->stream);
        else
            target->flags |= CT_FLAG_UNSAMPLED;
    }
    if (target->events >= 0)
        target->flags |= CT_FLAG_EVENT;
    tell_launch(group, target, enter_ns);
}

void group_launch_begin(struct group *group)
{
    int64_t enter_ns = record_now();
    for (unsigned i = 0; i < group->ntargets; i++)
        launch_begin(group, &group->targets[i], enter_ns);
}

/* The entry may have been given to another communicator meanwhile. */
static bool stays_pending(const struct group_target *target,
                          ncclResult_t result)
{
    return result == ncclInProgress && target->slot &&
           target->comm->id == target->comm_id &&
           pending_keep(&(struct pending){
               .comm = target->comm,
               .slot = target->slot,
               .position = target->position,
               .stream = target->stream,
               .events = target->events,
           });
}

void group_launch_end(struct group *group, ncclResult_t result)
{
    if (result == ncclSuccess)
        for (unsigned i = 0; i < group->ntargets; i++)
            gpu_stop(group->targets[i].events, group->targets[i].stream);
    int64_t leave_ns = record_now();
    for (unsigned i = 0; i < group->ntargets; i++) {
        struct group_target *target = &group->targets[i];
        if (!stays_pending(target, result))
            record_close(target->slot, target->position, leave_ns, result,
                         target->events);
    }
}

void group_simulate_begin(struct group *group)
{
    int64_t enter_ns = record_now();
    for (unsigned i = 0; i < group->ntargets; i++) {
        group->targets[i].flags |= CT_FLAG_SIMULATED;
        tell_launch(group, &group->targets[i], enter_ns);
    }
}
