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
    bool is_readable;     /* that segment */
    /* Binary search table of .eh_frame_hdr; entries 0: there is none that
     * could be read. */
    uintptr_t header, table, entries;
    uintptr_t frames_start, frames_end; /* the segment that holds it */
};

/* The module that holds an address; false where none does. Waits for nobody
 * but those who are adding or removing modules at this moment. */
bool modules_find(uintptr_t address, struct mapped *found);

/* Facts of module number 1 and up. path "": the program itself. Both live as
 * long as the process. build_id: hexadecimal, NULL: the module has none. */
const char *module_path(uint32_t module);
const char *module_build_id(uint32_t module);

#endif
