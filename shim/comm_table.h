/*
 * Pointer -> entry, by open addressing. Finding takes no lock and may then miss
 * an entry that is being moved, but never finds a wrong one; inserting and
 * removing need the owner's lock, under which nothing is missed.
 */
#ifndef SHIM_COMM_TABLE_H
#define SHIM_COMM_TABLE_H

#include "comm.h"

struct comm_slots;

struct comm_table {
    _Atomic(struct comm_slots *) slots;
    size_t used;
};

struct comm *comm_table_find(struct comm_table *table, ncclComm_t key);

/* False: no memory. */
bool comm_table_insert(struct comm_table *table, struct comm *comm,
                       ncclComm_t key);
void comm_table_remove(struct comm_table *table, struct comm *comm);

#endif
