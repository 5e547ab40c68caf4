/* Source lines of an address, from DWARF. */
#ifndef COMMTRACE_SYMBOLS_LINES_H
#define COMMTRACE_SYMBOLS_LINES_H

#include <stdbool.h>
#include <stdint.h>

struct Dwarf;

struct ct_line {
    const char *function; /* mangled where it is; NULL: unknown */
    const char *file;     /* NULL: unknown */
    int line;             /* 0: unknown */
    bool inlined;         /* into the function of the next entry */
};

/* Fills in what lies at address, the innermost inlined function first; how
 * many there are, 0: nothing is known. The texts belong to dwarf. */
int ct_lines_at(struct Dwarf *dwarf, uint64_t address, struct ct_line *lines,
                int most);

#endif
