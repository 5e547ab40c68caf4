/* FNV-1a with a final mix: names become identifiers, seeds become noise. */
#ifndef FABRIC_HASH_H
#define FABRIC_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FABRIC_HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t fabric_mix(uint64_t h)
{
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

static inline uint64_t fabric_hash(uint64_t seed, const void *data, size_t n)
{
    const unsigned char *p = (const unsigned char *)data;

    for (size_t i = 0; i < n; i++)
        seed = (seed ^ p[i]) * UINT64_C(0x100000001b3);
    return fabric_mix(seed);
}

#endif
