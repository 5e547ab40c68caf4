/* What the files of told share: where a call is made (told.c), and sends and
 * receives between their call and their launch (told_transfers.c). */
#ifndef SHIM_TOLD_PARTS_H
#define SHIM_TOLD_PARTS_H

#include "told.h"

#include <stdatomic.h>

struct told_place {
    int64_t enter_ns;
    uint64_t grp;
    uint64_t stream;
    int64_t graph;
    uint32_t flags;
};

/* By number; it is taken over by another one after a few thousand. */
struct told_transfer {
    _Atomic uint64_t number; /* 0: it is being overwritten */
    _Atomic int64_t enter_ns;
    _Atomic int64_t leave_ns;
    _Atomic uint64_t stream;
    _Atomic uint64_t grp;
    _Atomic int64_t graph;
    _Atomic uint32_t flags;
    _Atomic bool made; /* a graph may launch it again */
    _Atomic uint64_t op;
};

/* Before the first of them. Without memory they are known by their launch
 * alone. One thread at a time. */
void told_make_transfers(void);

/* The place of a number, or of a new one; NULL: there is none. */
struct told_transfer *told_transfer_at(uint64_t number);
struct told_transfer *told_next_transfer(uint64_t *number);

void told_write_transfer(struct told_transfer *transfer, uint64_t number,
                         const struct told_place *place);

/* Whether it is still that one's. */
static inline bool told_is_number(const struct told_transfer *transfer,
                                  uint64_t number)
{
    return transfer && atomic_load_explicit(&transfer->number,
                                            memory_order_acquire) == number;
}

/* False: it is another's by now. */
bool told_read_transfer(const struct told_transfer *transfer, uint64_t number,
                        struct told_place *place, int64_t *leave_ns);

#endif
