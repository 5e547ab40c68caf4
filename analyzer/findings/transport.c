/*
 * P2P_DISABLED, SHM_DISABLED, IB_FELL_BACK_TO_TCP: NCCL took a worse way than
 * the machine has.
 */
#include <stdio.h>
#include <string.h>

#include "findings/conns.h"

static bool link_of(const struct ct_case *c, const struct ct_conn_at *at,
                    struct ct_bad_link *bad)
{
    const int src = at->row->src, dst = at->row->dst;

    ct_pair_topology(c->trace, c->job, at->comm, src, dst, &bad->could);
    ct_conn_link(c->trace, c->job, at->comm, at->teller, at->row, &bad->is);
    return bad->is.link != CT_LINK_UNKNOWN;
}

/* NCCL does not use P2P over a CPU unless it is told to, and what the driver
 * forbids it cannot. */
static bool is_p2p_capable(const struct ct_link_fact *topology)
{
    return topology->link != CT_LINK_SELF && topology->link <= CT_LINK_PCIE;
}

/* By NVLink or PCIe: nothing else leads out of a host. */
static bool may_be_joined(const struct ct_conn_at *at)
{
    return at->other && (at->other->node == at->teller->node ||
                         at->other->domain == at->teller->domain);
}

/* To go over the network may be better than PCIe where ports are near. */
static bool p2p_is_bad(const struct ct_case *c, const struct ct_conn_at *at,
                       struct ct_bad_link *bad)
{
    static const char *const words[] = {"NCCL_P2P_DISABLE",
                                        "NCCL_MNNVL_ENABLE",
                                        "NCCL_P2P_LEVEL",
                                        "P2P is disabled between",
                                        "ACS",
                                        NULL};

    if (at->via.transport == CT_VIA_P2P ||
        at->via.transport == CT_VIA_UNKNOWN || !may_be_joined(at) ||
        !link_of(c, at, bad) || !is_p2p_capable(&bad->could))
        return false;
    if (bad->could.link == CT_LINK_PCIE && at->via.transport != CT_VIA_SHM)
        return false;
    bad->reason = ct_log_reason(at, words);
    return true;
}

static void tell_p2p(const struct ct_case *c, const struct ct_conn_at *at,
                     const struct ct_bad_link *bad, char *text, size_t size)
{
    char link[40];

    ct_link_text(bad->could.link, bad->could.speed, link, sizeof link);
    snprintf(text, size,
             "rank %d reaches rank %d %s, although the machine has %s between "
             "their GPUs (%s)",
             ct_job_rank(c, at->comm, at->row->src),
             ct_job_rank(c, at->comm, at->row->dst), bad->is.detail, link,
             bad->could.detail);
}

static void advise_p2p(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (ct_advise_unset(bad, text, size))
        return;
    if (bad->reason)
        snprintf(text, size,
                 "the driver forbids it: look at PCIe access control (ACS) and "
                 "the IOMMU of the host, or of the virtual machine");
    else if (bad->could.link == CT_LINK_MNNVL)
        snprintf(text, size,
                 "NCCL does not say why: hosts of one NVLink domain need the "
                 "IMEX service, its device in the container, and cuMem");
    else
        snprintf(text, size,
                 "NCCL does not say why: ranks in containers need one IPC name "
                 "space and each other's GPUs visible");
}

static bool same_node(const struct ct_conn_at *at)
{
    return at->other && at->other->node == at->teller->node;
}

/* Between near ports the network may beat shared memory, so NCCL may prefer
 * it; sockets never do. */
static bool shm_is_bad(const struct ct_case *c, const struct ct_conn_at *at,
                       struct ct_bad_link *bad)
{
    static const char *const words[] = {"NCCL_SHM_DISABLE", NULL};

    if (!ct_via_is_network(&at->via) || !same_node(at) || !link_of(c, at, bad))
        return false;
    bad->reason = ct_log_reason(at, words);
    if (!bad->reason &&
        (at->via.transport != CT_VIA_SOCKET || is_p2p_capable(&bad->could)))
        return false;
    bad->could = (struct ct_link_fact){CT_LINK_SHM, CT_NONE, "host", ""};
    return true;
}

static void tell_shm(const struct ct_case *c, const struct ct_conn_at *at,
                     const struct ct_bad_link *bad, char *text, size_t size)
{
    snprintf(text, size,
             "rank %d reaches rank %d on the same host %s, not through shared "
             "memory",
             ct_job_rank(c, at->comm, at->row->src),
             ct_job_rank(c, at->comm, at->row->dst), bad->is.detail);
}

static void advise_shm(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (!ct_advise_unset(bad, text, size))
        snprintf(text, size,
                 "NCCL does not say why: ranks in containers need one /dev/shm "
                 "and one host name or NCCL_HOSTID");
}

/* The fastest port that NCCL's InfiniBand transport could use; NULL: none. */
static const struct ct_nic_row *verbs_port(const struct ct_process *p)
{
    const struct ct_nic_row *best = NULL;

    for (int i = 0; p && i < p->nnics; i++)
        if (ct_nic_is_verbs(&p->nics[i]) &&
            (!best || p->nics[i].mbps > best->mbps))
            best = &p->nics[i];
    return best;
}

static bool tcp_is_bad(const struct ct_case *c, const struct ct_conn_at *at,
                       struct ct_bad_link *bad)
{
    static const char *const words[] = {"NCCL_IB_DISABLE",
                                        "NCCL_NET ",
                                        "NCCL_NET=",
                                        "NET/IB : No device found",
                                        "Failed to initialize NET plugin IB",
                                        "libibverbs",
                                        "NCCL_IB_HCA",
                                        NULL};
    const struct ct_nic_row *mine, *theirs;

    if (at->via.transport != CT_VIA_SOCKET || same_node(at))
        return false;
    mine = verbs_port(at->teller);
    theirs = verbs_port(at->other);
    if (!mine || (at->other && !theirs))
        return false;
    ct_conn_link(c->trace, c->job, at->comm, at->teller, at->row, &bad->is);
    bad->could.link =
        strcmp(mine->link_layer, "Ethernet") != 0 ? CT_LINK_IB : CT_LINK_ROCE;
    bad->could.speed = mine->mbps;
    if (theirs && theirs->mbps < mine->mbps)
        bad->could.speed = theirs->mbps;
    snprintf(bad->could.detail, sizeof bad->could.detail, "%.60s",
             mine->source);
    bad->reason = ct_log_reason(at, words);
    return true;
}

static void tell_tcp(const struct ct_case *c, const struct ct_conn_at *at,
                     const struct ct_bad_link *bad, char *text, size_t size)
{
    char link[40];

    ct_link_text(bad->could.link, bad->could.speed, link, sizeof link);
    snprintf(text, size,
             "rank %d reaches rank %d %s, although both hosts have active "
             "ports of %s (%s)",
             ct_job_rank(c, at->comm, at->row->src),
             ct_job_rank(c, at->comm, at->row->dst), bad->is.detail, link,
             bad->could.detail);
}

static void advise_tcp(const struct ct_bad_link *bad, char *text, size_t size)
{
    if (bad->reason && strstr(bad->reason, "NCCL_"))
        snprintf(text, size,
                 "take that variable out of the job's environment and of "
                 "nccl.conf, or correct it");
    else
        snprintf(text, size,
                 "containers need libibverbs with the port's driver, "
                 "/dev/infiniband and unlimited locked memory (ulimit -l)");
}

static const struct ct_link_rule rules[] = {
    {CT_FINDING_P2P_DISABLED, p2p_is_bad, tell_p2p, advise_p2p},
    {CT_FINDING_SHM_DISABLED, shm_is_bad, tell_shm, advise_shm},
    {CT_FINDING_IB_FELL_BACK_TO_TCP, tcp_is_bad, tell_tcp, advise_tcp},
};

bool ct_rule_transport(struct ct_case *c, struct ct_findings *findings)
{
    return ct_link_rules(c, rules, sizeof rules / sizeof *rules, findings);
}
