/* Calls of a communicator whose choices have yet to come, oldest first. */
#ifndef SHIM_EXPECTED_H
#define SHIM_EXPECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct expected {
    uint64_t bytes;
    int64_t launch; /* graph_launch.id; 0: it runs by itself */
    uint64_t grp;   /* bracket; 0: none */
    uint64_t op;    /* op.id, where its choice names it; else 0 */
    uint32_t n;     /* choice.n */
    int32_t peer;   /* -1: a collective */
    uint16_t kind;
    bool met;
};

/* Bounded: the oldest are given up. */
struct expected_list {
    struct expected *items;
    size_t room; /* a power of two, or 0 */
    size_t most;
    uint64_t first, end;
};

void expected_add(struct expected_list *list, const struct expected *call);

/* The first that is like it, which is met from now on; NULL: none. */
const struct expected *expected_find(struct expected_list *list,
                                     const struct expected *like);

/* Whatever comes before the launch. */
void expected_drop_launches(struct expected_list *list, int64_t before);

/* Those of a bracket that launched nothing; later calls move up. How many of
 * each peer go is told by dropped. */
void expected_drop_group(struct expected_list *list, uint64_t grp,
                         void (*dropped)(void *arg, int32_t peer), void *arg);

void expected_release(struct expected_list *list);

#endif
