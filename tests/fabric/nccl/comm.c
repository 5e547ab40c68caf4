#include "nccl/comm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/gpu.h"
#include "common/hash.h"
#include "common/identity.h"
#include "commtrace/nccl_hash.h"
#include "nccl/announce.h"
#include "nccl/api.h"
#include "nccl/group.h"
#include "nccl/job.h"
#include "nccl/layout.h"
#include "nccl/redop.h"
#include "nccl/release.h"
#include "nccl/rma.h"
#include "nccl/segment.h"

#define COMM_MAGIC UINT64_C(0x6661627269634e43)
/* What NCCL puts in the place of a random number where the environment gives
 * the address: all ids of the job are then alike. */
#define MAGIC_OF_COMM_ID UINT64_C(0x0280028002800280)
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

ncclResult_t comm_check_ready(struct ncclComm *comm)
{
    ncclResult_t result = comm_check(comm);

    if (result)
        return result;
    result = (ncclResult_t)atomic_load(&comm->state);
    if (result == ncclInProgress)
        return nccl_fail(ncclInvalidArgument,
                         "communicator is used before the previous operation "
                         "returned ncclSuccess");
    return result;
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

/* NCCL makes the device current by the runtime, which keeps its primary
 * context active from then on. */
static CUresult activate(int device)
{
    static _Atomic uint64_t active;
    uint64_t bit = UINT64_C(1) << (device & 63);
    CUcontext ctx;

    if (atomic_fetch_or(&active, bit) & bit)
        return CUDA_SUCCESS;
    return cuDevicePrimaryCtxRetain(&ctx, device);
}

static CUresult create_event(struct ncclComm *comm)
{
    CUresult rc = activate(comm->device);

    if (!rc)
        rc = comm_enter(comm);

    if (rc)
        return rc;
    rc = cuEventCreate(&comm->issued, CU_EVENT_DISABLE_TIMING);
    comm_leave();
    return rc;
}

/* The host's number of the GPU, whatever CUDA_VISIBLE_DEVICES says. */
static int gpu_of_device(int device)
{
    char bus_id[32];
    int gpu = cuDeviceGetPCIBusId(bus_id, sizeof(bus_id), device)
                  ? -1
                  : gpu_by_bus_id(bus_id);

    return gpu < 0 ? device : gpu;
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
    comm->blocking = 1;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->link_free_ns = calloc((size_t)nranks, sizeof(int64_t));
    comm->messages = calloc((size_t)nranks, sizeof(uint64_t));
    if (!comm->link_free_ns || !comm->messages || create_event(comm))
        goto err_free;
    comm->segment =
        segment_attach(id, nranks, rank,
                       &(struct peer){.host_id = host_id,
                                      .pid = (int)getpid(),
                                      .device = device,
                                      .gpu = gpu_of_device(device)});
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

ncclResult_t comm_await_all(struct ncclComm *comm)
{
    struct seat *seat = segment_seat(comm->segment, comm->rank);

    for (;;) {
        uint32_t heard = seat_listen(seat);

        if (atomic_load(&comm->aborted))
            return nccl_fail(ncclInternalError, "aborted during its creation");
        if (atomic_load(&comm->segment->attached) >= comm->nranks) {
            profiler_comm_begin(comm);
            return ncclSuccess;
        }
        seat_sleep(seat, heard);
    }
}

ncclResult_t comm_bring_up(struct ncclComm *comm)
{
    ncclResult_t result;

    announce_start(comm);
    result = comm_await_all(comm);
    if (!result)
        announce_complete(comm);
    return result;
}

int comm_is_stopped(struct ncclComm *comm)
{
    return atomic_load(&comm->aborted) || atomic_load(&comm->revoked);
}

void comm_task_queued(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->pending++;
    pthread_mutex_unlock(&comm->lock);
}

void comm_task_running(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->running++;
    pthread_mutex_unlock(&comm->lock);
}

void comm_task_gone(struct ncclComm *comm, int ran)
{
    int last;

    pthread_mutex_lock(&comm->lock);
    comm->pending--;
    comm->running -= ran;
    last = comm->dead && !comm->pending;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    if (last)
        comm_free(comm);
}

void comm_job_begin(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->jobs++;
    pthread_mutex_unlock(&comm->lock);
    atomic_store(&comm->state, ncclInProgress);
}

void comm_job_end(struct ncclComm *comm, ncclResult_t result)
{
    pthread_mutex_lock(&comm->lock);
    atomic_store(&comm->state, result);
    comm->jobs--;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

void comm_drain(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->pending)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

void comm_stop(struct ncclComm *comm, _Atomic int *reason)
{
    atomic_store(reason, 1);
    seat_ring(segment_seat(comm->segment, comm->rank));
    pthread_mutex_lock(&comm->lock);
    while (comm->running)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

/* The user lets go: what is still queued somewhere holds it until it came by,
 * which may be behind another communicator's op that hangs. */
static void comm_leave_to_tasks(struct ncclComm *comm)
{
    int none;

    pthread_mutex_lock(&comm->lock);
    while (comm->jobs || comm->running)
        pthread_cond_wait(&comm->changed, &comm->lock);
    comm->magic = 0;
    comm->dead = 1;
    none = !comm->pending;
    pthread_mutex_unlock(&comm->lock);
    if (none)
        comm_free(comm);
}

void comm_free(struct ncclComm *comm)
{
    profiler_comm_end(comm);
    if (comm->segment)
        segment_detach(comm->segment);
    if (comm->issued)
        cuEventDestroy(comm->issued);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    rma_free(comm->rma);
    announced_free(comm->announced);
    layout_free(atomic_load(&comm->layout));
    free(atomic_load(&comm->tuning));
    free(comm->shrunk);
    free(comm->premul);
    free(comm->messages);
    free(comm->link_free_ns);
    comm->magic = 0;
    free(comm);
}

/* Like NCCL's: a random magic, the root's address, zeros. */
NCCL_API(ncclResult_t, GetUniqueId, (ncclUniqueId * uniqueId))
{
    struct ct_nccl_id id = {0};
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned char noise[10];

    const char *env;

    announce_library();
    env = getenv("NCCL_COMM_ID");
    if (!uniqueId)
        return nccl_fail(ncclInvalidArgument, "GetUniqueId: NULL");
    if (env && *env) {
        id.magic = MAGIC_OF_COMM_ID;
        snprintf(id.address, sizeof(id.address), "%s", env);
        memcpy(uniqueId, &id, sizeof(id));
        return ncclSuccess;
    }
    if (getrandom(noise, sizeof(noise), 0) != sizeof(noise))
        return nccl_fail(ncclSystemError, "GetUniqueId: no random numbers");
    segment_sweep();
    memcpy(&id.magic, noise, sizeof(id.magic));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&address.sin_port, noise + sizeof(id.magic), 2);
    memcpy(id.address, &address, sizeof(address));
    memcpy(uniqueId, &id, sizeof(id));
    return ncclSuccess;
}

/* The caller's current device, as in NCCL. */
CUresult comm_current_device(int *device)
{
    CUresult rc = cuInit(0);

    if (rc)
        return rc;
    if (cuCtxGetDevice(device))
        *device = 0;
    return CUDA_SUCCESS;
}

/* A caller's config may be shorter or longer than ours: what it is too short
 * for, or came after the release that it names, has its default. */
static int config_blocking(const ncclConfig_t *config)
{
    if (config->size < offsetof(ncclConfig_t, cgaClusterSize) ||
        config->version < NCCL_VERSION(2, 14, 0))
        return NCCL_CONFIG_UNDEF_INT;
    return config->blocking;
}

ncclResult_t comm_check_config(const ncclConfig_t *config)
{
    int blocking;

    if (!config)
        return ncclSuccess;
    if (config->size < offsetof(ncclConfig_t, version) ||
        config->magic != CONFIG_MAGIC)
        return nccl_fail(ncclInvalidArgument,
                         "config is not from NCCL_CONFIG_INITIALIZER");
    blocking = config_blocking(config);
    if (blocking != NCCL_CONFIG_UNDEF_INT && blocking != 0 && blocking != 1)
        return nccl_fail(ncclInvalidArgument, "config: blocking is %d",
                         blocking);
    return ncclSuccess;
}

void comm_configure(struct ncclComm *comm, const ncclConfig_t *config,
                    const struct ncclComm *parent)
{
    const char *env = getenv("NCCL_COMM_BLOCKING");

    if (parent)
        comm->blocking = parent->blocking;
    if (config && config_blocking(config) != NCCL_CONFIG_UNDEF_INT)
        comm->blocking = config_blocking(config);
    if (env && *env)
        comm->blocking = strcmp(env, "0") != 0;
}

static ncclResult_t init_rank(ncclComm_t *newcomm, int nranks,
                              const ncclUniqueId *id, int rank, int device,
                              const ncclConfig_t *config, const char *call)
{
    uint64_t hash = fabric_hash(FABRIC_HASH_SEED, id, sizeof(*id));

    announce_library();
    *newcomm = comm_attach(hash, nranks, rank, device, fabric_host_id(rank));
    if (!*newcomm)
        return group_fail(ncclSystemError);
    (*newcomm)->origin.call = call;
    (*newcomm)->noise = (uint64_t)nranks;
    (*newcomm)->nccl_hash = ct_nccl_hash_of_id(id);
    memcpy(&(*newcomm)->nccl_magic, id, sizeof(uint64_t));
    comm_configure(*newcomm, config, NULL);
    return group_add_init(*newcomm);
}

static ncclResult_t init_current(ncclComm_t *comm, int nranks,
                                 const ncclUniqueId *id, int rank,
                                 const ncclConfig_t *config, const char *call)
{
    ncclResult_t result = comm_check_config(config);
    int device;

    if (result)
        return group_fail(result);
    if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
        return group_fail(nccl_fail(
            ncclInvalidArgument, "CommInitRank: rank %d of %d", rank, nranks));
    if (comm_current_device(&device))
        return group_fail(
            nccl_fail(ncclUnhandledCudaError, "CommInitRank: no device"));
    return init_rank(comm, nranks, id, rank, device, config, call);
}

NCCL_API(ncclResult_t, CommInitRankConfig,
         (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
          ncclConfig_t *config))
{
    return init_current(comm, nranks, &commId, rank, config,
                        "ncclCommInitRankConfig");
}

NCCL_API(ncclResult_t, CommInitRank,
         (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank))
{
    return init_current(comm, nranks, &commId, rank, NULL, "ncclCommInitRank");
}

/* Several roots only spread the load of a set-up that takes none here. */
NCCL_API(ncclResult_t, CommInitRankScalable,
         (ncclComm_t * newcomm, int nranks, int myrank, int nId,
          ncclUniqueId *commIds, ncclConfig_t *config))
{
    if (nId < 1 || nId > nranks || !commIds)
        return group_fail(nccl_fail(ncclInvalidArgument,
                                    "CommInitRankScalable: %d ids", nId));
    return init_current(newcomm, nranks, &commIds[0], myrank, config,
                        "ncclCommInitRankScalable");
}

static ncclResult_t init_all(ncclComm_t *comm, int ndev, const int *devlist,
                             const ncclUniqueId *id)
{
    int in_public = nccl_release_groups_all();
    ncclResult_t result = ncclSuccess;

    if (in_public)
        ncclGroupStart();
    else
        group_start();
    for (int i = 0; i < ndev && !result; i++)
        result = init_rank(&comm[i], ndev, id, i, devlist ? devlist[i] : i,
                           NULL, "ncclCommInitAll");
    return in_public ? ncclGroupEnd() : group_end();
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
    if (comm_current_device(&device) || cuDeviceGetCount(&devices))
        return nccl_fail(ncclUnhandledCudaError, "CommInitAll: no device");
    for (int i = 0; i < ndev; i++) {
        int d = devlist ? devlist[i] : i;

        if (d < 0 || d >= devices)
            return nccl_fail(ncclUnhandledCudaError, "CommInitAll: device %d",
                             d);
    }
    result = nccl_release_asks_for_id() ? ncclGetUniqueId(&id)
                                        : pncclGetUniqueId(&id);
    return result ? result : init_all(comm, ndev, devlist, &id);
}

static ncclResult_t run_finalize(void *arg)
{
    comm_drain(arg);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommFinalize, (ncclComm_t comm))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return result;
    if (comm->finalized)
        return nccl_fail(ncclInvalidArgument, "CommFinalize: done before");
    if (atomic_load(&comm->revoked))
        return nccl_fail(ncclInvalidUsage, "CommFinalize: revoked");
    comm->finalized = 1;
    if (!comm->blocking)
        return job_start(&comm, 1, run_finalize, comm);
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
    if (atomic_load(&comm->state) == ncclInProgress)
        return comm_check_ready(comm);
    comm_drain(comm);
    announce_end(comm, "Destroy");
    comm_leave_to_tasks(comm);
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
    comm_stop(comm, &comm->aborted);
    announce_end(comm, "Abort");
    comm_leave_to_tasks(comm);
    return ncclSuccess;
}

/* What is revoked stays: for splits, shrinks, and its end. */
NCCL_API(ncclResult_t, CommRevoke, (ncclComm_t comm, int revokeFlags))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return result;
    if (revokeFlags)
        return nccl_fail(ncclInvalidArgument, "CommRevoke: flags %d",
                         revokeFlags);
    comm_stop(comm, &comm->revoked);
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
    *asyncError = (ncclResult_t)atomic_load(&comm->state);
    return ncclSuccess;
}

static ncclResult_t check_question(ncclComm_t comm, const int *out)
{
    ncclResult_t result = comm_check_ready(comm);

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
