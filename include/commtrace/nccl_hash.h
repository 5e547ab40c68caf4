/*
 * The numbers that NCCL 2.29 and later gives communicators: what it hashes and
 * in which order (init.cc, bootstrap.cc), and how (bitops.h), seen in 2.29.2
 * to 2.30.7. Grown communicators are named by them, and there are none before
 * 2.29. The recorder derives them as NCCL does; the stand-in NCCL hands them
 * out.
 */
#ifndef COMMTRACE_NCCL_HASH_H
#define COMMTRACE_NCCL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An id: a magic number, room for an address, and in one for the new ranks of
 * a grown communicator the number of the old ones. */
struct ct_nccl_id {
    uint64_t magic;
    char address[28];
    int32_t old_ranks;
    char zeros[88];
};
_Static_assert(sizeof(struct ct_nccl_id) == 128, "");

struct ct_nccl_sponge {
    uint64_t a;
    uint64_t b;
};

/* The size goes in first, so that it matters where one value ends. */
static inline void ct_nccl_absorb(struct ct_nccl_sponge *s, const void *data,
                                  size_t size)
{
    s->a ^= size;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t n = size - at < sizeof(word) ? size - at : sizeof(word);
        memcpy(&word, (const char *)data + at, n);
        s->a += s->b;
        s->b ^= s->a;
        s->a = (s->a ^ s->a >> 31) * UINT64_C(0x9de62bbc8cef3ce3);
        s->b = (s->b ^ s->b >> 32) * UINT64_C(0x485cd6311b599e79);
        s->a += word;
    }
}

static inline uint64_t ct_nccl_squeeze(const struct ct_nccl_sponge *s)
{
    uint64_t hash = (s->a ^ s->a >> 31) * UINT64_C(0xbac3bd562846de6b) + s->b;
    return (hash ^ hash >> 32) * UINT64_C(0x995a187a14e7b445);
}

/* commHash of a communicator by its (first) id, 128 bytes; its magic is the
 * id's. */
static inline uint64_t ct_nccl_hash_of_id(const void *id)
{
    struct ct_nccl_sponge s = {1, 1};
    ct_nccl_absorb(&s, id, sizeof(struct ct_nccl_id));
    return ct_nccl_squeeze(&s);
}

/* commHash, and magic, of a child. Splits and grows of the parent are counted
 * from 1; a shrink has 0 for both number and colour. */
static inline uint64_t ct_nccl_hash_of_child(uint64_t parent_hash, int child,
                                             int color)
{
    struct ct_nccl_sponge s = {1, 1};
    ct_nccl_absorb(&s, &parent_hash, sizeof(parent_hash));
    ct_nccl_absorb(&s, &child, sizeof(child));
    ct_nccl_absorb(&s, &color, sizeof(color));
    return ct_nccl_squeeze(&s);
}

/* Magic of a grown communicator, from its parent's magic and its number; its
 * commHash, from that magic and its size. */
static inline uint64_t ct_nccl_hash_combine(uint64_t base, uint64_t value)
{
    struct ct_nccl_sponge s = {1, 1};
    ct_nccl_absorb(&s, &base, sizeof(base));
    ct_nccl_absorb(&s, &value, sizeof(value));
    return ct_nccl_squeeze(&s);
}

#endif
