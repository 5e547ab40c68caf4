#include "comm.h"

#include "comm_table.h"
#include "gputime.h"
#include "identity.h"
#include "lock.h"
#include "real.h"
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct lock lock;
    struct comm_table table;
    struct comm *unused;
    uint32_t last_id;
    _Atomic(struct comm_facts *) facts; /* newest first */
    _Atomic uint32_t nfacts;            /* given out and not freed */
} comms = {.lock = LOCK_INITIALIZER};

struct comm *comm_look_up(ncclComm_t key)
{
    struct comm *comm = comm_table_find(&comms.table, key);
    if (comm)
        return comm;
    lock_take(&comms.lock);
    comm = comm_table_find(&comms.table, key);
    lock_give(&comms.lock);
    return comm;
}

static bool make_room(struct comm *comm, int nranks)
{
    uint32_t room = COMM_WAYS * ((uint32_t)nranks + 1);
    if (comm->p2p_room < room) {
        free((void *)comm->p2p_ordinal);
        comm->p2p_room = 0;
        comm->p2p_ordinal = malloc(room * sizeof(*comm->p2p_ordinal));
        if (!comm->p2p_ordinal)
            return false;
        comm->p2p_room = room;
    }
    for (uint32_t i = 0; i < comm->p2p_room; i++)
        atomic_store_explicit(&comm->p2p_ordinal[i], 0, memory_order_relaxed);
    return true;
}

static struct comm *obtain(int nranks)
{
    struct comm *comm = comms.unused;
    if (comm)
        comms.unused = comm->next;
    else if (!(comm = calloc(1, sizeof(*comm))))
        return NULL;
    if (!make_room(comm, nranks)) {
        comm->next = comms.unused;
        comms.unused = comm;
        return NULL;
    }
    atomic_store_explicit(&comm->ordinal, 0, memory_order_relaxed);
    atomic_store_explicit(&comm->children, 0, memory_order_relaxed);
    comm->nshrinks = 0;
    atomic_store_explicit(&comm->async_error, 0, memory_order_relaxed);
    atomic_store_explicit(&comm->pending, 0, memory_order_relaxed);
    atomic_store_explicit(&comm->nstacks, 0, memory_order_relaxed);
    for (int i = 0; i < COMM_STACK_PLACES; i++)
        atomic_store_explicit(&comm->stacks[i], 0, memory_order_relaxed);
    comm->id = ++comms.last_id;
    return comm;
}

static void publish_facts(struct comm_facts *facts)
{
    facts->next = atomic_load_explicit(&comms.facts, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&comms.facts, &facts->next,
                                                  facts, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

void comm_give_back_facts(struct comm_facts *facts)
{
    publish_facts(facts);
}

struct comm_facts *comm_new_facts(void)
{
    struct comm_facts *list =
        atomic_exchange_explicit(&comms.facts, NULL, memory_order_acquire);
    struct comm_facts *oldest_first = NULL;
    while (list) {
        struct comm_facts *next = list->next;
        list->next = oldest_first;
        oldest_first = list;
        list = next;
    }
    return oldest_first;
}

static int64_t or_null(int64_t value, bool known)
{
    return known ? value : CT_NULL;
}

void comm_free_facts(struct comm_facts *facts)
{
    free(facts);
    atomic_fetch_sub_explicit(&comms.nfacts, 1, memory_order_relaxed);
}

void comm_note_end(struct comm *comm)
{
    /* Release: the writer may free it from now on. */
    if (comm->facts)
        atomic_store_explicit(&comm->facts->end_ns, record_now(),
                              memory_order_release);
    comm->facts = NULL;
}

/* NULL without memory, and while the writer cannot get rid of what it has. */
static struct comm_facts *new_facts(void)
{
    enum { MOST = 1 << 16 };
    struct comm_facts *facts = NULL;
    if (atomic_fetch_add_explicit(&comms.nfacts, 1, memory_order_relaxed) <
        MOST)
        facts = calloc(1, sizeof(*facts));
    if (!facts) {
        atomic_fetch_sub_explicit(&comms.nfacts, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&recorder.ring.header->lost_comms, 1,
                                  memory_order_relaxed);
    }
    return facts;
}

static int64_t library_of(const struct comm_birth *birth)
{
    return birth->copy ? (int64_t)copy_number(birth->copy) + 1
                       : or_null(birth->library, birth->library != 0);
}

static void tell(struct comm *comm, ncclComm_t key,
                 const struct comm_birth *birth)
{
    static const char *const origins[] = {
#define X(id_, name_) name_,
        CT_COMM_ORIGINS(X)
#undef X
    };
    struct comm_facts *facts = new_facts();
    comm->facts = facts;
    if (!facts)
        return;
    atomic_store_explicit(&facts->end_ns, CT_NULL, memory_order_relaxed);
    facts->key = key;
    snprintf(facts->name, sizeof(facts->name), "%s", birth->name);
    facts->nccl = comm->nccl;
    facts->told = birth->origin == CT_COMM_TOLD;
    facts->row = (struct row_comm){
        .id = comm->id,
        .uid = (int64_t)comm->uid,
        .origin = origins[birth->origin],
        .parent = or_null(birth->parent, birth->parent != 0),
        .color = or_null(birth->color, birth->origin == CT_COMM_SPLIT),
        .child = or_null(birth->child, birth->child != 0),
        .name = *facts->name ? facts->name : NULL,
        .nranks = comm->nranks,
        .rank = comm->rank,
        .device = or_null(comm->device, comm->device >= 0),
        .library = library_of(birth),
        .enter_ns = birth->enter_ns,
        .ready_ns = record_now(),
        .end_ns = CT_NULL,
    };
    record_comm(&facts->row, birth->origin);
    publish_facts(facts);
}

static bool ask(ncclComm_t key, struct comm_birth *birth, int *device)
{
    real_ncclCommCount_t *count = real_ncclCommCount(birth->copy);
    real_ncclCommUserRank_t *rank = real_ncclCommUserRank(birth->copy);
    real_ncclCommCuDevice_t *cu_device = real_ncclCommCuDevice(birth->copy);
    *device = -1;
    if (birth->nranks == 0 &&
        (!count || !rank || count(key, &birth->nranks) != ncclSuccess ||
         rank(key, &birth->rank) != ncclSuccess))
        return false;
    if (cu_device && cu_device(key, device) != ncclSuccess)
        *device = -1;
    return birth->nranks > 0;
}

static struct comm *add(ncclComm_t key, const struct comm_birth *birth,
                        int device, struct gpu *gpu)
{
    struct comm *comm = obtain(birth->nranks);
    if (!comm)
        return NULL;
    comm->nranks = birth->nranks;
    comm->rank = birth->rank;
    comm->device = device;
    comm->gpu = gpu;
    comm->nccl = birth->identity.nccl;
    comm->uid = birth->identity.uid
                    ? birth->identity.uid
                    : identity_local(recorder.process, comm->id);
    tell(comm, key, birth);
    if (!comm_table_insert(&comms.table, comm, key)) {
        comm->next = comms.unused;
        comms.unused = comm;
        return NULL;
    }
    return comm;
}

static struct comm *ask_and_add(ncclComm_t key, struct comm_birth birth)
{
    int device;
    if (!key || !ask(key, &birth, &device))
        return NULL;
    struct gpu *gpu = gpu_prepare(device);
    lock_take(&comms.lock);
    struct comm *comm = comm_table_find(&comms.table, key);
    if (!comm)
        comm = add(key, &birth, device, gpu);
    lock_give(&comms.lock);
    return comm;
}

struct comm *comm_add(ncclComm_t key, const struct comm_birth *birth)
{
    int saved = errno, cancel = thread_hold_cancel();
    struct comm *comm = ask_and_add(key, *birth);
    thread_allow_cancel(cancel);
    errno = saved;
    return comm;
}

struct comm *comm_add_told(ncclComm_t key, const struct comm_birth *birth)
{
    int saved = errno, cancel = thread_hold_cancel();
    /* NCCL has made it current. */
    int device = gpu_current();
    lock_take(&comms.lock);
    struct comm *comm = add(key, birth, device, NULL);
    lock_give(&comms.lock);
    thread_allow_cancel(cancel);
    errno = saved;
    return comm;
}

struct comm *comm_adopt(struct nccl_copy *copy, ncclComm_t key)
{
    struct comm_birth birth = {
        .copy = copy, .origin = CT_COMM_ADOPTED, .enter_ns = record_now()};
    copy_use(copy);
    return comm_add(key, &birth);
}

struct comm *comm_take_out(ncclComm_t key)
{
    lock_take(&comms.lock);
    struct comm *comm = comm_table_find(&comms.table, key);
    if (comm)
        comm_table_remove(&comms.table, comm);
    lock_give(&comms.lock);
    return comm;
}

void comm_put_back(struct comm *comm, ncclComm_t key)
{
    lock_take(&comms.lock);
    comm_table_insert(&comms.table, comm, key);
    lock_give(&comms.lock);
}

void comm_recycle(struct comm *comm)
{
    lock_take(&comms.lock);
    comm->next = comms.unused;
    comms.unused = comm;
    lock_give(&comms.lock);
}
