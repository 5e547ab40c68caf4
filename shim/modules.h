/*
 * What is loaded where. A module that appears in a stack gets a number, and
 * keeps it after it was unloaded: path, load bias and build id are copied.
 */
#ifndef SHIM_MODULES_H
#define SHIM_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODULES = 512, BUILD_ID_MAX = 20 };

/* A loaded module as far as unwinding and naming an address need it. */
struct mapped {
    uint32_t module;      /* number, 0: no room for one */
    uintptr_t bias;       /* address minus address in the file */
    uintptr_t start, end; /* the executable segment around the address */
    /* Binary search table of .eh_frame_hdr; entries 0: there is none that
     * could be read. */
    uintptr_t header, table, entries;
    const void *segments; /* the loader's, while the module is loaded */
    int nsegments;
};

/* Before the first look: sees to it that no fork() comes in the middle of one.
 * A child would inherit the loader's lock, held by nobody. */
bool modules_init(void);

/* The module that holds an address. Waits for nobody but those who look as
 * well, or are adding or removing modules at this moment, and not for ever. */
enum found { FOUND_NONE, FOUND_MODULE, FOUND_NO_LOCK };
enum found modules_find(uintptr_t address, struct mapped *found);

/* A range of memory in words: what lies beside its ends in their words is
 * mapped, too. */
struct range {
    uintptr_t start, end;
};

static inline bool range_has(const struct range *range, uintptr_t address)
{
    uintptr_t start = range->start & ~(sizeof(uintptr_t) - 1);
    uintptr_t end =
        (range->end + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    return address >= start && end - start >= sizeof(uintptr_t) &&
           address - start <= end - start - sizeof(uintptr_t);
}

/* The segment of a module, which is still loaded, that may be read and has the
 * word at address; false: there is none. */
bool mapped_segment(const struct mapped *mapped, uintptr_t address,
                    struct range *segment);

/* Facts of module number 1 and up. path "": the program itself. Both live as
 * long as the process. build_id: hexadecimal, NULL: the module has none. */
const char *module_path(uint32_t module);
const char *module_build_id(uint32_t module);

#endif
