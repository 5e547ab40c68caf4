/*
 * The thread that moves the ring into the database. Everything slow is here:
 * SQLite, GPU event reading, topology, rings of dead processes.
 */
#ifndef SHIM_WRITER_H
#define SHIM_WRITER_H

#include "config.h"
#include "process.h"

/* Copies what it needs. 0, or -1 when there can be no thread. */
int writer_start(const struct config *config, const struct process *process);

/* At exit, while CUDA still works: waits, at most a second or two, until what
 * was recorded is stored with its GPU times. Recording goes on, untimed. */
void writer_drain(void);

/* Stores the rest, closes the trace, ends the thread. */
void writer_stop(void);

/* mkdir -p; 0 when the folder exists afterwards. */
int writer_make_folder(const char *path);

#endif
