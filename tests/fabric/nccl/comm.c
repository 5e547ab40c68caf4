#include "nccl/comm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/hash.h"
#include "common/identity.h"
#include "nccl/api.h"
#include "nccl/group.h"
#include "nccl/redop.h"
#include "nccl/segment.h"

#define COMM_MAGIC UINT64_C(0x6661627269634e43)
#define CONFIG_MAGIC 0xcafebeefu

ncclResult_t comm_check(struct ncclComm *comm)
{
    if (!comm)
        return nccl_fail(ncclInvalidArgument, "communicator is NULL");
    if (comm->magic != COMM_MAGIC)
        return nccl_fail(ncclInvalidArgument,
                         "communicator is corrupted or destroyed");
    return ncclSuccess;
}

CUresult comm_enter(struct ncclComm *comm)
{
    CUcontext ctx;
    CUresult rc = cuDevicePrimaryCtxRetain(&ctx, comm->device);

    if (rc)
        return rc;
    rc = cuCtxPushCurrent(ctx);
    cuDevicePrimaryCtxRelease(comm->device);
    return rc;
}

void comm_leave(void)
{
    cuCtxPopCurrent(NULL);
}

static CUresult create_event(struct ncclComm *comm)
{
    CUresult rc = comm_enter(comm);

    if (rc)
        return rc;
    rc = cuEventCreate(&comm->issued, CU_EVENT_DISABLE_TIMING);
    comm_leave();
    return rc;
}

struct ncclComm *comm_attach(uint64_t id, int nranks, int rank, int device,
                             uint64_t host_id)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));

    if (!comm)
        return NULL;
    comm->magic = COMM_MAGIC;
    comm->id = id;
    comm->rank = rank;
    comm->nranks = nranks;
    comm->device = device;
    comm->host_id = host_id;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->drained, NULL);
    comm->link_free_ns = calloc((size_t)nranks, sizeof(int64_t));
    comm->messages = calloc((size_t)nranks, sizeof(uint64_t));
    if (!comm->link_free_ns || !comm->messages || create_event(comm))
        goto err_free;
    comm->segment = segment_attach(id, nranks, rank, host_id);
    if (!comm->segment) {
        nccl_fail(ncclSystemError, "shared memory of %d ranks: %s", nranks,
                  strerror(errno));
        goto err_free;
    }
    return comm;

err_free:
    comm_free(comm);
    return NULL;
}

void comm_await_all(struct ncclComm *comm)
{
    struct seat *seat = segment_seat(comm->segment, comm->rank);

    for (;;) {
        uint32_t heard = seat_listen(seat);

        if (atomic_load(&comm->segment->attached) >= comm->nranks)
            return;
        seat_sleep(seat, heard);
    }
}

void comm_drain(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->pending)
        pthread_cond_wait(&comm->drained, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

void comm_free(struct ncclComm *comm)
{
    if (comm->segment)
        segment_detach(comm->segment);
    if (comm->issued)
        cuEventDestroy(comm->issued);
    pthread_cond_destroy(&comm->drained);
    pthread_mutex_destroy(&comm->lock);
    free(comm->premul);
    free(comm->messages);
    free(comm->link_free_ns);
    comm->magic = 0;
    free(comm);
}

/* Like NCCL's: a random magic, the root's address, zeros. */
NCCL_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId))
{
    struct {
        uint64_t magic;
        struct sockaddr_in address;
    } id = {0};
    unsigned char noise[10];

    if (!uniqueId)
        return nccl_fail(ncclInvalidArgument, "GetUniqueId: NULL");
    if (getrandom(noise, sizeof(noise), 0) != sizeof(noise))
        return nccl_fail(ncclSystemError, "GetUniqueId: no random numbers");
    segment_sweep();
    memcpy(&id.magic, noise, sizeof(id.magic));
    id.address.sin_family = AF_INET;
    id.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&id.address.sin_port, noise + sizeof(id.magic), 2);
    memset(uniqueId, 0, sizeof(*uniqueId));
    memcpy(uniqueId, &id, sizeof(id));
    return ncclSuccess;
}

/* The caller's current device, as in NCCL. */
static CUresult current_device(int *device)
{
    CUresult rc = cuInit(0);

    if (rc)
        return rc;
    if (cuCtxGetDevice(device))
        *device = 0;
    return CUDA_SUCCESS;
}

static ncclResult_t check_config(const ncclConfig_t *config)
{
    if (!config)
        return ncclSuccess;
    if (config->magic != CONFIG_MAGIC)
        return nccl_fail(ncclInvalidArgument,
                         "config is not from NCCL_CONFIG_INITIALIZER");
    if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
        config->blocking != 1)
        return nccl_fail(ncclInvalidArgument, "config: blocking is %d",
                         config->blocking);
    return ncclSuccess;
}

static ncclResult_t init_rank(ncclComm_t *newcomm, int nranks,
                              const ncclUniqueId *id, int rank, int device)
{
    uint64_t hash = fabric_hash(FABRIC_HASH_SEED, id, sizeof(*id));

    *newcomm = comm_attach(hash, nranks, rank, device, fabric_host_id(rank));
    if (!*newcomm)
        return group_fail(ncclSystemError);
    (*newcomm)->noise = (uint64_t)nranks;
    return group_add_init(*newcomm);
}

NCCL_API(ncclResult_t, CommInitRankConfig,
         (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
          ncclConfig_t *config))
{
    ncclResult_t result = check_config(config);
    int device;

    if (result)
        return group_fail(result);
    if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
        return group_fail(nccl_fail(
            ncclInvalidArgument, "CommInitRank: rank %d of %d", rank, nranks));
    if (current_device(&device))
        return group_fail(
            nccl_fail(ncclUnhandledCudaError, "CommInitRank: no device"));
    return init_rank(comm, nranks, &commId, rank, device);
}

NCCL_API(ncclResult_t, CommInitRank,
         (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank))
{
    return pncclCommInitRankConfig(comm, nranks, commId, rank, NULL);
}

static ncclResult_t init_all(ncclComm_t *comm, int ndev, const int *devlist,
                             const ncclUniqueId *id)
{
    ncclResult_t result = ncclSuccess;

    group_start();
    for (int i = 0; i < ndev && !result; i++)
        result = init_rank(&comm[i], ndev, id, i, devlist ? devlist[i] : i);
    return group_end();
}

NCCL_API(ncclResult_t, CommInitAll,
         (ncclComm_t * comm, int ndev, const int *devlist))
{
    ncclUniqueId id = {{0}};
    ncclResult_t result;
    int device;
    int devices;

    if (!comm || ndev < 1)
        return nccl_fail(ncclInvalidArgument, "CommInitAll: %d devices", ndev);
    if (current_device(&device) || cuDeviceGetCount(&devices))
        return nccl_fail(ncclUnhandledCudaError, "CommInitAll: no device");
    for (int i = 0; i < ndev; i++) {
        int d = devlist ? devlist[i] : i;

        if (d < 0 || d >= devices)
            return nccl_fail(ncclUnhandledCudaError, "CommInitAll: device %d",
                             d);
    }
    result = pncclGetUniqueId(&id);
    return result ? result : init_all(comm, ndev, devlist, &id);
}

NCCL_API(ncclResult_t, CommSplit,
         (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
          ncclConfig_t *config))
{
    ncclResult_t result = comm_check(comm);

    if (!result)
        result = check_config(config);
    if (result)
        return group_fail(result);
    if (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
        return group_fail(
            nccl_fail(ncclInvalidArgument, "CommSplit: color %d", color));
    *newcomm = NULL;
    return group_add_split(comm, color, key, newcomm);
}

NCCL_API(ncclResult_t, CommFinalize, (ncclComm_t comm))
{
    ncclResult_t result = comm_check(comm);

    if (result)
        return result;
    if (comm->finalized)
        return nccl_fail(ncclInvalidArgument, "CommFinalize: done before");
    comm->finalized = 1;
    comm_drain(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommDestroy, (ncclComm_t comm))
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    result = comm_check(comm);
    if (result)
        return result;
    comm_drain(comm);
    comm_free(comm);
    return ncclSuccess;
}

/* Frees what waits in this rank; the others wait until they abort, too. */
NCCL_API(ncclResult_t, CommAbort, (ncclComm_t comm))
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    result = comm_check(comm);
    if (result)
        return result;
    atomic_store(&comm->aborted, 1);
    seat_ring(segment_seat(comm->segment, comm->rank));
    comm_drain(comm);
    comm_free(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommGetAsyncError,
         (ncclComm_t comm, ncclResult_t *asyncError))
{
    ncclResult_t result = comm_check(comm);

    if (result)
        return result;
    if (!asyncError)
        return nccl_fail(ncclInvalidArgument, "CommGetAsyncError: NULL");
    *asyncError = (ncclResult_t)atomic_load(&comm->async_error);
    return ncclSuccess;
}

static ncclResult_t check_question(ncclComm_t comm, const int *out)
{
    ncclResult_t result = comm_check(comm);

    if (result)
        return result;
    return out ? ncclSuccess
               : nccl_fail(ncclInvalidArgument, "result pointer is NULL");
}

NCCL_API(ncclResult_t, CommCount, (const ncclComm_t comm, int *count))
{
    ncclResult_t result = check_question(comm, count);

    if (!result)
        *count = comm->nranks;
    return result;
}

NCCL_API(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device))
{
    ncclResult_t result = check_question(comm, device);

    if (!result)
        *device = comm->device;
    return result;
}

NCCL_API(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank))
{
    ncclResult_t result = check_question(comm, rank);

    if (!result)
        *rank = comm->rank;
    return result;
}
