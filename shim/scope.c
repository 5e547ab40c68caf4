#include "scope.h"

#include "importers.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

/* Since glibc 2.34, in libc.so itself. */
#define LIBC_DLSYM "GLIBC_2.34"

/* The C library's own. dlvsym() passes by what carries no version, as other
 * tools' dlsym. */
SCOPE_UNCHECKED static scope_dlsym *plain(void)
{
    static _Atomic(real_function) libc;
    real_function known = atomic_load_explicit(&libc, memory_order_relaxed);
    if (__builtin_expect(!known, 0)) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", LIBC_DLSYM);
        known = (real_function)(uintptr_t)found;
        atomic_store_explicit(&libc, known, memory_order_relaxed);
    }
    return (scope_dlsym *)known;
}

SCOPE_UNCHECKED scope_dlsym *scope_next(void)
{
    static _Atomic(real_function) next;
    real_function known = atomic_load_explicit(&next, memory_order_relaxed);
    if (__builtin_expect(!known, 0)) {
        scope_dlsym *ask = plain();
        void *after = ask ? ask(RTLD_NEXT, "dlsym") : NULL;
        known = after ? (real_function)(uintptr_t)after : (real_function)ask;
        atomic_store_explicit(&next, known, memory_order_relaxed);
    }
    return (scope_dlsym *)known;
}

/* As the loader binds a call, whatever other tools answer to look-ups: theirs
 * may be our own. */
static void *look(void *handle, const char *name, const char *version)
{
    return version ? dlvsym(handle, name, version) : plain()(handle, name);
}

static void *look_into(const char *path, const char *name, const char *version)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = look(handle, name, version);
    dlclose(handle);
    return found;
}

const struct link_map *scope_object(const void *address)
{
    Dl_info info;
    void *object = NULL;
    return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) ? object : NULL;
}

void *scope_in(const struct link_map *object, const char *name)
{
    void *found = look_into(object->l_name, name, NULL);
    return found && scope_object(found) == object ? found : NULL;
}

bool scope_may_list(void)
{
    static _Atomic pid_t first;
    pid_t is = getpid(), was = 0;
    return atomic_compare_exchange_strong_explicit(
               &first, &was, is, memory_order_relaxed, memory_order_relaxed) ||
           was == is;
}

static void *look_into_importers(const struct link_map *object,
                                 const char *name, const char *version)
{
    struct importers importers;
    void *found = NULL;
    if (importers_of(&importers, object) != 0)
        return NULL;
    for (const char *path = importers_first(&importers); path && !found;
         path = importers_next(&importers, path))
        found = look_into(path, name, version);
    importers_release(&importers);
    return found;
}

void *scope_local(const char *name, const char *version, const void *site)
{
    const struct link_map *object = scope_object(site);
    if (!object)
        return NULL;
    return scope_may_list() ? look_into_importers(object, name, version)
                            : look_into(object->l_name, name, version);
}

void *scope_find(const char *name, const char *version, const void *site)
{
    void *found = look(RTLD_NEXT, name, version);
    return found ? found : scope_local(name, version, site);
}

static const struct link_map *us(void)
{
    static const char here;
    static _Atomic(const struct link_map *) known;
    const struct link_map *object =
        atomic_load_explicit(&known, memory_order_relaxed);
    if (!object) {
        object = scope_object(&here);
        atomic_store_explicit(&known, object, memory_order_relaxed);
    }
    return object;
}

bool scope_is_us(const struct link_map *object)
{
    return object == us();
}

bool scope_is_second(void)
{
    const void *first = dlvsym(RTLD_DEFAULT, "ncclAllReduce", "COMMTRACE");
    return first && !scope_is_us(scope_object(first));
}

/* Objects that came before us at the start stay for good, in this order. */
bool scope_is_before_us(const struct link_map *object)
{
    const struct link_map *before = us();
    while (before && (before = before->l_prev))
        if (before == object)
            return true;
    return false;
}

bool scope_is_taken(const struct link_map *object, const char *name)
{
    for (object = object->l_next; object && object != us();
         object = object->l_next)
        if (scope_in(object, name))
            return true;
    return false;
}

const char *scope_soname(const struct link_map *object)
{
    struct importers_names names;
    importers_read(&names, object->l_ld, object->l_addr);
    return names.soname;
}
