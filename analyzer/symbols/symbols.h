/*
 * Names for addresses in the files that a job ran, read on this machine. A file
 * that is not the one that ran, by its build id, names nothing.
 */
#ifndef COMMTRACE_SYMBOLS_H
#define COMMTRACE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct ct_arena;
struct ct_symbols;

struct ct_place {
    const char *function; /* demangled; NULL: unknown */
    const char *file;     /* NULL: unknown */
    int line;             /* 0: unknown */
    bool inlined;         /* into the function of the next place */
};

/* debug_dir: where separate debug files are; NULL: /usr/lib/debug. Texts go
 * into the arena; NULL without memory. */
struct ct_symbols *ct_symbols_new(struct ct_arena *arena,
                                  const char *debug_dir);
void ct_symbols_free(struct ct_symbols *symbols);

/* What lies before the return address at offset in the module with path and
 * build id (NULL: it has none): at most `most` places, the innermost first. At
 * least one. *why: why nothing is known of the module, else NULL. */
int ct_symbols_at(struct ct_symbols *symbols, const char *path,
                  const char *build_id, uint64_t offset,
                  struct ct_place *places, int most, const char **why);

#endif
