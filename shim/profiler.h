/*
 * NCCL's profiler plugin, ours: what NCCL tells of its communicators and of
 * what it launches, and when its kernels ran. NCCL's threads put it into a
 * queue, where the writer finds it (choices.h).
 *
 * Handles are numbers, not addresses, so one that NCCL passes late, or again at
 * each launch of a graph, leads nowhere wrong. Nothing that goes wrong here is
 * told to NCCL: it is counted.
 */
#ifndef SHIM_PROFILER_H
#define SHIM_PROFILER_H

#include "config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct comm;
struct nccl_copy;

enum { PROFILER_EVENTS = 1 << 13, PROFILER_WORD = 16 };

/* A communicator, as NCCL tells of it. The writer gives it back when it is over
 * and all of its events are read. */
struct profiled {
    struct profiled *next;
    uint64_t hash;
    int nodes;
    int nranks;
    int rank;
    int64_t at_ns;
    _Atomic bool over;
    /* Where no hook sees it (told.h): it, and its number; else NULL and 0. */
    struct comm *told;
    uint32_t told_id;
    void *reader; /* the writer's */
};

/* A collective, send or recv that was launched. */
struct profiler_event {
    _Atomic uint64_t state; /* see profiler_queue.c */
    uint64_t after;         /* position of the ring; its call is before */
    struct profiled *comm;
    uint64_t bytes;
    uint64_t op; /* op.id, where no hook sees calls; 0: by their order */
    int32_t peer;
    uint8_t kind; /* enum ct_op */
    uint8_t channels;
    bool replay;
    char algorithm[PROFILER_WORD];
    char protocol[PROFILER_WORD];
    /* Its kernel; times of the GPU's own, 0: none yet. */
    _Atomic uint64_t begin_ns, end_ns;
    _Atomic uint32_t begun, ended; /* channels */
};

/* Before the first call. */
void profiler_begin(enum profiler_mode mode);

/* Also before that call. */
bool profiler_is_wanted(void);

/* A communicator is to be made, in which NCCL loads a plugin: has it load ours,
 * unless the user has one. And it is there, or will not be. */
void profiler_before(struct nccl_copy *copy);
void profiler_after(const struct nccl_copy *copy);

/* NCCL tells of some communicator; of none any more: it unloads plugins. */
bool profiler_is_told(void);
void profiler_unloaded(void);

/* Nobody wants ours, or another object of the process has a plugin by these
 * names, which ours must not stand in front of. Called by dlsym. */
bool profiler_is_hidden(const void *symbol);

/*
 * The writer's side.
 */
bool profiler_is_on(void);
bool profiler_times_kernels(void);

/* Communicators told of since the last call, oldest first. */
struct profiled *profiler_new_comms(void);
void profiler_give_back(struct profiled *comm);

/* Positions of events: those in [tail, head) are to be read. NULL: the event is
 * still being written, or was released before. */
uint64_t profiler_head(void);
uint64_t profiler_tail(void);
struct profiler_event *profiler_look(uint64_t position);
/* False: its kernel is being told of this moment. */
bool profiler_release(uint64_t position);

/* Why NCCL does not tell us; NULL: it does, may yet, or nobody wants it to. */
const char *profiler_absence(void);

/* What was lost so far: no room in the queue, no memory, kernels whose event
 * was given up. */
struct profiler_losses {
    uint64_t full;
    uint64_t memory;
    uint64_t late;
};
struct profiler_losses profiler_losses(void);

#endif
