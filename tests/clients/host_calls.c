/*
 * What NCCL does on the host alone, on a machine without a GPU: every result,
 * and what it says. `host_calls linked` calls it as it is linked, `host_calls
 * handle` through dlsym on a handle.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commtrace/nccl_abi.h"

/* CALL(fn, ret, params): what is asked of every NCCL since 2.19. */
#define CALLS(CALL)                                                            \
    CALL(ncclGetVersion, ncclResult_t, (int *))                                \
    CALL(ncclGetUniqueId, ncclResult_t, (ncclUniqueId *))                      \
    CALL(ncclGetErrorString, const char *, (ncclResult_t))                     \
    CALL(ncclGetLastError, const char *, (ncclComm_t))                         \
    CALL(ncclCommInitRank, ncclResult_t,                                       \
         (ncclComm_t *, int, ncclUniqueId, int))                               \
    CALL(ncclCommInitRankConfig, ncclResult_t,                                 \
         (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))               \
    CALL(ncclCommInitAll, ncclResult_t, (ncclComm_t *, int, const int *))      \
    CALL(ncclCommSplit, ncclResult_t,                                          \
         (ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *))                 \
    CALL(ncclCommFinalize, ncclResult_t, (ncclComm_t))                         \
    CALL(ncclCommDestroy, ncclResult_t, (ncclComm_t))                          \
    CALL(ncclCommAbort, ncclResult_t, (ncclComm_t))                            \
    CALL(ncclCommGetAsyncError, ncclResult_t, (ncclComm_t, ncclResult_t *))    \
    CALL(ncclCommCount, ncclResult_t, (ncclComm_t, int *))                     \
    CALL(ncclCommCuDevice, ncclResult_t, (ncclComm_t, int *))                  \
    CALL(ncclCommUserRank, ncclResult_t, (ncclComm_t, int *))                  \
    CALL(ncclCommRegister, ncclResult_t,                                       \
         (ncclComm_t, void *, size_t, void **))                                \
    CALL(ncclMemFree, ncclResult_t, (void *))                                  \
    CALL(ncclGroupStart, ncclResult_t, (void))                                 \
    CALL(ncclGroupEnd, ncclResult_t, (void))                                   \
    CALL(ncclAllReduce, ncclResult_t,                                          \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,           \
          ncclComm_t, cudaStream_t))                                           \
    CALL(ncclBcast, ncclResult_t,                                              \
         (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))      \
    CALL(ncclReduce, ncclResult_t,                                             \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,      \
          ncclComm_t, cudaStream_t))                                           \
    CALL(ncclAllGather, ncclResult_t,                                          \
         (const void *, void *, size_t, ncclDataType_t, ncclComm_t,            \
          cudaStream_t))                                                       \
    CALL(ncclReduceScatter, ncclResult_t,                                      \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,           \
          ncclComm_t, cudaStream_t))                                           \
    CALL(                                                                      \
        ncclSend, ncclResult_t,                                                \
        (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)) \
    CALL(ncclRecv, ncclResult_t,                                               \
         (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))

#define DECLARE(fn_, ret_, params_) extern ret_ fn_ params_;
CALLS(DECLARE)

#define MEMBER(fn_, ret_, params_) ret_(*fn_) params_;
static struct {
    CALLS(MEMBER)
} nccl;

static void use_linked(void)
{
#define SET(fn_, ret_, params_) nccl.fn_ = fn_;
    CALLS(SET)
}

static void use_handle(void)
{
    void *handle = dlopen("libnccl.so.2", RTLD_NOW);
    void *found;
#define FIND(fn_, ret_, params_)            \
    found = dlsym(handle, #fn_);            \
    if (!found) {                           \
        fprintf(stderr, "%s\n", dlerror()); \
        exit(2);                            \
    }                                       \
    memcpy(&nccl.fn_, &found, sizeof(found));
    CALLS(FIND)
}

#define SAY(call_) printf("%s: %d\n", #call_, (int)nccl.call_)

static void ask(void)
{
    ncclUniqueId id;
    int version = 0;

    SAY(ncclGetVersion(&version));
    SAY(ncclGetVersion(NULL));
    printf("version %d\n", version);
    for (int i = -1; i < 10; i++)
        printf("%d: %s\n", i, nccl.ncclGetErrorString((ncclResult_t)i));
    SAY(ncclGetUniqueId(&id));
    SAY(ncclGetUniqueId(NULL));
    printf("last error: %s\n", nccl.ncclGetLastError(NULL));
}

static void create(void)
{
    struct ct_nccl_config config = {sizeof(config), 0, 22800, 1,   0, 0, 0,
                                    NULL,           0, 0,     NULL};
    ncclUniqueId id = {{0}};
    ncclComm_t comm = NULL, child = NULL;
    int devices[2] = {0, 0};

    SAY(ncclGetUniqueId(&id));
    SAY(ncclCommInitRank(NULL, 1, id, 0));
    SAY(ncclCommInitRank(&comm, 0, id, 0));
    SAY(ncclCommInitRank(&comm, 2, id, 2));
    SAY(ncclCommInitRank(&comm, 2, id, -1));
    SAY(ncclCommInitRank(&comm, 1, id, 0));
    printf("communicator %s\n", comm ? "set" : "NULL");
    comm = NULL;
    SAY(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    SAY(ncclCommInitAll(NULL, 1, NULL));
    SAY(ncclCommInitAll(&comm, 0, NULL));
    SAY(ncclCommInitAll(&comm, -1, NULL));
    SAY(ncclCommInitAll(&comm, 1, NULL));
    SAY(ncclCommInitAll(&comm, 2, devices));
    SAY(ncclCommSplit(NULL, 0, 0, &child, NULL));
    printf("last error: %s\n", nccl.ncclGetLastError(NULL));
}

static void end(void)
{
    ncclResult_t state = ncclSuccess;
    void *handle;
    int n;

    SAY(ncclCommCount(NULL, &n));
    SAY(ncclCommCuDevice(NULL, &n));
    SAY(ncclCommUserRank(NULL, &n));
    SAY(ncclCommGetAsyncError(NULL, &state));
    SAY(ncclCommRegister(NULL, &n, sizeof(n), &handle));
    SAY(ncclCommFinalize(NULL));
    SAY(ncclCommAbort(NULL));
    SAY(ncclCommDestroy(NULL));
    SAY(ncclMemFree(NULL));
}

static void communicate(void)
{
    char from[8] = "", to[8] = "";

    SAY(ncclAllReduce(from, to, 8, 0, 0, NULL, NULL));
    SAY(ncclBcast(from, 8, 0, 0, NULL, NULL));
    SAY(ncclReduce(from, to, 8, 0, 0, 0, NULL, NULL));
    SAY(ncclAllGather(from, to, 1, 0, NULL, NULL));
    SAY(ncclReduceScatter(from, to, 1, 0, 0, NULL, NULL));
    SAY(ncclSend(from, 8, 0, 1, NULL, NULL));
    SAY(ncclRecv(to, 8, 0, 1, NULL, NULL));
}

static void group(void)
{
    SAY(ncclGroupStart());
    SAY(ncclGroupEnd());
    SAY(ncclGroupEnd());
    SAY(ncclGroupStart());
    SAY(ncclGroupStart());
    SAY(ncclGroupEnd());
    SAY(ncclGroupEnd());
    SAY(ncclGroupStart());
    communicate();
    SAY(ncclGroupEnd());
    SAY(ncclGroupStart());
    create();
    SAY(ncclGroupEnd());
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "handle"))
        use_handle();
    else
        use_linked();
    ask();
    communicate();
    create();
    group();
    end();
    communicate();
    return 0;
}
