/*
 * How the real NCCL is found: by RTLD_NEXT, else in a copy that came in with
 * RTLD_LOCAL (python extensions), where RTLD_NEXT is blind. Each function is
 * looked up at its first use. real_ncclX() is NULL where NCCL lacks it.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "commtrace/nccl_abi.h"
#include "rows_wrapped.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*real_function)(void);

/* Calls that the shim makes of its own and does not wrap. */
#define REAL_ASKS(X)                                  \
    X(ncclGetVersion, (int *version))                 \
    X(ncclCommCount, (ncclComm_t comm, int *count))   \
    X(ncclCommUserRank, (ncclComm_t comm, int *rank)) \
    X(ncclCommCuDevice, (ncclComm_t comm, int *device))

enum real_id {
#define CT_NCCL_ROWS SHIM_NCCL_ROWS
#define OP(id_, name_, fn_, ...) REAL_##fn_,
#define COMM(fn_, ...) REAL_##fn_,
#include "commtrace/nccl_ops.def"
#define X(fn_, params_) REAL_##fn_,
    REAL_ASKS(X)
#undef X
        REAL_COUNT
};

extern _Atomic(real_function) real_functions[REAL_COUNT];

real_function real_resolve(enum real_id id);

static inline real_function real_get(enum real_id id)
{
    /* Relaxed: the code behind it was mapped before anybody could call us. */
    real_function function =
        atomic_load_explicit(&real_functions[id], memory_order_relaxed);
    return function ? function : real_resolve(id);
}

#define CT_NCCL_ROWS SHIM_NCCL_ROWS
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    typedef ncclResult_t real_##fn_##_t params_;                         \
    static inline real_##fn_##_t *real_##fn_(void)                       \
    {                                                                    \
        return (real_##fn_##_t *)real_get(REAL_##fn_);                   \
    }
#define COMM(fn_, since_, ret_, params_, args_)        \
    typedef ret_ real_##fn_##_t params_;               \
    static inline real_##fn_##_t *real_##fn_(void)     \
    {                                                  \
        return (real_##fn_##_t *)real_get(REAL_##fn_); \
    }
#include "commtrace/nccl_ops.def"
#define X(fn_, params_)                                \
    typedef ncclResult_t real_##fn_##_t params_;       \
    static inline real_##fn_##_t *real_##fn_(void)     \
    {                                                  \
        return (real_##fn_##_t *)real_get(REAL_##fn_); \
    }
REAL_ASKS(X)
#undef X

/* The code of the NCCL copies in use. NCCL calls its own exported names, also
 * from threads of its own: such calls are not the program's. */
#define REAL_TEXTS 8
struct real_text {
    _Atomic uintptr_t start; /* written last */
    uintptr_t size;
};
extern struct real_text real_texts[REAL_TEXTS];

static inline bool real_is_nccl(const void *site)
{
    for (int i = 0; i < REAL_TEXTS; i++) {
        uintptr_t start =
            atomic_load_explicit(&real_texts[i].start, memory_order_acquire);
        if (!start)
            return false;
        if ((uintptr_t)site - start < real_texts[i].size)
            return true;
    }
    return false;
}

/* File of the NCCL in use and its version; "" and 0 when unknown. */
void real_library(char *path, int size, int *version);

#endif
