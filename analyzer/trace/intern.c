#include "trace/intern.h"

#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"

struct ct_intern_entry {
    uint64_t hash;
    size_t offset;
    size_t size;
};

uint64_t ct_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_bytes(const void *key, size_t size)
{
    const unsigned char *bytes = key;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ size, word;

    for (; size >= sizeof(word); size -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = ct_mix64(hash ^ word) + 0x9e3779b97f4a7c15u;
        bytes += sizeof(word);
    }
    word = 0;
    memcpy(&word, bytes, size);
    return ct_mix64(hash ^ word);
}

static int slot_of(const struct ct_intern *table, uint64_t hash,
                   const void *key, size_t size)
{
    int mask = table->nslots - 1;
    int slot = (int)(hash & (uint64_t)mask);

    for (;; slot = (slot + 1) & mask) {
        const struct ct_intern_entry *entry;

        if (table->slots[slot] < 0)
            return slot;
        entry = &table->entries[table->slots[slot]];
        if (entry->hash == hash && entry->size == size &&
            !memcmp(table->bytes + entry->offset, key, size))
            return slot;
    }
}

static void rehash(struct ct_intern *table)
{
    int nslots = table->nslots ? table->nslots * 2 : 64;
    int i, slot;

    table->slots = ct_resize(table->slots, (size_t)nslots, sizeof(int32_t));
    table->nslots = nslots;
    memset(table->slots, 0xff, (size_t)nslots * sizeof(int32_t));
    for (i = 0; i < table->n; i++) {
        slot = (int)(table->entries[i].hash & (uint64_t)(nslots - 1));
        while (table->slots[slot] >= 0)
            slot = (slot + 1) & (nslots - 1);
        table->slots[slot] = i;
    }
}

static void append(struct ct_intern *table, uint64_t hash, const void *key,
                   size_t size)
{
    size_t need = table->nbytes + size;
    struct ct_intern_entry *entry;

    if (need > table->capacity_bytes) {
        table->capacity_bytes = need * 2 + 256;
        table->bytes = ct_resize(table->bytes, table->capacity_bytes, 1);
    }
    table->entries = ct_grow(table->entries, &table->capacity, table->n,
                             sizeof(*table->entries));
    entry = &table->entries[table->n++];
    entry->hash = hash;
    entry->offset = table->nbytes;
    entry->size = size;
    memcpy(table->bytes + entry->offset, key, size);
    table->nbytes = need;
}

int ct_intern_add(struct ct_intern *table, const void *key, size_t size)
{
    uint64_t hash = hash_bytes(key, size);
    int slot;

    if (table->n * 2 >= table->nslots)
        rehash(table);
    slot = slot_of(table, hash, key, size);
    if (table->slots[slot] < 0) {
        table->slots[slot] = table->n;
        append(table, hash, key, size);
    }
    return table->slots[slot];
}

int ct_intern_find(const struct ct_intern *table, const void *key, size_t size)
{
    if (!table->nslots)
        return -1;
    return table->slots[slot_of(table, hash_bytes(key, size), key, size)];
}

void ct_intern_release(struct ct_intern *table)
{
    free(table->entries);
    free(table->slots);
    free(table->bytes);
    memset(table, 0, sizeof(*table));
}
