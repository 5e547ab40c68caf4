/*
 * What the cases of test_fabric share; each is called on every rank.
 */
#ifndef TEST_FABRIC_H
#define TEST_FABRIC_H

#include <stddef.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "job.h"

struct test {
    struct job job;
    ncclComm_t world;
    cudaStream_t stream;
};

/* Of all ranks to each other; 0 where main was told none. */
struct link {
    double alpha_us;
    double bytes_per_us;
};
extern struct link link_of_test;

void expect(int right, const char *what);
void sleep_ms(long ms);
void hold(void *ms); /* a host function: long, how long it takes */
void sync_stream(struct test *t);
void *device(size_t bytes);
void barrier(struct test *t);
void fill_ints(int *data, size_t n, int first);
void expect_ints(const int *data, size_t n, int first, const char *what);

void case_data(struct test *t);
void case_premul(struct test *t);
void case_group(struct test *t);
void case_early(struct test *t);
void case_split(struct test *t);
void case_order(struct test *t);
void case_errors(struct test *t);
void case_abort(struct test *t);
void case_mismatch(struct test *t);
void case_threads(struct test *t);
void case_stub(struct test *t);
void case_time(struct test *t);
void case_late(struct test *t);

#endif
