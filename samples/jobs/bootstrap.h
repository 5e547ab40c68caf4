/*
 * The first contact of the ranks: rank 0 gives every other rank a few bytes
 * over TCP, at MASTER_ADDR:MASTER_PORT.
 */
#ifndef JOBS_BOOTSTRAP_H
#define JOBS_BOOTSTRAP_H

#include <stddef.h>

void bootstrap_broadcast(int rank, int world, void *data, size_t bytes);

/* After a broadcast: the n given ranks, rank 0 among them, wait for each other
 * on the host. */
void bootstrap_barrier(const int *ranks, int n);

#endif
