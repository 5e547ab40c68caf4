/* Every stack that was met, once each. Threads add, the writer reads along. */
#ifndef SHIM_STACK_TABLE_H
#define SHIM_STACK_TABLE_H

#include "unwind.h"

enum { STACKS = 4096, STACK_FRAMES = 1 << 17 };

struct stack {
    uint64_t hash;
    const struct frame *frames;
    uint32_t depth;
    bool cut; /* it goes on */
};

/* The number of a stack, from 1; 0: there is no room for a new one. */
uint32_t stack_table_add(const struct frame *frames, size_t depth, bool cut);

/* How many there are; those are readable. */
uint32_t stack_table_count(void);
const struct stack *stack_table_at(uint32_t number);

#endif
