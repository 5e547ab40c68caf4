/*
 * What slow ways have in common, and other ways that were compared lack.
 */
#ifndef COMMTRACE_SHARED_H
#define COMMTRACE_SHARED_H

#include "findings/ways.h"

enum ct_shared_kind {
    CT_SHARED_NOTHING,
    CT_SHARED_RANK, /* process of the trace */
    CT_SHARED_NODE,
    CT_SHARED_NODES /* both of them, and no others */
};

struct ct_shared {
    enum ct_shared_kind kind;
    int a, b;
    int ways; /* slow ones that it holds */
};

/* Of the ways that are slow[way] what most of them share, at least two, and
 * none that is not slow. Ranks or nodes that as many share do not count. False
 * only without memory. */
bool ct_shared_find(const struct ct_case *c, const struct ct_ways *ways,
                    const bool *slow, bool network, struct ct_shared *shared);

bool ct_shared_holds(const struct ct_case *c, const struct ct_shared *shared,
                     const struct ct_way *way);

#endif
