/*
 * The stand-in NCCL against what NCCL promises: right data for every op, type
 * and group, errors, order, and the times of the described machine. Started
 * by launch, one process per rank: test_fabric CASE.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include "job.h"

struct test {
    struct job job;
    ncclComm_t world;
    cudaStream_t stream;
};

static void expect(int right, const char *what)
{
    if (!right)
        die("%s", what);
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void sync(struct test *t)
{
    check_cuda(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
}

static void *device(size_t bytes)
{
    void *p;

    check_cuda(cudaMalloc(&p, bytes ? bytes : 1), "cudaMalloc");
    return p;
}

static void barrier(struct test *t)
{
    static float *one;

    if (!one)
        one = device(sizeof(float));
    check_nccl(
        ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, t->world, t->stream),
        "barrier");
    sync(t);
}

/* ---- numbers in every type ---- */

static const int type_size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

static uint32_t float_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* Small whole numbers, which every type holds; e4m3 up to 16. */
static uint32_t small_float(int value, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;

    if (!value)
        return 0;
    return (float_bits((float)value) - ((uint32_t)(127 - bias) << 23)) >>
           (23 - mantissa_bits);
}

static void put(void *data, size_t i, int type, int value)
{
    union {
        int8_t i8;
        uint8_t u8;
        uint16_t u16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } v;

    switch (type) {
    case ncclInt8:
    case ncclUint8:
        v.i8 = (int8_t)value;
        break;
    case ncclInt32:
    case ncclUint32:
        v.i32 = value;
        break;
    case ncclInt64:
    case ncclUint64:
        v.i64 = value;
        break;
    case ncclFloat16:
        v.u16 = (uint16_t)small_float(value, 5, 10);
        break;
    case ncclFloat32:
        v.f32 = (float)value;
        break;
    case ncclFloat64:
        v.f64 = value;
        break;
    case ncclBfloat16:
        v.u16 = (uint16_t)small_float(value, 8, 7);
        break;
    case ncclFloat8e4m3:
        v.u8 = (uint8_t)small_float(value, 4, 3);
        break;
    default:
        v.u8 = (uint8_t)small_float(value, 5, 2);
    }
    memcpy((char *)data + i * (size_t)type_size[type], &v,
           (size_t)type_size[type]);
}

static int same(const void *data, size_t i, int type, int value)
{
    char want[8];

    put(want, 0, type, value);
    return !memcmp((const char *)data + i * (size_t)type_size[type], want,
                   (size_t)type_size[type]);
}

/* What rank r contributes at element i. Sums, products and means of up to four
 * of these stay whole and small enough for three bits of mantissa. */
static int value_of(int rank, size_t i, int op)
{
    if (op == ncclAvg)
        return 4;
    if (op == ncclProd)
        return 1 + (rank == (int)(i % 3));
    if (op == ncclSum)
        return (int)(i + (size_t)rank) % 2 * 2;
    return 1 + (int)(i + (size_t)rank * 3) % 6;
}

static int reduced(int n, size_t i, int op)
{
    int acc = value_of(0, i, op);

    for (int r = 1; r < n; r++) {
        int v = value_of(r, i, op);

        if (op == ncclProd)
            acc *= v;
        else if (op == ncclMax)
            acc = v > acc ? v : acc;
        else if (op == ncclMin)
            acc = v < acc ? v : acc;
        else if (op == ncclSum)
            acc += v;
    }
    return acc;
}

struct buffers {
    char *send;
    char *recv;
    size_t count;
    int type;
    int op;
};

static void fill(struct test *t, struct buffers *b, size_t elements)
{
    for (size_t i = 0; i < elements; i++)
        put(b->send, i, b->type, value_of(t->job.rank, i, b->op));
}

/* recv holds, from element first on, the reduction of elements from on. */
static void expect_reduced(struct test *t, struct buffers *b, size_t from,
                           const char *what)
{
    for (size_t i = 0; i < b->count; i++) {
        if (!same(b->recv, i, b->type, reduced(t->job.world, from + i, b->op)))
            die("%s: type %d op %d count %zu: element %zu is wrong", what,
                b->type, b->op, b->count, i);
    }
}

static void expect_share(struct buffers *b, int share, int rank, size_t from,
                         const char *what)
{
    for (size_t i = 0; i < b->count; i++) {
        if (!same(b->recv, (size_t)share * b->count + i, b->type,
                  value_of(rank, from + i, b->op)))
            die("%s: type %d count %zu: share %d element %zu is wrong", what,
                b->type, b->count, share, i);
    }
}

static void test_reductions(struct test *t, struct buffers *b)
{
    ncclDataType_t type = (ncclDataType_t)b->type;
    ncclRedOp_t op = (ncclRedOp_t)b->op;
    size_t n = (size_t)t->job.world;

    fill(t, b, b->count);
    check_nccl(ncclAllReduce(b->send, b->recv, b->count, type, op, t->world,
                             t->stream),
               "ncclAllReduce");
    sync(t);
    expect_reduced(t, b, 0, "all-reduce");
    memcpy(b->recv, b->send, b->count * (size_t)type_size[b->type]);
    check_nccl(ncclAllReduce(b->recv, b->recv, b->count, type, op, t->world,
                             t->stream),
               "ncclAllReduce");
    sync(t);
    expect_reduced(t, b, 0, "all-reduce in place");
    for (int root = 0; root < t->job.world; root++) {
        check_nccl(ncclReduce(b->send, b->recv, b->count, type, op, root,
                              t->world, t->stream),
                   "ncclReduce");
        sync(t);
        if (root == t->job.rank)
            expect_reduced(t, b, 0, "reduce");
    }
    fill(t, b, b->count * n);
    check_nccl(ncclReduceScatter(b->send, b->recv, b->count, type, op, t->world,
                                 t->stream),
               "ncclReduceScatter");
    sync(t);
    expect_reduced(t, b, b->count * (size_t)t->job.rank, "reduce-scatter");
}

static void test_moves(struct test *t, struct buffers *b)
{
    ncclDataType_t type = (ncclDataType_t)b->type;
    size_t bytes = b->count * (size_t)type_size[b->type];
    int n = t->job.world;

    fill(t, b, b->count * (size_t)n);
    check_nccl(
        ncclAllGather(b->send, b->recv, b->count, type, t->world, t->stream),
        "ncclAllGather");
    sync(t);
    for (int r = 0; r < n; r++)
        expect_share(b, r, r, 0, "all-gather");
    memcpy(b->recv + (size_t)t->job.rank * bytes, b->send, bytes);
    check_nccl(ncclAllGather(b->recv + (size_t)t->job.rank * bytes, b->recv,
                             b->count, type, t->world, t->stream),
               "ncclAllGather");
    sync(t);
    for (int r = 0; r < n; r++)
        expect_share(b, r, r, 0, "all-gather in place");
    check_nccl(
        ncclAlltoAll(b->send, b->recv, b->count, type, t->world, t->stream),
        "ncclAlltoAll");
    sync(t);
    for (int r = 0; r < n; r++)
        expect_share(b, r, r, b->count * (size_t)t->job.rank, "all-to-all");
}

static void test_rooted(struct test *t, struct buffers *b, int root)
{
    ncclDataType_t type = (ncclDataType_t)b->type;
    size_t bytes = b->count * (size_t)type_size[b->type];

    check_nccl(ncclBroadcast(b->send, b->recv, b->count, type, root, t->world,
                             t->stream),
               "ncclBroadcast");
    sync(t);
    expect_share(b, 0, root, 0, "broadcast");
    memcpy(b->recv, b->send, bytes);
    check_nccl(ncclBcast(b->recv, b->count, type, root, t->world, t->stream),
               "ncclBcast");
    sync(t);
    expect_share(b, 0, root, 0, "bcast");
    check_nccl(
        ncclGather(b->send, b->recv, b->count, type, root, t->world, t->stream),
        "ncclGather");
    sync(t);
    for (int r = 0; r < t->job.world && t->job.rank == root; r++)
        expect_share(b, r, r, 0, "gather");
    check_nccl(ncclScatter(b->send, b->recv, b->count, type, root, t->world,
                           t->stream),
               "ncclScatter");
    sync(t);
    expect_share(b, 0, root, b->count * (size_t)t->job.rank, "scatter");
}

static void test_count(struct test *t, struct buffers *b, size_t count)
{
    b->count = count;
    for (b->op = 0; b->op < ncclNumOps; b->op++)
        test_reductions(t, b);
    b->op = ncclMax;
    test_moves(t, b);
    for (int root = 0; root < t->job.world; root++)
        test_rooted(t, b, root);
}

static void case_data(struct test *t)
{
    enum { LARGE = 50001 }; /* cut in pieces by the chains */
    size_t most = (size_t)LARGE * 4 * (size_t)t->job.world;
    struct buffers b = {.send = device(most), .recv = device(most)};

    for (b.type = 0; b.type < ncclNumTypes; b.type++) {
        test_count(t, &b, 1);
        test_count(t, &b, 3);
        test_count(t, &b, 1001);
    }
    b.type = ncclFloat32;
    test_count(t, &b, LARGE);
}

static void case_premul(struct test *t)
{
    size_t n = 1000;
    float *send = device(n * sizeof(float));
    float *recv = device(n * sizeof(float));
    float half = 0.5f;
    ncclRedOp_t op;
    ncclRedOp_t other;

    for (int residence = 0; residence < 2; residence++) {
        for (size_t i = 0; i < n; i++)
            send[i] = (float)i;
        check_nccl(ncclRedOpCreatePreMulSum(&op, &half, ncclFloat32,
                                            (ncclScalarResidence_t)residence,
                                            t->world),
                   "ncclRedOpCreatePreMulSum");
        check_nccl(
            ncclAllReduce(send, recv, n, ncclFloat32, op, t->world, t->stream),
            "ncclAllReduce");
        sync(t);
        for (size_t i = 0; i < n; i++)
            expect(recv[i] == 0.5f * (float)i * (float)t->job.world,
                   "PreMulSum is wrong");
        expect(ncclAllReduce(send, recv, n, ncclInt32, op, t->world,
                             t->stream) == ncclInvalidArgument,
               "an operator of another type is refused");
        check_nccl(ncclRedOpCreatePreMulSum(&other, &half, ncclFloat32,
                                            ncclScalarHostImmediate, t->world),
                   "ncclRedOpCreatePreMulSum");
        expect(other != op, "operators differ");
        check_nccl(ncclRedOpDestroy(op, t->world), "ncclRedOpDestroy");
        check_nccl(ncclRedOpDestroy(other, t->world), "ncclRedOpDestroy");
        expect(ncclRedOpDestroy(op, t->world) == ncclInvalidArgument,
               "an operator is destroyed once");
    }
}

/* ---- groups, sends and receives ---- */

static void fill_ints(int *data, size_t n, int first)
{
    for (size_t i = 0; i < n; i++)
        data[i] = first + (int)i;
}

static void expect_ints(const int *data, size_t n, int first, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] != first + (int)i)
            die("%s: element %zu is %d, expected %d", what, i, data[i],
                first + (int)i);
    }
}

/* Everyone sends to everyone, itself included, in opposite orders, in nested
 * groups; messages larger than the send buffer must not block each other. */
static void test_exchange(struct test *t, size_t n)
{
    int world = t->job.world;
    int *send = device(n * (size_t)world * sizeof(int));
    int *recv = device(n * (size_t)world * sizeof(int));

    for (int r = 0; r < world; r++)
        fill_ints(send + (size_t)r * n, n, 1000 * t->job.rank + r);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < world; r++)
        check_nccl(ncclSend(send + (size_t)r * n, n, ncclInt32, r, t->world,
                            t->stream),
                   "ncclSend");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    expect(cudaStreamQuery(t->stream) == cudaSuccess,
           "nothing launches before the outermost end");
    for (int r = world - 1; r >= 0; r--)
        check_nccl(ncclRecv(recv + (size_t)r * n, n, ncclInt32, r, t->world,
                            t->stream),
                   "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync(t);
    for (int r = 0; r < world; r++)
        expect_ints(recv + (size_t)r * n, n, 1000 * r + t->job.rank,
                    "exchange");
    check_cuda(cudaFree(send), "cudaFree");
    check_cuda(cudaFree(recv), "cudaFree");
}

/* Several messages to one peer in one group arrive in order; more of them
 * than a pipe has envelopes. */
static void test_many(struct test *t)
{
    enum { MANY = 1000 };
    int next = (t->job.rank + 1) % t->job.world;
    int previous = (t->job.rank + t->job.world - 1) % t->job.world;
    int *send = device(MANY * sizeof(int));
    int *recv = device(MANY * sizeof(int));

    fill_ints(send, MANY, t->job.rank);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < MANY; i++) {
        check_nccl(ncclSend(send + i, 1, ncclInt32, next, t->world, t->stream),
                   "ncclSend");
        check_nccl(
            ncclRecv(recv + i, 1, ncclInt32, previous, t->world, t->stream),
            "ncclRecv");
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync(t);
    expect_ints(recv, MANY, previous, "many messages");
}

/* Collectives and sends of two streams and two kinds in one group. */
static void test_mixed(struct test *t)
{
    int peer = t->job.rank ^ 1;
    int *data = device(4 * 1000 * sizeof(int));
    int *sum = data + 1000;
    int *in = data + 2000;
    cudaStream_t other;

    if (peer >= t->job.world)
        peer = t->job.rank;
    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
               "cudaStreamCreate");
    fill_ints(data, 1000, t->job.rank);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclSend(data, 1000, ncclInt32, peer, t->world, t->stream),
               "ncclSend");
    check_nccl(
        ncclAllReduce(data, sum, 1000, ncclInt32, ncclMax, t->world, other),
        "ncclAllReduce");
    check_nccl(ncclRecv(in, 1000, ncclInt32, peer, t->world, t->stream),
               "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    sync(t);
    check_cuda(cudaStreamSynchronize(other), "cudaStreamSynchronize");
    expect_ints(sum, 1000, t->job.world - 1, "all-reduce in a group");
    expect_ints(in, 1000, peer, "receive in a group");
    check_cuda(cudaStreamDestroy(other), "cudaStreamDestroy");
}

static void case_group(struct test *t)
{
    test_exchange(t, 1);
    test_exchange(t, 70001);
    test_exchange(t, 3 << 20);
    test_many(t);
    test_mixed(t);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclGroupEnd(), "an empty group");
}

/* A send is over before its receive is posted while it fits; not beyond. */
static void case_early(struct test *t)
{
    size_t small = 1 << 20;
    char *data = device(16 * small);
    double start;

    barrier(t);
    start = now_ms();
    if (t->job.rank == 0) {
        for (int i = 0; i < 3; i++)
            check_nccl(ncclSend(data, small, ncclInt8, 1, t->world, t->stream),
                       "ncclSend");
        sync(t);
        expect(now_ms() - start < 300, "small sends end without a receiver");
        check_nccl(ncclSend(data, 16 * small, ncclInt8, 1, t->world, t->stream),
                   "ncclSend");
        sync(t);
        expect(now_ms() - start > 500, "a large send waits for its receiver");
    } else if (t->job.rank == 1) {
        sleep_ms(500);
        for (int i = 0; i < 3; i++)
            check_nccl(ncclRecv(data, small, ncclInt8, 0, t->world, t->stream),
                       "ncclRecv");
        check_nccl(ncclRecv(data, 16 * small, ncclInt8, 0, t->world, t->stream),
                   "ncclRecv");
        sync(t);
    }
    barrier(t);
}

/* ---- splits ---- */

static void expect_comm(ncclComm_t comm, int rank, int nranks)
{
    int r = -1;
    int n = -1;

    check_nccl(ncclCommUserRank(comm, &r), "ncclCommUserRank");
    check_nccl(ncclCommCount(comm, &n), "ncclCommCount");
    if (r != rank || n != nranks)
        die("rank %d of %d, expected %d of %d", r, n, rank, nranks);
}

/* The sum of the members' world ranks proves who they are. */
static void expect_members(struct test *t, ncclComm_t comm, int sum)
{
    int *data = device(sizeof(int));

    *data = t->job.rank;
    check_nccl(
        ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comm, t->stream),
        "ncclAllReduce");
    sync(t);
    if (*data != sum)
        die("members add up to %d, expected %d", *data, sum);
    check_cuda(cudaFree(data), "cudaFree");
}

static int sum_of_ranks(int n, int remainder, int modulus)
{
    int sum = 0;

    for (int r = 0; r < n; r++)
        sum += r % modulus == remainder ? r : 0;
    return sum;
}

static void test_split_groups(struct test *t)
{
    int n = t->job.world;
    int rank = t->job.rank;
    ncclComm_t a = (ncclComm_t)1;
    ncclComm_t b = (ncclComm_t)1;
    ncclComm_t none = (ncclComm_t)1;

    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclCommSplit(t->world, rank % 2, 0, &a, NULL), "split");
    check_nccl(ncclCommSplit(t->world, 0, -rank, &b, NULL), "split");
    check_nccl(ncclCommSplit(t->world, NCCL_SPLIT_NOCOLOR, 0, &none, NULL),
               "split");
    expect(!a && !b, "a split communicator comes at the end of the group");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    expect(!none, "no colour, no communicator");
    expect_comm(a, rank / 2, (n + 1 - rank % 2) / 2);
    expect_comm(b, n - 1 - rank, n);
    expect_members(t, a, sum_of_ranks(n, rank % 2, 2));
    expect_members(t, b, n * (n - 1) / 2);
    check_nccl(ncclCommDestroy(a), "ncclCommDestroy");
    check_nccl(ncclCommFinalize(b), "ncclCommFinalize");
    check_nccl(ncclCommDestroy(b), "ncclCommDestroy");
}

/* A split must not use the pipes that queued ops of the parent use: here an
 * op is queued behind a host function while the parent is split. */
static void hold(void *ms)
{
    sleep_ms(*(long *)ms);
}

static void test_split_while_busy(struct test *t)
{
    static long held_ms = 200;
    int *data = device(1000 * sizeof(int));
    ncclComm_t child;

    fill_ints(data, 1000, t->job.rank);
    if (t->job.rank == 0)
        check_cuda(cudaLaunchHostFunc(t->stream, hold, &held_ms), "hold");
    check_nccl(ncclAllReduce(data, data, 1000, ncclInt32, ncclMax, t->world,
                             t->stream),
               "ncclAllReduce");
    check_nccl(ncclCommSplit(t->world, 7, t->job.rank, &child, NULL), "split");
    sync(t);
    expect_ints(data, 1000, t->job.world - 1, "op beside a split");
    expect_members(t, child, t->job.world * (t->job.world - 1) / 2);
    check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
}

static void case_split(struct test *t)
{
    ncclComm_t child;
    ncclComm_t grandchild;

    test_split_groups(t);
    test_split_while_busy(t);
    for (int i = 0; i < 600; i++) {
        int out = i % 5 == 0 && t->job.rank == 0;

        check_nccl(ncclCommSplit(t->world, out ? NCCL_SPLIT_NOCOLOR : i,
                                 t->job.rank, &child, NULL),
                   "split");
        expect((child != NULL) != out, "colour or none");
        if (child)
            check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
    }
    check_nccl(ncclCommSplit(t->world, 0, 0, &child, NULL), "split");
    check_nccl(ncclCommSplit(child, t->job.rank, 0, &grandchild, NULL),
               "split");
    expect_comm(grandchild, 0, 1);
    expect_members(t, grandchild, t->job.rank);
    check_nccl(ncclCommDestroy(grandchild), "ncclCommDestroy");
    check_nccl(ncclCommDestroy(child), "ncclCommDestroy");
}

/* ---- order across streams, the default stream included ---- */

static void case_order(struct test *t)
{
    static long held_ms = 20;
    int *data = device(1000 * sizeof(int));
    cudaStream_t other;

    check_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
               "cudaStreamCreate");
    fill_ints(data, 1000, 1);
    for (int i = 0; i < 9; i++) {
        cudaStream_t streams[] = {t->stream, other, NULL};
        cudaStream_t s = streams[(i + t->job.rank) % 3];

        if (i % t->job.world == t->job.rank)
            check_cuda(cudaLaunchHostFunc(s, hold, &held_ms), "hold");
        check_nccl(ncclAllReduce(data, data, 1000, ncclInt32,
                                 i % 2 ? ncclMax : ncclSum, t->world, s),
                   "ncclAllReduce");
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (int i = 0, factor = 1; i < 9; i++) {
        factor *= i % 2 ? 1 : t->job.world;
        if (i == 8)
            for (int k = 0; k < 1000; k++)
                expect(data[k] == (k + 1) * factor,
                       "ops of one communicator run in the order of issue");
    }
    check_cuda(cudaStreamDestroy(other), "cudaStreamDestroy");
}

/* ---- errors ---- */

static void case_errors(struct test *t)
{
    int *d = device(64);
    int n = t->job.world;
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    ncclResult_t async = ncclInternalError;
    ncclConfig_t config = {0};

    expect(ncclAllReduce(d, d, 1, ncclInt32, ncclSum, NULL, t->stream) ==
               ncclInvalidArgument,
           "no communicator");
    expect(ncclAllReduce(d, d, 1, ncclNumTypes, ncclSum, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad type");
    expect(ncclAllReduce(d, d, 1, ncclInt32, (ncclRedOp_t)77, t->world,
                         t->stream) == ncclInvalidArgument,
           "bad operator");
    expect(ncclBroadcast(d, d, 1, ncclInt32, n, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad root");
    expect(ncclReduce(d, d, 1, ncclInt32, ncclSum, -1, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad root");
    expect(ncclSend(d, 1, ncclInt32, n, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad peer");
    expect(strlen(ncclGetLastError(NULL)) > 0, "last error");
    expect(ncclSend(d, 1, ncclInt32, t->job.rank, t->world, t->stream) ==
               ncclInvalidUsage,
           "send to self alone");
    expect(ncclGroupEnd() == ncclInvalidUsage, "end without start");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclAllReduce(d, d, 1, ncclInt32, ncclSum, t->world, t->stream),
               "ncclAllReduce");
    expect(ncclSend(d, 1, ncclInt32, -1, t->world, t->stream) ==
               ncclInvalidArgument,
           "bad peer");
    expect(ncclGroupEnd() == ncclInvalidArgument,
           "an error inside fails the group");
    check_nccl(ncclAllReduce(d, d, 0, ncclInt32, ncclSum, t->world, t->stream),
               "nothing to do");
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    expect(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument, "rank");
    expect(ncclCommInitRank(NULL, 1, id, 0) == ncclInvalidArgument, "NULL");
    expect(ncclCommInitRankConfig(&comm, 1, id, 0, &config) ==
               ncclInvalidArgument,
           "config that nobody initialised");
    expect(ncclCommSplit(t->world, -2, 0, &comm, NULL) == ncclInvalidArgument,
           "bad colour");
    expect(!strcmp(ncclGetErrorString(ncclSuccess), "no error"), "text");
    check_nccl(ncclCommGetAsyncError(t->world, &async), "async error");
    expect(async == ncclSuccess, "async error");
    check_nccl(ncclCommDestroy(NULL), "nothing to destroy");
    check_nccl(ncclCommAbort(NULL), "nothing to abort");
    barrier(t);
}

/* Rank 1 never comes; the others are freed by abort. */
static void case_abort(struct test *t)
{
    int *d = device(1 << 20);
    double start = now_ms();
    ncclComm_t child;

    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &child, NULL), "split");
    if (t->job.rank != 1)
        check_nccl(
            ncclAllReduce(d, d, 1 << 18, ncclInt32, ncclSum, child, t->stream),
            "ncclAllReduce");
    if (t->job.rank != 1) {
        sleep_ms(100);
        expect(cudaStreamQuery(t->stream) == cudaErrorNotReady,
               "waits for the missing rank");
    }
    check_nccl(ncclCommAbort(child), "ncclCommAbort");
    sync(t);
    expect(now_ms() - start < 5000, "abort frees at once");
    barrier(t);
}

/* Ranks that disagree about a size hang until they abort, and are told why. */
static void case_mismatch(struct test *t)
{
    size_t count = t->job.rank ? 2000 : 1000;
    int *d = device(8000);
    ncclComm_t child;

    check_nccl(ncclCommSplit(t->world, 0, t->job.rank, &child, NULL), "split");
    check_nccl(ncclAllReduce(d, d, count, ncclInt32, ncclSum, child, t->stream),
               "ncclAllReduce");
    sleep_ms(100);
    expect(cudaStreamQuery(t->stream) == cudaErrorNotReady, "hangs");
    check_nccl(ncclCommAbort(child), "ncclCommAbort");
    sync(t);
    barrier(t);
}

/* One process holds all ranks: ncclCommInitAll and groups over them. */
static void case_threads(struct test *t)
{
    enum { N = 4, COUNT = 1000 };
    ncclComm_t comm[N];
    cudaStream_t stream[N];
    int *data[N];

    if (t->job.rank)
        return;
    check_nccl(ncclCommInitAll(comm, N, NULL), "ncclCommInitAll");
    for (int i = 0; i < N; i++) {
        int device_of = -1;

        check_cuda(cudaSetDevice(i), "cudaSetDevice");
        check_nccl(ncclCommCuDevice(comm[i], &device_of), "ncclCommCuDevice");
        expect(device_of == i, "device of the communicator");
        check_cuda(cudaStreamCreate(&stream[i]), "cudaStreamCreate");
        data[i] = device(COUNT * sizeof(int));
        fill_ints(data[i], COUNT, i);
    }
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < N; i++)
        check_nccl(ncclAllReduce(data[i], data[i], COUNT, ncclInt32, ncclMax,
                                 comm[i], stream[i]),
                   "ncclAllReduce");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < N; i++) {
        check_cuda(cudaStreamSynchronize(stream[i]), "sync");
        expect_ints(data[i], COUNT, N - 1, "all-reduce over threads");
        check_nccl(ncclCommDestroy(comm[i]), "ncclCommDestroy");
        check_cuda(cudaStreamDestroy(stream[i]), "cudaStreamDestroy");
    }
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
}

/* A call without a body is loud and says so once. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);

static void case_stub(struct test *t)
{
    void *symbol = dlsym(RTLD_DEFAULT, "ncclWinGetUserPtr");
    int (*stub)(void);

    (void)t;
    expect(symbol != NULL, "every public name is there");
    *(void **)&stub = symbol;
    expect(stub() == ncclInvalidUsage, "stub");
    expect(stub() == ncclInvalidUsage, "stub");
}

/* ---- time ---- */

struct link {
    double alpha_us;
    double bytes_per_us;
};

struct timing {
    struct test *test;
    ncclComm_t comm;
    int n;
    char *send;
    char *recv;
};

typedef void timed_fn(struct timing *x, size_t bytes);

static void timed_all_reduce(struct timing *x, size_t bytes)
{
    check_nccl(ncclAllReduce(x->send, x->recv, bytes / 4, ncclFloat32, ncclSum,
                             x->comm, x->test->stream),
               "ncclAllReduce");
}

static void timed_sendrecv(struct timing *x, size_t bytes)
{
    int rank;

    check_nccl(ncclCommUserRank(x->comm, &rank), "ncclCommUserRank");
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    check_nccl(ncclSend(x->send, bytes, ncclInt8, (rank + 1) % x->n, x->comm,
                        x->test->stream),
               "ncclSend");
    check_nccl(ncclRecv(x->recv, bytes, ncclInt8, (rank + x->n - 1) % x->n,
                        x->comm, x->test->stream),
               "ncclRecv");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

/* Mean over iterations and ranks, in us. */
static double time_of(struct timing *x, timed_fn *op, size_t bytes)
{
    enum { ITERATIONS = 4 };
    cudaStream_t s = x->test->stream;
    cudaEvent_t start;
    cudaEvent_t stop;
    float ms;

    check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    timed_all_reduce(x, 4);
    check_cuda(cudaEventRecord(start, s), "cudaEventRecord");
    for (int i = 0; i < ITERATIONS; i++)
        op(x, bytes);
    check_cuda(cudaEventRecord(stop, s), "cudaEventRecord");
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    memcpy(x->send, &ms, sizeof(ms));
    timed_all_reduce(x, sizeof(ms));
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    memcpy(&ms, x->recv, sizeof(ms));
    check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    return (double)ms * 1e3 / ITERATIONS / x->n;
}

static void expect_time(struct timing *x, const char *what, size_t bytes,
                        double us, double model_us)
{
    double off = us / model_us - 1;
    int rank;

    check_nccl(ncclCommUserRank(x->comm, &rank), "ncclCommUserRank");
    if (rank == 0)
        printf("%-10s n=%d %8zu bytes: model %9.1f us, measured %9.1f us, "
               "%+.2f %%\n",
               what, x->n, bytes, model_us, us, off * 100);
    if (fabs(off) > 0.10)
        die("%s of %zu bytes on %d ranks takes %.1f us, model %.1f us", what,
            bytes, x->n, us, model_us);
}

static void test_times(struct timing *x, const struct link *l)
{
    static const size_t sizes[] = {4096, 65536, 1 << 20};
    double n = x->n;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double s = (double)sizes[i];

        expect_time(
            x, "all-reduce", sizes[i], time_of(x, timed_all_reduce, sizes[i]),
            2 * (n - 1) * l->alpha_us + 2 * (n - 1) / n * s / l->bytes_per_us);
        expect_time(x, "send/recv", sizes[i],
                    time_of(x, timed_sendrecv, sizes[i]),
                    l->alpha_us + s / l->bytes_per_us);
    }
}

/* All ranks of the job have the same link to each other: the test's own
 * arguments say which. */
static struct link link_of_test;

static void case_time(struct test *t)
{
    size_t bytes = 1 << 20;
    struct timing x = {t, NULL, 0, device(bytes), device(bytes)};

    for (x.n = 2; x.n <= t->job.world; x.n *= 2) {
        int in = t->job.rank < x.n;

        check_nccl(ncclCommSplit(t->world, in ? 0 : NCCL_SPLIT_NOCOLOR,
                                 t->job.rank, &x.comm, NULL),
                   "split");
        if (!x.comm)
            continue;
        test_times(&x, &link_of_test);
        check_nccl(ncclCommDestroy(x.comm), "ncclCommDestroy");
    }
}

/* A late rank: its peers' op takes as much longer as it is late. */
static void case_late(struct test *t)
{
    static long late_ms = 150;
    int *d = device(4096);
    cudaEvent_t start;
    cudaEvent_t stop;
    float ms;

    check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    barrier(t);
    if (t->job.rank == 0)
        check_cuda(cudaLaunchHostFunc(t->stream, hold, &late_ms), "hold");
    check_cuda(cudaEventRecord(start, t->stream), "cudaEventRecord");
    check_nccl(
        ncclAllReduce(d, d, 1024, ncclInt32, ncclSum, t->world, t->stream),
        "ncclAllReduce");
    check_cuda(cudaEventRecord(stop, t->stream), "cudaEventRecord");
    sync(t);
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    expect(t->job.rank == 0 ? ms < 100 : ms > 140 && ms < 300,
           "the late rank's peers wait for it, it does not wait");
    check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    barrier(t);
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
