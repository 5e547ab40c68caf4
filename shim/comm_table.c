#include "comm_table.h"

#include "hash.h"

#include <stdlib.h>

struct comm_slots {
    size_t mask;
    struct comm_slots *older; /* readers may still be in it */
    _Atomic(struct comm *) at[];
};

static size_t home(ncclComm_t key, const struct comm_slots *slots)
{
    return (size_t)hash_mix((uintptr_t)key) & slots->mask;
}

struct comm *comm_table_find(struct comm_table *table, ncclComm_t key)
{
    struct comm_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_acquire);
    if (!slots || !key)
        return NULL;
    for (size_t i = home(key, slots), n = 0; n <= slots->mask;
         i = (i + 1) & slots->mask, n++) {
        struct comm *comm =
            atomic_load_explicit(&slots->at[i], memory_order_acquire);
        if (!comm)
            return NULL;
        /* Acquire: the fields belong to this key. */
        if (atomic_load_explicit(&comm->key, memory_order_acquire) == key)
            return comm;
    }
    return NULL;
}

static void put(struct comm_slots *slots, struct comm *comm, ncclComm_t key)
{
    size_t i = home(key, slots);
    while (atomic_load_explicit(&slots->at[i], memory_order_relaxed))
        i = (i + 1) & slots->mask;
    atomic_store_explicit(&slots->at[i], comm, memory_order_release);
}

static ncclComm_t key_of(const struct comm *comm)
{
    return atomic_load_explicit(&comm->key, memory_order_relaxed);
}

static bool grow(struct comm_table *table)
{
    struct comm_slots *old =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    size_t n = old ? 2 * (old->mask + 1) : 64;
    struct comm_slots *slots = calloc(1, sizeof(*slots) + n * sizeof(void *));
    if (!slots)
        return false;
    slots->mask = n - 1;
    slots->older = old;
    for (size_t i = 0; old && i <= old->mask; i++) {
        struct comm *comm =
            atomic_load_explicit(&old->at[i], memory_order_relaxed);
        if (comm)
            put(slots, comm, key_of(comm));
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

bool comm_table_insert(struct comm_table *table, struct comm *comm,
                       ncclComm_t key)
{
    struct comm_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    if ((!slots || 2 * (table->used + 1) > slots->mask + 1) && !grow(table))
        return false;
    atomic_store_explicit(&comm->key, key, memory_order_release);
    put(atomic_load_explicit(&table->slots, memory_order_relaxed), comm, key);
    table->used++;
    return true;
}

static size_t find_slot(const struct comm_slots *slots, const struct comm *comm)
{
    size_t i = home(key_of(comm), slots);
    while (atomic_load_explicit(&slots->at[i], memory_order_relaxed) != comm)
        i = (i + 1) & slots->mask;
    return i;
}

/* Linear probing without tombstones: what follows moves up into the hole. */
static void close_hole(struct comm_slots *slots, size_t hole)
{
    for (size_t i = (hole + 1) & slots->mask;; i = (i + 1) & slots->mask) {
        struct comm *comm =
            atomic_load_explicit(&slots->at[i], memory_order_relaxed);
        if (!comm)
            break;
        size_t from_home = (i - home(key_of(comm), slots)) & slots->mask;
        if (from_home < ((i - hole) & slots->mask))
            continue;
        atomic_store_explicit(&slots->at[hole], comm, memory_order_release);
        hole = i;
    }
    atomic_store_explicit(&slots->at[hole], NULL, memory_order_release);
}

void comm_table_remove(struct comm_table *table, struct comm *comm)
{
    struct comm_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    close_hole(slots, find_slot(slots, comm));
    atomic_store_explicit(&comm->key, NULL, memory_order_relaxed);
    table->used--;
}
