/*
 * The stand-in NCCL against what NCCL promises: right data for every op, type
 * and group, errors, order, and the times of the described machine. Started
 * by launch, one process per rank: test_fabric CASE.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_fabric.h"

void expect(int right, const char *what)
{
    if (!right)
        die("%s", what);
}

void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

void sync_stream(struct test *t)
{
    check_cuda(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
}

void *device(size_t bytes)
{
    void *p;

    check_cuda(cudaMalloc(&p, bytes ? bytes : 1), "cudaMalloc");
    return p;
}

void barrier(struct test *t)
{
    static float *one;

    if (!one)
        one = device(sizeof(float));
    check_nccl(
        ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, t->world, t->stream),
        "barrier");
    sync_stream(t);
}

void hold(void *ms)
{
    sleep_ms(*(long *)ms);
}

void fill_ints(int *data, size_t n, int first)
{
    for (size_t i = 0; i < n; i++)
        data[i] = first + (int)i;
}

void expect_ints(const int *data, size_t n, int first, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] != first + (int)i)
            die("%s: element %zu is %d, expected %d", what, i, data[i],
                first + (int)i);
    }
}

static const struct {
    const char *name;
    void (*run)(struct test *t);
} cases[] = {
    {"data", case_data},       {"premul", case_premul},
    {"group", case_group},     {"early", case_early},
    {"split", case_split},     {"order", case_order},
    {"errors", case_errors},   {"abort", case_abort},
    {"threads", case_threads}, {"mismatch", case_mismatch},
    {"stub", case_stub},       {"time", case_time},
    {"late", case_late},
};

static void run(struct test *t, const char *name)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(cases[i].name, name)) {
            cases[i].run(t);
            return;
        }
    }
    die("no case '%s'", name);
}

int main(int argc, char **argv)
{
    struct test t = {.job = job_from_environment()};

    if (argc < 2)
        die("usage: test_fabric CASE [alpha_us MB/s]");
    if (argc == 4) {
        link_of_test.alpha_us = atof(argv[2]);
        link_of_test.bytes_per_us = atof(argv[3]);
    }
    t.world = job_connect(&t.job);
    check_cuda(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking),
               "cudaStreamCreate");
    run(&t, argv[1]);
    check_nccl(ncclCommFinalize(t.world), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(t.world), "ncclCommDestroy");
    check_cuda(cudaStreamDestroy(t.stream), "cudaStreamDestroy");
    return 0;
}
