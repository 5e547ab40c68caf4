/*
 * From slots of the ring to rows of the database. Slots are gathered in order;
 * what is not over yet is kept aside and its row replaced later.
 */
#ifndef SHIM_GATHER_H
#define SHIM_GATHER_H

#include "batch.h"
#include "classes.h"
#include "comm.h"
#include "modules.h"
#include "ring.h"
#include "unfinished.h"

struct choices;

struct gather {
    struct ring *ring;
    struct choices *choices; /* hear of calls, too; NULL: not wanted */
    uint64_t next;           /* the first position not gathered */
    struct batch batch;
    struct classes classes;
    struct unfinished_list in_call; /* taken while open */
    struct unfinished_list on_gpu;  /* left, and the GPU still busy */
    uint64_t no_stack[3];           /* ops, from CT_STACK_NO_MORE on */
    uint32_t stacks; /* the batch has their rows, up to this number */
    uint64_t modules[MODULES / 64 + 1]; /* a bit for each that has its row */
    struct comm_facts *comms;           /* that exist, or are not stored */
    struct comm_facts *gone; /* the batch may still use their texts */
    uint64_t launches;       /* what could be timed, so far */
    const char *exe;         /* path of the program, a module without a name */
    void (*new_device)(void *context, int64_t device, struct batch *batch);
    void (*new_comm)(void *context, const struct comm_facts *facts);
    void *context;
};

int gather_init(struct gather *gather, struct ring *ring);
void gather_release(struct gather *gather);

/* Adds rows for the slots up to head. force: also those of calls that are not
 * over, marked so; else it stops at the first of these. */
void gather_slots(struct gather *gather, bool force);

/* Adds rows for what the GPU has finished since. */
void gather_finished(struct gather *gather);

/* The batch is stored. */
void gather_stored(struct gather *gather);

/* Drops the slots up to head, and new communicators. */
struct discarded {
    uint64_t ops;
    uint64_t comms;
    uint64_t graph_launches;
};
struct discarded gather_discard(struct gather *gather);

#endif
