#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void *or_die(void *memory)
{
    if (!memory) {
        fputs("tracegen: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void *zeros(unsigned long n, unsigned long size)
{
    return or_die(calloc(n ? n : 1, size));
}

void *grow(void *array, int *capacity_p, int n, unsigned long size)
{
    if (n < *capacity_p)
        return array;
    *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
    return or_die(realloc(array, (unsigned long)*capacity_p * size));
}

struct index_slot {
    uint64_t hash;
    int number; /* + 1; 0: free */
};

static struct index_slot *free_slot(const struct index *index, uint64_t hash)
{
    uint64_t mask = (uint64_t)index->capacity - 1, i = hash & mask;

    while (index->slots[i].number)
        i = (i + 1) & mask;
    return &index->slots[i];
}

static void double_index(struct index *index)
{
    struct index old = *index;
    int i;

    index->capacity = old.capacity ? 2 * old.capacity : 16;
    index->slots = zeros((unsigned long)index->capacity, sizeof(*index->slots));
    for (i = 0; i < old.capacity; i++)
        if (old.slots[i].number)
            *free_slot(index, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

int index_number(struct index *index, uint64_t hash,
                 bool (*is)(const void *context, int number),
                 const void *context)
{
    uint64_t mask, i;

    if (2 * index->n >= index->capacity)
        double_index(index);
    mask = (uint64_t)index->capacity - 1;
    for (i = hash & mask; index->slots[i].number; i = (i + 1) & mask)
        if (index->slots[i].hash == hash &&
            is(context, index->slots[i].number - 1))
            return index->slots[i].number - 1;
    index->slots[i] = (struct index_slot){hash, ++index->n};
    return index->n - 1;
}
