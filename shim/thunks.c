/* What dlsym hands out: for each function one thunk per copy of NCCL. */
#include "thunks.h"

#include "hooks.h"

#define THUNK(n_, fn_, ret_, params_, hook_call_)  \
    static ret_ thunk_##n_##_##fn_ params_         \
    {                                              \
        struct hook_from from = HOOK_FROM;         \
        struct nccl_copy *copy = &nccl_copies[n_]; \
        ret_ result = hook_call_;                  \
        hook_stay(from);                           \
        return result;                             \
    }
#define THUNKS(fn_, ret_, params_, hook_call_) \
    THUNK(0, fn_, ret_, params_, hook_call_)   \
    THUNK(1, fn_, ret_, params_, hook_call_)   \
    THUNK(2, fn_, ret_, params_, hook_call_)   \
    THUNK(3, fn_, ret_, params_, hook_call_)

#define HOOKED(family_, fn_, ret_, params_, args_) \
    THUNKS(fn_, ret_, params_, hook_##fn_(copy, from, HOOK_LIST args_))
#define HOOKED_BARE(family_, fn_, ret_) \
    THUNKS(fn_, ret_, (void), hook_##fn_(copy, from))
#include "hooked.def"

/* One row of functions per copy. */
const real_function thunks[REAL_HOOKED][NCCL_COPIES] = {
#define ROW(fn_)                                                 \
    {(real_function)thunk_0_##fn_, (real_function)thunk_1_##fn_, \
     (real_function)thunk_2_##fn_, (real_function)thunk_3_##fn_},
#define HOOKED(family_, fn_, ret_, params_, args_) ROW(fn_)
#define HOOKED_BARE(family_, fn_, ret_) ROW(fn_)
#include "hooked.def"
};
_Static_assert(NCCL_COPIES == 4, "a thunk per copy");
