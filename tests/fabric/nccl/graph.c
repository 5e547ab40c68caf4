#include "nccl/graph.h"

#include "common/config.h"
#include "nccl/layout.h"
#include "nccl/network.h"

static double least(double a, double b)
{
    return a < b ? a : b;
}

static enum path worst_path(struct ncclComm *comm, const struct layout *l)
{
    enum path worst = PATH_LOC;

    for (int i = 0; i < l->nranks; i++) {
        for (int j = 0; j < i; j++) {
            enum path path = transport_peer_path(l, layout_peer(comm, i),
                                                 layout_peer(comm, j));

            if (l->node[i] == l->node[comm->rank] &&
                l->node[j] == l->node[comm->rank] && path > worst)
                worst = path;
        }
    }
    return worst;
}

static enum path network_path(struct ncclComm *comm, const struct layout *l)
{
    enum path worst = PATH_PIX;

    for (int i = 0; i < l->nranks && l->nodes > 1; i++) {
        int gpu = layout_peer(comm, i)->gpu;
        int nic = network_used()->nic[network_nic_of_gpu(gpu)].place;
        enum path path = transport_gdr_distance(gpu, nic);

        if (l->node[i] == l->node[comm->rank] && path > worst)
            worst = path;
    }
    return worst;
}

/* GB/s of a GPU: 18 NVLinks, or a PCIe slot, at what NCCL counts for them. */
static double gpu_GBps(enum path path)
{
    switch (path) {
    case PATH_LOC:
    case PATH_NVL:
        return fabric_config()->hardware.nvlink_version >= 5   ? 720
               : fabric_config()->hardware.nvlink_version == 4 ? 360
                                                               : 240;
    case PATH_PIX:
        return 24;
    case PATH_PHB:
        return 16;
    default:
        return 10;
    }
}

/* NCCL's search takes round numbers; 25.0 of a 200 Gbit/s port are 24.0. */
static double port_GBps(void)
{
    return (double)network_used()->mbps / 8000 * 0.96;
}

struct graph graph_of(struct ncclComm *comm, enum algorithm algorithm)
{
    const struct layout *l = layout_of(comm);
    enum path path = worst_path(comm, l);
    struct graph g = {
        .pattern =
            algorithm == ALGORITHM_RING ? PATTERN_RING : PATTERN_BALANCED_TREE,
        .channels = l->graph_channels,
        .intra = path,
        .inter = network_path(comm, l),
    };
    int is_nvls =
        algorithm == ALGORITHM_NVLS || algorithm == ALGORITHM_NVLS_TREE;

    if (is_nvls && l->nvls_channels) {
        g.pattern = PATTERN_NVLS;
        g.channels = l->nvls_channels;
    }
    g.intra_GBps = gpu_GBps(path) / g.channels;
    g.inter_GBps = g.intra_GBps;
    if (l->nodes == 1)
        return g;
    g.inter_GBps = least(g.intra_GBps, port_GBps() * l->nics / g.channels);
    if (algorithm == ALGORITHM_TREE)
        g.intra_GBps = least(g.intra_GBps, 2 * g.inter_GBps);
    else if (!is_nvls)
        g.intra_GBps = g.inter_GBps;
    return g;
}
