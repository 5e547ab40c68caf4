/* What the files of choices share: calls that wait for what NCCL chose for them
 * (choices_calls.c), and events in which NCCL says so (choices.c). */
#ifndef SHIM_CHOICES_PARTS_H
#define SHIM_CHOICES_PARTS_H

#include "captured.h"
#include "choice_classes.h"
#include "choices.h"
#include "commtrace/ops.h"
#include "expected.h"
#include "profiler.h"

enum { CHOICE_WORDS = 64 };

/* A communicator of the program's. */
struct known {
    int64_t id;
    bool has_hash;
    uint64_t hash;
    int64_t nranks, rank;
    int64_t enter_ns, ready_ns;
    bool told;      /* no hook saw it */
    bool forgotten; /* the program has destroyed it */
    struct profiled *profiled;
    uint32_t calls[CT_OP_COUNT]; /* so far */
    uint32_t *transfers;         /* [2 * peer]: sends to it, recvs from it */
    struct expected_list expected[CT_OP_COUNT];
    struct expected_list replays;
};

/* What NCCL tells of. */
struct told {
    struct told *next;
    struct profiled *profiled;
    struct known *known; /* NULL: not joined yet, or its end came */
    uint64_t end;        /* of its events, once it is over */
    bool over;
};

/* Of an event in the queue. */
struct reading {
    uint64_t position; /* that it is of, and one */
    bool released;
    bool met;
    bool stored;
    int64_t class, n, launch;
    uint32_t ended; /* channels, when last looked at */
    int64_t since_ns;
};

struct choices {
    struct known **known; /* by number */
    size_t nknown;
    struct told *told;
    bool was_told;
    struct captured *captured;
    struct choice_classes classes;
    char words[CHOICE_WORDS][PROFILER_WORD];
    struct reading readings[PROFILER_EVENTS];
    struct choices_losses losses;
};

void choices_free_known(struct known *known);

#endif
