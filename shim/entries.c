/*
 * The exported functions: what a program binds to that was linked with NCCL or
 * CUDA.
 *
 * In libcommtrace.so their names carry a version, and not the default one. A
 * reference without a version, as all those to NCCL are, binds to the first
 * version that a library defines; dlsym() takes default ones only. So linked
 * programs come here, and dlsym() answers as if we were not there. References
 * to cudart have its version, so each of its versions has an entry.
 */
#include "hooks.h"
#include "ways.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* version: of the reference, NULL for none. absent: nothing that a program is
 * linked with lacks what it calls, unless we promised it. */
#define ENTRY(entry_, fn_, version_, ret_, params_, hook_call_, real_call_,  \
              absent_)                                                       \
    EXPORT ret_ entry_ params_;                                              \
    EXPORT ret_ entry_ params_                                               \
    {                                                                        \
        struct hook_from from = HOOK_FROM;                                   \
        if (!strncmp(#fn_, "ncclCommInit", 12)) /* known to the compiler */  \
            ways_refresh();                                                  \
        struct nccl_copy *copy = ways_of(REAL_##fn_, (version_), from.site); \
        if (__builtin_expect(copy != NULL, 1)) {                             \
            ret_ result = hook_call_;                                        \
            hook_stay(from);                                                 \
            return result;                                                   \
        }                                                                    \
        real_##fn_##_t *real =                                               \
            (real_##fn_##_t *)ways_past(REAL_##fn_, (version_), from.site);  \
        return real ? real_call_ : (absent_);                                \
    }

#ifdef ENTRIES_VERSIONED
#define VERSION(entry_, fn_, version_) \
    __asm__(".symver " #entry_ ", " #fn_ "@" version_);
#define UNVERSIONED_ENTRY(fn_, ...)        \
    VERSION(entry_##fn_, fn_, "COMMTRACE") \
    ENTRY(entry_##fn_, fn_, NULL, __VA_ARGS__)
#define CUDART_VERSION(n_, version_, fn_, ...) \
    VERSION(entry##n_##_##fn_, fn_, version_)  \
    ENTRY(entry##n_##_##fn_, fn_, version_, __VA_ARGS__)
#define CUDART_ENTRY(fn_, ...)                                \
    UNVERSIONED_ENTRY(fn_, __VA_ARGS__)                       \
    CUDART_VERSION(11, "libcudart.so.11.0", fn_, __VA_ARGS__) \
    CUDART_VERSION(12, "libcudart.so.12", fn_, __VA_ARGS__)   \
    CUDART_VERSION(13, "libcudart.so.13", fn_, __VA_ARGS__)
#else /* in the program itself, as unit tests have it */
#define UNVERSIONED_ENTRY(fn_, ...) ENTRY(fn_, fn_, NULL, __VA_ARGS__)
#define CUDART_ENTRY UNVERSIONED_ENTRY
#endif
#define NCCL_ENTRY UNVERSIONED_ENTRY
#define CUDA_ENTRY UNVERSIONED_ENTRY

enum {
    NCCL_ABSENT = ncclInvalidUsage,
    CUDA_ABSENT = 500, /* CUDA_ERROR_NOT_FOUND */
    CUDART_ABSENT = 500
};

#define HOOKED(family_, fn_, ret_, params_, args_)                       \
    family_##_ENTRY(fn_, ret_, params_,                                  \
                    hook_##fn_(copy, from, HOOK_LIST args_), real args_, \
                    family_##_ABSENT)
#define HOOKED_BARE(family_, fn_, ret_)                                \
    family_##_ENTRY(fn_, ret_, (void), hook_##fn_(copy, from), real(), \
                    family_##_ABSENT)
#include "hooked.def"
