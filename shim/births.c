#include "births.h"

#include "identity.h"
#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of non-blocking calls. Few at a time; what finds no place is adopted
 * at its first use. */
enum { WAITING = 256 };
static struct {
    pthread_mutex_t lock;
    _Atomic unsigned n;
    struct group_birth births[WAITING];
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void begin(struct comm_birth *birth, enum ct_comm_origin origin,
                  const ncclConfig_t *config)
{
    *birth = (struct comm_birth){.origin = origin, .enter_ns = record_now()};
    size_t end = offsetof(ncclConfig_t, comm_name) + sizeof(char *);
    /* 2.27 is the first release with a name there. Without the magic number
     * it is no configuration, and NCCL is about to say so. */
    if (config && config->magic == CT_NCCL_CONFIG_MAGIC &&
        config->size >= end && config->version >= 22700 && config->comm_name)
        snprintf(birth->name, sizeof(birth->name), "%s", config->comm_name);
}

void birth_of_id(struct comm_birth *birth, const ncclUniqueId *id, int nranks,
                 int rank, const ncclConfig_t *config)
{
    begin(birth, CT_COMM_INIT, config);
    birth->uid = identity_of_id(id, rank);
    birth->nranks = nranks;
    birth->rank = rank;
}

void birth_of_all(struct comm_birth *birth, int ndev)
{
    static _Atomic uint64_t times;
    begin(birth, CT_COMM_INIT_ALL, NULL);
    /* All ranks live here: any name of ours that is unique will do. */
    uint64_t n = atomic_fetch_add_explicit(&times, 1, memory_order_relaxed);
    birth->uid = identity_local(~recorder.process, n);
    birth->nranks = ndev;
}

bool birth_of_split(struct comm_birth *birth, ncclComm_t parent, int color,
                    const ncclConfig_t *config)
{
    struct comm *comm = comm_find(parent);
    if (!comm && !(comm = comm_adopt(parent)))
        return false;
    uint32_t child =
        1 + atomic_fetch_add_explicit(&comm->children, 1, memory_order_relaxed);
    if (color == CT_NCCL_SPLIT_NOCOLOR)
        return false;
    begin(birth, CT_COMM_SPLIT, config);
    birth->uid = identity_of_split(comm->uid, child, color);
    birth->parent = comm->id;
    birth->color = color;
    birth->child = child;
    return true;
}

static void keep_in_group(struct group *group, const struct group_birth *new)
{
    if (group->nbirths == group->births_room) {
        unsigned room = group->births_room ? 2 * group->births_room : 16;
        struct group_birth *births =
            realloc(group->births, room * sizeof(*births));
        if (!births)
            return;
        group->births = births;
        group->births_room = room;
    }
    group->births[group->nbirths++] = *new;
}

static void keep_waiting(const struct group_birth *new)
{
    pthread_mutex_lock(&waiting.lock);
    unsigned n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
    if (n < WAITING) {
        waiting.births[n] = *new;
        waiting.births[n].made_at_once = new->parent ? NULL : *new->made;
        atomic_store_explicit(&waiting.n, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&waiting.lock);
}

static void finish(const struct group_birth *birth, ncclResult_t result)
{
    if (result == ncclInProgress)
        keep_waiting(birth);
    else if (result == ncclSuccess && *birth->made)
        comm_add(*birth->made, &birth->birth);
}

void birth_end(const struct comm_birth *birth, ncclComm_t *made,
               ncclComm_t parent, ncclResult_t result)
{
    int saved = errno;
    struct group_birth new = {.made = made, .parent = parent, .birth = *birth};
    struct group *group = thread_state.brackets ? thread_group() : NULL;
    if (group && (result == ncclSuccess || result == ncclInProgress))
        keep_in_group(group, &new);
    else
        finish(&new, result);
    errno = saved;
}

void births_of_group(struct group *group, ncclResult_t result)
{
    for (unsigned i = 0; i < group->nbirths; i++)
        finish(&group->births[i], result);
}

static bool concerns(const struct group_birth *birth, ncclComm_t comm)
{
    return (birth->parent ? birth->parent : birth->made_at_once) == comm;
}

/* NCCL sets *made before a parent reports success, so it is still valid then;
 * later it may be a dead stack frame. */
static ncclComm_t born(const struct group_birth *birth)
{
    return birth->parent ? *birth->made : birth->made_at_once;
}

static bool take_waiting(ncclComm_t comm, struct group_birth *taken)
{
    bool found = false;
    pthread_mutex_lock(&waiting.lock);
    unsigned n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
    for (unsigned i = 0; i < n && !found; i++) {
        if (!concerns(&waiting.births[i], comm))
            continue;
        *taken = waiting.births[i];
        memmove(&waiting.births[i], &waiting.births[i + 1],
                (n - i - 1) * sizeof(*waiting.births));
        atomic_store_explicit(&waiting.n, n - 1, memory_order_relaxed);
        found = true;
    }
    pthread_mutex_unlock(&waiting.lock);
    return found;
}

void births_settle(ncclComm_t comm, ncclResult_t state)
{
    int saved = errno;
    struct group_birth birth;
    while (atomic_load_explicit(&waiting.n, memory_order_acquire) &&
           take_waiting(comm, &birth))
        if (state == ncclSuccess)
            comm_add(born(&birth), &birth.birth);
    errno = saved;
}

void births_forget(ncclComm_t comm)
{
    struct group_birth birth;
    while (atomic_load_explicit(&waiting.n, memory_order_acquire) &&
           take_waiting(comm, &birth))
        ;
}
