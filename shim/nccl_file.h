/*
 * The file that a copy of NCCL writes its log into. Where the user has not
 * asked for a log, one of ours: on tmpfs, without a name as soon as NCCL has it
 * open, and given back as it is read. Else the user's, which is only read.
 */
#ifndef SHIM_NCCL_FILE_H
#define SHIM_NCCL_FILE_H

#include "config.h"
#include "process.h"
#include "real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before the first call. process lasts. */
void nccl_file_begin(const struct config *config,
                     const struct process *process);

/* Around a call in which NCCL may open its log: it does so in the first that
 * makes a communicator or an id of one, and never again. */
void nccl_file_before(struct nccl_copy *copy);
void nccl_file_after(struct nccl_copy *copy);

/*
 * The writer's side. copy: 0 ... NCCL_COPIES - 1.
 */

/* As soon as NCCL has opened its file nobody else need see what made it. True:
 * more waits to be read than should lie there. */
bool nccl_file_watch(void);

/* What is there now may be read; what comes later, not before the next time. */
void nccl_file_mark(void);

/* What may be read; at most n bytes. */
size_t nccl_file_read(int copy, char *bytes, size_t n);

/* Why there is nothing to read; NULL: there is, or may yet be. */
const char *nccl_file_absence(int copy);

/* What is read may be about a communicator that comes now, also where the log
 * has ended early. */
bool nccl_file_may_tell(int copy);

/* Whether it may have a line for each collective. */
bool nccl_file_has_choices(int copy);

/* Whose lines in it are this process's: 0 and NULL where all are. */
int64_t nccl_file_pid(int copy);
const char *nccl_file_host(int copy);

/* Nobody will read any more. */
void nccl_file_end(void);

/* Removes a log whose process has died before NCCL opened it; name: in
 * PROCESS_SHM. False: it is none. */
bool nccl_file_sweep(const char *name);

#endif
