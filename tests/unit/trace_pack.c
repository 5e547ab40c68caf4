/* Blocks of packed rows: what comes out is what went in, whatever it is, and
 * nothing else is taken for a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "trace/pack.h"

static struct ct_block *before, *after;

static int setup(void **state)
{
    (void)state;
    before = calloc(1, sizeof(*before));
    after = calloc(1, sizeof(*after));
    return !before || !after;
}

static int teardown(void **state)
{
    (void)state;
    free(before);
    free(after);
    return 0;
}

static uint64_t random_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 20 ^ *seed << 30;
}

/* A value of any size. */
static int64_t any(uint64_t *seed)
{
    static const int64_t edges[] = {0,   -1,        1,         127,
                                    128, INT64_MIN, INT64_MAX, INT64_MIN + 1};
    const unsigned how = random_bits(seed) % 4;

    if (!how)
        return edges[random_bits(seed) % (sizeof(edges) / sizeof(*edges))];
    return (int64_t)(random_bits(seed) >> random_bits(seed) % 64);
}

static size_t pack(unsigned char **bytes_p)
{
    const size_t n = ct_pack(before, bytes_p);

    assert_int_not_equal(n, 0);
    return n;
}

static void compare(uint64_t wanted)
{
    int c, i;

    assert_int_equal(after->nrows, before->nrows);
    assert_int_equal(after->ncolumns, before->ncolumns);
    for (c = 0; c < before->ncolumns; c++)
        for (i = 0; i < before->nrows && wanted >> c & 1; i++) {
            assert_int_equal(after->null[c][i], before->null[c][i]);
            if (!before->null[c][i])
                assert_true(after->values[c][i] == before->values[c][i]);
        }
}

static void round_trip(uint64_t wanted)
{
    unsigned char *bytes;
    const size_t n = pack(&bytes);

    assert_true(ct_unpack(after, bytes, n, wanted));
    compare(wanted);
    free(bytes);
}

static void fill(uint64_t seed, int nrows, int ncolumns)
{
    int c, i;

    before->nrows = nrows;
    before->ncolumns = ncolumns;
    for (c = 0; c < ncolumns; c++) {
        const unsigned nulls = random_bits(&seed) % 3, few = seed >> 40 & 1;

        for (i = 0; i < nrows; i++) {
            before->null[c][i] =
                nulls == 2 || (nulls && random_bits(&seed) % 5 < 2);
            before->values[c][i] =
                few ? (int64_t)(random_bits(&seed) % 7) : any(&seed);
        }
    }
}

static void test_anything(void **state)
{
    static const int sizes[] = {1, 2, 3, 100, CT_PACK_ROWS - 1, CT_PACK_ROWS};
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= 60; seed++) {
        fill(seed, sizes[seed % 6], 1 + (int)(seed % CT_PACK_COLUMNS));
        round_trip(UINT64_MAX);
        round_trip(seed);
    }
}

/* What ops look like: class by class nothing changes but a clock and noise. */
static void test_ops_are_small(void **state)
{
    unsigned char *bytes;
    uint64_t seed = 5;
    int64_t now = 0;
    size_t n;
    int i;

    (void)state;
    before->nrows = CT_PACK_ROWS;
    before->ncolumns = 9;
    for (i = 0; i < CT_PACK_ROWS; i++) {
        const int class = i % 12;
        const int64_t row[] = {i + 1000,
                               class,
                               i / 12 + 40,
                               0,
                               0,
                               3000 + (int64_t)(random_bits(&seed) % 900),
                               20000 + (int64_t)(random_bits(&seed) % 16000),
                               100000 * class +
                                   (int64_t)(random_bits(&seed) % 8000),
                               9};
        int c;

        now += 50000 + (int64_t)(random_bits(&seed) % 30000);
        for (c = 0; c < 9; c++) {
            before->values[c][i] = c == 4 ? now : row[c];
            before->null[c][i] = c == 3;
        }
    }
    n = pack(&bytes);
    printf("%.1f bytes per op\n", (double)n / CT_PACK_ROWS);
    assert_true(n < 10 * CT_PACK_ROWS);
    assert_true(ct_unpack(after, bytes, n, UINT64_MAX));
    compare(UINT64_MAX);
    free(bytes);
}

static bool unpacks(const unsigned char *raw, size_t n)
{
    unsigned char bytes[512];
    uLongf size = sizeof(bytes);

    assert_int_equal(compress(bytes, &size, raw, n), Z_OK);
    return ct_unpack(after, bytes, size, UINT64_MAX);
}

#define UNPACKS(...)                              \
    unpacks((const unsigned char[]){__VA_ARGS__}, \
            sizeof((const unsigned char[]){__VA_ARGS__}))

/* Of 2 rows with 1 or 2 columns of 3 bytes (how, runs) and values. */
static void test_made_by_hand(void **state)
{
    (void)state;
    assert_true(UNPACKS(2, 1, 5, 0, 1, 2, 1, 2));
    assert_int_equal(after->values[0][0], -1);
    assert_int_equal(after->values[0][1], 1);
    assert_true(UNPACKS(2, 1, 5, 1, 1, 2, 1, 2));
    assert_int_equal(after->values[0][1], 0);
    assert_true(UNPACKS(2, 1, 4, 0, 2, 0, 2));
    assert_true(after->null[0][0] && after->null[0][1]);
    assert_true(
        UNPACKS(2, 3, 5, 0, 1, 2, 8, 8, 5, 0, 1, 2, 8, 8, 5, 2, 1, 2, 8, 8));
    assert_int_equal(after->values[2][1], 8);

    assert_false(UNPACKS(0, 1, 3, 0, 1, 0));                /* no rows */
    assert_false(UNPACKS(2, 0));                            /* no columns */
    assert_false(UNPACKS(2, CT_PACK_COLUMNS + 1));          /* too many */
    assert_false(UNPACKS(0x81, 0x20, 1, 4, 0, 2, 0, 0x81)); /* 4097 rows */
    assert_false(UNPACKS(2, 1, 5, 3, 1, 2, 1, 2));          /* how */
    assert_false(UNPACKS(2, 2, 5, 0, 1, 2, 1, 2, 5, 2, 1, 2, 1, 2)); /* early */
    assert_false(UNPACKS(2, 1, 5, 0, 1, 3, 1, 2));    /* runs too long */
    assert_false(UNPACKS(2, 1, 4, 0, 1, 1, 1));       /* too short */
    assert_false(UNPACKS(2, 1, 6, 0, 1, 2, 1, 2));    /* ends early */
    assert_false(UNPACKS(2, 1, 5, 0, 1, 2, 1, 2, 0)); /* goes on */
    assert_false(UNPACKS(2, 1, 6, 0, 1, 2, 1, 2, 0));
    assert_false(UNPACKS(2, 2, 5, 0, 1, 2, 1, 2)); /* a column less */
    assert_false(UNPACKS(2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                         0xff, 0xff, 0xff, 1));
    assert_false(ct_unpack(after, "no zlib", 7, UINT64_MAX));
    assert_false(ct_unpack(after, NULL, 0, UINT64_MAX));
}

/* Whatever is in it, it ends, and in its memory. */
static void test_noise(void **state)
{
    uint64_t seed = 11;
    unsigned char raw[200];
    int i, k, good = 0;

    (void)state;
    for (i = 0; i < 20000; i++) {
        raw[0] = (unsigned char)(1 + random_bits(&seed) % 9);
        raw[1] = (unsigned char)(1 + random_bits(&seed) % 4);
        for (k = 2; k < 200; k++)
            raw[k] = (unsigned char)(random_bits(&seed) % 6);
        good += unpacks(raw, 10 + random_bits(&seed) % 190);
    }
    printf("%d of 20000 are blocks\n", good);
}

/* A block that grows without end when it is inflated. */
static void test_bomb(void **state)
{
    const size_t n = 64 << 20;
    unsigned char *raw = calloc(n, 1), *bytes = malloc(compressBound(n));
    uLongf size = compressBound(n);

    (void)state;
    assert_int_equal(compress(bytes, &size, raw, n), Z_OK);
    assert_false(ct_unpack(after, bytes, size, UINT64_MAX));
    free(raw);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anything),
        cmocka_unit_test(test_made_by_hand),
        cmocka_unit_test(test_ops_are_small),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_bomb),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
