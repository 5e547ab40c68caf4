/* The functions of an ELF file by address, from its symbol tables. */
#ifndef COMMTRACE_SYMBOLS_FUNCTIONS_H
#define COMMTRACE_SYMBOLS_FUNCTIONS_H

#include <stdint.h>

struct Elf;
struct ct_arena;

struct ct_function {
    uint64_t start, size; /* size 0: up to the next one */
    const char *name;     /* as in the file, mangled */
};

struct ct_functions {
    struct ct_function *of;
    int n, capacity;
};

/* Adds what elf has; names go into the arena. */
void ct_functions_add(struct ct_functions *functions, struct Elf *elf,
                      struct ct_arena *arena);

/* Once all are added. */
void ct_functions_sort(struct ct_functions *functions);

/* The one that holds address; NULL: none does. */
const struct ct_function *
ct_functions_find(const struct ct_functions *functions, uint64_t address);

#endif
