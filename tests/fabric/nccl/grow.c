/*
 * Growing a communicator, as NCCL 2.29 and later does: one rank of it makes an
 * id for the new ranks, which know nothing else; the old ones know the parent.
 */
#include <string.h>

#include <nccl_newer.h>

#include "common/hash.h"
#include "common/identity.h"
#include "commtrace/nccl_hash.h"
#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/group.h"

struct growth {
    struct ct_nccl_id id; /* that both sides arrive at */
    int nranks;
    int rank;
    int device;
    uint64_t host_id;
    const struct ncclComm *parent;
};

static struct ct_nccl_id id_of(const struct ncclComm *parent, uint32_t child)
{
    return (struct ct_nccl_id){
        .magic = ct_nccl_hash_combine(parent->nccl_magic, child),
        .old_ranks = parent->nranks,
    };
}

NCCL_API(ncclResult_t, CommGetUniqueId,
         (ncclComm_t comm, ncclUniqueId *uniqueId))
{
    ncclResult_t result = comm_check_ready(comm);
    struct ct_nccl_id id;

    if (result)
        return result;
    if (!uniqueId)
        return nccl_fail(ncclInvalidArgument, "CommGetUniqueId: NULL");
    id = id_of(comm, comm->children + 1);
    memcpy(uniqueId, &id, sizeof(id));
    return ncclSuccess;
}

static ncclResult_t attach(const struct growth *g, ncclComm_t *newcomm,
                           const ncclConfig_t *config)
{
    uint64_t hash = ct_nccl_hash_combine(g->id.magic, (uint64_t)g->nranks);
    uint64_t name = fabric_mix(hash + (uint64_t)g->id.old_ranks);

    *newcomm = comm_attach(name, g->nranks, g->rank, g->device, g->host_id);
    if (!*newcomm)
        return group_fail(ncclSystemError);
    (*newcomm)->origin.call = "ncclCommGrow";
    (*newcomm)->noise = (uint64_t)g->nranks;
    (*newcomm)->nccl_hash = hash;
    (*newcomm)->nccl_magic = g->id.magic;
    comm_configure(*newcomm, config, g->parent);
    return group_add_init(*newcomm);
}

static ncclResult_t grow_parent(ncclComm_t comm, int nranks, int rank,
                                ncclComm_t *newcomm, const ncclConfig_t *config)
{
    ncclResult_t result = comm_check_ready(comm);
    struct growth g = {.nranks = nranks, .parent = comm};

    if (result)
        return group_fail(result);
    if (rank != -1 || nranks <= comm->nranks)
        return group_fail(nccl_fail(ncclInvalidArgument,
                                    "CommGrow: rank %d, %d ranks of %d", rank,
                                    nranks, comm->nranks));
    g.id = id_of(comm, ++comm->children);
    g.rank = comm->rank;
    g.device = comm->device;
    g.host_id = comm->host_id;
    return attach(&g, newcomm, config);
}

static ncclResult_t join(const ncclUniqueId *id, int nranks, int rank,
                         ncclComm_t *newcomm, const ncclConfig_t *config)
{
    struct growth g = {.nranks = nranks, .rank = rank};

    if (!id || rank < 0 || rank >= nranks)
        return group_fail(nccl_fail(
            ncclInvalidArgument, "CommGrow: new rank %d of %d", rank, nranks));
    memcpy(&g.id, id, sizeof(g.id));
    if (comm_current_device(&g.device))
        return group_fail(
            nccl_fail(ncclUnhandledCudaError, "CommGrow: no device"));
    g.host_id = fabric_host_id(rank);
    return attach(&g, newcomm, config);
}

NCCL_API(ncclResult_t, CommGrow,
         (ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank,
          ncclComm_t *newcomm, ncclConfig_t *config))
{
    ncclResult_t result = comm_check_config(config);

    if (result)
        return group_fail(result);
    if (!newcomm || nRanks < 1)
        return group_fail(
            nccl_fail(ncclInvalidArgument, "CommGrow: %d ranks", nRanks));
    *newcomm = NULL;
    return comm ? grow_parent(comm, nRanks, rank, newcomm, config)
                : join(uniqueId, nRanks, rank, newcomm, config);
}
