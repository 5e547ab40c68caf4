#include "told_parts.h"

#include <stdlib.h>

enum { TRANSFERS = 1 << 14 };

static struct {
    _Atomic(struct told_transfer *) places; /* TRANSFERS of them */
    _Atomic uint64_t numbers;
} transfers;

void told_make_transfers(void)
{
    if (atomic_load_explicit(&transfers.places, memory_order_relaxed))
        return;
    /* Release: all numbers are 0. */
    atomic_store_explicit(&transfers.places,
                          calloc(TRANSFERS, sizeof(struct told_transfer)),
                          memory_order_release);
}

struct told_transfer *told_transfer_at(uint64_t number)
{
    /* Acquire: the table is empty at first. */
    struct told_transfer *places =
        atomic_load_explicit(&transfers.places, memory_order_acquire);
    return places && number ? &places[number % TRANSFERS] : NULL;
}

struct told_transfer *told_next_transfer(uint64_t *number)
{
    *number = 1 + atomic_fetch_add_explicit(&transfers.numbers, 1,
                                            memory_order_relaxed);
    return told_transfer_at(*number);
}

/* Releases: who reads a part of it finds that it is not the old one. */
void told_write_transfer(struct told_transfer *transfer, uint64_t number,
                         const struct told_place *place)
{
    const memory_order order = memory_order_release;
    atomic_store_explicit(&transfer->number, 0, order);
    atomic_store_explicit(&transfer->enter_ns, place->enter_ns, order);
    atomic_store_explicit(&transfer->leave_ns, 0, order);
    atomic_store_explicit(&transfer->stream, place->stream, order);
    atomic_store_explicit(&transfer->grp, place->grp, order);
    atomic_store_explicit(&transfer->graph, place->graph, order);
    atomic_store_explicit(&transfer->flags, place->flags, order);
    atomic_store_explicit(&transfer->made, false, order);
    atomic_store_explicit(&transfer->op, 0, order);
    atomic_store_explicit(&transfer->number, number, order);
}

/* False: it is another's by now. Acquires: all is of before the last look. */
bool told_read_transfer(const struct told_transfer *transfer, uint64_t number,
                        struct told_place *place, int64_t *leave_ns)
{
    const memory_order order = memory_order_acquire;
    if (!told_is_number(transfer, number))
        return false;
    *place = (struct told_place){
        .enter_ns = atomic_load_explicit(&transfer->enter_ns, order),
        .grp = atomic_load_explicit(&transfer->grp, order),
        .stream = atomic_load_explicit(&transfer->stream, order),
        .graph = atomic_load_explicit(&transfer->graph, order),
        .flags = atomic_load_explicit(&transfer->flags, order),
    };
    *leave_ns = atomic_load_explicit(&transfer->leave_ns, order);
    return told_is_number(transfer, number);
}
