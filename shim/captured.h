/* Calls that each CUDA graph holds, as its launches repeat them. */
#ifndef SHIM_CAPTURED_H
#define SHIM_CAPTURED_H

#include "expected.h"

struct captured_call {
    uint32_t comm;
    struct expected call;
};

struct captured;

/* NULL: no memory. */
struct captured *captured_open(void);
void captured_close(struct captured *captured);

/* Without memory, and with more graphs than a few thousand, the oldest are
 * forgotten: their launches are then of nothing that is known. */
void captured_add(struct captured *captured, int64_t graph,
                  const struct captured_call *call);
void captured_join(struct captured *captured, int64_t graph, int64_t first,
                   int64_t second);

/* Every call of the graph, in order. */
typedef void captured_visit(void *arg, const struct captured_call *call);
void captured_each(struct captured *captured, int64_t graph,
                   captured_visit *visit, void *arg);

#endif
