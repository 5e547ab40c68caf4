/*
 * A program that believes nothing: it asks dlsym for every public name of NCCL
 * in every way, prints what it hears, and calls what it gets. Built three
 * ways: linked with NCCL (PROBE_LINKED), not linked, and as a module that
 * links it, for `probe module FILE` to open.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commtrace/nccl_abi.h"

/* Every row, under both its names, and some that no NCCL has. */
static const char *const names[] = {
#define OP(id_, name_, fn_, ...) #fn_, "p" #fn_,
#define COMM(fn_, ...) #fn_, "p" #fn_,
#define PASS(fn_, ...) #fn_, "p" #fn_,
#include "commtrace/nccl_ops.def"
    "ncclFrobnicate", "ncclAllReduce_v2", "ncclAllreduce", "nccl",   "dlsym",
    "dlvsym",         "sqlite3_open",     "cuInit",        "strlen",
};

#define NAMES (sizeof(names) / sizeof(names[0]))

struct way {
    const char *name;
    void *handle;
};

static void ask(const char *when, const struct way *way)
{
    for (size_t i = 0; i < NAMES; i++) {
        dlerror();
        void *found = dlsym(way->handle, names[i]);
        const char *error = dlerror();
        printf("%s %s %s %s %s\n", when, way->name, names[i],
               found ? "found" : "NULL", error ? error : "-");
    }
}

static void *get(const struct way *way, const char *name)
{
    void *found = dlsym(way->handle, name);
    dlerror();
    return found;
}

/* Declares f as what the table says and gets it. */
#define GET(f_, way_, name_, ret_, params_)   \
    ret_(*f_) params_;                        \
    do {                                      \
        void *found_ = get(way_, name_);      \
        memcpy(&f_, &found_, sizeof(found_)); \
    } while (0)

static void use_newer(const struct way *way, ncclComm_t comm, size_t count)
{
    static char from[65536], to[65536];
    GET(all_to_all, way, "ncclAlltoAll", ncclResult_t,
        (const void *, void *, size_t, ncclDataType_t, ncclComm_t,
         cudaStream_t));
    GET(send, way, "ncclSend", ncclResult_t,
        (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
    GET(recv, way, "ncclRecv", ncclResult_t,
        (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
    GET(group_start, way, "ncclGroupStart", ncclResult_t, (void));
    GET(group_end, way, "ncclGroupEnd", ncclResult_t, (void));
    if (all_to_all)
        printf("alltoall %d\n", all_to_all(from, to, count, 0, comm, NULL));
    if (!send || !recv)
        return;
    printf("start %d\n", group_start());
    printf("send %d\n", send(from, count, 0, 0, comm, NULL));
    printf("recv %d\n", recv(to, count, 0, 0, comm, NULL));
    printf("end %d\n", group_end());
}

/* One communicator of one rank, and count bytes through each op. */
static void use(const struct way *way, size_t count)
{
    static char from[65536], to[65536];
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    int version = 0;
    GET(get_version, way, "ncclGetVersion", ncclResult_t, (int *));
    GET(error_string, way, "ncclGetErrorString", const char *, (ncclResult_t));
    GET(get_id, way, "ncclGetUniqueId", ncclResult_t, (ncclUniqueId *));
    GET(init, way, "ncclCommInitRank", ncclResult_t,
        (ncclComm_t *, int, ncclUniqueId, int));
    GET(bcast, way, "ncclBcast", ncclResult_t,
        (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
    GET(all_reduce, way, "ncclAllReduce", ncclResult_t,
        (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
         cudaStream_t));
    GET(destroy, way, "ncclCommDestroy", ncclResult_t, (ncclComm_t));
    if (!get_version)
        return;
    printf("version %d", get_version(&version));
    printf(" %d\n", version);
    printf("%s\n", error_string(ncclInvalidUsage));
    printf("id %d\n", get_id(&id));
    printf("init %d\n", init(&comm, 1, id, 0));
    from[0] = (char)count;
    printf("bcast %d\n", bcast(from, count, 0, 0, comm, NULL));
    printf("all_reduce %d\n", all_reduce(from, to, count, 0, 0, comm, NULL));
    printf("no communicator %d\n",
           all_reduce(from, to, count, 0, 0, NULL, NULL));
    use_newer(way, comm, count);
    printf("destroy %d", destroy(comm));
    printf(", byte %d\n", to[0]);
}

static void probe(const char *when, void *nccl, size_t *count)
{
    void *self = dlopen(NULL, RTLD_LAZY);
    struct way ways[] = {{"default", RTLD_DEFAULT},
                         {"next", RTLD_NEXT},
                         {"self", self},
                         {"handle", nccl}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (!ways[i].handle && i == 3)
            continue;
        ask(when, &ways[i]);
        use(&ways[i], ++*count);
    }
    dlclose(self);
}

static void *open_nccl(int flags)
{
    void *nccl = dlopen("libnccl.so.2", flags);

    if (!nccl) {
        fprintf(stderr, "error: %s\n", dlerror());
        exit(2);
    }
    return nccl;
}

void probe_module(void);
__attribute__((visibility("default"))) void probe_module(void)
{
    size_t count = 100;

    probe("module", open_nccl(RTLD_LAZY | RTLD_NOLOAD), &count);
}

#ifndef PROBE_MODULE
static void open_module(const char *file)
{
    void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void *found = module ? dlsym(module, "probe_module") : NULL;
    void (*run)(void);

    if (!found) {
        fprintf(stderr, "error: %s\n", dlerror());
        exit(2);
    }
    memcpy(&run, &found, sizeof(found));
    run();
}

#ifdef PROBE_LINKED
extern ncclResult_t ncclGetVersion(int *version);

/* Keeps the library needed, whatever the linker thinks. */
static int is_linked(void)
{
    int version;
    return ncclGetVersion(&version) == ncclSuccess;
}
#else
static int is_linked(void)
{
    return 0;
}
#endif

int main(int argc, char **argv)
{
    size_t count = 0;

    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (argc == 3)
        open_module(argv[2]);
    else
        probe("before", NULL, &count);
    probe("local", open_nccl(RTLD_NOW | RTLD_LOCAL), &count);
    if (!is_linked())
        probe("global", open_nccl(RTLD_NOW | RTLD_GLOBAL), &count);
    return 0;
}
#endif
