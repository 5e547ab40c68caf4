/*
 * The communicators of this process: pointer -> number, identity, ordinals.
 *
 * Look-up is lock-free; creation and destruction take a lock. Entries are
 * reused, never freed, so a stale pointer to one is harmless: its key decides.
 */
#ifndef SHIM_COMM_H
#define SHIM_COMM_H

#include "commtrace/nccl_abi.h"
#include "commtrace/ring.h"
#include "identity.h"
#include "rows.h"
#include "thread.h"

#include <stdatomic.h>
#include <stdint.h>

struct gpu;

enum { COMM_STACKS = 64, COMM_STACK_PLACES = 2 * COMM_STACKS };

struct comm {
    _Atomic(ncclComm_t) key; /* NULL: not in use */
    uint32_t id;             /* comm.id of the trace */
    int nranks;
    int rank;
    int device;
    uint64_t uid;
    struct nccl_numbers nccl;
    struct gpu *gpu;               /* times its ops; NULL: nobody does */
    _Atomic uint64_t ordinal;      /* of the next collective */
    _Atomic uint64_t *p2p_ordinal; /* [COMM_WAYS * (peer + 1) + way] */
    uint32_t p2p_room;
    _Atomic uint32_t children;    /* splits and grows asked of it, as in NCCL */
    struct shrink_count *shrinks; /* births.c's */
    uint32_t nshrinks;
    _Atomic int32_t async_error; /* last one reported */
    _Atomic uint32_t pending;    /* calls in progress, see pending.h */
    struct comm_facts *facts;    /* the writer's once the end is noted there */
    struct comm *next;           /* while unused */
    _Atomic uint32_t nstacks;    /* stacks taken of its calls (stack.h) */
    _Atomic uint64_t stacks[COMM_STACK_PLACES];
};

/* What is known when a communicator comes to be. */
struct comm_birth {
    struct nccl_copy *copy; /* NULL: no hook sees it */
    int64_t library;        /* then: library.id; 0: not known */
    enum ct_comm_origin origin;
    bool nobody;              /* this rank gets no communicator */
    struct identity identity; /* uid 0: local to this process */
    struct comm *counted;     /* the parent that counted the call */
    uint64_t set;             /* of ranks that a shrink leaves out */
    uint32_t parent;
    int color; /* of a split */
    uint32_t child;
    int nranks; /* 0: ask NCCL, also for rank */
    int rank;
    int64_t enter_ns;
    char name[128];
};

/* Number, row and name of a communicator for the writer, which owns it. */
struct comm_facts {
    struct comm_facts *next;
    struct row_comm row;
    struct nccl_numbers nccl;
    char name[128];
    ncclComm_t key; /* where it was; NCCL may use the address again */
    bool told;      /* by NCCL's profiler alone */
    bool stored;
    _Atomic int64_t end_ns; /* CT_NULL: it lives; the hook's last word */
};

/* The entry, or NULL when it is unknown. */
struct comm *comm_look_up(ncclComm_t key);

static inline struct comm *comm_find(ncclComm_t key)
{
    struct comm *comm = thread_state.comm;
    if (comm && atomic_load_explicit(&comm->key, memory_order_relaxed) == key &&
        key)
        return comm;
    return thread_state.comm = comm_look_up(key);
}

/* Enters a new communicator into the table and hands its facts to the writer.
 * NULL: NCCL does not know it or there is no memory. */
struct comm *comm_add(ncclComm_t key, const struct comm_birth *birth);

/* One that was never seen being made: identity local to this process. */
struct comm *comm_adopt(struct nccl_copy *copy, ncclComm_t key);

/* One that NCCL's profiler tells of (told.h): the key only stands for it. */
struct comm *comm_add_told(ncclComm_t key, const struct comm_birth *birth);

/* Out of the table before NCCL frees it, since the pointer may come back. */
struct comm *comm_take_out(ncclComm_t key);
void comm_put_back(struct comm *comm, ncclComm_t key);
void comm_recycle(struct comm *comm);

/* NCCL has destroyed it: said beside the event, which may find no room. */
void comm_note_end(struct comm *comm);

/* All facts handed over since the last call, oldest first. */
struct comm_facts *comm_new_facts(void);
void comm_free_facts(struct comm_facts *facts);

/* Of one that lives and whose end somebody may be about to note. */
void comm_give_back_facts(struct comm_facts *facts);

static inline uint64_t comm_next_collective(struct comm *comm)
{
    return atomic_fetch_add_explicit(&comm->ordinal, 1, memory_order_relaxed);
}

/* What counts by itself between two ranks. */
enum comm_way { COMM_SENDS, COMM_RECEIVES, COMM_REACHES, COMM_WAYS };

/* peer -1: of no one, as in waiting for signals. */
static inline uint64_t comm_next_p2p(struct comm *comm, int peer,
                                     enum comm_way way)
{
    uint32_t at = COMM_WAYS * (uint32_t)(peer + 1) + way;
    if (peer < -1 || at >= comm->p2p_room)
        return 0;
    return atomic_fetch_add_explicit(&comm->p2p_ordinal[at], 1,
                                     memory_order_relaxed);
}

#endif
