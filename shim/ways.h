/*
 * Where a call or a look-up leads: from the place that it comes from to the
 * copy of NCCL that it would reach without us.
 */
#ifndef SHIM_WAYS_H
#define SHIM_WAYS_H

#include "real.h"

/*
 * Call sites that are known, in no order: site, function and copy in one word.
 * Entries are added, and all of them forgotten when libraries were unloaded.
 */
enum { WAYS = 1024, WAYS_TRIES = 8 };
extern _Atomic uint64_t ways_known[WAYS];

_Static_assert(REAL_HOOKED <= 128 && NCCL_COPIES <= 4, "they fit into 9 bits");

static inline uint64_t ways_key(enum real_id id, const void *site)
{
    return (uint64_t)(uintptr_t)site << 9 | (uint64_t)id << 2;
}

static inline unsigned ways_home(uint64_t key)
{
    return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

struct nccl_copy *ways_look(enum real_id id, const char *version,
                            const void *site);

/* The copy that a call through an exported name goes to; NULL: none, or one too
 * many. version is that of the reference. */
static inline struct nccl_copy *ways_of(enum real_id id, const char *version,
                                        const void *site)
{
    uint64_t key = ways_key(id, site);
    unsigned at = ways_home(key);
    for (unsigned i = 0; i < WAYS_TRIES; i++) {
        /* Acquire: what was learned of the copy is there, too. */
        uint64_t known = atomic_load_explicit(&ways_known[(at + i) % WAYS],
                                              memory_order_acquire);
        if ((known ^ key) < NCCL_COPIES)
            return &nccl_copies[known ^ key];
        if (!known)
            break;
    }
    return ways_look(id, version, site);
}

/* The real function of a call for which there is no copy, or NULL. */
real_function ways_past(enum real_id id, const char *version, const void *site);

/* What dlsym is to answer where the program would get this symbol. handle and
 * site are those of the look-up. */
void *ways_symbol(enum real_id id, void *symbol, void *handle,
                  const void *site);

/* Functions of copies too many that were called or handed out. */
extern _Atomic uint64_t ways_unrecorded;

/* At calls that begin a client's work: what was unloaded is forgotten. */
void ways_refresh(void);

#endif
