/* Floating point types of 8 and 16 bits, as bits and as float. */
#ifndef FABRIC_NCCL_MINIFLOAT_H
#define FABRIC_NCCL_MINIFLOAT_H

#include <stdint.h>

struct minifloat {
    int exponent_bits;
    int mantissa_bits;
    int has_infinity; /* e4m3 has none: its largest exponent is a number */
    float normal;     /* the smallest number with a full mantissa */
    float beyond;     /* the power of two above the largest number */
};

extern const struct minifloat minifloat_half;
extern const struct minifloat minifloat_bfloat;
extern const struct minifloat minifloat_e4m3;
extern const struct minifloat minifloat_e5m2;

float minifloat_decode(const struct minifloat *format, uint32_t bits);
/* Rounds to nearest even. */
uint32_t minifloat_encode(const struct minifloat *format, float value);

#endif
