#include "pattern.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define WINDOW 512

struct check {
    char *copy;
    size_t offset;
    size_t count;
    ncclDataType_t type;
    int salt;
    int first;
    int n;
    int pinned; /* copy is the shared window, not ours to free */
    const char *what;
};

static _Atomic int failures;

size_t pattern_bytes(ncclDataType_t type)
{
    return type == ncclFloat32 ? 4 : 2;
}

static int contribution(size_t i, int salt, int rank)
{
    return (int)((i + (size_t)salt * 5 + (size_t)rank * 3) & 7);
}

static int expected(const struct check *check, size_t i)
{
    int sum = 0;

    for (int rank = check->first; rank < check->first + check->n; rank++)
        sum += contribution(i, check->salt, rank);
    return sum;
}

static uint32_t float_bits(int value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* Whole numbers up to 256 are exact in all three types. */
static uint32_t encode(int value, ncclDataType_t type)
{
    uint32_t bits = float_bits(value);

    if (type == ncclFloat32)
        return bits;
    if (type == ncclBfloat16)
        return bits >> 16;
    return bits ? (bits - ((127u - 15u) << 23)) >> 13 : 0;
}

static void store(char *data, size_t i, ncclDataType_t type, uint32_t bits)
{
    uint16_t low = (uint16_t)bits;

    if (type == ncclFloat32)
        memcpy(data + 4 * i, &bits, 4);
    else
        memcpy(data + 2 * i, &low, 2);
}

static uint32_t load(const char *data, size_t i, ncclDataType_t type)
{
    uint32_t bits = 0;
    uint16_t low;

    if (type == ncclFloat32) {
        memcpy(&bits, data + 4 * i, 4);
        return bits;
    }
    memcpy(&low, data + 2 * i, 2);
    return low;
}

void *pattern_new(size_t count, ncclDataType_t type, int salt, int rank)
{
    size_t bytes = count * pattern_bytes(type);
    char *host = malloc(bytes);
    void *device;

    if (!host)
        die("out of memory");
    for (size_t i = 0; i < count; i++)
        store(host, i, type, encode(contribution(i, salt, rank), type));
    check_cuda(cudaMalloc(&device, bytes), "cudaMalloc");
    check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice),
               "cudaMemcpy");
    free(host);
    return device;
}

static void complain(const struct check *check, size_t i)
{
    fprintf(stderr, "error: %s: element %zu is 0x%x, expected %d (0x%x)\n",
            check->what, check->offset + i, load(check->copy, i, check->type),
            expected(check, check->offset + i),
            encode(expected(check, check->offset + i), check->type));
}

static void compare(void *arg)
{
    struct check *check = arg;

    for (size_t i = 0; i < check->count; i++) {
        uint32_t want = encode(expected(check, check->offset + i), check->type);

        if (load(check->copy, i, check->type) == want)
            continue;
        if (!atomic_fetch_add(&failures, 1))
            complain(check, i);
        break;
    }
    if (!check->pinned)
        free(check->copy);
    free(check);
}

/* All checks are on one stream, one after the other: one window is enough. */
static char *window(void)
{
    static void *host;

    if (!host)
        check_cuda(cudaMallocHost(&host, (size_t)WINDOW * 4), "cudaMallocHost");
    return host;
}

static size_t next_offset(size_t count)
{
    static size_t turn;

    return count > WINDOW ? turn++ * 7919 % (count - WINDOW + 1) : 0;
}

void pattern_check(const void *data, size_t count, ncclDataType_t type,
                   int salt, int first, int n, int whole, const char *what,
                   cudaStream_t stream)
{
    struct check *check = malloc(sizeof(*check));
    size_t element = pattern_bytes(type);

    if (!check)
        die("out of memory");
    *check = (struct check){.count = count,
                            .type = type,
                            .salt = salt,
                            .first = first,
                            .n = n,
                            .what = what};
    if (!whole || count <= WINDOW) {
        check->offset = next_offset(count);
        check->count = count < WINDOW ? count : WINDOW;
        check->copy = window();
        check->pinned = 1;
    } else {
        check->copy = malloc(count * element);
    }
    if (!check->copy)
        die("out of memory");
    check_cuda(cudaMemcpyAsync(
                   check->copy, (const char *)data + check->offset * element,
                   check->count * element, cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync");
    check_cuda(cudaLaunchHostFunc(stream, compare, check),
               "cudaLaunchHostFunc");
}

int pattern_failures(void)
{
    return atomic_load(&failures);
}
