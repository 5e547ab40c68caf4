#include "trace/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks grow with the arena: thousands of files have one each. */
#define FIRST_CHUNK_BYTES (4u << 10)
#define CHUNK_BYTES (64u << 10)
#define ALIGN 16u

/* A chunk of small pieces, or one adopted or large block. */
struct block {
    struct block *next;
    void *memory;
};

struct ct_arena {
    struct block *blocks;
    char *free; /* rest of the newest chunk */
    size_t nfree, chunk_bytes;
};

static void *or_die(void *memory)
{
    if (!memory) {
        fputs("commtrace: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void *ct_alloc(size_t n, size_t size)
{
    return or_die(calloc(n ? n : 1, size));
}

void *ct_resize(void *block, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return or_die(NULL);
    n *= size;
    return or_die(realloc(block, n ? n : 1));
}

void *ct_reserve(void *block, int *capacity_p, int n, size_t size)
{
    if (n <= *capacity_p)
        return block;
    *capacity_p = n;
    return ct_resize(block, (size_t)n, size);
}

void *ct_grow(void *block, int *capacity_p, int n, size_t size)
{
    int capacity = *capacity_p;

    if (n < capacity)
        return block;
    capacity = capacity ? capacity : 16;
    while (capacity <= n)
        capacity = capacity > INT32_MAX / 2 ? INT32_MAX : capacity * 2;
    *capacity_p = capacity;
    return ct_resize(block, (size_t)capacity, size);
}

struct ct_arena *ct_arena_new(void)
{
    return ct_alloc(1, sizeof(struct ct_arena));
}

void ct_arena_free(struct ct_arena *arena)
{
    struct block *block, *next;

    if (!arena)
        return;
    for (block = arena->blocks; block; block = next) {
        next = block->next;
        free(block->memory);
        free(block);
    }
    free(arena);
}

void *ct_arena_adopt(struct ct_arena *arena, void *memory)
{
    struct block *block;

    if (!memory)
        return NULL;
    block = ct_alloc(1, sizeof(*block));
    block->memory = memory;
    block->next = arena->blocks;
    arena->blocks = block;
    return memory;
}

void *ct_arena_alloc(struct ct_arena *arena, size_t n, size_t size)
{
    size_t bytes;
    char *piece;

    if (size && n > (SIZE_MAX - ALIGN) / size)
        return or_die(NULL);
    bytes = (n * size + ALIGN) / ALIGN * ALIGN;
    if (bytes > FIRST_CHUNK_BYTES / 4)
        return ct_arena_adopt(arena, ct_alloc(1, bytes));
    if (bytes > arena->nfree) {
        if (arena->chunk_bytes < CHUNK_BYTES)
            arena->chunk_bytes =
                arena->chunk_bytes ? 2 * arena->chunk_bytes : FIRST_CHUNK_BYTES;
        arena->free = ct_arena_adopt(arena, ct_alloc(1, arena->chunk_bytes));
        arena->nfree = arena->chunk_bytes;
    }
    piece = arena->free;
    arena->free += bytes;
    arena->nfree -= bytes;
    return piece;
}

char *ct_arena_text(struct ct_arena *arena, const char *text, size_t n)
{
    char *copy = ct_arena_alloc(arena, n + 1, 1);

    memcpy(copy, text, n);
    return copy;
}

void ct_arena_merge(struct ct_arena *arena, struct ct_arena *from)
{
    struct block **end = &from->blocks;

    while (*end)
        end = &(*end)->next;
    *end = arena->blocks;
    arena->blocks = from->blocks;
    free(from);
}
