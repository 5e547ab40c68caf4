/*
 * What the stand-in NCCL needs of the stand-in driver beyond the public API:
 * a stream task that says itself when it ended.
 *
 * A stream keeps the time of an ideal GPU: a task starts when the one before
 * it ended, or when it was issued, whichever is later, however late the worker
 * thread wakes up. So measured times are those of the described machine, not
 * those of a busy little host. Only when a worker is later than catch_up_ms
 * (a stopped process, a host that cannot keep up) does the stream's time jump.
 */
#ifndef FABRIC_ENGINE_H
#define FABRIC_ENGINE_H

#include <stdint.h>

#include <cuda.h>

/* A kind of task. A captured one is kept by its graph and runs often. */
struct fabric_task {
    /* Called on the stream's thread; returns the time at which it ended. */
    int64_t (*run)(void *arg, int64_t start_ns);
    /* Frees arg after its run, or with the graph that kept it. */
    void (*drop)(void *arg);
    /* How a launch of its graph queues it; NULL: by fabric_relaunch. */
    CUresult (*relaunch)(CUstream stream, void *arg);
};

/* On success, and only then, arg is the stream's (or its capture's). */
CUresult fabric_launch(CUstream stream, const struct fabric_task *task,
                       void *arg);
/* The same for an arg that stays its graph's. */
CUresult fabric_relaunch(CUstream stream, const struct fabric_task *task,
                         void *arg);

#endif
