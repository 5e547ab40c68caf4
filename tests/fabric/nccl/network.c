#include "nccl/network.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nccl/release.h"
#include "nccl/transport.h"

/* One of a list like "mlx5_0:1,mlx5_1": names that begin so, or with "=" are
 * so, or with "^" the others. */
static int is_listed(const char *list, const char *name)
{
    int without = *list == '^';
    int exact;
    int found = 0;
    char text[512];
    char *save = NULL;

    list += without;
    exact = *list == '=';
    list += exact;
    snprintf(text, sizeof(text), "%s", list);
    for (char *item = strtok_r(text, ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        item[strcspn(item, ":")] = '\0';
        found |=
            exact ? !strcmp(item, name) : !strncmp(item, name, strlen(item));
    }
    return found != without;
}

static void add_nic(struct network *n, int place, const char *name,
                    const char *list)
{
    if (list && *list && !is_listed(list, name))
        return;
    n->nic[n->n].place = place;
    snprintf(n->nic[n->n].name, FABRIC_NIC_NAME, "%s", name);
    n->n++;
}

static void add_machine_nics(struct network *n, const char *list)
{
    const struct fabric_config *config = fabric_config();
    char name[FABRIC_NIC_NAME];

    for (int i = 0; i < fabric_nics(config); i++) {
        fabric_nic_name(config, i, name);
        add_nic(n, i, name, list);
    }
    n->mbps = config->hardware.nic_mbps;
}

static int is_wanted(const char *name)
{
    const char *wanted = getenv("NCCL_NET");

    return !wanted || !*wanted || !strcasecmp(wanted, name);
}

/* Names of the machine's network that can be used; its NICs. */
static int use_fast(struct network *n)
{
    const struct fabric_hardware *h = &fabric_config()->hardware;
    const char *plugin = getenv("NCCL_NET_PLUGIN");
    int is_plugin = h->network == FABRIC_PLUGIN;

    if (h->network == FABRIC_TCP)
        return 0;
    snprintf(n->name, sizeof(n->name), "%s", is_plugin ? h->plugin : "IB");
    if (!is_wanted(n->name))
        return 0;
    if (is_plugin ? plugin && !strcmp(plugin, "none")
                  : transport_parameter("NCCL_IB_DISABLE", 0) != 0)
        return 0;
    add_machine_nics(n, is_plugin ? NULL : getenv("NCCL_IB_HCA"));
    n->gdr = h->gdr;
    return n->n > 0;
}

static void use_sockets(struct network *n)
{
    const char *list = getenv("NCCL_SOCKET_IFNAME");

    *n = (struct network){.name = "Socket", .is_socket = 1};
    if (fabric_config()->hardware.network == FABRIC_TCP) {
        add_machine_nics(n, list);
    } else {
        n->mbps = FABRIC_ETHERNET_MBPS;
        add_nic(n, -1, "eth0", list);
    }
    if (!n->n) { /* lo, say: whatever the list names is there */
        n->nic[0].place = -1;
        snprintf(n->nic[0].name, FABRIC_NIC_NAME, "%.15s",
                 list ? list + strspn(list, "^=") : "eth0");
        n->n = 1;
    }
}

static struct network used;

static void decide(void)
{
    if (!use_fast(&used))
        use_sockets(&used);
}

const struct network *network_used(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, decide);
    return &used;
}

int network_nic_of_gpu(int gpu)
{
    const struct network *n = network_used();
    int place = fabric_nic_of_gpu(fabric_config(), gpu);

    for (int i = 0; i < n->n; i++) {
        if (n->nic[i].place == place)
            return i;
    }
    /* Its own is not in use: the others in turn. */
    return gpu % n->n;
}

int network_has_gdr(int gpu, int nic)
{
    const struct network *n = network_used();

    return n->gdr && transport_gdr_distance(gpu, n->nic[nic].place) <=
                         transport_gdr_level();
}
