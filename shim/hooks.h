/*
 * The hooks: one function per row of hooked.def, behind every way in which a
 * call can come. Besides the call's own parameters a hook is told which copy of
 * NCCL the call goes to and the return address of the call. To a function of
 * CUDA the copy is no more than what leads to the real function.
 *
 * A copy that lacks the function answers ncclInvalidUsage.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include "real.h"

#define HOOK_CALL struct nccl_copy *copy, const void *site
#define HOOK_LIST(...) __VA_ARGS__

#define HOOKED(family_, fn_, ret_, params_, args_) \
    ret_ hook_##fn_(HOOK_CALL, HOOK_LIST params_);
#define HOOKED_BARE(family_, fn_, ret_) ret_ hook_##fn_(HOOK_CALL);
#include "hooked.def"

#endif
