#include "symbols/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

/* By the table of address ranges, else, since not all compilers write one, by
 * trying unit after unit. */
static Dwarf_Die *find_unit(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *die)
{
    Dwarf_Off offset = 0, next;
    size_t header;

    if (dwarf_addrdie(dwarf, address, die))
        return die;
    while (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
        if (dwarf_offdie(dwarf, offset + header, die) &&
            dwarf_haspc(die, address) > 0)
            return die;
        if (next <= offset)
            break;
        offset = next;
    }
    return NULL;
}

static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;

    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    return name ? name : dwarf_diename(die);
}

static int number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    return dwarf_attr(die, name, &attribute) &&
                   !dwarf_formudata(&attribute, &value) && value <= 1 << 30
               ? (int)value
               : 0;
}

/* Where the function that was inlined as die is called from. */
static void read_call(Dwarf_Die *unit, Dwarf_Die *die, struct ct_line *line)
{
    Dwarf_Files *files;
    size_t n, file = (size_t)number_of(die, DW_AT_call_file);

    line->line = number_of(die, DW_AT_call_line);
    line->file = NULL;
    if (!dwarf_getsrcfiles(unit, &files, &n) && file < n)
        line->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void read_place(Dwarf_Die *unit, Dwarf_Addr address,
                       struct ct_line *line)
{
    Dwarf_Line *source = dwarf_getsrc_die(unit, address);

    if (!source || dwarf_lineno(source, &line->line))
        return;
    line->file = dwarf_linesrc(source, NULL, NULL);
}

int ct_lines_at(struct Dwarf *dwarf, uint64_t address, struct ct_line *lines,
                int most)
{
    struct ct_line place = {0};
    Dwarf_Die die, *unit = find_unit(dwarf, address, &die), *scopes = NULL;
    int n = 0, nscopes;

    if (!unit)
        return 0;
    read_place(unit, address, &place);
    nscopes = dwarf_getscopes(unit, address, &scopes);
    for (int i = 0; i < nscopes && n < most; i++) {
        int tag = dwarf_tag(&scopes[i]);

        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        place.function = name_of(&scopes[i]);
        place.inlined = tag == DW_TAG_inlined_subroutine;
        lines[n++] = place;
        if (!place.inlined)
            break;
        read_call(unit, &scopes[i], &place);
    }
    free(scopes);
    if (!n && place.file)
        lines[n++] = place;
    return n;
}
