/* What the machine has between two GPUs: what could be used, and unless NCCL
 * was told otherwise is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/links.h"
#include "trace/via.h"

static bool same_fabric(const struct ct_device_row *a,
                        const struct ct_device_row *b)
{
    return ct_same_name(a->cluster, b->cluster) &&
           a->cluster[strspn(a->cluster, "0-")] && a->clique == b->clique;
}

static const struct ct_gpu_link_row *
find_switch(const struct ct_process *p, const struct ct_device_row *device)
{
    int i;

    for (i = 0; i < p->ngpu_links; i++)
        if (p->gpu_links[i].device == device->id &&
            !strcmp(p->gpu_links[i].kind, "nvswitch"))
            return &p->gpu_links[i];
    return NULL;
}

/* NVLink version of any link of device; CT_NONE: not known. */
static int64_t version_of(const struct ct_process *p,
                          const struct ct_device_row *device)
{
    int i, version = 0;

    for (i = 0; i < p->ngpu_links; i++)
        if (p->gpu_links[i].device == device->id &&
            p->gpu_links[i].version > version)
            version = p->gpu_links[i].version;
    return version ? version : CT_NONE;
}

static enum ct_link link_of(const struct ct_gpu_link_row *row)
{
    if (!strcmp(row->kind, "nvlink") || !strcmp(row->kind, "nvswitch"))
        return CT_LINK_NVLINK;
    if (!strcmp(row->kind, "none"))
        return CT_LINK_SHM;
    if (strcmp(row->kind, "pcie") != 0)
        return CT_LINK_NODE;
    return row->path && (!strcmp(row->path, "PHB") || !strcmp(row->path, "SYS"))
               ? CT_LINK_PCIE_HOST
               : CT_LINK_PCIE;
}

/* What p says of the way from its device to peer's: the best of its rows. */
static bool link_to(const struct ct_process *p,
                    const struct ct_device_row *device,
                    const struct ct_device_row *peer, struct ct_link_fact *fact)
{
    const struct ct_gpu_link_row *best = NULL;
    int i;

    for (i = 0; i < p->ngpu_links; i++) {
        const struct ct_gpu_link_row *row = &p->gpu_links[i];

        if (row->device == device->id &&
            ct_same_name(row->peer_pci, peer->pci) &&
            link_of(row) != CT_LINK_NODE &&
            (!best || link_of(row) < link_of(best)))
            best = row;
    }
    if (!best)
        return false;
    fact->link = link_of(best);
    fact->speed = fact->link == CT_LINK_NVLINK && best->version > 0
                      ? best->version
                      : CT_NONE;
    fact->evidence = "topology";
    if (fact->link == CT_LINK_NVLINK)
        snprintf(fact->detail, sizeof(fact->detail),
                 "%d NVLinks, %.30s to %.30s", best->links,
                 device->pci ? device->pci : "?", best->peer_pci);
    else
        snprintf(fact->detail, sizeof(fact->detail), "%s%s%s, %.30s to %.30s",
                 fact->link == CT_LINK_SHM ? "no P2P" : best->kind,
                 best->path ? " " : "", best->path ? best->path : "",
                 device->pci ? device->pci : "?", best->peer_pci);
    return true;
}

static bool inside(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    const struct ct_gpu_link_row *a = find_switch(ends->a, ends->gpu_a);
    const struct ct_gpu_link_row *b = find_switch(ends->b, ends->gpu_b);

    if (!a || !b)
        return link_to(ends->a, ends->gpu_a, ends->gpu_b, fact) ||
               link_to(ends->b, ends->gpu_b, ends->gpu_a, fact);
    fact->link = CT_LINK_NVSWITCH;
    fact->speed = ct_slower(a->version > 0 ? a->version : CT_NONE,
                            b->version > 0 ? b->version : CT_NONE);
    fact->evidence = "topology";
    snprintf(fact->detail, sizeof(fact->detail),
             "%d and %d NVLinks to NVSwitches", a->links, b->links);
    return true;
}

struct ports { /* that NCCL's verbs transport could use on one host */
    int n;
    const char *link_layer; /* NULL: of several kinds */
    int64_t mbps;           /* the slowest */
    const char *name;
};

static struct ports verbs_of(const struct ct_process *p)
{
    struct ports ports = {.mbps = CT_NONE};
    int i;

    for (i = 0; i < p->nnics; i++) {
        const struct ct_nic_row *nic = &p->nics[i];

        if (!ct_nic_is_verbs(nic))
            continue;
        if (ports.n++ == 0) {
            ports.link_layer = nic->link_layer;
            ports.name = nic->name;
        } else if (!ct_same_name(ports.link_layer, nic->link_layer)) {
            ports.link_layer = NULL;
        }
        ports.mbps = ct_slower(ports.mbps, nic->mbps > 0 ? nic->mbps : CT_NONE);
    }
    return ports;
}

/* Ports of one kind on both hosts: without NCCL's word it may still be TCP, as
 * it may be shared memory inside a host. */
bool ct_link_by_ports(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    const struct ports a = verbs_of(ends->a), b = verbs_of(ends->b);

    if (!a.n || !b.n || !ct_same_name(a.link_layer, b.link_layer))
        return false;
    fact->link =
        strcmp(a.link_layer, "Ethernet") != 0 ? CT_LINK_IB : CT_LINK_ROCE;
    fact->speed = ct_slower(a.mbps, b.mbps);
    fact->evidence = "topology";
    snprintf(fact->detail, sizeof(fact->detail),
             "RDMA ports: %d and %d, as %.30s", a.n, b.n, a.name);
    return true;
}

bool ct_link_by_topology(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    if (!ends->a || !ends->b)
        return false;
    if (ct_one_node(ends))
        return ends->gpu_a && ends->gpu_b && inside(ends, fact);
    if (!ends->gpu_a || !ends->gpu_b || !same_fabric(ends->gpu_a, ends->gpu_b))
        return ct_link_by_ports(ends, fact);
    fact->link = CT_LINK_MNNVL;
    fact->speed = ct_slower(version_of(ends->a, ends->gpu_a),
                            version_of(ends->b, ends->gpu_b));
    fact->evidence = "topology";
    snprintf(fact->detail, sizeof(fact->detail),
             "one NVLink fabric, clique %d of %.60s", ends->gpu_a->clique,
             ends->gpu_a->cluster);
    return true;
}

bool ct_link_by_host(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    const bool one = ct_one_node(ends);

    if (!ends->a || !ends->b)
        return false;
    fact->link = one ? CT_LINK_NODE : CT_LINK_NETWORK;
    fact->evidence = "host";
    snprintf(fact->detail, sizeof(fact->detail), "%s",
             one ? "on one host" : "on different hosts");
    return true;
}
