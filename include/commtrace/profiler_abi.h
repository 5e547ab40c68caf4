/*
 * NCCL's interface to profiler plugins, as far as we and the stand-in NCCL use
 * it, in our own words (facts: NCCL's profiler_v4.h, v5.h and v6.h at 2.30.7;
 * what version 7 appends is from 2.31.2). A plugin exports a table of functions
 * under the name ncclProfiler_vN. NCCL takes the newest version that it knows:
 *
 *     4   2.27   what is launched, and its kernel's channels
 *     5   2.28   and the calls that ask for it
 *     6   2.29   and what copy engines do
 *     7   2.31   each description is longer
 *
 * Versions 5 to 7 describe what we look at alike: later ones append.
 */
#ifndef COMMTRACE_PROFILER_ABI_H
#define COMMTRACE_PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_PROFILER_OLDEST = 4, CT_PROFILER_NEWEST = 7 };

/* Kinds of event, and what a mask asks for. NCCL also tells of those that one
 * asked for is part of. */
enum ct_profiler_event {
    CT_PROFILER_GROUP = 1 << 0, /* what one launch holds */
    CT_PROFILER_COLL = 1 << 1,  /* a collective of it */
    CT_PROFILER_P2P = 1 << 2,   /* a send or recv of it */
    CT_PROFILER_KERNEL_CHANNEL = 1 << 6,
    CT_PROFILER_GROUP_API = 1 << 8, /* from here on version 5 */
    CT_PROFILER_COLL_API = 1 << 9,
    CT_PROFILER_P2P_API = 1 << 10,
    CT_PROFILER_KERNEL_LAUNCH = 1 << 11
};

enum ct_profiler_state {
    CT_PROFILER_KERNEL_STOP = 22,     /* args: when */
    CT_PROFILER_GROUP_STARTED = 23,   /* version 5 */
    CT_PROFILER_GROUP_END_BEGINS = 24 /* version 5 */
};

/* count and datatype are NCCL's: an all-gather and a broadcast count bytes. */
struct ct_profiler_coll {
    uint64_t number; /* nth of its kind, roughly */
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels;
    uint8_t warps;
    const char *algorithm;
    const char *protocol;
};

struct ct_profiler_p2p {
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
};

struct ct_profiler_kernel {
    uint8_t channel;
    uint64_t timer; /* the GPU's globaltimer, ns */
};

struct ct_profiler_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct ct_profiler_coll coll;
        struct ct_profiler_p2p p2p;
        struct ct_profiler_kernel kernel;
        char room[120]; /* the longest that we do not look at */
    } u;
};

struct ct_profiler_event_v5 {
    uint64_t type;
    void *parent; /* of a coll or p2p: its call's */
    int rank;
    union {
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool captured;
        } p2p_api;
        struct {
            void *stream;
        } launch;
        struct {
            struct ct_profiler_coll is;
            void *group;
        } coll;
        struct {
            struct ct_profiler_p2p is;
            void *group;
        } p2p;
        struct ct_profiler_kernel kernel;
        char room[160];
    } u;
};

union ct_profiler_args {
    struct {
        uint64_t timer;
    } kernel;
    char room[16];
};

typedef void ct_profiler_log(int level, unsigned long flags, const char *file,
                             int line, const char *format, ...);

/* Results are ncclResult_t. *context NULL: the end is not told. All
 * communicators share the mask, which may change at any time. */
struct ct_profiler_v4 {
    const char *name;
    int (*init)(void **context, int *mask, const char *comm_name,
                uint64_t comm_hash, int nodes, int nranks, int rank,
                ct_profiler_log *log);
    int (*start)(void *context, void **handle,
                 struct ct_profiler_event_v4 *event);
    int (*stop)(void *handle);
    int (*record)(void *handle, int state, union ct_profiler_args *args);
    int (*finalize)(void *context);
};

struct ct_profiler_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_hash, int *mask,
                const char *comm_name, int nodes, int nranks, int rank,
                ct_profiler_log *log);
    int (*start)(void *context, void **handle,
                 struct ct_profiler_event_v5 *event);
    int (*stop)(void *handle);
    int (*record)(void *handle, int state, union ct_profiler_args *args);
    int (*finalize)(void *context);
};

_Static_assert(offsetof(struct ct_profiler_event_v4, u) == 24, "");
_Static_assert(offsetof(struct ct_profiler_event_v5, u) == 24, "");
_Static_assert(offsetof(struct ct_profiler_event_v5, u.group_api.depth) == 28,
               "");
_Static_assert(offsetof(struct ct_profiler_event_v5, u.coll_api.root) == 48,
               "");
_Static_assert(offsetof(struct ct_profiler_event_v5, u.coll_api.captured) == 64,
               "");
_Static_assert(offsetof(struct ct_profiler_event_v5, u.p2p_api.captured) == 56,
               "");
_Static_assert(offsetof(struct ct_profiler_coll, root) == 40, "");
_Static_assert(offsetof(struct ct_profiler_coll, algorithm) == 64, "");
_Static_assert(offsetof(struct ct_profiler_p2p, peer) == 32, "");
_Static_assert(offsetof(struct ct_profiler_kernel, timer) == 8, "");

#endif
