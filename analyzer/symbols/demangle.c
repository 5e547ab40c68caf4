#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "trace/arena.h"

/* Templates make names of any length; nobody reads on. */
#define MOST_MANGLED 8192
#define MOST_TEXT 1024

const char *ct_demangle(struct ct_arena *arena, const char *name)
{
    char *plain = NULL;
    const char *text;

    if (!name)
        return NULL;
    if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') &&
        strnlen(name, MOST_MANGLED) < MOST_MANGLED)
        plain = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
    text = plain ? plain : name;
    text = ct_arena_text(arena, text, strnlen(text, MOST_TEXT));
    free(plain);
    return text;
}
