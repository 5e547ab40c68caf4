/*
 * The ring of this process (layout and protocol: commtrace/ring.h). Hooks
 * reserve, publish and leave slots without locks; one writer takes them.
 */
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include "commtrace/ring.h"

#include <stdbool.h>
#include <stddef.h>

struct ring {
    struct ct_ring_header *header;
    struct ct_slot *slots;
    uint64_t mask; /* nslots - 1 */
    size_t bytes;
    int fd;          /* holds the lock that says: its owner lives; or -1 */
    char path[2048]; /* "": anonymous memory, lost with the process */
};

/* Makes a ring of about nslots slots in the first of the places that has room:
 * the file `first`, the file `second`, anonymous memory. Files are new, private
 * and fully allocated, so that a store never meets a full disk. Returns 0, or
 * -1 when there is not even memory. The caller fills in the header's facts. */
int ring_open(struct ring *ring, const char *first, const char *second,
              uint64_t nslots);

/* Unmaps a ring that nobody has used. */
void ring_close(struct ring *ring);

/* Removes its file. The memory stays: a hook may be in it until the end. */
void ring_remove(struct ring *ring);

/* The largest power of two slots that is at most nslots rounded up and at most
 * 1/64 of the file system that holds folder. */
uint64_t ring_fit(const char *folder, uint64_t nslots);

/* Reserves the next position; NULL: full. Ends with ring_publish(). */
static inline struct ct_slot *ring_reserve(struct ring *ring,
                                           uint64_t *position)
{
    struct ct_ring_header *header = ring->header;
    uint64_t head = atomic_load_explicit(&header->head, memory_order_relaxed);
    do {
        /* Acquire: the writer has read what we are about to overwrite. A head
         * that is out of date may lie behind tail; the exchange then fails. */
        uint64_t tail =
            atomic_load_explicit(&header->tail, memory_order_acquire);
        if ((int64_t)(head - tail) > (int64_t)ring->mask)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(
        &header->head, &head, head + 1, memory_order_relaxed,
        memory_order_relaxed));
    *position = head;
    return &ring->slots[head & ring->mask];
}

static inline void ring_publish(struct ct_slot *slot, uint64_t position,
                                enum ct_slot_state state)
{
    /* Release: whoever sees the state sees the slot's fields. */
    atomic_store_explicit(&slot->state, position << 2 | state,
                          memory_order_release);
}

/* Ends an open slot. False: the writer has taken it, and the slot may already
 * serve another position; the end must go into a slot of its own. */
static inline bool ring_leave(struct ct_slot *slot, uint64_t position,
                              int64_t leave_ns, int32_t result)
{
    /* The step over CT_SLOT_EMPTY keeps the writer from taking the slot, and
     * others from reusing it, while the leave part is written. */
    uint64_t open = position << 2 | CT_SLOT_OPEN;
    if (!atomic_compare_exchange_strong_explicit(
            &slot->state, &open, position << 2 | CT_SLOT_EMPTY,
            memory_order_relaxed, memory_order_relaxed))
        return false;
    atomic_store_explicit(&slot->leave_ns, leave_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->result, result, memory_order_relaxed);
    ring_publish(slot, position, CT_SLOT_LEFT);
    return true;
}

/* The writer's side: stores an open slot's end for the hook to emit. */
static inline bool ring_take(struct ct_slot *slot, uint64_t position)
{
    uint64_t open = position << 2 | CT_SLOT_OPEN;
    return atomic_compare_exchange_strong_explicit(
        &slot->state, &open, position << 2 | CT_SLOT_TAKEN,
        memory_order_acquire, memory_order_relaxed);
}

#endif
