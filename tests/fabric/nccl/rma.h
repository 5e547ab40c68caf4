/*
 * Putting into a peer's window and signalling: the peer issues nothing, but
 * the bytes and signals get there when it next waits for a signal (or puts),
 * which is the first time that it may look at them.
 */
#ifndef FABRIC_NCCL_RMA_H
#define FABRIC_NCCL_RMA_H

#include <stdint.h>

struct op;
struct rma;

/* Runs a put, a signal or a wait; -1 when aborted. */
int rma_run(const struct op *op, int64_t *time_ns);
void rma_free(struct rma *rma);

#endif
