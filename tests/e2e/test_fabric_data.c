/* Right data for every op, type, reduction and root. */
#include <stdint.h>
#include <string.h>

#include "test_fabric.h"

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
    sync_stream(t);
    expect_reduced(t, b, 0, "all-reduce");
    memcpy(b->recv, b->send, b->count * (size_t)type_size[b->type]);
    check_nccl(ncclAllReduce(b->recv, b->recv, b->count, type, op, t->world,
                             t->stream),
               "ncclAllReduce");
    sync_stream(t);
    expect_reduced(t, b, 0, "all-reduce in place");
    for (int root = 0; root < t->job.world; root++) {
        check_nccl(ncclReduce(b->send, b->recv, b->count, type, op, root,
                              t->world, t->stream),
                   "ncclReduce");
        sync_stream(t);
        if (root == t->job.rank)
            expect_reduced(t, b, 0, "reduce");
    }
    fill(t, b, b->count * n);
    check_nccl(ncclReduceScatter(b->send, b->recv, b->count, type, op, t->world,
                                 t->stream),
               "ncclReduceScatter");
    sync_stream(t);
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
    sync_stream(t);
    for (int r = 0; r < n; r++)
        expect_share(b, r, r, 0, "all-gather");
    memcpy(b->recv + (size_t)t->job.rank * bytes, b->send, bytes);
    check_nccl(ncclAllGather(b->recv + (size_t)t->job.rank * bytes, b->recv,
                             b->count, type, t->world, t->stream),
               "ncclAllGather");
    sync_stream(t);
    for (int r = 0; r < n; r++)
        expect_share(b, r, r, 0, "all-gather in place");
    check_nccl(
        ncclAlltoAll(b->send, b->recv, b->count, type, t->world, t->stream),
        "ncclAlltoAll");
    sync_stream(t);
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
    sync_stream(t);
    expect_share(b, 0, root, 0, "broadcast");
    memcpy(b->recv, b->send, bytes);
    check_nccl(ncclBcast(b->recv, b->count, type, root, t->world, t->stream),
               "ncclBcast");
    sync_stream(t);
    expect_share(b, 0, root, 0, "bcast");
    check_nccl(
        ncclGather(b->send, b->recv, b->count, type, root, t->world, t->stream),
        "ncclGather");
    sync_stream(t);
    for (int r = 0; r < t->job.world && t->job.rank == root; r++)
        expect_share(b, r, r, 0, "gather");
    check_nccl(ncclScatter(b->send, b->recv, b->count, type, root, t->world,
                           t->stream),
               "ncclScatter");
    sync_stream(t);
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

void case_data(struct test *t)
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

void case_premul(struct test *t)
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
        sync_stream(t);
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
