/* The NCCL calls of the programs whose call sites are looked for. */
#ifndef STACKS_CALLS_H
#define STACKS_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
struct comm;
typedef struct {
    char internal[128];
} unique_id;
int ncclCommInitRank(struct comm **, int, unique_id, int);
int ncclCommDestroy(struct comm *);
int ncclAllReduce(const void *, void *, size_t, int, int, struct comm *,
                  void *);
#ifdef __cplusplus
}
#endif

enum { FLOAT = 7, SUM = 0, CALLS_BACK = 64 /* see shim_fake_nccl.c */ };

/* A frame of its own, whatever the optimiser would like. */
#if __has_attribute(noclone)
#define FRAME __attribute__((noinline, noclone))
#else
#define FRAME __attribute__((noinline))
#endif
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

#endif
