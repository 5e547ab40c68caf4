/* Arrays that grow, numbers of keys, random bits. */
#ifndef TRACEGEN_MEMORY_H
#define TRACEGEN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct index { /* from keys to numbers */
    int n, capacity;
    struct index_slot *slots;
};

/* Bits that look random, the same for the same numbers. */
uint64_t mix(uint64_t a, uint64_t b);
void *grow(void *array, int *capacity_p, int n, unsigned long size);
void *zeros(unsigned long n, unsigned long size);
/* The number that the key of that hash has; a new one is the next, n - 1. */
int index_number(struct index *index, uint64_t hash,
                 bool (*is)(const void *context, int number),
                 const void *context);

#endif
