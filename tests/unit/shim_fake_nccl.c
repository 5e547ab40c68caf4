/*
 * An NCCL that does nothing, for tests of the shim alone: every operation
 * succeeds at once, communicators know their size and rank. Broadcast goes
 * through the exported name of another call, as in the real library. A call
 * for BLOCKS elements waits for a signal.
 */
#include "commtrace/nccl_abi.h"
#include "commtrace/profiler_abi.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 0x7b10cb10 };

struct ncclComm {
    int nranks;
    int rank;
    int device;
    int splits;
};

#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    ncclResult_t fn_ params_;
#define COMM(fn_, since_, ret_, params_, args_) ret_ fn_ params_;
#include "commtrace/nccl_ops.def"
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);

/* A type that calls the function at sendbuff, which no NCCL does: so that it
 * may throw through us and whoever is in front of us. */
enum { CALLS_BACK = 64 };

static inline void call_back(const void *address)
{
    void (*function)(void);
    memcpy(&function, &address, sizeof(function));
    function();
}

/* A type out of range is the way to ask for an error. */
static ncclResult_t answer(ncclComm_t comm, int type)
{
    return comm && type < 100 ? ncclSuccess : ncclInvalidArgument;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ncclBcast ncclBcast_unused
#define OP(id_, name_, fn_, since_, base_, class_, size_, wire_, count_, \
           type_, redop_, peer_, send_, recv_, params_, args_)           \
    ncclResult_t fn_ params_;                                            \
    ncclResult_t fn_ params_                                             \
    {                                                                    \
        if ((size_t)(count_) == BLOCKS)                                  \
            pause();                                                     \
        if ((type_) == CALLS_BACK)                                       \
            call_back(send_);                                            \
        return answer(comm, type_);                                      \
    }
#include "commtrace/nccl_ops.def"
#undef ncclBcast
#pragma GCC diagnostic pop

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

/* Called as no NCCL is, by a name of ours: as if a thread of the library's own
 * began here. */
ncclResult_t shim_fake_thread(ncclComm_t comm);

ncclResult_t shim_fake_thread(ncclComm_t comm)
{
    static float data[8];
    return ncclAllReduce(data, data, 8, 7, 0, comm, NULL);
}

static ncclResult_t make(ncclComm_t *comm, int nranks, int rank)
{
    *comm = calloc(1, sizeof(**comm));
    if (!*comm)
        return ncclSystemError;
    (*comm)->nranks = nranks;
    (*comm)->rank = rank;
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = 23203;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    for (size_t i = 0; i < sizeof(id->internal); i++)
        id->internal[i] = (char)rand();
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                              int rank)
{
    (void)commId;
    return make(comm, nranks, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId commId, int rank,
                                    ncclConfig_t *config)
{
    (void)commId, (void)config;
    return make(comm, nranks, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    for (int i = 0; i < ndev; i++) {
        if (make(&comm[i], ndev, i) != ncclSuccess)
            return ncclSystemError;
        comm[i]->device = devlist ? devlist[i] : i;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    (void)key, (void)config;
    *newcomm = NULL;
    return color < 0 ? ncclSuccess : make(newcomm, comm->nranks, comm->rank);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return answer(comm, 0);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    *asyncError = ncclSuccess;
    return answer(comm, 0);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
                              void **handle)
{
    (void)size;
    *handle = buff;
    return answer(comm, 0);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    (void)handle;
    return answer(comm, 0);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm ? comm->nranks : 0;
    return answer(comm, 0);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm ? comm->rank : 0;
    return answer(comm, 0);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm ? comm->device : 0;
    return answer(comm, 0);
}

ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    return ncclSuccess;
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    (void)simInfo;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks,
                                      int myrank, int nId,
                                      ncclUniqueId *commIds,
                                      ncclConfig_t *config)
{
    (void)nId, (void)commIds, (void)config;
    return make(newcomm, nranks, myrank);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
                            int excludeRanksCount, ncclComm_t *newcomm,
                            ncclConfig_t *config, int shrinkFlags)
{
    (void)excludeRanksList, (void)config, (void)shrinkFlags;
    return make(newcomm, comm->nranks - excludeRanksCount, 0);
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
    ncclGetUniqueId(uniqueId);
    return answer(comm, 0);
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks,
                          const ncclUniqueId *uniqueId, int rank,
                          ncclComm_t *newcomm, ncclConfig_t *config)
{
    (void)uniqueId, (void)config;
    return make(newcomm, nRanks, comm ? comm->rank : rank);
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    (void)revokeFlags;
    return answer(comm, 0);
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    (void)flags;
    return answer(comm, 0);
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
    return answer(comm, 0);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                    ncclWindow_t *win, int winFlags)
{
    (void)size, (void)winFlags;
    *win = buff;
    return answer(comm, 0);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    (void)win;
    return answer(comm, 0);
}

/* A profiler plugin hears of a communicator from NCCL's own code. */
int fake_tell_v4(const struct ct_profiler_v4 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes);
int fake_tell_v4(const struct ct_profiler_v4 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes)
{
    volatile int result =
        plugin->init(context, mask, NULL, hash, nodes, 2, 0, NULL);
    return result;
}

int fake_tell_v5(const struct ct_profiler_v5 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes);
int fake_tell_v5(const struct ct_profiler_v5 *plugin, void **context, int *mask,
                 uint64_t hash, int nodes)
{
    volatile int result =
        plugin->init(context, hash, mask, NULL, nodes, 2, 0, NULL);
    return result;
}

/* Not NCCL's, but there is no other library behind the unit tests: a graph is
 * whatever it is said to be. */
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphLaunch(void *exec, void *stream)
{
    (void)stream;
    return exec ? 0 : 1;
}
