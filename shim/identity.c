#include "identity.h"

#include "commtrace/nccl_hash.h"
#include "hash.h"
#include "lock.h"

#include <string.h>

/* First values, so that names of different origin differ. */
enum {
    SEED_ID = 1,
    SEED_SPLIT,
    SEED_LOCAL,
    SEED_SHRINK,
    SEED_RANKS,
    SEED_GROW,
    SEED_HASH
};

/* In place of a random number where NCCL_COMM_ID gives the address. */
#define MAGIC_OF_COMM_ID UINT64_C(0x0280028002800280)

/* The last ids in use. One that comes back stays; the others are overwritten
 * in turn, so the memory is bounded. */
enum { REMEMBERED = 256 };
static struct {
    struct lock lock;
    struct {
        uint64_t joined; /* hash of id and rank */
        uint64_t times;
    } seen[REMEMBERED];
    unsigned next;
} ids = {.lock = LOCK_INITIALIZER};

static uint64_t times_before(uint64_t joined)
{
    unsigned i = 0;
    lock_take(&ids.lock);
    while (i < REMEMBERED && ids.seen[i].joined != joined)
        i++;
    if (i == REMEMBERED) {
        i = ids.next++ % REMEMBERED;
        ids.seen[i].joined = joined;
        ids.seen[i].times = 0;
    }
    uint64_t times = ids.seen[i].times++;
    lock_give(&ids.lock);
    return times;
}

struct grown identity_grown_of_id(const ncclUniqueId *id)
{
    struct ct_nccl_id known;
    memcpy(&known, id->internal, sizeof(known));
    return (struct grown){known.magic, known.old_ranks};
}

struct identity identity_of_id(const ncclUniqueId *id, int nranks, int rank)
{
    uint64_t magic = identity_grown_of_id(id).magic;
    uint64_t hash = hash_bytes(SEED_ID, id->internal, sizeof(id->internal));
    /* Disjoint communicators may share that id; mostly their sizes differ. */
    if (magic == MAGIC_OF_COMM_ID)
        hash = hash_add(hash, (uint64_t)nranks);
    uint64_t times = times_before(hash_add(hash, (uint64_t)rank));
    return (struct identity){
        .uid = hash_add(hash, times),
        .nccl = {.known = true,
                 .hash = ct_nccl_hash_of_id(id->internal),
                 .magic = magic},
    };
}

static struct nccl_numbers numbers_of_child(const struct nccl_numbers *parent,
                                            uint32_t child, int color)
{
    uint64_t hash = ct_nccl_hash_of_child(parent->hash, (int)child, color);
    return (struct nccl_numbers){parent->known, hash, hash};
}

struct identity identity_of_split(const struct identity *parent, uint32_t child,
                                  int color)
{
    uint64_t hash = hash_add(SEED_SPLIT, parent->uid);
    return (struct identity){
        .uid = hash_add(hash_add(hash, child), (uint64_t)(int64_t)color),
        .nccl = numbers_of_child(&parent->nccl, child, color),
    };
}

uint64_t identity_of_ranks(const int *ranks, int n)
{
    uint64_t sum = (uint64_t)n; /* order does not matter */
    for (int i = 0; i < n; i++)
        sum += hash_add(SEED_RANKS, (uint64_t)(int64_t)ranks[i]);
    return hash_mix(sum);
}

struct identity identity_of_shrink(const struct identity *parent, uint64_t set,
                                   uint32_t nth)
{
    uint64_t hash = hash_add(hash_add(SEED_SHRINK, parent->uid), set);
    return (struct identity){
        .uid = hash_add(hash, nth),
        .nccl = numbers_of_child(&parent->nccl, 0, 0),
    };
}

struct grown identity_grown(const struct nccl_numbers *parent, int old_ranks,
                            uint32_t child)
{
    return (struct grown){ct_nccl_hash_combine(parent->magic, child),
                          old_ranks};
}

struct identity identity_of_grow(const struct grown *grown, int nranks)
{
    uint64_t hash = hash_add(SEED_GROW, grown->magic);
    hash = hash_add(hash, (uint64_t)grown->old_ranks);
    return (struct identity){
        .uid = hash_add(hash, (uint64_t)nranks),
        .nccl = {.known = true,
                 .hash = ct_nccl_hash_combine(grown->magic, (uint64_t)nranks),
                 .magic = grown->magic},
    };
}

struct identity identity_of_hash(uint64_t hash, int nranks, int rank)
{
    uint64_t name = hash_add(hash_add(SEED_HASH, hash), (uint64_t)nranks);
    uint64_t times = times_before(hash_add(name, (uint64_t)rank));
    return (struct identity){
        .uid = hash_add(name, times),
        .nccl = {.known = true, .hash = hash, .magic = hash},
    };
}

uint64_t identity_local(uint64_t process, uint64_t n)
{
    return hash_add(hash_add(SEED_LOCAL, process), n);
}
