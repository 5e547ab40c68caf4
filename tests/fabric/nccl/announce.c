#include "nccl/announce.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "common/gpu.h"
#include "common/identity.h"
#include "nccl/comm.h"
#include "nccl/connect.h"
#include "nccl/graph.h"
#include "nccl/layout.h"
#include "nccl/log.h"
#include "nccl/network.h"
#include "nccl/reduce.h"
#include "nccl/release.h"
#include "nccl/settings.h"
#include "nccl/tuning_table.h"

#define LOG_CONNECTIONS (LOG_INIT | LOG_P2P | LOG_SHM | LOG_NET)

struct announced {
    struct connections *connections;
};

void announced_free(struct announced *a)
{
    if (!a)
        return;
    connections_free(a->connections);
    free(a);
}

static struct announced *announced_of(struct ncclComm *comm)
{
    struct announced *a = comm->announced;

    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->connections = connections_new(comm);
    if (!a->connections) {
        free(a);
        return NULL;
    }
    comm->announced = a;
    return a;
}

static int host_number(void)
{
    int rank = fabric_rank();

    return rank < 0 ? 0 : rank / fabric_config()->ranks_per_host % 250;
}

/* Hosts have addresses of their own, by their number. */
static const char *address(char *text, size_t size)
{
    snprintf(text, size, "%s:192.0.2.%d<0>",
             network_used()->is_socket ? network_used()->nic[0].name : "eth0",
             1 + host_number());
    return text;
}

static void announce_bootstrap(void)
{
    char where[64];
    int release = nccl_release();

    log_info(release >= 22304 ? LOG_BOOTSTRAP : LOG_INIT,
             release < 2500    ? "Bootstrap : Using [0]%s"
             : release < 22403 ? "Bootstrap : Using %s"
                               : "Bootstrap: Using %s",
             address(where, sizeof(where)));
}

void announce_library(void)
{
    static _Atomic int said;
    int driver = 0;

    if (!log_wants((unsigned)LOG_ALL) || atomic_exchange(&said, 1))
        return;
    settings_announce(SETTING_LIBRARY);
    announce_bootstrap();
    cuDriverGetVersion(&driver);
    if (nccl_release() >= 21403)
        log_info((unsigned)LOG_ALL, "cudaDriverVersion %d", driver);
}

static void announce_net_plugin(void)
{
    const struct network *n = network_used();
    int release = nccl_release();
    int is_plugin = !n->is_socket && strcmp(n->name, "IB") != 0;

    if (is_plugin)
        log_info(LOG_INIT | LOG_NET,
                 release < 22304 ? "NET/Plugin : Loaded net plugin %s (v5)"
                                 : "NET/Plugin: Loaded net plugin %s (v8)",
                 n->name);
    else if (release < 22203)
        log_info(LOG_INIT | LOG_NET,
                 "NET/Plugin : No plugin found (libnccl-net.so), using "
                 "internal implementation");
    else
        log_info(LOG_INIT | LOG_NET,
                 release < 22703
                     ? "NET/Plugin: Could not find: libnccl-net.so. Using "
                       "internal network plugin."
                 : release < 23003
                     ? "NET/Plugin: Could not find: libnccl-net.so. "
                     : "NET/Plugin: Could not find: libnccl-net.so");
}

/* Whether the NICs could reach memory of GPUs at all. */
static void announce_gdr(void)
{
    const struct network *n = network_used();

    for (int i = 0; i < n->n && nccl_release() >= 20900; i++) {
        if (nccl_release() >= 21801)
            log_info(LOG_NET, "NET/%s : GPU Direct RDMA %s for HCA %d '%s'",
                     n->name, n->gdr ? "Enabled" : "Disabled", i,
                     n->nic[i].name);
        else if (!n->gdr && !n->is_socket)
            log_info(LOG_NET,
                     "NET/IB : GPU Direct RDMA Disabled for HCA %d '%s' (no "
                     "module)",
                     i, n->nic[i].name);
    }
}

static void list_nics(char *text, size_t size)
{
    const struct network *n = network_used();
    int is_ib = fabric_config()->hardware.network == FABRIC_IB;
    size_t used = 0;
    char where[64];

    text[0] = '\0';
    for (int i = 0; i < n->n && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, " [%d]%s", i,
                                 n->nic[i].name);
        if (used >= size)
            break;
        if (n->is_socket)
            used +=
                (size_t)snprintf(text + used, size - used, "%s",
                                 strchr(address(where, sizeof(where)), ':'));
        else
            used += (size_t)snprintf(text + used, size - used, ":1/%s",
                                     is_ib ? "IB" : "RoCE");
    }
}

/* That the faster network was not used is said by the way, if at all. */
static void announce_network(void)
{
    const struct network *n = network_used();
    char nics[1024], where[64];
    int release = nccl_release();

    announce_net_plugin();
    list_nics(nics, sizeof(nics));
    if (n->is_socket) {
        if (transport_parameter("NCCL_IB_DISABLE", 0) == 0)
            log_info(LOG_INIT | LOG_NET, "NET/IB : No device found.");
        if (transport_parameter("NCCL_IB_DISABLE", 0) == 0 && release >= 22803)
            log_info(LOG_INIT | LOG_NET, "Failed to initialize NET plugin IB");
        log_info(LOG_INIT | LOG_NET, "NET/Socket : Using%s", nics);
    } else if (!strcmp(n->name, "IB")) {
        log_info(LOG_INIT | LOG_NET, "NET/IB : Using%s [RO]; OOB %s", nics,
                 address(where, sizeof(where)));
    }
    if (release >= 22703)
        log_info(LOG_INIT | LOG_NET, "Initialized NET plugin %s", n->name);
    announce_gdr();
}

static void announce_first(void)
{
    static _Atomic int said;

    if (!log_wants((unsigned)LOG_ALL) || atomic_exchange(&said, 1))
        return;
    settings_announce(SETTING_COMMUNICATOR);
    announce_network();
}

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

/* Rings and trees are connected with the communicator where not at first use.
 */
static void announce_connections(struct ncclComm *comm)
{
    struct announced *a = announced_of(comm);

    if (comm->nranks == 1 || !a || transport_is_lazy())
        return;
    connect_algorithm(a->connections, comm, ALGORITHM_RING);
    connect_algorithm(a->connections, comm, ALGORITHM_TREE);
    if (layout_of(comm)->nvls_channels)
        connect_algorithm(a->connections, comm,
                          layout_of(comm)->nodes > 1 ? ALGORITHM_NVLS_TREE
                                                     : ALGORITHM_NVLS);
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

/* What a thread is to connect. */
struct work {
    struct ncclComm *comm;
    unsigned algorithms;
};

static void *connect_work(void *arg)
{
    const struct work *w = arg;
    struct announced *a = w->comm->announced;

    if (comm_enter(w->comm))
        return NULL;
    for (int i = 0; i < ALGORITHMS; i++) {
        if (w->algorithms >> i & 1)
            connect_algorithm(a->connections, w->comm, (enum algorithm)i);
    }
    if (connections_are_new(a->connections))
        connect_peers(a->connections, w->comm);
    comm_leave();
    return NULL;
}

/* From a thread of its own, as NCCL does, since the log tells threads. */
static void connect_now(struct work *work)
{
    pthread_t thread;
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, connect_work, work);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        connect_work(work);
    else
        pthread_join(thread, NULL);
}

static void announce_needs(const struct op *ops, int n)
{
    struct ncclComm *comm = ops[0].comm;
    struct announced *a = announced_of(comm);
    struct work work = {.comm = comm};

    for (int i = 0; i < n && a; i++) {
        if (op_is_p2p(&ops[i]))
            connect_note_peer(a->connections, comm, ops[i].peer,
                              ops[i].kind == OP_SEND ? END_SEND : END_RECEIVE);
        else if (!op_is_rma(&ops[i]) && transport_is_lazy())
            work.algorithms |= 1u << fabric_choose(&ops[i]).algorithm;
    }
    if (!a)
        return;
    work.algorithms &= ~connections_algorithms(a->connections);
    if (work.algorithms || connections_are_new(a->connections))
        connect_now(&work);
}

/* 2.20 is the first to tell each collective's choice, and 2.24 to tell it by
 * name, of a rank's own share. */
static void announce_choice(const struct op *op)
{
    struct fabric_choice c = fabric_choose(op);
    const char *name = tuning_function_name(tuning_function(op));
    size_t bytes = op_bytes(op);
    int release = nccl_release();

    if (release < 22003)
        return;
    if (release < 22304)
        log_info(LOG_TUNING, "%zu Bytes -> Algo %d proto %d time %f", bytes,
                 (int)c.algorithm, (int)c.protocol, c.us);
    else if (release < 22403)
        log_info(LOG_TUNING, "%s: %zu Bytes -> Algo %d proto %d time %f", name,
                 bytes, (int)c.algorithm, (int)c.protocol, c.us);
    else
        log_info(LOG_TUNING,
                 "%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}",
                 name, op->count * type_bytes(op->type), c.algorithm_name,
                 c.protocol_name, c.first_channel,
                 c.first_channel + c.channels - 1);
}

static void announce_choices(const struct op *ops, int n)
{
    int *order = calloc((size_t)n, sizeof(*order));

    if (!order)
        return;
    for (int i = 0; i < n; i++) {
        int at = i;

        for (; at && op_comes_before(&ops[i], &ops[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const struct op *op = &ops[order[i]];

        if (!op_is_p2p(op) && !op_is_rma(op))
            announce_choice(op);
    }
    free(order);
}

void announce_ops(const struct op *ops, int n)
{
    struct ncclComm *comm = ops[0].comm;

    if (!log_wants(LOG_CONNECTIONS | LOG_TUNING) || comm->nranks < 2 ||
        !layout_of(comm))
        return;
    if (log_wants(LOG_CONNECTIONS))
        announce_needs(ops, n);
    if (!comm->rank && log_wants(LOG_TUNING))
        announce_choices(ops, n);
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
