#include "real.h"

#include "objects.h"
#include "scope.h"
#include "thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct nccl_copy nccl_copies[NCCL_COPIES];
struct real_text real_texts[REAL_TEXTS];

const struct real_name real_names[REAL_COUNT] = {
#define HOOKED(family_, fn_, ...) [REAL_##fn_] = {#fn_, REAL_##family_},
#define HOOKED_BARE HOOKED
#include "hooked.def"
#define X(fn_, params_) [REAL_##fn_] = {#fn_, REAL_NCCL},
    REAL_ASKS(X)
#undef X
};

/* Two threads may add the same text twice, which does no harm. */
static void add_text(uintptr_t start, uintptr_t size)
{
    for (int i = 0; i < REAL_TEXTS; i++) {
        struct real_text *text = &real_texts[i];
        if (atomic_load_explicit(&text->start, memory_order_relaxed) == start)
            return;
        if (atomic_exchange_explicit(&text->taken, true, memory_order_relaxed))
            continue;
        text->size = size;
        /* Release: with its size. */
        atomic_store_explicit(&text->start, start, memory_order_release);
        return;
    }
}

static int add_text_of(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct link_map *object = data;
    (void)size;
    if (info->dlpi_addr != object->l_addr ||
        strcmp(info->dlpi_name, object->l_name) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
            add_text(info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    }
    return 1;
}

static bool starts_like_nccl(const char *path)
{
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, "libnccl", 7);
}

/* NCCL itself. What holds NCCL among other things, and offers it, calls it from
 * the same segment. */
static bool is_nccl(const struct link_map *object)
{
    const char *soname = scope_soname(object);
    return starts_like_nccl(object->l_name) ||
           (soname && starts_like_nccl(soname));
}

/* It stays for good: after dlclose() and another dlopen() it could come back
 * elsewhere, and what we know of it would lead nowhere. */
static void keep(const struct link_map *object)
{
    void *handle =
        dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle)
        dlclose(handle);
}

/* Enters a library into a free copy; false: this one is another's. */
static bool take(struct nccl_copy *copy, const struct link_map *object)
{
    const struct link_map *is =
        atomic_load_explicit(&copy->object, memory_order_acquire);
    if (!is && atomic_compare_exchange_strong_explicit(
                   &copy->object, &is, object, memory_order_acq_rel,
                   memory_order_acquire))
        is = object;
    if (is != object)
        return false;
    /* Copies are taken in order, so all who get here find the same number. */
    uint32_t first = 0;
    while (atomic_load_explicit(&nccl_copies[first].object,
                                memory_order_relaxed) != object)
        first++;
    atomic_store_explicit(&copy->number, first, memory_order_relaxed);
    return true;
}

static bool leads_to(struct nccl_copy *copy, enum real_id id,
                     real_function real)
{
    real_function is = NULL;
    return atomic_compare_exchange_strong_explicit(&copy->functions[id], &is,
                                                   real, memory_order_relaxed,
                                                   memory_order_relaxed) ||
           is == real;
}

static bool is_known(const struct link_map *object)
{
    for (int i = 0; i < NCCL_COPIES; i++)
        if (atomic_load_explicit(&nccl_copies[i].object,
                                 memory_order_acquire) == object)
            return true;
    return false;
}

/* A library of which something is about to be called for the first time. */
static void meet(const struct link_map *object, bool nccl)
{
    keep(object);
    if (nccl && is_nccl(object) && scope_may_list())
        objects_walk(add_text_of, (void *)(uintptr_t)object);
}

struct nccl_copy *real_copy_of(enum real_id id, real_function real,
                               const struct link_map *object)
{
    bool nccl = real_names[id].family == REAL_NCCL;
    if (!is_known(object))
        meet(object, nccl);
    for (int i = 0; i < NCCL_COPIES; i++) {
        struct nccl_copy *copy = &nccl_copies[i];
        if ((!nccl || take(copy, object)) && leads_to(copy, id, real))
            return copy;
    }
    return NULL;
}

real_function real_resolve(struct nccl_copy *copy, enum real_id id)
{
    const struct link_map *object =
        atomic_load_explicit(&copy->object, memory_order_acquire);
    if (!object || real_names[id].family != REAL_NCCL)
        return NULL;
    struct thread_hold before;
    int saved = errno;
    thread_hold(&before);
    real_function found = scope_function(scope_in(object, real_names[id].name));
    if (found)
        leads_to(copy, id, found);
    thread_release(&before);
    errno = saved;
    return atomic_load_explicit(&copy->functions[id], memory_order_relaxed);
}

void real_library(struct nccl_copy *copy, char *path, int size, int *version)
{
    const struct link_map *object =
        atomic_load_explicit(&copy->object, memory_order_acquire);
    real_ncclGetVersion_t *ask = real_ncclGetVersion(copy);
    *version = 0;
    snprintf(path, (size_t)size, "%s", object ? object->l_name : "");
    if (ask)
        ask(version);
}
