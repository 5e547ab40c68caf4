#include "nccl/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/config.h"
#include "common/machine.h"
#include "nccl/layout.h"
#include "nccl/network.h"
#include "nccl/release.h"

const char *path_name(enum path path)
{
    static const char *const names[PATHS] = {
        [PATH_LOC] = "LOC", [PATH_NVL] = "NVL", [PATH_NVB] = "NVB",
        [PATH_C2C] = "C2C", [PATH_PIX] = "PIX", [PATH_PXB] = "PXB",
        [PATH_P2C] = "P2C", [PATH_PXN] = "PXN", [PATH_PHB] = "PHB",
        [PATH_SYS] = "SYS", [PATH_NET] = "NET",
    };

    return names[path];
}

/* C2C came with 2.19, P2C with 2.27. */
static int is_known(enum path path)
{
    if (path == PATH_C2C)
        return nccl_release() >= 21900;
    return path != PATH_P2C || nccl_release() >= 22703;
}

int path_number(enum path path)
{
    int n = 0;

    for (int i = 0; i < (int)path; i++)
        n += is_known((enum path)i);
    return n;
}

int64_t transport_parameter(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    long long value;

    if (!text || !*text)
        return otherwise;
    value = strtoll(text, &end, 0);
    return end == text ? otherwise : value;
}

/* By name, or by number: 0 to 5 are what they were before there were names. */
enum path transport_level(const char *name, enum path otherwise)
{
    static const enum path by_number[] = {PATH_LOC, PATH_PIX, PATH_PXB,
                                          PATH_PHB, PATH_SYS, PATH_SYS};
    const char *text = getenv(name);
    int64_t number;

    if (!text || !*text)
        return otherwise;
    for (int i = 0; i < PATH_NET; i++) {
        if (!strcasecmp(text, path_name((enum path)i)))
            return (enum path)i;
    }
    number = transport_parameter(name, -1);
    if (number < 0)
        return otherwise;
    return by_number[number > 5 ? 5 : number];
}

static const struct fabric_hardware *hardware(void)
{
    return &fabric_config()->hardware;
}

int transport_may_mnnvl(void)
{
    return hardware()->nvlink_domain[0] && nccl_release() >= 22105 &&
           transport_parameter("NCCL_CUMEM_ENABLE", 1) != 0 &&
           transport_parameter("NCCL_MNNVL_ENABLE", 2) != 0;
}

int transport_has_nvls(const struct layout *l)
{
    return hardware()->nvlink == FABRIC_NVLINK_SWITCH &&
           hardware()->nvlink_version >= 4 && nccl_release() >= 21700 &&
           l->local_ranks > 1 &&
           transport_parameter("NCCL_NVLS_ENABLE", 2) != 0;
}

/* Since 2.19 memory is shared by handles of virtual memory. */
static int has_cumem(void)
{
    return nccl_release() >= 21900 &&
           transport_parameter("NCCL_CUMEM_ENABLE", 1) != 0;
}

int transport_is_lazy(void)
{
    return nccl_release() >= 22203 && has_cumem() &&
           transport_parameter("NCCL_RUNTIME_CONNECT", 1) != 0;
}

static enum path path_of(enum fabric_path path)
{
    static const enum path paths[] = {
        [FABRIC_PIX] = PATH_PIX,
        [FABRIC_PHB] = PATH_PHB,
        [FABRIC_SYS] = PATH_SYS,
    };

    return paths[path];
}

enum path transport_gpu_path(int a, int b)
{
    if (a == b)
        return PATH_LOC;
    if (hardware()->nvlink != FABRIC_NVLINK_NONE)
        return PATH_NVL;
    return path_of(fabric_gpu_gpu_path(fabric_config(), a, b));
}

/* Where a GPU is joined to its CPU by C2C, a NIC at that CPU is near. */
enum path transport_gdr_distance(int gpu, int place)
{
    enum path path =
        place < 0 ? PATH_SYS
                  : path_of(fabric_gpu_nic_path(fabric_config(), gpu, place));

    if (path == PATH_PHB && hardware()->c2c && is_known(PATH_P2C))
        return PATH_P2C;
    return path;
}

enum path transport_gdr_level(void)
{
    return transport_level("NCCL_NET_GDR_LEVEL",
                           is_known(PATH_P2C) ? PATH_P2C : PATH_PXB);
}

static enum path p2p_level(void)
{
    if (transport_parameter("NCCL_P2P_DISABLE", 0) == 1)
        return PATH_LOC;
    return transport_level("NCCL_P2P_LEVEL", PATH_PXB);
}

static int can_p2p(const struct layout *l, const struct peer *a,
                   const struct peer *b)
{
    enum path path;

    if (a->host_id != b->host_id)
        return l->mnnvl && p2p_level() >= PATH_NVL;
    path = transport_gpu_path(a->gpu, b->gpu);
    return path <= p2p_level() &&
           (hardware()->p2p || path == PATH_LOC || path == PATH_NVL);
}

enum path transport_peer_path(const struct layout *l, const struct peer *a,
                              const struct peer *b)
{
    enum path path = a->host_id == b->host_id
                         ? transport_gpu_path(a->gpu, b->gpu)
                         : PATH_NVL;

    return can_p2p(l, a, b) || path > PATH_PHB ? path : PATH_PHB;
}

int transport_p2p_is_refused(int a, int b)
{
    enum path path = transport_gpu_path(a, b);

    return !hardware()->p2p && path > PATH_NVL && path <= p2p_level();
}

static const char *p2p_name(const struct layout *l, const struct peer *a,
                            const struct peer *b)
{
    if (a->host_id == b->host_id && a->pid == b->pid &&
        transport_parameter("NCCL_P2P_DIRECT_DISABLE", 0) == 0)
        return a->gpu == b->gpu && nccl_release() < 2500 ? "common device"
                                                         : "direct pointer";
    if (!has_cumem())
        return "IPC";
    return l->mnnvl ? "MNNVL" : "CUMEM";
}

/* A100s read over NVLink, others write. */
static const char *read_suffix(const struct peer *a, const struct peer *b)
{
    return hardware()->nvlink_version == 3 && nccl_release() >= 20700 &&
                   transport_gpu_path(a->gpu, b->gpu) == PATH_NVL
               ? "/read"
               : "";
}

static const char *shm_name(void)
{
    if (nccl_release() < 21403)
        return "direct shared memory";
    return nccl_release() < 23003 ? "SHM/direct/direct" : "SHM/direct";
}

/* The rank of the sender's node whose own NIC it is, that hands on what it gets
 * over NVLink: PXN, since 2.12. */
static int proxy_of(struct ncclComm *comm, const struct layout *l, int src,
                    int nic)
{
    if (nccl_release() < 21207 || !hardware()->nvlink ||
        transport_parameter("NCCL_PXN_DISABLE", 0) == 1)
        return LAYOUT_NONE;
    for (int i = 0; i < l->nranks; i++) {
        const struct peer *p = layout_peer(comm, i);

        if (p->host_id == layout_peer(comm, src)->host_id &&
            can_p2p(l, layout_peer(comm, src), p) &&
            network_nic_of_gpu(p->gpu) == nic && network_has_gdr(p->gpu, nic))
            return i;
    }
    return LAYOUT_NONE;
}

/* A ring leaves by the NIC of the rank where it came in; a send of the user's
 * by the one that is the receiver's on its own node. */
static int wanted_nic(struct ncclComm *comm, const struct layout *l,
                      int channel, enum connector connector, int src, int dst)
{
    const int *ring = l->ring + (size_t)channel * (size_t)l->nranks;

    if (channel >= l->channels) /* of NVLS alone */
        return network_nic_of_gpu(layout_peer(comm, src)->gpu);
    if (connector == CONNECTOR_P2P)
        return network_nic_of_gpu(layout_peer(comm, dst)->gpu);
    for (int i = 0; i < l->nranks; i++) {
        if (l->node[ring[i]] == l->node[src])
            return network_nic_of_gpu(layout_peer(comm, ring[i])->gpu);
    }
    return network_nic_of_gpu(layout_peer(comm, src)->gpu);
}

struct net_way transport_net_way(struct ncclComm *comm, int channel,
                                 enum connector connector, enum end end,
                                 int src, int dst)
{
    const struct layout *l = layout_of(comm);
    int gpu = layout_peer(comm, end == END_SEND ? src : dst)->gpu;
    struct net_way way = {network_nic_of_gpu(gpu), gpu, LAYOUT_NONE};
    int wanted = wanted_nic(comm, l, channel, connector, src, dst);
    int proxy = LAYOUT_NONE;

    if (end == END_SEND &&
        (wanted != way.nic || !network_has_gdr(gpu, way.nic)))
        proxy = proxy_of(comm, l, src, wanted);
    if (proxy != LAYOUT_NONE)
        way = (struct net_way){wanted, layout_peer(comm, proxy)->gpu, proxy};
    return way;
}

static void net_name(struct ncclComm *comm, int channel,
                     enum connector connector, enum end end, int src, int dst,
                     char *text, int size)
{
    struct net_way way =
        transport_net_way(comm, channel, connector, end, src, dst);
    char proxy[16] = "";

    if (way.proxy != LAYOUT_NONE)
        snprintf(proxy, sizeof(proxy), "(%d)", way.proxy);
    snprintf(text, (size_t)size, "NET/%s/%d%s%s%s", network_used()->name,
             way.nic, proxy, network_has_gdr(way.gpu, way.nic) ? "/GDRDMA" : "",
             connector == CONNECTOR_P2P ? "/Shared" : "");
}

int transport_via(struct ncclComm *comm, int channel, enum connector connector,
                  enum end end, int src, int dst, char *text, int size)
{
    const struct layout *l = layout_of(comm);
    const struct peer *a = layout_peer(comm, src);
    const struct peer *b = layout_peer(comm, dst);

    if (can_p2p(l, a, b)) {
        snprintf(text, (size_t)size, "P2P/%s%s", p2p_name(l, a, b),
                 read_suffix(a, b));
        return 0;
    }
    if (a->host_id == b->host_id &&
        transport_parameter("NCCL_SHM_DISABLE", 0) != 1) {
        snprintf(text, (size_t)size, "%s", shm_name());
        return 0;
    }
    net_name(comm, channel, connector, end, src, dst, text, size);
    return 1;
}
