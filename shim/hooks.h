/*
 * The hooks: one function per OP and COMM row, behind every way in which a
 * call can come (entries.c). Besides the call's own parameters a hook is told
 * which copy of NCCL the call goes to and the return address of the call.
 *
 * A copy that lacks the function answers ncclInvalidUsage.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include "real.h"

#define HOOK_CALL struct nccl_copy *copy, const void *site
#define HOOK_LIST(...) __VA_ARGS__

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    ncclResult_t hook_##fn_(HOOK_CALL, HOOK_LIST params_);
#define COMM(fn_, since_, ret_, params_, args_) \
    ret_ hook_##fn_(HOOK_CALL, HOOK_LIST params_);
#define BRACKET(fn_, since_) ncclResult_t hook_##fn_(HOOK_CALL);
#include "commtrace/nccl_ops.def"

#endif
