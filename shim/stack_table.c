#include "stack_table.h"

#include "hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PLACES = 2 * STACKS };

static struct {
    pthread_mutex_t lock;
    _Atomic uint32_t n;
    size_t used;
    struct stack stacks[STACKS];
    struct frame frames[STACK_FRAMES];
    uint16_t places[PLACES]; /* number by hash, 0: free */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(STACKS <= UINT16_MAX, "numbers in places");

static uint64_t hash_frames(const struct frame *frames, size_t depth, bool cut)
{
    uint64_t hash = cut;
    for (size_t i = 0; i < depth; i++)
        hash = hash_add(hash,
                        frames[i].offset + ((uint64_t)frames[i].module << 48));
    return hash;
}

static bool is_same(const struct stack *stack, const struct stack *other)
{
    if (stack->hash != other->hash || stack->depth != other->depth ||
        stack->cut != other->cut)
        return false;
    for (uint32_t i = 0; i < stack->depth; i++)
        if (stack->frames[i].offset != other->frames[i].offset ||
            stack->frames[i].module != other->frames[i].module)
            return false;
    return true;
}

static uint32_t add(const struct stack *new, uint16_t *place)
{
    uint32_t n = atomic_load_explicit(&table.n, memory_order_relaxed);
    if (n == STACKS || new->depth > STACK_FRAMES - table.used)
        return 0;
    struct frame *frames = table.frames + table.used;
    memcpy(frames, new->frames, new->depth * sizeof(*frames));
    table.used += new->depth;
    table.stacks[n] = *new;
    table.stacks[n].frames = frames;
    *place = (uint16_t)(n + 1);
    /* Release: who sees the count sees the stack. */
    atomic_store_explicit(&table.n, n + 1, memory_order_release);
    return n + 1;
}

uint32_t stack_table_add(const struct frame *frames, size_t depth, bool cut)
{
    struct stack new = {.hash = hash_frames(frames, depth, cut),
                        .frames = frames,
                        .depth = (uint32_t)depth,
                        .cut = cut};
    pthread_mutex_lock(&table.lock);
    size_t i = (size_t) new.hash % PLACES;
    while (table.places[i] &&
           !is_same(&table.stacks[table.places[i] - 1], &new))
        i = (i + 1) % PLACES;
    uint32_t number =
        table.places[i] ? table.places[i] : add(&new, &table.places[i]);
    pthread_mutex_unlock(&table.lock);
    return number;
}

uint32_t stack_table_count(void)
{
    return atomic_load_explicit(&table.n, memory_order_acquire);
}

const struct stack *stack_table_at(uint32_t number)
{
    return &table.stacks[number - 1];
}
