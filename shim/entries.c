/* The exported functions: what a program binds to that was linked with NCCL. */
#include "hooks.h"

#define ENTRY_EXPORT __attribute__((visibility("default")))

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    COMM(fn_, since_, ncclResult_t, params_, args_)
#define COMM(fn_, since_, ret_, params_, args_)                       \
    ENTRY_EXPORT ret_ fn_ params_;                                    \
    ENTRY_EXPORT ret_ fn_ params_                                     \
    {                                                                 \
        const void *site = __builtin_return_address(0);               \
        return hook_##fn_(real_copy_of(site), site, HOOK_LIST args_); \
    }
#define BRACKET(fn_, since_)                            \
    ENTRY_EXPORT ncclResult_t fn_(void);                \
    ENTRY_EXPORT ncclResult_t fn_(void)                 \
    {                                                   \
        const void *site = __builtin_return_address(0); \
        return hook_##fn_(real_copy_of(site), site);    \
    }
#include "commtrace/nccl_ops.def"
