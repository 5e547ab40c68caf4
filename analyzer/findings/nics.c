/*
 * NIC_FAR_FROM_GPU and GDR_OFF: a connection goes through a port that its GPU
 * reaches badly, or past the GPU's memory.
 */
#include <stdio.h>
#include <string.h>

#include "findings/conns.h"

static const char *path_to(const struct ct_process *p, int device,
                           const struct ct_nic_row *nic)
{
    for (int i = 0; i < p->ngpu_nics; i++)
        if (p->gpu_nics[i].device == device && p->gpu_nics[i].nic == nic->id)
            return p->gpu_nics[i].path;
    return NULL;
}

/* The port of at's own end, where it is known which one that is; the port of
 * another GPU (PXN) is near to that one. */
static bool own_port(const struct ct_conn_at *at, struct ct_via_port *port)
{
    if (!at->own_end || at->via.transport != CT_VIA_VERBS || at->via.proxy)
        return false;
    ct_via_port(at->teller, &at->via, port);
    return port->nic != NULL;
}

static void is_via(const struct ct_case *c, const struct ct_conn_at *at,
                   struct ct_bad_link *bad)
{
    ct_conn_link(c->trace, c->job, at->comm, at->teller, at->row, &bad->is);
}

/* The nearest port that is as good as nic. */
static const struct ct_nic_row *nearest(const struct ct_process *p, int device,
                                        const struct ct_nic_row *nic)
{
    const struct ct_nic_row *best = NULL;
    int least = ct_path_distance(path_to(p, device, nic));

    for (int i = 0; i < p->nnics; i++) {
        const struct ct_nic_row *other = &p->nics[i];
        const int apart = ct_path_distance(path_to(p, device, other));

        if (!ct_nic_is_verbs(other) || other->mbps < nic->mbps || apart < 0 ||
            apart >= least || !nic->link_layer ||
            strcmp(other->link_layer, nic->link_layer) != 0)
            continue;
        least = apart;
        best = other;
    }
    return best;
}

static bool far_is_bad(const struct ct_case *c, const struct ct_conn_at *at,
                       struct ct_bad_link *bad)
{
    static const char *const words[] = {"NCCL_IB_HCA", "NCCL_NET_GDR_LEVEL",
                                        "NCCL_CROSS_NIC", NULL};
    struct ct_via_port port;

    if (!own_port(at, &port) ||
        ct_path_distance(path_to(at->teller, at->row_of->device, port.nic)) <=
            ct_path_distance("PXB") ||
        !nearest(at->teller, at->row_of->device, port.nic))
        return false;
    is_via(c, at, bad);
    bad->reason = ct_log_reason(at, words);
    return true;
}

static void tell_far(const struct ct_case *c, const struct ct_conn_at *at,
                     const struct ct_bad_link *bad, char *text, size_t size)
{
    const int device = at->row_of->device;
    const struct ct_nic_row *near;
    struct ct_via_port port;

    (void)c;
    ct_via_port(at->teller, &at->via, &port);
    near = nearest(at->teller, device, port.nic);
    snprintf(text, size,
             "rank %d sends or receives %.60s, which its GPU reaches over %s "
             "(%.60s), while %.20s is as fast and %s away",
             at->teller->rank, bad->is.detail,
             path_to(at->teller, device, port.nic), port.nic->source,
             near ? near->name : "?",
             near ? path_to(at->teller, device, near) : "?");
}

static void advise_far(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (bad->reason)
        snprintf(text, size,
                 "let NCCL choose among all ports: take that variable out, or "
                 "name all ports in it");
    else
        snprintf(text, size,
                 "a container that hides PCIe makes NCCL guess: mount the "
                 "host's /sys, or give NCCL_TOPO_FILE");
}

/* GeForce cards cannot. */
static bool can_gdr(const struct ct_conn_at *at)
{
    const struct ct_device_row *gpu = ct_device_of(at->teller, at->row_of);

    return gpu && !(gpu->name && strstr(gpu->name, "GeForce"));
}

/* "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'" */
static const char *disabled_line(const struct ct_process *p, const char *name)
{
    char quoted[80];

    snprintf(quoted, sizeof quoted, "'%s'", name);
    for (int i = 0; i < p->nccl.nmessages; i++)
        if (strstr(p->nccl.messages[i].text, "GPU Direct RDMA Disabled") &&
            strstr(p->nccl.messages[i].text, quoted))
            return p->nccl.messages[i].text;
    return NULL;
}

static bool gdr_is_bad(const struct ct_case *c, const struct ct_conn_at *at,
                       struct ct_bad_link *bad)
{
    static const char *const words[] = {
        "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_IB_GDR_LEVEL",
        "NCCL_NET_GDR_C2C", NULL};
    struct ct_via_port port;
    const char *line, *path;

    if (at->via.gdr || !own_port(at, &port) || !can_gdr(at))
        return false;
    path = path_to(at->teller, at->row_of->device, port.nic);
    line = disabled_line(at->teller, port.name);
    if (path ? ct_path_distance(path) > ct_path_distance("PXB") : !line)
        return false;
    is_via(c, at, bad);
    bad->reason = ct_log_reason(at, words);
    if (!bad->reason)
        bad->reason = line;
    return true;
}

static void tell_gdr(const struct ct_case *c, const struct ct_conn_at *at,
                     const struct ct_bad_link *bad, char *text, size_t size)
{
    struct ct_via_port port;
    const char *path;

    (void)c;
    ct_via_port(at->teller, &at->via, &port);
    path = path_to(at->teller, at->row_of->device, port.nic);
    snprintf(text, size,
             "rank %d sends or receives %.60s, through host memory instead of "
             "GPUDirect RDMA (GDRDMA)%s%s (%.60s)",
             at->teller->rank, bad->is.detail,
             path ? ", although its GPU reaches the port over " : "",
             path ? path : "", port.nic->source);
}

static void advise_gdr(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (!ct_advise_unset(bad, text, size))
        snprintf(text, size,
                 "load nvidia_peermem on the hosts, or use a driver and kernel "
                 "with DMA-BUF, and let the container see them");
}

static const struct ct_link_rule rules[] = {
    {CT_FINDING_NIC_FAR_FROM_GPU, far_is_bad, tell_far, advise_far},
    {CT_FINDING_GDR_OFF, gdr_is_bad, tell_gdr, advise_gdr},
};

bool ct_rule_nics(struct ct_case *c, struct ct_findings *findings)
{
    return ct_link_rules(c, rules, sizeof rules / sizeof *rules, findings);
}
