#include "nccl/minifloat.h"

#include <math.h>
#include <string.h>

const struct minifloat minifloat_half = {5, 10, 1, 0x1p-14f, 0x1p16f};
const struct minifloat minifloat_bfloat = {8, 7, 1, 0x1p-126f, INFINITY};
const struct minifloat minifloat_e4m3 = {4, 3, 0, 0x1p-6f, 0x1p9f};
const struct minifloat minifloat_e5m2 = {5, 2, 1, 0x1p-14f, 0x1p16f};

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static int bias(const struct minifloat *f)
{
    return (1 << (f->exponent_bits - 1)) - 1;
}

static int top_exponent(const struct minifloat *f)
{
    return (1 << f->exponent_bits) - 1;
}

static uint32_t nan_bits(const struct minifloat *f)
{
    return (1u << (f->exponent_bits + f->mantissa_bits)) - 1;
}

static uint32_t infinity_bits(const struct minifloat *f)
{
    return (uint32_t)top_exponent(f) << f->mantissa_bits;
}

float minifloat_decode(const struct minifloat *f, uint32_t bits)
{
    uint32_t sign = bits >> (f->exponent_bits + f->mantissa_bits) & 1;
    int exponent = (int)(bits >> f->mantissa_bits) & top_exponent(f);
    uint32_t mantissa = bits & ((1u << f->mantissa_bits) - 1);
    float value;

    if (exponent == top_exponent(f) && f->has_infinity)
        value = mantissa ? NAN : INFINITY;
    else if (!f->has_infinity && (bits & nan_bits(f)) == nan_bits(f))
        value = NAN;
    else if (!exponent)
        value = ldexpf((float)mantissa, 1 - bias(f) - f->mantissa_bits);
    else
        value = from_bits((uint32_t)(exponent - bias(f) + 127) << 23 |
                          mantissa << (23 - f->mantissa_bits));
    return sign ? -value : value;
}

static uint32_t encode_magnitude(const struct minifloat *f, float magnitude)
{
    int drop = 23 - f->mantissa_bits;
    uint32_t bits;

    if (magnitude < f->normal)
        return (uint32_t)lrintf(
            ldexpf(magnitude, f->mantissa_bits + bias(f) - 1));
    bits = to_bits(magnitude) - ((uint32_t)(127 - bias(f)) << 23);
    bits += (1u << (drop - 1)) - 1 + (bits >> drop & 1);
    return bits >> drop;
}

uint32_t minifloat_encode(const struct minifloat *f, float value)
{
    uint32_t sign = (uint32_t) !!signbit(value)
                    << (f->exponent_bits + f->mantissa_bits);
    uint32_t bits;

    if (isnan(value))
        return sign | nan_bits(f);
    if (fabsf(value) >= f->beyond)
        bits = nan_bits(f);
    else
        bits = encode_magnitude(f, fabsf(value));
    if (f->has_infinity && bits > infinity_bits(f))
        bits = infinity_bits(f);
    if (!f->has_infinity && bits > nan_bits(f))
        bits = nan_bits(f);
    return sign | bits;
}
