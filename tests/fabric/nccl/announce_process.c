#include "nccl/announce.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#include "common/config.h"
#include "common/identity.h"
#include "nccl/log.h"
#include "nccl/network.h"
#include "nccl/release.h"
#include "nccl/settings.h"
#include "nccl/transport.h"

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

void announce_first(void)
{
    static _Atomic int said;

    if (!log_wants((unsigned)LOG_ALL) || atomic_exchange(&said, 1))
        return;
    settings_announce(SETTING_COMMUNICATOR);
    announce_network();
}
