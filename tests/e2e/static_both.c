/*
 * One NCCL in the program, one that it opens: static_both LIBRARY. Each has a
 * communicator of all ranks; calls of both take turns, of sizes that tell them
 * apart: odd ones are the program's own.
 */
#include <dlfcn.h>
#include <string.h>

#include "fabric_cases.h"

static void *library;

typedef void function(void);

static function *opened(const char *name)
{
    void *symbol = dlsym(library, name);
    function *is;

    expect(symbol != NULL, name);
    memcpy(&is, &symbol, sizeof(is));
    return is;
}

/* The call NAME of the NCCL that was opened. */
#define OPENED(name_) ((__typeof__(&name_))opened(#name_))

static ncclComm_t other_world(struct test *t)
{
    ncclUniqueId id = {{0}};
    ncclComm_t comm;

    if (!t->job.rank)
        check_nccl(OPENED(ncclGetUniqueId)(&id), "ncclGetUniqueId");
    id = pass_id(t, id);
    check_nccl(OPENED(ncclCommInitRank)(&comm, t->job.world, id, t->job.rank),
               "ncclCommInitRank");
    return comm;
}

static void case_both(struct test *t)
{
    ncclComm_t other = other_world(t);

    for (size_t i = 1; i <= 20; i += 2) {
        check_nccl(ncclAllReduce(t->d, t->d, i, ncclInt32, ncclSum, t->world,
                                 t->stream),
                   "its own");
        check_nccl(OPENED(ncclAllReduce)(t->d, t->d, i + 1, ncclInt32, ncclSum,
                                         other, t->stream),
                   "the other");
    }
    sync(t);
    check_nccl(OPENED(ncclCommDestroy)(other), "ncclCommDestroy");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"both", case_both}};
    char name[] = "both", *arguments[] = {argv[0], name, NULL};

    expect(argc == 2, "usage: static_both LIBRARY");
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    expect(library != NULL, "dlopen");
    return run_cases(2, arguments, cases, 1);
}
