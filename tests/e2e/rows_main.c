/* rows_main [MODULE [LIBRARY]]: runs rows_calls.c, linked here or in a module
 * that is opened RTLD_LOCAL. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifdef ROWS_IN_MODULE
typedef int run_function(const char *);

int main(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *found = module ? dlsym(module, "rows_run") : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return ((run_function *)(uintptr_t)found)(NULL);
}
#else
int rows_run(const char *library);

int main(int argc, char **argv)
{
    return rows_run(argc > 1 ? argv[1] : NULL);
}
#endif
