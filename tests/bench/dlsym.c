/*
 * What a look-up by dlsym costs for a name that is none of ours, beside the C
 * library's own dlsym in the same process: a name like any other, one that
 * begins like CUDA's and is nowhere, and a function of NCCL that is not hooked.
 */
#include "bench.h"

#include <dlfcn.h>
#include <stdint.h>

enum { BLOCKS = 200, LOOKUPS = 500 };

typedef void *look_up(void *handle, const char *name);

static double block(look_up *ask, void *handle, const char *name)
{
    double start = bench_ns();
    for (int i = 0; i < LOOKUPS; i++)
        ask(handle, name);
    return (bench_ns() - start) / LOOKUPS;
}

static int compare(const char *what, look_up *own, void *handle,
                   const char *name)
{
    static double ours[BLOCKS], libc[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        libc[i] = block(own, handle, name);
        ours[i] = block(dlsym, handle, name);
    }
    return bench_report(what, "ns", bench_median(ours, BLOCKS),
                        bench_median(libc, BLOCKS), AT_MOST, 1.2);
}

int main(int argc, char **argv)
{
    (void)argc;
    bench_preload(argv);
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    void *nccl = dlopen("libnccl.so.2", RTLD_LAZY);
    look_up *own =
        libc ? (look_up *)(uintptr_t)dlsym(libc, "dlsym") : (look_up *)NULL;
    if (!own || !nccl || own == dlsym)
        return 2;
    int failed = compare("dlsym", own, RTLD_DEFAULT, "malloc");
    failed |= compare("dlsym_cuda", own, RTLD_DEFAULT, "cuMemAllocAsync");
    failed |= compare("dlsym_nccl", own, nccl, "ncclGetVersion");
    return failed;
}
