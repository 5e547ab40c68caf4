/*
 * The copies of NCCL in this process, and the real functions. A program may
 * hold several: each of two libraries with one of its own, or PyTorch's beside
 * one that was opened by path.
 *
 * real_FN(copy) is NULL where the copy lacks FN.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "commtrace/nccl_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*real_function)(void);

/* Calls that the shim makes of its own and does not hook. */
#define REAL_ASKS(X)                                  \
    X(ncclGetVersion, (int *version))                 \
    X(ncclCommCount, (ncclComm_t comm, int *count))   \
    X(ncclCommUserRank, (ncclComm_t comm, int *rank)) \
    X(ncclCommCuDevice, (ncclComm_t comm, int *device))

enum real_id {
#define HOOKED(family_, fn_, ...) REAL_##fn_,
#define HOOKED_BARE HOOKED
#include "hooked.def"
    REAL_HOOKED, /* those before it are hooked */
    REAL_BEFORE_ASKS = REAL_HOOKED - 1,
#define X(fn_, params_) REAL_##fn_,
    REAL_ASKS(X)
#undef X
        REAL_COUNT
};

enum real_family { REAL_NCCL, REAL_CUDART, REAL_CUDA };

struct real_name {
    const char *name;
    enum real_family family;
};
extern const struct real_name real_names[REAL_COUNT];

enum { NCCL_COPIES = 4 };

struct link_map;

struct nccl_copy {
    _Atomic(const struct link_map *) object; /* the library; NULL: no copy */
    /* From 0, the first copy with this object: one library may be reached in
     * more ways than one, with other tools between. Its row is number + 1. */
    _Atomic uint32_t number;
    _Atomic bool used; /* it has a row of `library` */
    _Atomic(real_function) functions[REAL_COUNT];
};

extern struct nccl_copy nccl_copies[NCCL_COPIES];

static inline uint32_t copy_number(const struct nccl_copy *copy)
{
    return atomic_load_explicit(&copy->number, memory_order_relaxed);
}

static inline void copy_use(const struct nccl_copy *copy)
{
    atomic_store_explicit(&nccl_copies[copy_number(copy)].used, true,
                          memory_order_relaxed);
}

/* The copy that a real function belongs to, or a free one. object is the
 * library: of the copy, where it is NCCL. NULL: more copies than are kept. */
struct nccl_copy *real_copy_of(enum real_id id, real_function real,
                               const struct link_map *object);

/* Looks the function up in the copy's library. */
real_function real_resolve(struct nccl_copy *copy, enum real_id id);

static inline real_function real_get(struct nccl_copy *copy, enum real_id id)
{
    /* Relaxed: the code behind it was mapped before anybody could call us. */
    real_function function =
        atomic_load_explicit(&copy->functions[id], memory_order_relaxed);
    return function ? function : real_resolve(copy, id);
}

#define REAL(fn_, ret_, params_)                                     \
    typedef ret_ real_##fn_##_t params_;                             \
    static inline real_##fn_##_t *real_##fn_(struct nccl_copy *copy) \
    {                                                                \
        return (real_##fn_##_t *)real_get(copy, REAL_##fn_);         \
    }
#define HOOKED(family_, fn_, ret_, params_, args_) REAL(fn_, ret_, params_)
#define HOOKED_BARE(family_, fn_, ret_) REAL(fn_, ret_, (void))
#include "hooked.def"
#define X(fn_, params_) REAL(fn_, ncclResult_t, params_)
REAL_ASKS(X)
#undef X
#undef REAL

/* The code of the NCCL copies in use. NCCL calls its own exported names, also
 * from threads of its own: such calls are not the program's. */
#define REAL_TEXTS 8
struct real_text {
    _Atomic bool taken;
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
