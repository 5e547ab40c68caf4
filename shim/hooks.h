/*
 * The hooks: one function per row of hooked.def, behind every way in which a
 * call can come. Besides the call's own parameters a hook is told which copy of
 * NCCL the call goes to and where it comes from. To a function of CUDA the copy
 * is no more than what leads to the real function.
 *
 * A copy that lacks the function answers ncclInvalidUsage.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include "thread.h"

#define HOOK_CALL struct nccl_copy *copy, struct hook_from from
#define HOOK_LIST(...) __VA_ARGS__
#define HOOK_FROM                                               \
    {                                                           \
        __builtin_return_address(0), __builtin_frame_address(0) \
    }

/* After the hook, by whoever said where the call comes from: its frame has not
 * made way for the hook's, as it would for a call in its last place. */
static inline void hook_stay(struct hook_from from)
{
    __asm__ volatile("" : : "r"(from.frame));
}

#define HOOKED(family_, fn_, ret_, params_, args_) \
    ret_ hook_##fn_(HOOK_CALL, HOOK_LIST params_);
#define HOOKED_BARE(family_, fn_, ret_) ret_ hook_##fn_(HOOK_CALL);
#include "hooked.def"

#endif
