/*
 * What dlsym answers for the names that we stand in front of: the thunk of what
 * the program would get without us. Called by dlsym.S for every look-up of the
 * process, perhaps before any constructor ran and from inside malloc, so names
 * that are none of ours are told apart without calling anything.
 */
#include "profiler.h"
#include "scope.h"
#include "ways.h"

#include <dlfcn.h>
#include <errno.h>

struct answer {
    void *symbol;
    scope_dlsym *ask; /* instead, as the caller; NULL: symbol is the answer */
};

struct answer dlsym_route(void *handle, const char *name, const void *site);

/* Not strcmp, which sanitizers put something of theirs in front of. */
SCOPE_UNCHECKED static bool is(const char *name, const char *other)
{
    while (*name && *name == *other)
        name++, other++;
    return *name == *other;
}

/* Which letters our names have where, for NCCL's and for CUDA's. It is made at
 * the first use, by several threads at once if so it comes. */
enum { LETTERS_FROM = 2, LETTERS_TO = 16 };
static struct {
    _Atomic bool made;
    _Atomic uint64_t at[2][LETTERS_TO];
} letters;

SCOPE_UNCHECKED static uint64_t letter(char c)
{
    return UINT64_C(1) << (c & 63);
}

SCOPE_UNCHECKED static void make_letters(void)
{
    for (int i = 0; i < REAL_HOOKED; i++) {
        const char *name = real_names[i].name;
        _Atomic uint64_t *at = letters.at[name[0] == 'c'];
        for (int p = 0; p < LETTERS_TO; p++) {
            if (p >= LETTERS_FROM)
                atomic_fetch_or_explicit(&at[p], letter(name[p]),
                                         memory_order_relaxed);
            if (!name[p])
                break;
        }
    }
    /* Release: with all letters. */
    atomic_store_explicit(&letters.made, true, memory_order_release);
}

/* Says no after a few letters for nearly every name that is not ours. */
SCOPE_UNCHECKED static bool may_be_hooked(const char *name)
{
    bool nccl = name[0] == 'n' && name[1] == 'c';
    bool cuda = name[0] == 'c' && name[1] == 'u';
    if (!nccl && !cuda)
        return false;
    if (!atomic_load_explicit(&letters.made, memory_order_acquire))
        make_letters();
    const _Atomic uint64_t *at = letters.at[cuda];
    for (int p = LETTERS_FROM; p < LETTERS_TO; p++) {
        if (!(atomic_load_explicit(&at[p], memory_order_relaxed) &
              letter(name[p])))
            return false;
        if (!name[p])
            break;
    }
    return true;
}

SCOPE_UNCHECKED static int hooked(const char *name)
{
    if (!may_be_hooked(name))
        return -1;
    for (int i = 0; i < REAL_HOOKED; i++)
        if (is(name, real_names[i].name))
            return i;
    return -1;
}

/* The symbol that the caller would get, if it is one to put a thunk before.
 * NULL: let it ask for itself. */
static void *find(void *handle, const char *name, const void *site)
{
    if (handle == RTLD_DEFAULT) {
        void *found = scope_next()(handle, name);
        return found ? found : scope_local(name, NULL, site);
    }
    if (handle == RTLD_NEXT) {
        const struct link_map *caller = scope_object(site);
        /* A tool after us asks for what it is to call in turn. */
        if (!caller || !scope_is_before_us(caller) ||
            scope_is_taken(caller, name))
            return NULL;
    }
    return scope_next()(handle, name);
}

static void *answer_for(enum real_id id, void *handle, const void *site)
{
    void *symbol = find(handle, real_names[id].name, site);
    const struct link_map *object = symbol ? scope_object(symbol) : NULL;
    /* What is before us calls us, or holds NCCL itself; and a library that asks
     * for its own functions, or NCCL for others, is not the program. A tool
     * after us may take ours for its own, as the loader does. */
    if (!object || scope_is_us(object) || scope_is_before_us(object) ||
        object == scope_object(site) || real_is_nccl(site))
        return NULL;
    symbol = ways_symbol(id, symbol, handle, site);
    /* Looks for what is there: dlerror() has no error of ours to tell. */
    scope_next()(RTLD_DEFAULT, "dlsym");
    return symbol;
}

SCOPE_UNCHECKED static bool is_plugin(const char *name)
{
    const char *plugin = "ncclProfiler_v";
    while (*plugin && *name == *plugin)
        name++, plugin++;
    return !*plugin;
}

/* Not ours, where it is off or there is another, before us or behind us and
 * maybe of another version. */
static struct answer plugin_for(void *handle, const char *name)
{
    int saved = errno;
    void *found = scope_next()(handle, name);
    if (!found)
        return (struct answer){NULL, scope_next()};
    if (profiler_is_hidden(found))
        found = scope_next()(RTLD_NEXT, name);
    errno = saved;
    return (struct answer){found, NULL};
}

SCOPE_UNCHECKED struct answer dlsym_route(void *handle, const char *name,
                                          const void *site)
{
    if (name && is_plugin(name) && handle != RTLD_NEXT)
        return plugin_for(handle, name);
    int id = name ? hooked(name) : -1;
    if (id >= 0) {
        int saved = errno;
        void *symbol = answer_for((enum real_id)id, handle, site);
        errno = saved;
        if (symbol)
            return (struct answer){symbol, NULL};
    }
    return (struct answer){NULL, scope_next()};
}
