#include "symbols/functions.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"

#define MOST_FUNCTIONS (1 << 24)
#define MOST_NAME 8192

static void add_symbol(struct ct_functions *functions, const GElf_Sym *symbol,
                       const char *name, struct ct_arena *arena)
{
    struct ct_function *function;
    int type = GELF_ST_TYPE(symbol->st_info);

    if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
        symbol->st_shndx == SHN_UNDEF || !name || !*name ||
        functions->n >= MOST_FUNCTIONS)
        return;
    functions->of = ct_grow(functions->of, &functions->capacity, functions->n,
                            sizeof *functions->of);
    function = &functions->of[functions->n++];
    function->start = symbol->st_value;
    function->size = symbol->st_size;
    function->name = ct_arena_text(arena, name, strnlen(name, MOST_NAME));
}

void ct_functions_add(struct ct_functions *functions, struct Elf *elf,
                      struct ct_arena *arena)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        Elf_Data *data;
        size_t n;

        if (!gelf_getshdr(section, &header) ||
            (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
            !(data = elf_getdata(section, NULL)) || !data->d_buf)
            continue;
        n = data->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
        for (size_t i = 0; i < n && i < MOST_FUNCTIONS; i++) {
            GElf_Sym symbol;

            if (gelf_getsym(data, (int)i, &symbol))
                add_symbol(functions, &symbol,
                           elf_strptr(elf, header.sh_link, symbol.st_name),
                           arena);
        }
    }
}

/* Of several names for one place the same each time: the longest function,
 * then the first by name. */
static int compare(const void *a, const void *b)
{
    const struct ct_function *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return strcmp(y->name, x->name);
}

void ct_functions_sort(struct ct_functions *functions)
{
    if (functions->n)
        qsort(functions->of, (size_t)functions->n, sizeof *functions->of,
              compare);
}

const struct ct_function *
ct_functions_find(const struct ct_functions *functions, uint64_t address)
{
    const struct ct_function *found;
    int low = 0, high = functions->n;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (functions->of[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    found = &functions->of[low - 1];
    return found->size && address - found->start >= found->size ? NULL : found;
}
