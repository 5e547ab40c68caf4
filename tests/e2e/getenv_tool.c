/*
 * A getenv that the recorder may not call on its own thread: the program and
 * NCCL call setenv beside it. Not so what that thread loads, as the stand-ins.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

char *getenv(const char *name)
{
    static char *(*next)(const char *);
    char thread[16] = "";
    Dl_info caller;
    if (!next) {
        void *found = dlsym(RTLD_NEXT, "getenv");
        memcpy(&next, &found, sizeof(next));
    }
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    if (!strcmp(thread, "commtrace") &&
        dladdr(__builtin_return_address(0), &caller) && caller.dli_fname &&
        strstr(caller.dli_fname, "libcommtrace"))
        abort();
    return next(name);
}
