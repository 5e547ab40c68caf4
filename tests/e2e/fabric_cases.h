/*
 * What the tests of the stand-in NCCL share that are started by launch, one
 * process per rank, with the name of a case: a job of some ranks with a
 * communicator of all, a stream and a buffer of numbers.
 */
#ifndef FABRIC_CASES_H
#define FABRIC_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "job.h"

#define COUNT 1000

struct test {
    struct job job;
    ncclComm_t world;
    cudaStream_t stream;
    int *d;
};

static inline void expect(int right, const char *what)
{
    if (!right)
        die("%s", what);
}

static inline void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static inline void sync(struct test *t)
{
    check_cuda(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
}

static inline void set(struct test *t, int value)
{
    int h[COUNT];

    for (int i = 0; i < COUNT; i++)
        h[i] = value;
    check_cuda(
        cudaMemcpyAsync(t->d, h, sizeof(h), cudaMemcpyHostToDevice, t->stream),
        "cudaMemcpyAsync");
}

static inline void expect_all(struct test *t, int value, const char *what)
{
    int h[COUNT];

    check_cuda(
        cudaMemcpyAsync(h, t->d, sizeof(h), cudaMemcpyDeviceToHost, t->stream),
        "cudaMemcpyAsync");
    sync(t);
    for (int i = 0; i < COUNT; i++)
        expect(h[i] == value, what);
}

static inline ncclResult_t all_reduce(struct test *t, ncclComm_t comm)
{
    return ncclAllReduce(t->d, t->d, COUNT, ncclInt32, ncclSum, comm,
                         t->stream);
}

static inline void barrier(struct test *t)
{
    check_nccl(all_reduce(t, t->world), "barrier");
    sync(t);
}

/* Waits for the end of what is in progress; returns how it ended. */
static inline ncclResult_t settle(ncclComm_t comm)
{
    ncclResult_t state;

    do {
        check_nccl(ncclCommGetAsyncError(comm, &state), "GetAsyncError");
        sleep_ms(1);
    } while (state == ncclInProgress);
    return state;
}

/* What rank 0 gave. */
static inline ncclUniqueId pass_id(struct test *t, ncclUniqueId id)
{
    check_cuda(cudaMemcpyAsync(t->d, &id, sizeof(id), cudaMemcpyHostToDevice,
                               t->stream),
               "cudaMemcpyAsync");
    check_nccl(
        ncclBroadcast(t->d, t->d, sizeof(id), ncclChar, 0, t->world, t->stream),
        "ncclBroadcast");
    check_cuda(cudaMemcpyAsync(&id, t->d, sizeof(id), cudaMemcpyDeviceToHost,
                               t->stream),
               "cudaMemcpyAsync");
    sync(t);
    return id;
}

static inline ncclUniqueId shared_id(struct test *t)
{
    ncclUniqueId id = {{0}};

    if (!t->job.rank)
        check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return pass_id(t, id);
}

static inline ncclComm_t second_world(struct test *t)
{
    ncclComm_t comm;

    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &comm, NULL), "split");
    return comm;
}

struct test_case {
    const char *name;
    void (*run)(struct test *t);
};

static inline void run_case(struct test *t, const struct test_case *cases,
                            size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(cases[i].name, name)) {
            cases[i].run(t);
            return;
        }
    }
    die("no case '%s'", name);
}

static inline struct test test_begin(int argc, char **argv)
{
    struct test t = {.job = job_from_environment()};

    if (argc != 2)
        die("usage: %s CASE", argv[0]);
    t.world = job_connect(&t.job);
    check_cuda(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    check_cuda(cudaMalloc((void **)&t.d, COUNT * sizeof(int)), "cudaMalloc");
    return t;
}

static inline void test_end(struct test *t)
{
    check_cuda(cudaFree(t->d), "cudaFree");
    check_cuda(cudaStreamDestroy(t->stream), "cudaStreamDestroy");
    check_nccl(ncclCommDestroy(t->world), "ncclCommDestroy");
}

static inline int run_cases(int argc, char **argv,
                            const struct test_case *cases, size_t n)
{
    struct test t = test_begin(argc, argv);

    run_case(&t, cases, n, argv[1]);
    test_end(&t);
    return 0;
}

#endif
