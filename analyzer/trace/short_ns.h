/*
 * A time in four bytes: exact to about a second; beyond that one part in 2^25
 * may be missing, less than what it was measured by leaves open (a float of
 * milliseconds on the GPU, a thread that may be scheduled out on the host). Or
 * unknown.
 *
 *   bit 31  sign
 *   bit 30  0: bits 0..29 are the number
 *           1: bits 25..29 e, bits 0..24 m: (2^25 + m) * 2^(e + 5)
 */
#ifndef COMMTRACE_SHORT_NS_H
#define COMMTRACE_SHORT_NS_H

#include <stdint.h>

#define CT_NO_TIME INT64_MIN

struct ct_short_ns {
    uint32_t bits;
};

#define CT_SHORT_NS_UNKNOWN UINT32_MAX
#define CT_SHORT_NS_MOST (((uint64_t)1 << 57) - 1) /* 4.5 years */

static inline struct ct_short_ns ct_shorten_ns(int64_t ns)
{
    const uint32_t sign = ns < 0 ? (uint32_t)1 << 31 : 0;
    uint64_t n = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    unsigned e;

    if (ns == CT_NO_TIME)
        return (struct ct_short_ns){CT_SHORT_NS_UNKNOWN};
    if (n >> 30 == 0)
        return (struct ct_short_ns){sign | (uint32_t)n};
    if (n > CT_SHORT_NS_MOST)
        n = CT_SHORT_NS_MOST;
    e = 33 - (unsigned)__builtin_clzll(n);
    return (struct ct_short_ns){sign | (uint32_t)1 << 30 | e << 25 |
                                ((uint32_t)(n >> (e + 5)) & 0x1ffffff)};
}

static inline int64_t ct_full_ns(struct ct_short_ns ns)
{
    const unsigned e = ns.bits >> 25 & 31;
    int64_t n = ns.bits & 0x3fffffff;

    if (ns.bits == CT_SHORT_NS_UNKNOWN)
        return CT_NO_TIME;
    if (ns.bits >> 30 & 1)
        n = (int64_t)(1 << 25 | (ns.bits & 0x1ffffff)) << (e + 5);
    return ns.bits >> 31 ? -n : n;
}

/* CT_NO_TIME where offset is unknown. */
static inline int64_t ct_ns_after(int64_t ns, struct ct_short_ns offset)
{
    const int64_t after = ct_full_ns(offset);

    return after == CT_NO_TIME ? CT_NO_TIME : ns + after;
}

/* Unknown where to_ns is CT_NO_TIME. */
static inline struct ct_short_ns ct_ns_between(int64_t from_ns, int64_t to_ns)
{
    int64_t ns;

    if (to_ns == CT_NO_TIME || __builtin_sub_overflow(to_ns, from_ns, &ns))
        ns = CT_NO_TIME;
    return ct_shorten_ns(ns);
}

#endif
