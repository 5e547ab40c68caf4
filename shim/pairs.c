#include "pairs.h"

#include "driver.h"

#include <stdlib.h>

int pairs_init(struct pairs *pairs)
{
    *pairs = (struct pairs){.all = calloc(PAIRS_MAX, sizeof(*pairs->all))};
    return pairs->all ? 0 : -1;
}

void pairs_release(struct pairs *pairs)
{
    free(pairs->all);
    pairs->all = NULL;
}

void pairs_give(struct pairs *pairs, uint32_t number)
{
    uint64_t old =
        atomic_load_explicit(&pairs->first_free, memory_order_relaxed);
    uint64_t new;
    do {
        atomic_store_explicit(&pairs->all[number].next, (uint32_t)old,
                              memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | (number + 1);
        /* Release: the next owner sees our last use of the events. */
    } while (!atomic_compare_exchange_weak_explicit(&pairs->first_free, &old,
                                                    new, memory_order_release,
                                                    memory_order_relaxed));
    atomic_fetch_add_explicit(&pairs->nfree, 1, memory_order_relaxed);
}

int64_t pairs_take(struct pairs *pairs)
{
    uint64_t old =
        atomic_load_explicit(&pairs->first_free, memory_order_acquire);
    uint64_t new;
    uint32_t number;
    do {
        number = (uint32_t)old;
        if (!number)
            return -1;
        uint32_t next = atomic_load_explicit(&pairs->all[number - 1].next,
                                             memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | next;
    } while (!atomic_compare_exchange_weak_explicit(&pairs->first_free, &old,
                                                    new, memory_order_acquire,
                                                    memory_order_acquire));
    atomic_fetch_sub_explicit(&pairs->nfree, 1, memory_order_relaxed);
    return number - 1;
}

void pairs_grow(struct pairs *pairs, uint32_t more)
{
    uint32_t n = atomic_load_explicit(&pairs->n, memory_order_relaxed);
    for (; more && n < PAIRS_MAX; more--, n++) {
        struct pair *pair = &pairs->all[n];
        if (driver.event_create(&pair->start, 0) != DRIVER_OK ||
            driver.event_create(&pair->stop, 0) != DRIVER_OK)
            break;
        pairs_give(pairs, n);
    }
    atomic_store_explicit(&pairs->n, n, memory_order_relaxed);
}

bool pairs_are_scarce(const struct pairs *pairs)
{
    return 2 * atomic_load_explicit(&pairs->nfree, memory_order_relaxed) <
           atomic_load_explicit(&pairs->n, memory_order_relaxed);
}
