#include "ways.h"

#include "objects.h"
#include "scope.h"
#include "thread.h"
#include "thunks.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

_Atomic uint64_t ways_known[WAYS];
_Atomic uint64_t ways_unrecorded;

/* Where a name is looked up. */
struct view {
    void *handle; /* RTLD_NEXT: as the loader binds what site refers to */
    const char *version;
    const void *site;
};

static void *look(const struct view *view, const char *name)
{
    if (view->handle == RTLD_NEXT)
        return scope_find(name, view->version, view->site);
    void *found = scope_next()(view->handle, name);
    if (!found && view->handle == RTLD_DEFAULT)
        found = scope_local(name, NULL, view->site);
    return found;
}

/* The library that a function is part of. A tool between the program and NCCL
 * has some of its functions, and NCCL in its view. */
static const struct link_map *library_of(enum real_id id, const void *symbol,
                                         const struct view *view)
{
    static const char asks[] = "ncclGetVersion";
    const struct link_map *object = scope_object(symbol);
    if (!object || real_names[id].family != REAL_NCCL || scope_in(object, asks))
        return object;
    const void *other = look(view, asks);
    return other ? scope_object(other) : object;
}

static struct nccl_copy *copy_of(enum real_id id, void *symbol,
                                 const struct view *view)
{
    const struct link_map *object = library_of(id, symbol, view);
    struct nccl_copy *copy =
        object ? real_copy_of(id, scope_function(symbol), object) : NULL;
    if (!copy)
        atomic_fetch_add_explicit(&ways_unrecorded, 1, memory_order_relaxed);
    return copy;
}

/* A call from code that belongs to no object, or to one without NCCL in its
 * scope: it goes to the NCCL that is there. */
static void *anywhere(const char *name)
{
    for (int i = 0; i < NCCL_COPIES; i++) {
        const struct link_map *object =
            atomic_load_explicit(&nccl_copies[i].object, memory_order_acquire);
        if (object)
            return scope_in(object, name);
    }
    void *handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? scope_next()(handle, name) : NULL;
    if (handle)
        dlclose(handle);
    return found;
}

static void *called(enum real_id id, const struct view *view)
{
    void *found = look(view, real_names[id].name);
    if (found || real_names[id].family != REAL_NCCL ||
        look(view, "ncclGetVersion"))
        return found;
    return anywhere(real_names[id].name);
}

static void remember(uint64_t key, const struct nccl_copy *copy)
{
    uint64_t way = key | (uint64_t)(copy - nccl_copies);
    unsigned at = ways_home(key);
    for (unsigned i = 0; i < WAYS_TRIES; i++) {
        uint64_t is = 0;
        /* Release: with what was learned of the copy. */
        if (atomic_compare_exchange_strong_explicit(
                &ways_known[(at + i) % WAYS], &is, way, memory_order_release,
                memory_order_relaxed) ||
            is == way)
            return;
    }
    atomic_store_explicit(&ways_known[at], way, memory_order_release);
}

struct nccl_copy *ways_look(enum real_id id, const char *version,
                            const void *site)
{
    struct thread_hold before;
    int saved = errno;
    thread_hold(&before);
    struct view view = {RTLD_NEXT, version, site};
    void *symbol = called(id, &view);
    struct nccl_copy *copy = symbol ? copy_of(id, symbol, &view) : NULL;
    if (copy)
        remember(ways_key(id, site), copy);
    thread_release(&before);
    errno = saved;
    return copy;
}

real_function ways_past(enum real_id id, const char *version, const void *site)
{
    int saved = errno;
    struct view view = {RTLD_NEXT, version, site};
    void *symbol = called(id, &view);
    errno = saved;
    return scope_function(symbol);
}

void *ways_symbol(enum real_id id, void *symbol, void *handle, const void *site)
{
    struct view view = {handle, NULL, site};
    const struct nccl_copy *copy = copy_of(id, symbol, &view);
    if (!copy)
        return symbol;
    void *thunk;
    memcpy(&thunk, &thunks[id][copy - nccl_copies], sizeof(thunk));
    return thunk;
}

static int count_unloaded(struct dl_phdr_info *info, size_t size, void *data)
{
    unsigned long long *n = data;
    (void)size;
    *n = info->dlpi_subs;
    return 1;
}

void ways_refresh(void)
{
    static _Atomic unsigned long long seen;
    unsigned long long n = 0;
    if (!scope_may_list())
        return;
    objects_walk(count_unloaded, &n);
    if (atomic_exchange_explicit(&seen, n, memory_order_relaxed) == n)
        return;
    for (unsigned i = 0; i < WAYS; i++)
        atomic_store_explicit(&ways_known[i], 0, memory_order_relaxed);
}
