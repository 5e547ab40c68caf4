/*
 * Numbers keys in order of first appearance: 0, 1, 2, ... A key is any
 * sequence of bytes; structs used as keys must have no padding.
 */
#ifndef COMMTRACE_INTERN_H
#define COMMTRACE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_intern {
    int n; /* keys so far */
    int capacity, nslots;
    struct ct_intern_entry *entries;
    int32_t *slots;
    char *bytes;
    size_t nbytes, capacity_bytes;
};

void ct_intern_release(struct ct_intern *table); /* zeroed is fine */

/* The number of key, which is added if it is new. */
int ct_intern_add(struct ct_intern *table, const void *key, size_t size);

/* The number of key, CT_NONE (-1) if it was never added. */
int ct_intern_find(const struct ct_intern *table, const void *key, size_t size);

/* Spreads the bits of x. */
uint64_t ct_mix64(uint64_t x);

#endif
