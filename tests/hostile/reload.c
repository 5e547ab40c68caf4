/*
 * A program without NCCL that loads an extension which brings it in, closes
 * that and loads it again, each time to another address.
 * reload WAY MODULE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Takes the place where NCCL was, if it has gone. */
static void occupy(void *address)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = (char *)address - (size_t)address % page;
    mmap(at, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
         -1, 0);
}

static void use(const char *module)
{
    void *handle = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    if (!handle || !nccl) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void *found = dlsym(handle, "module_use");
    int (*run)(void);
    memcpy(&run, &found, sizeof(run));
    if (!found || run() != 0)
        exit(1);
    void *where = dlsym(nccl, "ncclBcast");
    dlclose(nccl);
    dlclose(handle);
    occupy(where);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc > 2 && i < 3; i++)
        use(argv[2]);
    puts("done");
    return 0;
}
