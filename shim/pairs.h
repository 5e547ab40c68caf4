/*
 * Pairs of events, taken and given back from any thread without a lock.
 */
#ifndef SHIM_PAIRS_H
#define SHIM_PAIRS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PAIRS_MAX = 4096 };

struct pair {
    void *start;
    void *stop;
    _Atomic uint32_t next; /* number + 1 in the free list */
};

struct pairs {
    struct pair *all; /* PAIRS_MAX of them, n with events */
    _Atomic uint32_t n;
    _Atomic uint32_t nfree;
    /* First free number + 1, below a count that makes each value new. */
    _Alignas(64) _Atomic uint64_t first_free;
};

int pairs_init(struct pairs *pairs);
void pairs_release(struct pairs *pairs);

/* Makes up to `more` events pairs in the current context; one thread at a time.
 */
void pairs_grow(struct pairs *pairs, uint32_t more);

/* A number, or -1: none is free. */
int64_t pairs_take(struct pairs *pairs);
void pairs_give(struct pairs *pairs, uint32_t number);

/* Less than half is free. */
bool pairs_are_scarce(const struct pairs *pairs);

#endif
