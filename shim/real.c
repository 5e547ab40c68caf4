#include "real.h"

#include "thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct nccl_copy nccl_copies[NCCL_COPIES];
struct real_text real_texts[REAL_TEXTS];

static const char *const names[REAL_COUNT] = {
#define OP(id_, name_, fn_, ...) [REAL_##fn_] = #fn_,
#define COMM(fn_, ...) [REAL_##fn_] = #fn_,
#include "commtrace/nccl_ops.def"
#define X(fn_, params_) [REAL_##fn_] = #fn_,
    REAL_ASKS(X)
#undef X
};

static bool is_nccl_file(const char *path)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    return !strncmp(base, "libnccl.", 8);
}

struct search {
    const char *name;
    void *found;
};

static void *look_into(const char *path, const char *name)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle);
    return found;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct search *search = data;
    if (is_nccl_file(info->dlpi_name))
        search->found = look_into(info->dlpi_name, search->name);
    return search->found != NULL;
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        found = look_into("libnccl.so.2", name);
    if (!found) {
        struct search search = {.name = name};
        dl_iterate_phdr(search_object, &search);
        found = search.found;
    }
    return found;
}

static void add_text(uintptr_t start, uintptr_t size)
{
    for (int i = 0; i < REAL_TEXTS; i++) {
        uintptr_t known =
            atomic_load_explicit(&real_texts[i].start, memory_order_relaxed);
        if (known == start)
            return;
        if (known)
            continue;
        real_texts[i].size = size;
        atomic_store_explicit(&real_texts[i].start, start,
                              memory_order_release);
        return;
    }
}

/* Adds the executable segment that holds the address, if the file is NCCL's:
 * a program that links NCCL statically calls from the same segment. */
static int add_text_of(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    uintptr_t address = (uintptr_t)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
            address - start >= segment->p_memsz)
            continue;
        if (is_nccl_file(info->dlpi_name))
            add_text(start, segment->p_memsz);
        return 1;
    }
    return 0;
}

/* It stays for good: after dlclose() and another dlopen() it could come back
 * elsewhere, and what we know of it would lead nowhere. */
static void keep(const void *found)
{
    Dl_info info;
    void *handle = NULL;
    if (!real_is_nccl(found) && dladdr(found, &info))
        handle =
            dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle)
        dlclose(handle);
}

real_function real_resolve(struct nccl_copy *copy, enum real_id id)
{
    int saved = errno;
    void *found = find(names[id]);
    real_function function = NULL;
    if (found) {
        keep(found);
        /* Its callbacks run one at a time: the loader holds a lock, and no lock
         * of ours could be left taken in a forked child. */
        struct thread_hold before;
        thread_hold(&before);
        dl_iterate_phdr(add_text_of, found);
        thread_release(&before);
        memcpy(&function, &found, sizeof(function));
        atomic_store_explicit(&copy->functions[id], function,
                              memory_order_relaxed);
    }
    errno = saved;
    return function;
}

void real_library(struct nccl_copy *copy, char *path, int size, int *version)
{
    path[0] = 0;
    *version = 0;
    real_ncclGetVersion_t *ask = real_ncclGetVersion(copy);
    Dl_info info;
    void *address;
    memcpy(&address, &ask, sizeof(address));
    if (!ask || !dladdr(address, &info))
        return;
    snprintf(path, (size_t)size, "%s", info.dli_fname);
    ask(version);
}
