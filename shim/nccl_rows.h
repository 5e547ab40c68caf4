/*
 * Rows of what NCCL's log says. The log names a communicator by its address,
 * which may come back: the nth that was set up there and is done is the nth
 * that the program got there. Facts that come before it is known wait for it.
 *
 * Numbers of choice_class and choice are even here; those of NCCL's profiler
 * plugin are odd. Rows of nccl_comm have twice the communicator's number.
 */
#ifndef SHIM_NCCL_ROWS_H
#define SHIM_NCCL_ROWS_H

#include "batch.h"
#include "comm.h"

struct nccl_rows;

/* NULL: no memory. */
struct nccl_rows *nccl_rows_open(void);
void nccl_rows_close(struct nccl_rows *rows);

/* A communicator that the program got. */
void nccl_rows_meet(struct nccl_rows *rows, const struct comm_facts *facts);

/* Reads what has come since, as far as the batch has room, and adds its rows.
 * all_calls: those of the program that were made by nccl_file_mark() are in
 * batches. last: nothing more will come. */
void nccl_rows_add(struct nccl_rows *rows, struct batch *batch, bool all_calls,
                   bool last);

/* The same without rows. */
void nccl_rows_discard(struct nccl_rows *rows);

#endif
