#include "symbols/symbols.h"

#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/elf_file.h"
#include "symbols/functions.h"
#include "symbols/lines.h"
#include "trace/arena.h"

struct module {
    const char *path, *build_id; /* as recorded; build_id "": none */
    const char *why;             /* why it names nothing; NULL: it does */
    struct ct_elf_file file, debug;
    struct ct_functions functions;
    Dwarf *dwarf; /* NULL: no debug information */
};

struct ct_symbols {
    struct ct_arena *arena;
    const char *debug_dir;
    struct module *modules;
    int n, capacity, last;
};

struct ct_symbols *ct_symbols_new(struct ct_arena *arena, const char *debug_dir)
{
    struct ct_symbols *symbols = calloc(1, sizeof *symbols);

    if (!symbols)
        return NULL;
    symbols->arena = arena;
    symbols->debug_dir = debug_dir ? debug_dir : "/usr/lib/debug";
    return symbols;
}

void ct_symbols_free(struct ct_symbols *symbols)
{
    if (!symbols)
        return;
    for (int i = 0; i < symbols->n; i++) {
        struct module *module = &symbols->modules[i];

        dwarf_end(module->dwarf);
        ct_elf_close(&module->debug);
        ct_elf_close(&module->file);
        free(module->functions.of);
    }
    free(symbols->modules);
    free(symbols);
}

static void open_module(struct ct_symbols *symbols, struct module *module)
{
    module->debug.fd = -1;
    if (*module->path != '/') {
        module->file.fd = -1;
        module->why = "no file";
    } else if (!ct_elf_open(&module->file, module->path)) {
        module->why = "cannot be read here";
    } else if (strcmp(module->file.build_id, module->build_id) != 0) {
        module->why = "changed since";
    } else {
        if (ct_elf_open_debug(&module->debug, &module->file, module->path,
                              symbols->debug_dir))
            ct_functions_add(&module->functions, module->debug.elf,
                             symbols->arena);
        ct_functions_add(&module->functions, module->file.elf, symbols->arena);
        ct_functions_sort(&module->functions);
        module->dwarf = dwarf_begin_elf(module->debug.elf ? module->debug.elf
                                                          : module->file.elf,
                                        DWARF_C_READ, NULL);
    }
}

static bool is_module(const struct module *module, const char *path,
                      const char *build_id)
{
    return !strcmp(module->path, path) && !strcmp(module->build_id, build_id);
}

static struct module *find_module(struct ct_symbols *symbols, const char *path,
                                  const char *build_id)
{
    struct module *module;

    if (symbols->last < symbols->n &&
        is_module(&symbols->modules[symbols->last], path, build_id))
        return &symbols->modules[symbols->last];
    for (int i = 0; i < symbols->n; i++)
        if (is_module(&symbols->modules[i], path, build_id))
            return &symbols->modules[symbols->last = i];
    symbols->modules = ct_grow(symbols->modules, &symbols->capacity, symbols->n,
                               sizeof *symbols->modules);
    module = &symbols->modules[symbols->last = symbols->n++];
    *module = (struct module){.path = path, .build_id = build_id};
    open_module(symbols, module);
    return module;
}

static const char *copy(struct ct_symbols *symbols, const char *text)
{
    return text ? ct_arena_text(symbols->arena, text, strnlen(text, 4096))
                : NULL;
}

int ct_symbols_at(struct ct_symbols *symbols, const char *path,
                  const char *build_id, uint64_t offset,
                  struct ct_place *places, int most, const char **why)
{
    struct module *module =
        find_module(symbols, path, build_id ? build_id : "");
    uint64_t address = offset - 1; /* of the call, not of what follows it */
    const struct ct_function *function =
        ct_functions_find(&module->functions, address);
    struct ct_line lines[16];
    int n = 0;

    *why = module->why;
    if (module->dwarf)
        n = ct_lines_at(module->dwarf, address, lines, most < 16 ? most : 16);
    for (int i = 0; i < n; i++)
        places[i] = (struct ct_place){
            .function = ct_demangle(symbols->arena, lines[i].function),
            .file = copy(symbols, lines[i].file),
            .line = lines[i].line,
            .inlined = lines[i].inlined,
        };
    if (!n)
        places[n++] = (struct ct_place){0};
    if (!places[n - 1].function && function)
        places[n - 1].function = ct_demangle(symbols->arena, function->name);
    return n;
}
