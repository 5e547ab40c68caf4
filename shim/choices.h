/*
 * Rows of what NCCL chose: its profiler's events, joined to the calls that they
 * are about. Nothing in an event names a call, so it is the first of its
 * communicator, kind, size and peer that has none yet; with a graph, of the
 * first launch that has such a one.
 *
 * Numbers of choice and choice_class are odd here, those of NCCL's log are
 * even. Rows of nccl_comm have twice the communicator's number and one.
 */
#ifndef SHIM_CHOICES_H
#define SHIM_CHOICES_H

#include "batch.h"
#include "comm.h"
#include "commtrace/ring.h"

#include <stdbool.h>

struct choices;

/* NULL: no memory. */
struct choices *choices_open(void);
void choices_close(struct choices *choices);

/* In the order in which they happened. */
void choices_meet(struct choices *choices, const struct comm_facts *facts);
void choices_expect(struct choices *choices, const struct ct_slot *op,
                    bool left);
void choices_group(struct choices *choices, const struct ct_slot *launch,
                   bool left);
void choices_graph(struct choices *choices, const struct ct_slot *graph);
void choices_launch(struct choices *choices, const struct ct_slot *launch,
                    int64_t id);
void choices_forget(struct choices *choices, int64_t comm);

/* Adds rows for the events whose calls are known: those before `next` of the
 * ring. force: also where a kernel has not ended; its times come later. last:
 * they will not. */
void choices_add(struct choices *choices, uint64_t next, bool force, bool last,
                 struct batch *batch);

/* Drops what is there; how many. */
uint64_t choices_discard(struct choices *choices);

/* Kernels are about to be told of. */
bool choices_wait(const struct choices *choices);

/* There were communicators, and NCCL told of none. */
bool choices_are_untold(const struct choices *choices);

/* So far: events of communicators that are not known; of kernels that were
 * never told of. */
struct choices_losses {
    uint64_t strangers;
    uint64_t untimed;
};
struct choices_losses choices_losses(const struct choices *choices);

#endif
