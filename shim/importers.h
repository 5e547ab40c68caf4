/*
 * Which objects brought another one in. An object that came in with a dlopen()
 * binds its undefined names in what that dlopen() searches: the object that was
 * opened and all that it needs. Which one was opened is the loader's secret,
 * but it is the first one loaded of those that need the object, directly or
 * through others; later ones were opened while it was there.
 */
#ifndef SHIM_IMPORTERS_H
#define SHIM_IMPORTERS_H

#include <link.h>
#include <stddef.h>

struct importers { /* paths, one after the other */
    char *memory;
    size_t size;
    char *paths, *end;
};

/* In the order in which they were loaded, with the object itself among them. 0
 * or -1. */
int importers_of(struct importers *importers, const struct link_map *object);
void importers_release(struct importers *importers);

const char *importers_first(const struct importers *importers);
const char *importers_next(const struct importers *importers, const char *path);

/* The parts of an object's dynamic section that matter here. */
struct importers_names {
    const ElfW(Dyn) * dynamic;
    const char *strings;
    const char *soname; /* or NULL */
};
void importers_read(struct importers_names *names, const ElfW(Dyn) * dynamic,
                    ElfW(Addr) base);

#endif
