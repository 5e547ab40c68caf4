/*
 * Which of its own public functions each release calls by their names, so that
 * whoever stands in front of them sees it: this program does, and counts. And
 * what else a release is told apart by: data types, operators, configurations.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commtrace/nccl_abi.h"

static int inner[4];
enum { BROADCAST, GET_ID, GROUP_START, ASYNC_ERROR };

/* The library's function, behind ours. */
#define REAL(fn_, ret_, params_)                 \
    ret_(*real_) params_;                        \
    do {                                         \
        void *found_ = dlsym(RTLD_NEXT, #fn_);   \
        memcpy(&real_, &found_, sizeof(found_)); \
    } while (0)

#define IN_FRONT(which_, fn_, params_, args_)                       \
    ncclResult_t fn_ params_;                                       \
    __attribute__((visibility("default"))) ncclResult_t fn_ params_ \
    {                                                               \
        REAL(fn_, ncclResult_t, params_);                           \
        inner[which_]++;                                            \
        return real_ args_;                                         \
    }

IN_FRONT(BROADCAST, ncclBroadcast,
         (const void *from, void *to, size_t n, ncclDataType_t type, int root,
          ncclComm_t comm, cudaStream_t stream),
         (from, to, n, type, root, comm, stream))
IN_FRONT(GET_ID, ncclGetUniqueId, (ncclUniqueId * id), (id))
IN_FRONT(GROUP_START, ncclGroupStart, (void), ())
IN_FRONT(ASYNC_ERROR, ncclCommGetAsyncError,
         (ncclComm_t comm, ncclResult_t *state), (comm, state))

static int version;

static void check(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "error: %d: %s: %d %d %d %d\n", version, what, inner[0],
            inner[1], inner[2], inner[3]);
    exit(1);
}

/* What was counted since the last question. */
static int counted(int which)
{
    int n = inner[which];

    memset(inner, 0, sizeof(inner));
    return n;
}

static ncclComm_t init_all(void)
{
    REAL(ncclCommInitAll, ncclResult_t, (ncclComm_t *, int, const int *));
    ncclComm_t comm = NULL;

    check(real_(&comm, 1, NULL) == ncclSuccess, "CommInitAll");
    check(inner[GET_ID] == (version >= 2506), "id of CommInitAll");
    check(counted(GROUP_START) == (version >= 2506 && version < 22500),
          "group of CommInitAll");
    return comm;
}

static void broadcast(ncclComm_t comm)
{
    REAL(ncclBcast, ncclResult_t,
         (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
    char buffer[8] = "";

    check(real_(buffer, 8, 0, 0, comm, NULL) == ncclSuccess, "Bcast");
    check(counted(BROADCAST) == 1, "Broadcast of Bcast");
}

static void send(ncclComm_t comm)
{
    REAL(ncclSend, ncclResult_t,
         (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
    char buffer[8] = "";

    if (!real_)
        return;
    check(real_(buffer, 8, 0, 7, comm, NULL) == ncclInvalidArgument,
          "Send to nobody");
    check(counted(GROUP_START) == (version < 22403), "group of Send");
}

static int takes(ncclComm_t comm, ncclDataType_t type, ncclRedOp_t op)
{
    REAL(ncclAllReduce, ncclResult_t,
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
          cudaStream_t));
    char buffer[8] = "";

    return real_(buffer, buffer, 1, type, op, comm, NULL) == ncclSuccess;
}

static void types(ncclComm_t comm)
{
    enum { DOUBLE = 8, BFLOAT16 = 9, FLOAT8 = 11, NONE = 12, SUM = 0, AVG = 4 };

    check(takes(comm, DOUBLE, SUM) && !takes(comm, NONE, SUM), "types");
    check(takes(comm, BFLOAT16, SUM) == (version >= 21003), "bfloat16");
    check(takes(comm, FLOAT8, SUM) == (version >= 22403), "float8");
    check(takes(comm, DOUBLE, AVG) == (version >= 21003), "average");
    check(!takes(comm, DOUBLE, AVG + 1), "an operator of nobody");
    counted(0);
}

static void destroy(ncclComm_t comm)
{
    REAL(ncclCommDestroy, ncclResult_t, (ncclComm_t));

    check(real_(comm) == ncclSuccess, "CommDestroy");
}

/* A communicator of its own that does not block. */
static void configured(void)
{
    REAL(ncclCommInitRankConfig, ncclResult_t,
         (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *));
    struct ct_nccl_config config = {sizeof(config),
                                    CT_NCCL_CONFIG_MAGIC,
                                    22700,
                                    0,
                                    -1,
                                    -1,
                                    -1,
                                    NULL,
                                    0,
                                    0,
                                    NULL};
    ncclResult_t state = ncclInProgress;
    ncclComm_t comm = NULL;
    ncclUniqueId id;

    if (!real_)
        return;
    ncclGetUniqueId(&id);
    config.size = offsetof(struct ct_nccl_config, magic);
    check(real_(&comm, 1, id, 0, &config) == ncclInvalidArgument, "no magic");
    config.size = sizeof(config) + 4096; /* of a release to come */
    check(real_(&comm, 1, id, 0, &config) <= ncclInProgress, "a large config");
    while (state == ncclInProgress)
        ncclCommGetAsyncError(comm, &state);
    check(state == ncclSuccess, "creation");
    counted(0);
    check(takes(comm, 0, 0) && counted(ASYNC_ERROR) == 1,
          "state of a communicator that does not block");
    destroy(comm);
}

int main(void)
{
    REAL(ncclGetVersion, ncclResult_t, (int *));
    ncclComm_t comm;

    check(real_(&version) == ncclSuccess, "GetVersion");
    comm = init_all();
    broadcast(comm);
    send(comm);
    types(comm);
    configured();
    destroy(comm);
    printf("%d as it should be\n", version);
    return 0;
}
