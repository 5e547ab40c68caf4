/*
 * What a name would lead to if we were not there. Nothing here is on the hook
 * path: it takes the loader's locks.
 *
 * All look-ups go through the dlsym that comes after ours, so that another tool
 * that stands in front of the C library's sees them, and ours does not.
 */
#ifndef SHIM_SCOPE_H
#define SHIM_SCOPE_H

#include "real.h"

/* Sanitizers look names up before they are ready to check anything. */
#define SCOPE_UNCHECKED \
    __attribute__((no_sanitize("address", "thread", "undefined")))

typedef void *scope_dlsym(void *handle, const char *name);

/* The dlsym after ours. Needs no memory and no constructor of ours. */
scope_dlsym *scope_next(void);

/* What the object that holds the address site would bind an undefined name to:
 * what comes after us in the global scope, else in the object's own. version
 * is that of the reference, NULL where it has none. NULL: nothing. */
void *scope_find(const char *name, const char *version, const void *site);

/* The second half: in the searches that the object of site came in with. */
void *scope_local(const char *name, const char *version, const void *site);

/* In one object itself. */
void *scope_in(const struct link_map *object, const char *name);

const struct link_map *scope_object(const void *address);
const char *scope_soname(const struct link_map *object);

/* False in a forked child, where the loader's lock for its list of objects may
 * have been taken by a thread that is not there. Its other locks are free. */
bool scope_may_list(void);

/* Another copy of this library comes before us, and sees all that we do. */
bool scope_is_second(void);

bool scope_is_us(const struct link_map *object);

/* Whether it comes before us in the global scope. */
bool scope_is_before_us(const struct link_map *object);

/* Whether an object between this one, which is before us, and us has the name.
 */
bool scope_is_taken(const struct link_map *object, const char *name);

static inline real_function scope_function(void *symbol)
{
    return (real_function)(uintptr_t)symbol;
}

#endif
