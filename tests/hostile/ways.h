/*
 * What the hostile programs share. A way is a manner of treating a process
 * badly while it uses NCCL; process.py knows what each must leave behind.
 */
#ifndef HOSTILE_WAYS_H
#define HOSTILE_WAYS_H

#include "commtrace/nccl_abi.h"

#include <stdbool.h>
#include <sys/types.h>

struct way {
    const char *name; /* NULL: end of the table */
    void (*run)(char **argv);
};

extern const struct way end_ways[], file_ways[], fork_ways[], limit_ways[],
    many_ways[], place_ways[], signal_ways[], thread_ways[];

ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *, int, ncclUniqueId, int,
                                    ncclConfig_t *);
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclReduce(const void *, void *, size_t, ncclDataType_t,
                        ncclRedOp_t, int, ncclComm_t, cudaStream_t);

/* A count for which the stand-in's call waits for a signal. */
enum { BLOCKS = 0x7b10cb10 };

/* The communicator that ops() uses, and its data. */
extern ncclComm_t comm;
extern float data[4];

ncclComm_t make(int id);
void init(int id); /* makes comm */
void ops(int n);
void ops_on(ncclComm_t on, int n);

/* Until the writer, if there is one, has a database. */
void await_trace(void);

/* As somebody who cleans up. */
void remove_trace(void);

/* Ends the process unless the child ends well. */
void await_child(pid_t pid);

/* Says how many ops a way that depends on time has issued. */
void say_issued(long n);

#endif
