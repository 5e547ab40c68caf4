/*
 * Memory that is freed at once: everything a ct_trace points to. Running out
 * of memory ends the program (status 2): no caller could go on without.
 * Not for concurrent use: each loading thread fills an arena of its own, and
 * ct_arena_merge joins them.
 */
#ifndef COMMTRACE_ARENA_H
#define COMMTRACE_ARENA_H

#include <stddef.h>

struct ct_arena;

struct ct_arena *ct_arena_new(void);
void ct_arena_free(struct ct_arena *arena);

/* n zeroed elements of size bytes; never NULL, also for n == 0. */
void *ct_arena_alloc(struct ct_arena *arena, size_t n, size_t size);

/* A copy of n bytes of text, with a NUL added. */
char *ct_arena_text(struct ct_arena *arena, const char *text, size_t n);

/* Takes over a block of malloc (NULL is fine) and returns it. */
void *ct_arena_adopt(struct ct_arena *arena, void *block);

/* Moves all memory of from into arena and frees from. */
void ct_arena_merge(struct ct_arena *arena, struct ct_arena *from);

/* malloc's family without failure, for memory that a function frees itself. */
void *ct_alloc(size_t n, size_t size);
void *ct_resize(void *block, size_t n, size_t size);

/* A block with room for n elements, before it grows. */
void *ct_reserve(void *block, int *capacity_p, int n, size_t size);

/* A block with room for element n (from 0), grown by doubling. */
void *ct_grow(void *block, int *capacity_p, int n, size_t size);

#endif
