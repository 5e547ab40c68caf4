/*
 * A copy of the ring that a process left, or still uses (commtrace/ring.h).
 */
#ifndef COMMTRACE_RING_COPY_H
#define COMMTRACE_RING_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_slot;

struct ct_ring {
    void *copy; /* NULL: none was reachable */
    uint64_t head, tail, nslots;
    bool closed;
    bool owner_lives; /* its process holds the ring's lock */
    const char *uuid, *boot_id;
    uint64_t start_ticks;
    uint32_t pid, version;
    int rank; /* CT_NONE: the launcher set none */
    int64_t t0_ns, t0_real_ns;
    const char *db_path;
    char refused[512]; /* "PATH: why", of one that is there; "": none */
};

/* Copies the ring of the trace at db_path, from path (may be NULL) or from
 * beside the trace. Leaves ring->copy NULL when there is none, or what is
 * there is no ring of this version or an older one. */
void ct_ring_read(struct ct_ring *ring, const char *db_path, const char *path);
void ct_ring_release(struct ct_ring *ring);

/* Takes size bytes of malloc() as the copy, and frees them if they are none. */
bool ct_ring_adopt(struct ct_ring *ring, void *copy, size_t size);

/* A copy with the slots of positions from .. head alone, for ct_ring_adopt
 * somewhere else: it says of no process there that it lives. */
void *ct_ring_cut(const struct ct_ring *ring, uint64_t from, size_t *size_p);

/* The process that the ring belongs to is running here. */
bool ct_ring_alive(const struct ct_ring *ring);

/* The slot of position if it shows that position, else NULL. */
const struct ct_slot *ct_ring_slot(const struct ct_ring *ring,
                                   uint64_t position);

#endif
