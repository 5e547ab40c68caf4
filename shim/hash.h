/*
 * Strong 64-bit mixing. Ranks compare its results across machines, so it works
 * on values, never on their layout in memory, and its constants are part of
 * the trace format.
 */
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The finaliser of SplitMix64: every bit of x reaches every bit of the result.
 */
static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t hash_add(uint64_t hash, uint64_t value)
{
    return hash_mix(hash_mix(hash + 0x9e3779b97f4a7c15u) ^ value);
}

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        for (size_t j = 0; j < 8 && i + j < size; j++)
            word |= (uint64_t)p[i + j] << 8 * j;
        hash = hash_add(hash, word);
    }
    return hash_add(hash, size);
}

#endif
