/*
 * The crash-safe record: a file on tmpfs that a traced process maps and that
 * outlives it. Hooks write slots, the writer thread moves them into SQLite,
 * and after a crash the analyzer reads what the writer had not moved yet.
 *
 *   file   = header (one page), slots[nslots]
 *   slot   = 128 bytes at position p: slots[p % nslots], p = 0, 1, 2, ...
 *
 * Life of position p (state word = p << 2 | state):
 *   head is advanced past p           reserved; the slot still shows an older p
 *   CT_SLOT_OPEN                      entered: all of it but the leave part is
 *                                     valid; the call is in progress
 *   CT_SLOT_EMPTY                     for some instructions between OPEN and
 *                                     LEFT: the leave part is being written
 *   CT_SLOT_LEFT                      the call returned; leave part valid
 *   CT_SLOT_TAKEN                     the writer stored it while it was open;
 *                                     its end comes as a slot of kind LEAVE
 * The writer commits positions in order, stores the first one that it has not
 * in meta.ring_tail within the same transaction, and only then advances tail.
 * So positions in [meta.ring_tail, head) of a dead process are exactly those
 * that its database lacks; but for COMM, whose row may be there already.
 *
 * Version: any change of layout or meaning raises CT_RING_VERSION. Version 2
 * has all that version 1 had in the same places, so readers accept both.
 */
#ifndef COMMTRACE_RING_H
#define COMMTRACE_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define CT_RING_MAGIC "ctring\n"
#define CT_RING_VERSION 2
#define CT_RING_HEADER_BYTES 4096
#define CT_RING_SLOT_BYTES 128

/* Of a trace's path: SQLite takes 512, less the names of the files beside. */
#define CT_TRACE_PATH_MOST 500

/* A call's stack that is none: not asked for, or asked for in vain. */
#define CT_STACK_MASK 0xffffffu
enum ct_no_stack {
    CT_STACK_NONE,
    CT_STACK_NO_MORE = 0xfffff0, /* as many as its communicator may have */
    CT_STACK_NO_ROOM,            /* too little left of the thread's stack, or
                                    modules could not be looked at */
    CT_STACK_NO_TABLE            /* as many as the process may have */
};

/* The stream of a call, where nobody told of it. */
#define CT_NO_STREAM UINT64_MAX

enum ct_slot_state { CT_SLOT_EMPTY, CT_SLOT_OPEN, CT_SLOT_LEFT, CT_SLOT_TAKEN };

enum ct_slot_kind {
    CT_SLOT_OP,         /* a communication call */
    CT_SLOT_LAUNCH,     /* what an outermost ncclGroupEnd launched */
    CT_SLOT_COMM,       /* a communicator is ready */
    CT_SLOT_COMM_EVENT, /* finalize, destroy, abort, error, ... */
    CT_SLOT_LEAVE,      /* end of a slot that was taken while open */
    CT_SLOT_GRAPH,      /* a CUDA graph that ops may have been captured into */
    CT_SLOT_GRAPH_LAUNCH
};

struct ct_ring_header {
    char magic[8];
    uint32_t version;
    uint32_t nslots; /* a power of two */
    uint64_t start_ticks;
    uint32_t pid;
    int32_t rank; /* -1: the launcher set none */
    int64_t t0_ns;
    int64_t t0_real_ns;
    char boot_id[40];
    char uuid[40];
    char db_path[2048]; /* absolute */
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Atomic uint32_t closed; /* 1: everything is in the database */
    _Alignas(64) _Atomic uint64_t lost_ops; /* no slot was free */
    _Atomic uint64_t lost_launches;
    _Atomic uint64_t lost_comms; /* COMM and COMM_EVENT */
    _Atomic uint64_t lost_leaves;
    _Atomic uint64_t lost_graphs; /* version 2 on */
    _Atomic uint64_t lost_graph_launches;
};

struct ct_slot {
    _Atomic uint64_t state;
    int64_t enter_ns;         /* since t0_ns */
    _Atomic int64_t leave_ns; /* since t0_ns */
    _Atomic int32_t result;   /* ncclResult_t */
    uint32_t flags;           /* flags.def */
    uint32_t comm;            /* comm.id */
    uint16_t kind;            /* enum ct_slot_kind */
    uint16_t op;              /* enum ct_op of an OP */
    uint64_t grp;             /* 0: none */
    union {
        struct {
            uint64_t ordinal;
            uint64_t count;
            uint64_t stream;
            uint64_t site;
            int32_t type;
            int32_t redop;  /* -1: none */
            int32_t peer;   /* -1: none */
            int32_t events; /* event pair, -1: none; dies with the process */
            int64_t graph;  /* captured into graph.id; 0: none */
            uint32_t stack; /* stack.id, or enum ct_no_stack */
        } call;
        struct {
            uint64_t stream;
            uint32_t nops;
            int32_t events;
        } launch;
        struct {
            uint64_t uid;
            uint32_t parent; /* comm.id, 0: none */
            int32_t color;
            uint32_t child;
            int32_t nranks;
            int32_t rank;
            int32_t device;
            uint32_t origin; /* enum ct_comm_origin */
            uint32_t library;
            char name[32]; /* cut; the database has it whole */
        } comm;
        struct {
            uint32_t what; /* enum ct_comm_event */
        } event;
        struct {
            uint64_t position;
        } leave;
        struct {
            int64_t id;
            int64_t first; /* graph.id, 0: none */
            int64_t second;
        } graph;
        struct {
            int64_t graph; /* graph.id, 0: not known */
            uint64_t stream;
        } graph_launch;
        char pad[80];
    } u;
};

_Static_assert(sizeof(struct ct_ring_header) <= CT_RING_HEADER_BYTES, "");
_Static_assert(sizeof(struct ct_slot) == CT_RING_SLOT_BYTES, "");

/* How a communicator came to be; the names are comm.origin. */
#define CT_COMM_ORIGINS(X)  \
    X(ADOPTED, "adopted")   \
    X(INIT, "init")         \
    X(INIT_ALL, "init_all") \
    X(SPLIT, "split")       \
    X(SCALABLE, "scalable") \
    X(SHRINK, "shrink")     \
    X(GROW, "grow")         \
    X(TOLD, "told")

/* What happens to one; the names are comm_event.what. */
#define CT_COMM_EVENTS(X)                     \
    X(FINALIZE, "finalize")                   \
    X(DESTROY, "destroy")                     \
    X(ABORT, "abort")                         \
    X(ERROR, "error")                         \
    X(REGISTER, "register")                   \
    X(DEREGISTER, "deregister")               \
    X(REVOKE, "revoke")                       \
    X(SUSPEND, "suspend")                     \
    X(RESUME, "resume")                       \
    X(UNIQUE_ID, "unique_id")                 \
    X(WINDOW_REGISTER, "window_register")     \
    X(WINDOW_DEREGISTER, "window_deregister") \
    X(SHRINK_ABORT, "shrink_abort")

enum ct_comm_origin {
#define X(id_, name_) CT_COMM_##id_,
    CT_COMM_ORIGINS(X)
#undef X
};

enum ct_comm_event {
#define X(id_, name_) CT_EVENT_##id_,
    CT_COMM_EVENTS(X)
#undef X
};

/* The slot of position p is in one of these states, or the position is only
 * reserved. */
static inline int ct_slot_is(const struct ct_slot *slot, uint64_t position,
                             enum ct_slot_state state)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire) ==
           (position << 2 | state);
}

#endif
