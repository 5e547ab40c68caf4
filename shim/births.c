#include "births.h"

#include "identity.h"
#include "lock.h"
#include "nccl_file.h"
#include "profiler.h"
#include "record.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of non-blocking calls. Few at a time; what finds no place is adopted
 * at its first use. */
enum { WAITING = 256 };
static struct {
    struct lock lock;
    _Atomic unsigned n;
    struct group_birth births[WAITING];
    uint64_t numbers;
} waiting = {.lock = LOCK_INITIALIZER};

static _Atomic bool asked_for_id, asked_for_comm;

void births_ask_id(void)
{
    atomic_store_explicit(&asked_for_id, true, memory_order_relaxed);
}

bool births_only_ids(void)
{
    return atomic_load_explicit(&asked_for_id, memory_order_relaxed) &&
           !atomic_load_explicit(&asked_for_comm, memory_order_relaxed);
}

static void begin(struct comm_birth *birth, struct nccl_copy *copy,
                  enum ct_comm_origin origin, const ncclConfig_t *config)
{
    *birth = (struct comm_birth){
        .copy = copy, .origin = origin, .enter_ns = record_now()};
    copy_use(copy);
    atomic_store_explicit(&asked_for_comm, true, memory_order_relaxed);
    nccl_file_before(copy);
    profiler_before(copy);
    size_t end = offsetof(ncclConfig_t, comm_name) + sizeof(char *);
    /* 2.27 is the first release with a name there. Without the magic number
     * it is no configuration, and NCCL is about to say so. */
    if (config && config->magic == CT_NCCL_CONFIG_MAGIC &&
        config->size >= end && config->version >= 22700 && config->comm_name)
        snprintf(birth->name, sizeof(birth->name), "%s", config->comm_name);
}

void birth_of_id(struct comm_birth *birth, struct nccl_copy *copy,
                 enum ct_comm_origin origin, const ncclUniqueId *id, int nranks,
                 int rank, const ncclConfig_t *config)
{
    begin(birth, copy, origin, config);
    birth->identity = identity_of_id(id, nranks, rank);
    birth->nranks = nranks;
    birth->rank = rank;
}

void birth_of_all(struct comm_birth *birth, struct nccl_copy *copy, int ndev)
{
    static _Atomic uint64_t times;
    begin(birth, copy, CT_COMM_INIT_ALL, NULL);
    /* All ranks live here: any name of ours that is unique will do. */
    uint64_t n = atomic_fetch_add_explicit(&times, 1, memory_order_relaxed);
    birth->identity.uid = identity_local(~recorder.process, n);
    birth->nranks = ndev;
}

/* The parent's entry; NULL, and nobody is born as far as we know: NCCL does not
 * know it either. */
static struct comm *begin_child(struct comm_birth *birth,
                                struct nccl_copy *copy,
                                enum ct_comm_origin origin, ncclComm_t parent,
                                const ncclConfig_t *config)
{
    begin(birth, copy, origin, config);
    struct comm *comm = comm_find(parent);
    if (!comm)
        comm = births_adopt(copy, parent);
    birth->counted = comm;
    birth->parent = comm ? comm->id : 0;
    birth->nobody = !comm;
    return comm;
}

static struct identity name_of(const struct comm *comm)
{
    return (struct identity){comm->uid, comm->nccl};
}

static uint32_t count_child(struct comm *comm)
{
    return 1 +
           atomic_fetch_add_explicit(&comm->children, 1, memory_order_relaxed);
}

void birth_of_split(struct comm_birth *birth, struct nccl_copy *copy,
                    ncclComm_t parent, int color, const ncclConfig_t *config)
{
    struct comm *comm = begin_child(birth, copy, CT_COMM_SPLIT, parent, config);
    if (!comm)
        return;
    struct identity name = name_of(comm);
    birth->child = count_child(comm);
    birth->color = color;
    birth->identity = identity_of_split(&name, birth->child, color);
    birth->nobody = color == CT_NCCL_SPLIT_NOCOLOR;
}

struct shrink_count {
    uint64_t set;
    uint32_t times;
};
static struct lock shrinks_lock = LOCK_INITIALIZER;

/* The parent's count of shrinks that leave out this set; NULL: no memory. */
static struct shrink_count *shrink_count(struct comm *comm, uint64_t set)
{
    for (uint32_t i = 0; i < comm->nshrinks; i++)
        if (comm->shrinks[i].set == set)
            return &comm->shrinks[i];
    struct shrink_count *more =
        realloc(comm->shrinks, (comm->nshrinks + 1) * sizeof(*comm->shrinks));
    if (!more)
        return NULL;
    comm->shrinks = more;
    more[comm->nshrinks] = (struct shrink_count){.set = set};
    return &more[comm->nshrinks++];
}

void birth_of_shrink(struct comm_birth *birth, struct nccl_copy *copy,
                     ncclComm_t parent, const int *excluded, int n,
                     const ncclConfig_t *config)
{
    struct comm *comm =
        begin_child(birth, copy, CT_COMM_SHRINK, parent, config);
    /* NCCL reads no such list either. */
    if (!comm || !excluded || n < 1 || n >= comm->nranks)
        return;
    birth->set = identity_of_ranks(excluded, n);
    lock_take(&shrinks_lock);
    struct shrink_count *count = shrink_count(comm, birth->set);
    if (count)
        birth->child = ++count->times;
    lock_give(&shrinks_lock);
    struct identity name = name_of(comm);
    if (birth->child)
        birth->identity = identity_of_shrink(&name, birth->set, birth->child);
}

/* Ids that coordinators of this process were given and that are not used yet,
 * for ranks that know no numbers of their parent: those of ncclCommInitAll. */
enum { LEARNED = 16 };
static struct {
    struct lock lock;
    struct {
        uint64_t parent; /* uid */
        uint32_t child;
        struct grown grown;
    } of[LEARNED];
    unsigned next;
    _Atomic uint64_t unlike;
} learned = {.lock = LOCK_INITIALIZER};

uint64_t births_unlike(void)
{
    return atomic_load_explicit(&learned.unlike, memory_order_relaxed);
}

static void compare(const struct comm *comm, uint32_t child,
                    const struct grown *told)
{
    struct grown grown = identity_grown(&comm->nccl, comm->nranks, child);
    if (comm->nccl.known &&
        (grown.magic != told->magic || grown.old_ranks != told->old_ranks))
        atomic_fetch_add_explicit(&learned.unlike, 1, memory_order_relaxed);
}

void births_learn_id(const struct comm *comm, const ncclUniqueId *id)
{
    uint32_t child =
        1 + atomic_load_explicit(&comm->children, memory_order_relaxed);
    struct grown grown = identity_grown_of_id(id);
    compare(comm, child, &grown);
    lock_take(&learned.lock);
    unsigned at = learned.next++ % LEARNED;
    learned.of[at].parent = comm->uid;
    learned.of[at].child = child;
    learned.of[at].grown = grown;
    lock_give(&learned.lock);
}

/* What the coordinator was told comes first: the new ranks have nothing else.
 */
static bool find_grown(const struct comm *comm, uint32_t child,
                       struct grown *grown)
{
    bool found = false;
    lock_take(&learned.lock);
    for (unsigned i = 0; i < LEARNED && !found; i++) {
        found =
            learned.of[i].child == child && learned.of[i].parent == comm->uid;
        if (found)
            *grown = learned.of[i].grown;
    }
    lock_give(&learned.lock);
    if (!found && comm->nccl.known)
        *grown = identity_grown(&comm->nccl, comm->nranks, child);
    return found || comm->nccl.known;
}

void birth_of_grow(struct comm_birth *birth, struct nccl_copy *copy,
                   ncclComm_t parent, int nranks, const ncclUniqueId *id,
                   int rank, const ncclConfig_t *config)
{
    struct grown grown;
    bool known = false;
    if (parent) {
        struct comm *comm =
            begin_child(birth, copy, CT_COMM_GROW, parent, config);
        if (!comm)
            return;
        rank = comm->rank;
        birth->child = count_child(comm);
        known = find_grown(comm, birth->child, &grown);
    } else {
        begin(birth, copy, CT_COMM_GROW, config);
    }
    if (!known && id) {
        grown = identity_grown_of_id(id);
        known = true;
    }
    if (known)
        birth->identity = identity_of_grow(&grown, nranks);
    birth->nranks = nranks;
    birth->rank = rank;
}

/* NCCL refused the call before it counted it, in this rank alone. */
static void uncount(const struct comm_birth *birth)
{
    struct comm *comm = birth->counted;
    if (birth->origin != CT_COMM_SHRINK) {
        atomic_fetch_sub_explicit(&comm->children, 1, memory_order_relaxed);
        return;
    }
    lock_take(&shrinks_lock);
    struct shrink_count *count = shrink_count(comm, birth->set);
    if (count && count->times)
        count->times--;
    lock_give(&shrinks_lock);
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
    lock_take(&waiting.lock);
    unsigned n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
    if (n < WAITING) {
        waiting.births[n] = *new;
        waiting.births[n].taken = false;
        waiting.births[n].number = ++waiting.numbers;
        waiting.births[n].made_at_once = new->parent ? NULL : *new->made;
        atomic_store_explicit(&waiting.n, n + 1, memory_order_release);
    }
    lock_give(&waiting.lock);
}

static void finish(const struct group_birth *birth, ncclResult_t result)
{
    if (result == ncclInProgress)
        keep_waiting(birth);
    else if (result == ncclSuccess && *birth->made)
        comm_add(*birth->made, &birth->birth);
    if (result != ncclInProgress)
        profiler_after(birth->birth.copy);
}

void birth_end(const struct comm_birth *birth, ncclComm_t *made,
               ncclComm_t parent, ncclResult_t result)
{
    int saved = errno;
    if (result == ncclInvalidArgument && birth->counted)
        uncount(birth);
    if (birth->nobody) {
        profiler_after(birth->copy);
        return;
    }
    struct group_birth new = {.made = made, .parent = parent, .birth = *birth};
    struct group *group =
        *thread_brackets(birth->copy) ? thread_group(birth->copy) : NULL;
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

/* Takes the waiting birth of a communicator, or waits until the thread that
 * took it has entered the communicator: whoever learns that it is ready may use
 * it, or end it, at once. put_away() follows. */
static bool take_waiting(ncclComm_t comm, struct group_birth *taken)
{
    unsigned i = 0;
    lock_take(&waiting.lock);
    while (i < atomic_load_explicit(&waiting.n, memory_order_relaxed)) {
        if (!concerns(&waiting.births[i], comm)) {
            i++;
        } else if (!waiting.births[i].taken) {
            waiting.births[i].taken = true;
            *taken = waiting.births[i];
            break;
        } else {
            lock_give(&waiting.lock);
            sched_yield();
            lock_take(&waiting.lock);
            i = 0;
        }
    }
    bool found = i < atomic_load_explicit(&waiting.n, memory_order_relaxed);
    lock_give(&waiting.lock);
    return found;
}

static void put_away(const struct group_birth *taken)
{
    unsigned i = 0;
    lock_take(&waiting.lock);
    unsigned n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
    while (waiting.births[i].number != taken->number)
        i++;
    memmove(&waiting.births[i], &waiting.births[i + 1],
            (n - i - 1) * sizeof(*waiting.births));
    atomic_store_explicit(&waiting.n, n - 1, memory_order_release);
    lock_give(&waiting.lock);
}

/* Signals are off, since a handler that asks would wait for its own thread. */
static void settle(ncclComm_t comm, bool born_well)
{
    struct thread_hold before;
    struct group_birth birth;
    int saved = errno;
    thread_hold(&before);
    while (take_waiting(comm, &birth)) {
        if (born_well)
            comm_add(born(&birth), &birth.birth);
        profiler_after(birth.birth.copy);
        put_away(&birth);
    }
    thread_release(&before);
    errno = saved;
}

static bool any_waits(void)
{
    return atomic_load_explicit(&waiting.n, memory_order_acquire) > 0;
}

void births_settle(ncclComm_t comm, ncclResult_t state)
{
    if (any_waits())
        settle(comm, state == ncclSuccess);
}

static bool is_ready(struct nccl_copy *copy, ncclComm_t comm)
{
    real_ncclCommCount_t *count = real_ncclCommCount(copy);
    int n;
    return count && count(comm, &n) == ncclSuccess;
}

struct comm *births_adopt(struct nccl_copy *copy, ncclComm_t comm)
{
    if (any_waits() && is_ready(copy, comm))
        births_settle(comm, ncclSuccess);
    struct comm *settled = comm_find(comm);
    return settled ? settled : comm_adopt(copy, comm);
}

void births_forget(ncclComm_t comm)
{
    if (any_waits())
        settle(comm, false);
}
