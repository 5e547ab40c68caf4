/*
 * The copies of NCCL in this process, and their functions. Each one is looked
 * up at its first use; real_ncclX(copy) is NULL where the copy lacks it.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "commtrace/nccl_abi.h"

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
#define OP(id_, name_, fn_, ...) REAL_##fn_,
#define COMM(fn_, ...) REAL_##fn_,
#include "commtrace/nccl_ops.def"
#define X(fn_, params_) REAL_##fn_,
    REAL_ASKS(X)
#undef X
        REAL_COUNT
};

enum { NCCL_COPIES = 4 };

struct nccl_copy {
    uint32_t number; /* from 0; its library row is the next number */
    _Atomic(real_function) functions[REAL_COUNT];
};

extern struct nccl_copy nccl_copies[NCCL_COPIES];

/* The copy that a call through an exported name goes to. */
static inline struct nccl_copy *real_copy_of(const void *site)
{
    (void)site;
    return &nccl_copies[0];
}

real_function real_resolve(struct nccl_copy *copy, enum real_id id);

static inline real_function real_get(struct nccl_copy *copy, enum real_id id)
{
    /* Relaxed: the code behind it was mapped before anybody could call us. */
    real_function function =
        atomic_load_explicit(&copy->functions[id], memory_order_relaxed);
    return function ? function : real_resolve(copy, id);
}

#define REAL(fn_, params_)                                           \
    typedef ncclResult_t real_##fn_##_t params_;                     \
    static inline real_##fn_##_t *real_##fn_(struct nccl_copy *copy) \
    {                                                                \
        return (real_##fn_##_t *)real_get(copy, REAL_##fn_);         \
    }
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    REAL(fn_, params_)
#define COMM(fn_, since_, ret_, params_, args_) REAL(fn_, params_)
#include "commtrace/nccl_ops.def"
REAL_ASKS(REAL)
#undef REAL

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

/* The copy's file and version; "" and 0 when unknown. */
void real_library(struct nccl_copy *copy, char *path, int size, int *version);

#endif
