#include "doctor/closure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/elf.h"
#include "doctor/loader.h"

static const char *base_of(const char *path)
{
    const char *base = strrchr(path, '/');

    return base ? base + 1 : path;
}

/* Parts of libc, and the recorder: what they can do, every program can. */
static bool is_plumbing(const char *path)
{
    static const char *const names[] = {
        "libc.so.",    "libdl.so.",     "libpthread.so.", "libm.so.",
        "librt.so.",   "ld-linux",      "linux-vdso",     "libcommtrace.so",
        "libutil.so.", "libstdc++.so.", "libgcc_s.so."};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(base_of(path), names[i], strlen(names[i])))
            return true;
    return false;
}

static bool imports_any(const struct elf *elf, const char *const *names)
{
    for (; *names; names++)
        if (elf_symbol(elf, *names) == ELF_IMPORTED)
            return true;
    return false;
}

/* By its calls, or where their names were stripped by the table that NCCL looks
 * for in plugins since 2.27; what loads none is none. */
static void find_nccl_inside(struct closure *c, const struct elf *elf,
                             const char *path, bool loads)
{
    const bool calls = elf_symbol(elf, "ncclAllReduce") == ELF_DEFINED &&
                       elf_symbol(elf, "ncclCommInitRank") == ELF_DEFINED;
    const bool speaks =
        (calls || loads) && elf_mentions(elf, "ncclProfiler_v4");

    if (!calls && !speaks)
        return;
    snprintf(c->inside, sizeof c->inside, "%s", path);
    c->inside_speaks = speaks;
}

/* Adds what one file can do. */
static void add_file(struct closure *c, const char *path)
{
    static const char *const loads[] = {"dlopen", "dlmopen", NULL};
    static const char *const starts[] = {
        "execve",       "execv",  "execvp",  "execvpe", "execl",
        "execlp",       "execle", "fexecve", "system",  "posix_spawn",
        "posix_spawnp", "popen",  NULL};
    struct elf elf;
    bool here;

    if (elf_open(&elf, path))
        return;
    here = imports_any(&elf, loads);
    c->loads = c->loads || here;
    c->starts = c->starts || imports_any(&elf, starts);
    if (!*c->names_it && here && elf_mentions(&elf, "libnccl.so"))
        snprintf(c->names_it, sizeof c->names_it, "%s", path);
    if (!*c->inside)
        find_nccl_inside(c, &elf, path, here);
    elf_close(&elf);
}

static void find_trouble(struct closure *c, const struct loader *loader,
                         const char *library)
{
    const char *what = loader->trouble;

    if (loader->missing) {
        snprintf(c->broken, sizeof c->broken, "%s is not found",
                 loader->missing);
    } else if (what && library && strstr(what, base_of(library))) {
        snprintf(c->broken, sizeof c->broken, "%.400s", what);
        c->preload_breaks = true;
    }
}

/* Where the library really is: loaders say "lib/../../nvidia". */
static void note(char path[PATH_MAX], const struct loader *loader,
                 const char *start)
{
    const char *found = loader_find(loader, start);

    if (!found || !realpath(found, path))
        snprintf(path, PATH_MAX, "%s", found ? found : "");
}

int closure_of(struct closure *c, const char *file, const char *library,
               bool deep)
{
    static struct loader loader;

    *c = (struct closure){.loads = false};
    if (loader_list(&loader, file, library) < 0)
        return -1;
    find_trouble(c, &loader, library);
    add_file(c, file);
    for (int i = 0; deep && i < loader.npaths; i++) {
        const char *base = base_of(loader.paths[i]);

        if (!is_plumbing(base) && strncmp(base, "libnccl.so", 10) != 0 &&
            strncmp(base, "libcuda", 7) != 0)
            add_file(c, loader.paths[i]);
    }
    note(c->nccl, &loader, "libnccl.so");
    note(c->runtime, &loader, "libcudart.so");
    note(c->driver, &loader, "libcuda.so");
    return 0;
}
