/* Hooks of the calls that bracket a group. */
#include "births.h"
#include "group.h"
#include "hooks.h"
#include "record.h"

#include <errno.h>

ncclResult_t hook_ncclGroupStart(HOOK_CALL)
{
    real_ncclGroupStart_t *real = real_ncclGroupStart(copy);
    if (!real)
        return ncclInvalidUsage;
    bool watching = hook_enter_quietly(from);
    ncclResult_t result = real();
    if (watching && result == ncclSuccess)
        ++*thread_brackets(copy);
    hook_leave();
    return result;
}

/* Between the two halves of a call that ends a bracket. */
struct ending {
    bool watching;
    struct group *group; /* of the outermost one, where it holds anything */
    bool record;
};

static struct ending begin_end(const struct nccl_copy *copy,
                               struct hook_from from, bool launches)
{
    int brackets = *thread_brackets(copy);
    struct ending ending = {.watching =
                                hook_enter_quietly(from) && brackets > 0};
    if (ending.watching && brackets == 1)
        ending.group = thread_state.group[copy_number(copy)];
    ending.record = ending.group && init_has_begun();
    if (ending.record && launches)
        group_launch_begin(ending.group);
    else if (ending.record)
        group_simulate_begin(ending.group);
    return ending;
}

static ncclResult_t finish_end(const struct nccl_copy *copy,
                               const struct ending *ending, ncclResult_t result)
{
    int saved = errno;
    if (ending->record && init_has_begun()) {
        group_launch_end(ending->group, result);
        births_of_group(ending->group, result);
    }
    if (ending->group)
        group_reset(ending->group);
    if (ending->watching)
        --*thread_brackets(copy);
    hook_leave();
    errno = saved;
    return result;
}

ncclResult_t hook_ncclGroupEnd(HOOK_CALL)
{
    real_ncclGroupEnd_t *real = real_ncclGroupEnd(copy);
    if (!real)
        return ncclInvalidUsage;
    struct ending ending = begin_end(copy, from, true);
    return finish_end(copy, &ending, real());
}

/* Without a place for the answer NCCL does what ncclGroupEnd() does. */
ncclResult_t hook_ncclGroupSimulateEnd(HOOK_CALL, ncclSimInfo_t *simInfo)
{
    real_ncclGroupSimulateEnd_t *real = real_ncclGroupSimulateEnd(copy);
    if (!real)
        return ncclInvalidUsage;
    struct ending ending = begin_end(copy, from, !simInfo);
    return finish_end(copy, &ending, real(simInfo));
}
