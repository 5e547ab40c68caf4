/* Look-ups as they are made from the object that includes this: what comes
 * back is called, and says who it is. */
#ifndef WAYS_LOOK_H
#define WAYS_LOOK_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline void ways_look(const char *who, const char *how, void *handle,
                             const char *name)
{
    dlerror();
    void *found = dlsym(handle, name);
    const char *error = dlerror();
    printf("%s %s %s: ", who, how, name);
    if (!found || error) {
        printf("%s, %s\n", found ? "found" : "NULL",
               error ? error : "no error");
        return;
    }
    if (!strcmp(name, "ncclGroupStart") || !strcmp(name, "ncclGroupEnd"))
        printf("%d\n", ((int (*)(void))(uintptr_t)found)());
    else if (!strcmp(name, "ncclGroupSimulateEnd"))
        printf("%d\n", ((int (*)(void *))(uintptr_t)found)(NULL));
    else
        printf("found\n");
}

/* Names of ours, one of NCCL's that passes, others that begin alike. */
static inline void ways_look_all(const char *who, const char *how, void *handle)
{
    static const char *const names[] = {"ncclGroupStart",
                                        "ncclGroupSimulateEnd",
                                        "ncclGetVersion",
                                        "ncclGroup",
                                        "ncclGroupStartX",
                                        "nccl",
                                        "cuGraphLaunch",
                                        "cuGraph",
                                        "cudaGraphLaunch_ptsz",
                                        "cudaGraphLaunch",
                                        "malloc",
                                        "no_such_name",
                                        "n",
                                        "c",
                                        ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        ways_look(who, how, handle, names[i]);
}

#endif
