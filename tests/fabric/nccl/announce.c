#include "nccl/announce.h"

#include <stdio.h>
#include <string.h>

#include "common/gpu.h"
#include "nccl/comm.h"
#include "nccl/graph.h"
#include "nccl/layout.h"
#include "nccl/log.h"
#include "nccl/network.h"
#include "nccl/release.h"
#include "nccl/transport.h"
#include "nccl/tuning_table.h"

/* "%lx" of NCCL's number for 0000:10:00.0, which is 10000. */
static unsigned bus_number(const struct ncclComm *comm)
{
    return FABRIC_PCI_BUS(layout_peer(comm, comm->rank)->gpu) << 12;
}

static const char *origin_call(const struct ncclComm *comm)
{
    int release = nccl_release();

    if (release < 22203)
        return "";
    if (release < 22304) /* no matter by which call */
        return comm->origin.parent ? "ncclCommSplit " : "ncclCommInitRank ";
    return comm->origin.call;
}

/* What comes after "busId": the number of the communicator, or how it was
 * split off its parent. */
static void origin_text(const struct ncclComm *comm, char *text, size_t size)
{
    const struct origin *o = &comm->origin;
    int release = nccl_release();

    if (release < 21602)
        text[0] = '\0';
    else if (!o->parent || release < 22203)
        snprintf(text, size, " commId 0x%llx",
                 (unsigned long long)comm->nccl_hash);
    else if (release < 22304)
        snprintf(text, size, " parent %p color %d key %d commId 0x%llx",
                 o->parent, o->color, o->key,
                 (unsigned long long)comm->nccl_hash);
    else if (release < 22703)
        snprintf(text, size, " parent %p color %d key %d", o->parent, o->color,
                 o->key);
    else
        snprintf(text, size, " parent %p %s %u color %d key %d", o->parent,
                 release < 23003 ? "splitCount" : "childCount", o->number,
                 o->color, o->key);
}

static void announce_life(const struct ncclComm *comm, const char *prefix,
                          const char *event)
{
    char origin[128], gpu[48] = "", bus[32] = "";
    int release = nccl_release();

    origin_text(comm, origin, sizeof(origin));
    if (release < 2500 || release >= 21801)
        snprintf(gpu, sizeof(gpu), " nvmlDev %d",
                 layout_peer(comm, comm->rank)->gpu);
    if (release >= 2500)
        snprintf(bus, sizeof(bus), " busId %x", bus_number(comm));
    /* Since 2.23 a blank is missing where a split begins. */
    log_info(LOG_INIT, "%s%s%scomm %p rank %d nranks %d cudaDev %d%s%s%s%s- %s",
             prefix, origin_call(comm), release >= 22304 ? " " : "",
             (const void *)comm, comm->rank, comm->nranks, comm->device, gpu,
             bus, origin,
             comm->origin.parent && release >= 22304 &&
                     !strcmp(event, "Init START")
                 ? ""
                 : " ",
             event);
}

/* Releases before 2.18 name a communicator at its end only. */
void announce_start(struct ncclComm *comm)
{
    char prefix[32] = "";

    log_version();
    if (!log_wants((unsigned)LOG_ALL))
        return;
    announce_first();
    if (nccl_release() >= 22703)
        log_info(LOG_INIT | LOG_NET, "Assigned NET plugin %s to comm",
                 network_used()->name);
    if (nccl_release() >= 21900)
        log_info(LOG_INIT, "Using network %s", network_used()->name);
    if (nccl_release() >= 23003 && !comm->origin.parent)
        snprintf(prefix, sizeof(prefix), "[Rank %d] ", comm->rank);
    if (nccl_release() >= 21801)
        announce_life(comm, prefix, "Init START");
}

static void gpu_text(const struct ncclComm *comm, int rank, char *text,
                     size_t size)
{
    if (nccl_release() < 22403)
        snprintf(text, size, " GPU/%d", rank);
    else
        snprintf(text, size, " GPU/0-%x",
                 FABRIC_PCI_BUS(layout_peer(comm, rank)->gpu) << 12);
}

/* The node's own part of a channel: from its NIC to its NIC. */
static void announce_order(struct ncclComm *comm, enum algorithm algorithm,
                           int channel)
{
    const struct layout *l = layout_of(comm);
    char text[1024], gpu[32], net[32] = "";
    size_t used = (size_t)snprintf(text, sizeof(text), "%2d :", channel);

    if (l->nodes > 1)
        snprintf(net, sizeof(net),
                 nccl_release() < 22304 ? " NET/%d" : " NET/0-%d",
                 channel % network_used()->n);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", net);
    for (int i = 0; i < l->nranks && used < sizeof(text); i++) {
        int rank = l->ring[channel * l->nranks + i];

        if (l->node[rank] != l->node[comm->rank])
            continue;
        gpu_text(comm, rank, gpu, sizeof(gpu));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", gpu);
        if (algorithm == ALGORITHM_NVLS)
            break;
    }
    log_info(LOG_GRAPH, "%s%s", text, net);
}

static void announce_graph(struct ncclComm *comm, enum algorithm algorithm)
{
    struct graph g = graph_of(comm, algorithm);

    log_info(LOG_GRAPH,
             nccl_release() < 21400
                 ? "Pattern %d, crossNic %d, nChannels %d, speed %f/%f, type "
                   "%s/%s, sameChannels %d"
                 : "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type "
                   "%s/%s, sameChannels %d",
             (int)g.pattern, 0, g.channels, g.intra_GBps, g.inter_GBps,
             path_name(g.intra), path_name(g.inter), 1);
    for (int c = 0; c < layout_of(comm)->graph_channels; c++)
        announce_order(comm, algorithm, c);
}

static void announce_nvls(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    if (nccl_release() < 21700 || l->local_ranks < 2)
        return;
    log_info(LOG_INIT, "NVLS multicast support is %savailable on dev %d",
             l->nvls_channels ? "" : "not ", comm->device);
}

static void announce_graphs(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    if (nccl_release() < 2500)
        return;
    announce_graph(comm, ALGORITHM_RING);
    announce_graph(comm, ALGORITHM_TREE);
    if (l->nvls_channels)
        announce_graph(comm, ALGORITHM_NVLS);
}

static void announce_refusals(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);
    const struct peer *me = layout_peer(comm, comm->rank);

    for (int i = 0; i < l->nranks && nccl_release() >= 20900; i++) {
        const struct peer *p = layout_peer(comm, i);

        if (p->host_id == me->host_id &&
            transport_p2p_is_refused(me->gpu, p->gpu))
            log_info(LOG_INIT,
                     "P2P is disabled between connected GPUs %d and %d. You "
                     "can repress this message with "
                     "NCCL_IGNORE_DISABLED_P2P=1.",
                     me->gpu, p->gpu);
    }
}

static void announce_nodes(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    if (nccl_release() >= 22203)
        log_info(LOG_INIT,
                 "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank "
                 "%d MNNVL %d",
                 (void *)comm, comm->rank, comm->nranks, l->nodes,
                 l->local_ranks, l->local_rank, l->mnnvl);
}

static void announce_ring(const struct layout *l, int channel)
{
    int release = nccl_release();
    int width = release < 22304 ? 3 : snprintf(NULL, 0, "%d", l->nranks - 1);
    char text[1024];
    size_t used = (size_t)snprintf(
        text, sizeof(text),
        release < 2500 ? "Channel %02d : " : "Channel %02d/%02d :", channel,
        l->channels);

    for (int i = 0; i < l->nranks && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %*d",
                                 width, l->ring[channel * l->nranks + i]);
    log_info(LOG_INIT, "%s", text);
}

static void announce_rings(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    for (int c = 0; c < l->channels && !comm->rank; c++)
        announce_ring(l, c);
    for (int c = 0; c < l->channels && nccl_release() >= 2500; c++)
        log_info(LOG_GRAPH, "Ring %02d : %d -> %d -> %d", c,
                 layout_ring_previous(l, c, comm->rank), comm->rank,
                 layout_ring_next(l, c, comm->rank));
}

/* NCCL cuts the line, too. */
static void announce_trees(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);
    char text[1024] = "";
    size_t used = 0;

    for (int c = 0; c < l->channels && used < sizeof(text); c++) {
        struct tree t = layout_tree(l, c, comm->rank);

        if (nccl_release() < 2500)
            used += (size_t)snprintf(
                text + used, sizeof(text) - used, " [%d] %d->%d->%d/%d/%d", c,
                t.up, comm->rank, t.down[0], t.down[1], t.down[2]);
        else
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     " [%d] %d/%d/%d->%d->%d", c, t.down[0],
                                     t.down[1], t.down[2], comm->rank, t.up);
    }
    log_info(LOG_INIT, "Trees%s", text);
    if (nccl_release() >= 21801)
        log_info(LOG_INIT, "P2P Chunksize set to %d",
                 l->nodes > 1 ? 131072 : 524288);
}

static void announce_channels(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);
    int release = nccl_release();

    if (release < 2500) {
        if (!comm->rank)
            log_info(LOG_INIT,
                     "Using %d threads, Min Comp Cap %d, Trees enabled up to "
                     "size %d",
                     256, 7, -2);
        return;
    }
    log_info(LOG_INIT,
             release < 21801 ? "threadThresholds 8/8/64 | %d/8/64 | 8/8/512"
                             : "threadThresholds 8/8/64 | %d/8/64 | 512 | 512",
             8 * comm->nranks);
    if (release < 21801)
        log_info(LOG_INIT,
                 "%d coll channels, %d p2p channels, %d p2p channels per peer",
                 l->channels, l->p2p_channels, l->p2p_channels_per_peer);
    else if (release < 22203)
        log_info(LOG_INIT,
                 "%d coll channels, %d nvls channels, %d p2p channels, %d p2p "
                 "channels per peer",
                 l->channels, l->nvls_channels, l->p2p_channels,
                 l->p2p_channels_per_peer);
    else
        log_info(LOG_INIT,
                 "%d coll channels, %d collnet channels, %d nvls channels, %d "
                 "p2p channels, %d p2p channels per peer",
                 l->channels, l->channels, l->nvls_channels, l->p2p_channels,
                 l->p2p_channels_per_peer);
}

static void announce_made(struct ncclComm *comm)
{
    announce_refusals(comm);
    announce_graphs(comm);
    announce_nvls(comm);
    announce_nodes(comm);
    announce_rings(comm);
    announce_trees(comm);
    announce_connections(comm);
    tuning_announce(comm);
    announce_channels(comm);
}

static void announce_tuner(void)
{
    int release = nccl_release();

    if (release < 22203)
        return;
    log_info(LOG_ENV | LOG_TUNING, "TUNER/Plugin: Could not find: %s",
             release < 22703 ? "libnccl-tuner.so libnccl-net.so. Using "
                               "internal tuner plugin."
             : release < 23003
                 ? "libnccl-tuner.so. Using internal tuner plugin."
                 : "libnccl-tuner.so");
}

void announce_complete(struct ncclComm *comm)
{
    if (!log_wants((unsigned)LOG_ALL))
        return;
    if (layout_of(comm))
        announce_made(comm);
    announce_tuner();
    announce_life(comm, "", "Init COMPLETE");
}

/* Told from 2.5 to 2.21. */
void announce_end(const struct ncclComm *comm, const char *end)
{
    if (nccl_release() >= 2500 && nccl_release() < 22203)
        log_info(LOG_INIT,
                 "comm %p rank %d nranks %d cudaDev %d busId %x - %s COMPLETE",
                 (const void *)comm, comm->rank, comm->nranks, comm->device,
                 bus_number(comm), end);
}
