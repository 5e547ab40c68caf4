#include "identity.h"

#include "hash.h"

#include <pthread.h>
#include <string.h>

/* First values, so that names of different origin differ. */
enum { SEED_ID = 1, SEED_SPLIT = 2, SEED_LOCAL = 3 };

/* The last ids in use. One that comes back stays; the others are overwritten
 * in turn, so the memory is bounded. */
enum { REMEMBERED = 256 };
static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t joined; /* hash of id and rank */
        uint64_t times;
    } seen[REMEMBERED];
    unsigned next;
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t times_before(uint64_t joined)
{
    unsigned i = 0;
    pthread_mutex_lock(&ids.lock);
    while (i < REMEMBERED && ids.seen[i].joined != joined)
        i++;
    if (i == REMEMBERED) {
        i = ids.next++ % REMEMBERED;
        ids.seen[i].joined = joined;
        ids.seen[i].times = 0;
    }
    uint64_t times = ids.seen[i].times++;
    pthread_mutex_unlock(&ids.lock);
    return times;
}

uint64_t identity_of_id(const ncclUniqueId *id, int rank)
{
    uint64_t hash = hash_bytes(SEED_ID, id->internal, sizeof(id->internal));
    uint64_t times = times_before(hash_add(hash, (uint64_t)rank));
    return hash_add(hash, times);
}

uint64_t identity_of_split(uint64_t parent, uint32_t child, int color)
{
    uint64_t hash = hash_add(SEED_SPLIT, parent);
    return hash_add(hash_add(hash, child), (uint64_t)(int64_t)color);
}

uint64_t identity_local(uint64_t process, uint64_t n)
{
    return hash_add(hash_add(SEED_LOCAL, process), n);
}
