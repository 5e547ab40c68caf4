/* A malloc that is preloaded and looks names up inside: the next malloc, and
 * some that the recorder has to tell apart. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static _Thread_local int inside;

void *malloc(size_t size)
{
    static _Atomic(void *) next;
    static char early[1 << 16];
    static _Atomic size_t used;
    if (inside) { /* dlsym itself wants memory */
        size_t at = used;
        while (!__atomic_compare_exchange_n((size_t *)&used, &at,
                                            at + ((size + 15) & ~(size_t)15), 0,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        return at + size <= sizeof(early) ? early + at : NULL;
    }
    inside = 1;
    if (!next)
        next = dlsym(RTLD_NEXT, "malloc");
    dlsym(RTLD_DEFAULT, "ncclGetVersion");
    dlsym(RTLD_DEFAULT, "cudaMalloc");
    inside = 0;
    return ((void *(*)(size_t))(uintptr_t)next)(size);
}

void free(void *memory)
{
    (void)memory; /* a short program */
}
