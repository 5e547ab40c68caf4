#include "importers.h"

#include "objects.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { OBJECTS = 4096, PATHS_BYTES = 1 << 18 };

struct object {
    const char *path;
    struct importers_names names;
    bool imports; /* is, or needs, the object that was asked about */
};

struct objects {
    struct importers *importers;
    const struct link_map *asked;
    struct object *of;
    unsigned n;
};

void importers_read(struct importers_names *names, const ElfW(Dyn) * dynamic,
                    ElfW(Addr) base)
{
    *names = (struct importers_names){.dynamic = dynamic};
    const ElfW(Dyn) *soname = NULL;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) address = entry->d_un.d_ptr;
        if (entry->d_tag == DT_SONAME)
            soname = entry;
        if (entry->d_tag != DT_STRTAB)
            continue;
        /* The loader has added the base, but for read-only sections. */
        if (address < base)
            address += base;
        names->strings = (const char *)address; /* NOLINT: an address */
    }
    if (!names->strings)
        names->dynamic = NULL;
    else if (soname)
        names->soname = names->strings + soname->d_un.d_val;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct objects *objects = data;
    (void)size;
    if (objects->n == OBJECTS)
        return 1;
    struct object *object = &objects->of[objects->n++];
    *object = (struct object){.path = info->dlpi_name};
    object->imports = info->dlpi_addr == objects->asked->l_addr &&
                      !strcmp(info->dlpi_name, objects->asked->l_name);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            ElfW(Addr) at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            importers_read(&object->names,
                           (const ElfW(Dyn) *)at, /* NOLINT: an address */
                           info->dlpi_addr);
        }
    return 0;
}

static bool is_called(const struct object *object, const char *name)
{
    const char *base = strrchr(object->path, '/');
    return !strcmp(object->path, name) || (base && !strcmp(base + 1, name)) ||
           (object->names.soname && !strcmp(object->names.soname, name));
}

static bool needs_an_importer(const struct objects *objects,
                              const struct object *object)
{
    const ElfW(Dyn) *entry = object->names.dynamic;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED)
            continue;
        const char *needed = object->names.strings + entry->d_un.d_val;
        for (unsigned i = 0; i < objects->n; i++)
            if (objects->of[i].imports && is_called(&objects->of[i], needed))
                return true;
    }
    return false;
}

static void find_importers(const struct objects *objects)
{
    bool more = true;
    while (more) {
        more = false;
        for (unsigned i = 0; i < objects->n; i++) {
            struct object *object = &objects->of[i];
            if (!object->imports && needs_an_importer(objects, object))
                object->imports = more = true;
        }
    }
}

static void copy_path(struct importers *importers, const char *path)
{
    size_t size = strlen(path) + 1;
    if (size == 1 ||
        size > (size_t)(importers->memory + importers->size - importers->end))
        return; /* the program itself searches the global scope */
    memcpy(importers->end, path, size);
    importers->end += size;
}

/* Called for one object only: while it runs, none is unloaded. It must not
 * call into the loader, whose other lock is taken before this one. */
static int gather(struct dl_phdr_info *info, size_t size, void *data)
{
    struct objects *objects = data;
    (void)info, (void)size;
    dl_iterate_phdr(add_object, objects);
    find_importers(objects);
    for (unsigned i = 0; i < objects->n; i++)
        if (objects->of[i].imports)
            copy_path(objects->importers, objects->of[i].path);
    return 1;
}

int importers_of(struct importers *importers, const struct link_map *object)
{
    /* Neither stack, which may be small, nor malloc, which may be ours to
     * wait for. */
    size_t size = OBJECTS * sizeof(struct object) + PATHS_BYTES;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    struct objects objects = {
        .importers = importers, .asked = object, .of = memory};
    *importers = (struct importers){.memory = memory, .size = size};
    importers->paths = importers->end =
        (char *)memory + OBJECTS * sizeof(struct object);
    objects_walk(gather, &objects);
    return 0;
}

void importers_release(struct importers *importers)
{
    munmap(importers->memory, importers->size);
}

const char *importers_first(const struct importers *importers)
{
    return importers->paths == importers->end ? NULL : importers->paths;
}

const char *importers_next(const struct importers *importers, const char *path)
{
    path += strlen(path) + 1;
    return path == importers->end ? NULL : path;
}
