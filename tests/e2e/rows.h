/*
 * For a call of every row of nccl_ops.def: what a stand-in NCCL saw of the last
 * one, bit for bit, and what the macros need that go through its parameters.
 */
#ifndef ROWS_H
#define ROWS_H

#include "commtrace/nccl_abi.h"

#include <stdbool.h>

/* What errno is when a call is made, and what the stand-in leaves in it. */
enum { ROWS_ERRNO_BEFORE = 4711, ROWS_ERRNO_AFTER = 4712 };

struct rows_seen {
    const char *function;
    int error; /* errno as it came */
    size_t size;
    unsigned char bytes[512]; /* the arguments, one after the other */
    ncclResult_t answer;      /* to give; the caller's to set */
};
struct rows_seen *rows_seen(void);

#define ROWS_LIST(...) __VA_ARGS__
#define ROWS_EACH_1(m_, a_) m_(a_)
#define ROWS_EACH_2(m_, a_, ...) m_(a_) ROWS_EACH_1(m_, __VA_ARGS__)
#define ROWS_EACH_3(m_, a_, ...) m_(a_) ROWS_EACH_2(m_, __VA_ARGS__)
#define ROWS_EACH_4(m_, a_, ...) m_(a_) ROWS_EACH_3(m_, __VA_ARGS__)
#define ROWS_EACH_5(m_, a_, ...) m_(a_) ROWS_EACH_4(m_, __VA_ARGS__)
#define ROWS_EACH_6(m_, a_, ...) m_(a_) ROWS_EACH_5(m_, __VA_ARGS__)
#define ROWS_EACH_7(m_, a_, ...) m_(a_) ROWS_EACH_6(m_, __VA_ARGS__)
#define ROWS_EACH_8(m_, a_, ...) m_(a_) ROWS_EACH_7(m_, __VA_ARGS__)
#define ROWS_EACH_9(m_, a_, ...) m_(a_) ROWS_EACH_8(m_, __VA_ARGS__)
#define ROWS_EACH_10(m_, a_, ...) m_(a_) ROWS_EACH_9(m_, __VA_ARGS__)
#define ROWS_EACH_11(m_, a_, ...) m_(a_) ROWS_EACH_10(m_, __VA_ARGS__)
#define ROWS_COUNT_(a1_, a2_, a3_, a4_, a5_, a6_, a7_, a8_, a9_, a10_, a11_, \
                    n_, ...)                                                 \
    n_
#define ROWS_COUNT(...) \
    ROWS_COUNT_(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ROWS_JOIN_(a_, b_) a_##b_
#define ROWS_JOIN(a_, b_) ROWS_JOIN_(a_, b_)
#define ROWS_EACH(m_, ...) \
    ROWS_JOIN(ROWS_EACH_, ROWS_COUNT(__VA_ARGS__))(m_, __VA_ARGS__)

#endif
