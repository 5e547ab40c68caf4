/*
 * Somebody else's tool, preloaded too: it counts some calls of NCCL, also for
 * programs that look them up, and says at the end how many it has seen.
 */
#include "commtrace/nccl_abi.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef void *look_up_function(void *, const char *);
typedef ncclResult_t all_reduce_function(const void *, void *, size_t,
                                         ncclDataType_t, ncclRedOp_t,
                                         ncclComm_t, cudaStream_t);
typedef ncclResult_t group_function(void);

void *dlsym(void *, const char *);
all_reduce_function ncclAllReduce;
group_function ncclGroupEnd;

static _Atomic long all_reduces, groups;

/* The C library's: since 2.34 it is in libc itself. */
static look_up_function *look_up(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5",
                                           "GLIBC_2.17"};
    look_up_function *found = NULL;
    for (int i = 0; i < 3 && !found; i++) {
        void *address = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&found, &address, sizeof(found));
    }
    return found;
}

void *dlsym(void *handle, const char *name)
{
    void *mine = NULL;
    all_reduce_function *all_reduce = ncclAllReduce;
    group_function *group_end = ncclGroupEnd;
    if (!strcmp(name, "ncclAllReduce"))
        memcpy(&mine, &all_reduce, sizeof(mine));
    else if (!strcmp(name, "ncclGroupEnd"))
        memcpy(&mine, &group_end, sizeof(mine));
    return mine ? mine : look_up()(handle, name);
}

static void *next(const char *name)
{
    void *found = look_up()(RTLD_NEXT, name);
    void *nccl = found ? NULL : dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    return nccl ? look_up()(nccl, name) : found;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    all_reduce_function *real;
    void *found = next("ncclAllReduce");
    memcpy(&real, &found, sizeof(real));
    atomic_fetch_add(&all_reduces, 1);
    return real(from, to, n, type, op, comm, stream);
}

ncclResult_t ncclGroupEnd(void)
{
    group_function *real;
    void *found = next("ncclGroupEnd");
    memcpy(&real, &found, sizeof(real));
    atomic_fetch_add(&groups, 1);
    return real();
}

__attribute__((destructor)) static void say(void)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "tool: %ld, %ld\n",
                     atomic_load(&all_reduces), atomic_load(&groups));
    ssize_t written = write(2, line, (size_t)n);
    (void)written;
}
