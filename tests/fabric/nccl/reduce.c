#include "nccl/reduce.h"

#include <stdint.h>
#include <string.h>

#include "nccl/minifloat.h"

static const unsigned char bytes_of[ncclNumTypes] = {
    [ncclInt8] = 1,     [ncclUint8] = 1,      [ncclInt32] = 4,
    [ncclUint32] = 4,   [ncclInt64] = 8,      [ncclUint64] = 8,
    [ncclFloat16] = 2,  [ncclFloat32] = 4,    [ncclFloat64] = 8,
    [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
};

size_t type_bytes(ncclDataType_t type)
{
    return bytes_of[type];
}

/*
 * ARITHMETIC(name, type, wide): the operators on one C type. Sums and
 * products are computed in wide, which is unsigned for integers, so that they
 * wrap as they do on a GPU.
 */
#define ARITHMETIC(name_, type_, wide_)                                    \
    static void reduce_##name_(void *acc, const void *in, size_t n,        \
                               ncclRedOp_t op)                             \
    {                                                                      \
        type_ *a = acc;                                                    \
        const type_ *b = in;                                               \
                                                                           \
        switch (op) {                                                      \
        case ncclProd:                                                     \
            for (size_t i = 0; i < n; i++)                                 \
                a[i] = (type_)((wide_)a[i] * (wide_)b[i]);                 \
            break;                                                         \
        case ncclMax:                                                      \
            for (size_t i = 0; i < n; i++)                                 \
                a[i] = b[i] > a[i] ? b[i] : a[i];                          \
            break;                                                         \
        case ncclMin:                                                      \
            for (size_t i = 0; i < n; i++)                                 \
                a[i] = b[i] < a[i] ? b[i] : a[i];                          \
            break;                                                         \
        default:                                                           \
            for (size_t i = 0; i < n; i++)                                 \
                a[i] = (type_)((wide_)a[i] + (wide_)b[i]);                 \
        }                                                                  \
    }                                                                      \
                                                                           \
    static void scale_##name_(void *data, size_t n, double factor, int by) \
    {                                                                      \
        type_ *a = data;                                                   \
                                                                           \
        for (size_t i = 0; i < n; i++)                                     \
            a[i] = by ? (type_)(a[i] / (type_)by)                          \
                      : (type_)((double)a[i] * factor);                    \
    }

ARITHMETIC(int8, int8_t, uint32_t)
ARITHMETIC(uint8, uint8_t, uint32_t)
ARITHMETIC(int32, int32_t, uint32_t)
ARITHMETIC(uint32, uint32_t, uint32_t)
ARITHMETIC(int64, int64_t, uint64_t)
ARITHMETIC(uint64, uint64_t, uint64_t)
ARITHMETIC(float32, float, float)
ARITHMETIC(float64, double, double)

static const struct minifloat *format_of(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16:
        return &minifloat_half;
    case ncclBfloat16:
        return &minifloat_bfloat;
    case ncclFloat8e4m3:
        return &minifloat_e4m3;
    default:
        return &minifloat_e5m2;
    }
}

static uint32_t bits_at(const void *data, size_t i, size_t bytes)
{
    return bytes == 2 ? ((const uint16_t *)data)[i]
                      : ((const uint8_t *)data)[i];
}

static void set_bits_at(void *data, size_t i, size_t bytes, uint32_t bits)
{
    if (bytes == 2)
        ((uint16_t *)data)[i] = (uint16_t)bits;
    else
        ((uint8_t *)data)[i] = (uint8_t)bits;
}

/* Small floats are widened a block at a time, and rounded once per step. */
#define BLOCK 256

static void widen(float *to, const void *from, size_t first, size_t n,
                  ncclDataType_t type)
{
    const struct minifloat *format = format_of(type);
    size_t bytes = type_bytes(type);

    for (size_t i = 0; i < n; i++)
        to[i] = minifloat_decode(format, bits_at(from, first + i, bytes));
}

static void narrow(void *to, const float *from, size_t first, size_t n,
                   ncclDataType_t type)
{
    const struct minifloat *format = format_of(type);
    size_t bytes = type_bytes(type);

    for (size_t i = 0; i < n; i++)
        set_bits_at(to, first + i, bytes, minifloat_encode(format, from[i]));
}

static void reduce_small(void *acc, const void *in, size_t count,
                         ncclDataType_t type, ncclRedOp_t op)
{
    float a[BLOCK];
    float b[BLOCK];

    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;

        widen(a, acc, i, n, type);
        widen(b, in, i, n, type);
        reduce_float32(a, b, n, op);
        narrow(acc, a, i, n, type);
    }
}

static void scale_small(void *data, size_t count, ncclDataType_t type,
                        double factor, int by)
{
    float a[BLOCK];

    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;

        widen(a, data, i, n, type);
        scale_float32(a, n, factor, by);
        narrow(data, a, i, n, type);
    }
}

static const struct {
    void (*reduce)(void *acc, const void *in, size_t n, ncclRedOp_t op);
    void (*scale)(void *data, size_t n, double factor, int by);
} arithmetic[ncclNumTypes] = {
    [ncclInt8] = {reduce_int8, scale_int8},
    [ncclUint8] = {reduce_uint8, scale_uint8},
    [ncclInt32] = {reduce_int32, scale_int32},
    [ncclUint32] = {reduce_uint32, scale_uint32},
    [ncclInt64] = {reduce_int64, scale_int64},
    [ncclUint64] = {reduce_uint64, scale_uint64},
    [ncclFloat32] = {reduce_float32, scale_float32},
    [ncclFloat64] = {reduce_float64, scale_float64},
};

void reduce_into(void *acc, const void *in, size_t count, ncclDataType_t type,
                 ncclRedOp_t op)
{
    if (arithmetic[type].reduce)
        arithmetic[type].reduce(acc, in, count, op);
    else
        reduce_small(acc, in, count, type, op);
}

static void scale(void *data, size_t count, ncclDataType_t type, double factor,
                  int by)
{
    if (arithmetic[type].scale)
        arithmetic[type].scale(data, count, factor, by);
    else
        scale_small(data, count, type, factor, by);
}

void reduce_multiply(void *data, size_t count, ncclDataType_t type,
                     double factor)
{
    scale(data, count, type, factor, 0);
}

void reduce_divide(void *data, size_t count, ncclDataType_t type, int divisor)
{
    scale(data, count, type, 1, divisor);
}

double number_read(const void *from, ncclDataType_t type)
{
    size_t bytes = type_bytes(type);
    union {
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } v;

    memcpy(&v, from, bytes);
    switch (type) {
    case ncclInt8:
        return v.i8;
    case ncclUint8:
        return v.u8;
    case ncclInt32:
        return v.i32;
    case ncclUint32:
        return v.u32;
    case ncclInt64:
        return (double)v.i64;
    case ncclUint64:
        return (double)v.u64;
    case ncclFloat32:
        return v.f32;
    case ncclFloat64:
        return v.f64;
    default:
        return minifloat_decode(format_of(type), bits_at(from, 0, bytes));
    }
}
