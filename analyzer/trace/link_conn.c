/* What NCCL's log says of a connection. It names the transport; what P2P runs
 * on, and which kind of port a network has, the topology tells. */
#include <stdio.h>
#include <string.h>

#include "trace/links.h"
#include "trace/via.h"

/* What NCCL has for two ranks, which may be more than it will use. */
#define UNSHOWN ", no connection shown"

/* Row with comm >= comm. */
static int first_of_comm(const char *rows, int n, size_t size, int comm)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = low + (high - low) / 2;
        int found;

        memcpy(&found, rows + (size_t)middle * size, sizeof(found));
        if (found < comm)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int ct_rows_of_comm(const void *rows, int n, size_t size, int comm, int *n_p)
{
    const int first = first_of_comm(rows, n, size, comm);

    *n_p = first_of_comm(rows, n, size, comm + 1) - first;
    return first;
}

static int compare(const struct ct_conn_row *row, int comm, int src, int dst)
{
    if (row->comm != comm)
        return row->comm < comm ? -1 : 1;
    if (row->src != src)
        return row->src < src ? -1 : 1;
    return (row->dst > dst) - (row->dst < dst);
}

static int first_from(const struct ct_process *p, int comm, int src, int dst)
{
    int low = 0, high = p->nccl.nconns;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (compare(&p->nccl.conns[middle], comm, src, dst) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Those from src to dst. *n_p may be 0. */
static const struct ct_conn_row *conns_between(const struct ct_process *process,
                                               int comm, int src, int dst,
                                               int *n_p)
{
    const struct ct_nccl_words *words = &process->nccl;
    const int first = first_from(process, comm, src, dst);
    int end = first;

    while (end < words->nconns && !compare(&words->conns[end], comm, src, dst))
        end++;
    *n_p = end - first;
    return *n_p ? &words->conns[first] : NULL;
}

const struct ct_conn_row *ct_conns_in(const struct ct_process *process,
                                      int comm, int *n_p)
{
    const struct ct_nccl_words *words = &process->nccl;
    const int first = ct_rows_of_comm(words->conns, words->nconns,
                                      sizeof(*words->conns), comm, n_p);

    return *n_p ? &words->conns[first] : NULL;
}

static const struct ct_nccl_comm_row *said_of(const struct ct_process *p,
                                              const struct ct_comm_row *comm)
{
    int n,
        i = ct_rows_of_comm(p->nccl.comms, p->nccl.ncomms,
                            sizeof(*p->nccl.comms), (int)(comm - p->comms), &n);

    for (; n > 0; n--, i++)
        if (!p->nccl.comms[i].plugin)
            return &p->nccl.comms[i];
    return NULL;
}

/* Worst way inside the node of the graph that NCCL found; its rings count, the
 * first pattern where there is none. NULL: not said. */
static const char *graph_type(const struct ct_process *p,
                              const struct ct_comm_row *comm)
{
    const char *type = NULL;
    int n, i = ct_rows_of_comm(p->nccl.graphs, p->nccl.ngraphs,
                               sizeof(*p->nccl.graphs), (int)(comm - p->comms),
                               &n);

    for (; n > 0; n--, i++)
        if (!type || p->nccl.graphs[i].pattern == 4)
            type = p->nccl.graphs[i].intra_type;
    return type;
}

static const struct {
    const char *type;
    enum ct_link link;
} graph_links[] = {
    {"NVL", CT_LINK_NVLINK},    {"NVB", CT_LINK_NVLINK},
    {"C2C", CT_LINK_C2C},       {"PIX", CT_LINK_PCIE},
    {"PXB", CT_LINK_PCIE},      {"P2C", CT_LINK_PCIE_HOST},
    {"PHB", CT_LINK_PCIE_HOST}, {"SYS", CT_LINK_PCIE_HOST},
};

static bool has_nvls(const struct ct_ends *ends)
{
    const struct ct_nccl_comm_row *said = said_of(ends->a, ends->comm_a);

    return said && said->nvls_channels > 0;
}

/* P2P on one host: by the topology, else by the graph. */
static void p2p_inside(const struct ct_ends *ends, const struct ct_via *via,
                       struct ct_link_fact *fact)
{
    const char *type = graph_type(ends->a, ends->comm_a);
    struct ct_link_fact topology = {.link = CT_LINK_NODE, .speed = CT_NONE};
    size_t i;

    ct_link_by_topology(ends, &topology);
    fact->link = CT_LINK_NODE;
    if (topology.link != CT_LINK_SHM && topology.link != CT_LINK_NODE) {
        fact->link = topology.link;
        fact->speed = topology.speed;
    } else {
        for (i = 0; type && i < sizeof(graph_links) / sizeof(*graph_links); i++)
            if (!strcmp(type, graph_links[i].type))
                fact->link = graph_links[i].link;
    }
    if (via->indirect && fact->link > CT_LINK_NVSWITCH) {
        fact->link = CT_LINK_NVLINK; /* both hops over a third GPU are */
        fact->speed = CT_NONE;
    }
    if (fact->link == CT_LINK_NVLINK && topology.link == CT_LINK_NODE &&
        has_nvls(ends))
        fact->link = CT_LINK_NVSWITCH;
}

/* Which of the two it is, one side alone does not know. */
static bool p2p(const struct ct_ends *ends, const struct ct_via *via,
                struct ct_link_fact *fact)
{
    struct ct_link_fact topology = {.link = CT_LINK_NODE, .speed = CT_NONE};

    if (!ends->a || !ends->b)
        return false;
    if (ct_one_node(ends)) {
        p2p_inside(ends, via, fact);
        return true;
    }
    ct_link_by_topology(ends, &topology);
    fact->link = CT_LINK_MNNVL;
    if (topology.link == CT_LINK_MNNVL)
        fact->speed = topology.speed;
    return via->mnnvl || topology.link == CT_LINK_MNNVL;
}

static bool network(const struct ct_process *teller, const struct ct_via *via,
                    struct ct_link_fact *fact)
{
    struct ct_via_port port;

    ct_via_port(teller, via, &port);
    fact->speed = port.mbps;
    if (via->transport == CT_VIA_SOCKET)
        fact->link = CT_LINK_TCP;
    else if (via->transport == CT_VIA_PLUGIN)
        fact->link = CT_LINK_NET_PLUGIN;
    else if (!port.link_layer)
        fact->link = CT_LINK_NETWORK;
    else
        fact->link = strcmp(port.link_layer, "Ethernet") != 0 ? CT_LINK_IB
                                                              : CT_LINK_ROCE;
    if (*port.name) {
        const size_t used = strlen(fact->detail);

        snprintf(fact->detail + used, sizeof(fact->detail) - used, ", %s",
                 port.name);
    }
    return true;
}

/* Lines of connections at first use name no communicator, and may be filed
 * under another one of their rank: what cannot be is not believed. */
bool ct_link_of_conn(const struct ct_ends *ends, const struct ct_conn_row *conn,
                     const struct ct_process *teller, struct ct_link_fact *fact)
{
    const struct ct_via via = ct_via_parse(conn->via);

    fact->speed = CT_NONE;
    fact->evidence = "conn";
    snprintf(fact->detail, sizeof(fact->detail), "via %.90s", conn->via);
    fact->link = CT_LINK_SHM;
    if (via.transport == CT_VIA_P2P)
        return p2p(ends, &via, fact);
    if (ct_via_is_network(&via))
        return network(teller, &via, fact);
    return via.transport == CT_VIA_SHM &&
           (!ends->a || !ends->b || ct_one_node(ends));
}

/* Of the connections of src to dst that p tells of, the worst; those of
 * send/recv where there are any, since one operation's bytes go over these. */
static bool worst_of(const struct ct_ends *ends, const struct ct_process *p,
                     const struct ct_comm_row *comm, int src, int dst,
                     struct ct_link_fact *fact)
{
    const struct ct_conn_row *rows;
    bool found = false, direct = false;
    int n, i;

    if (!p)
        return false;
    rows = conns_between(p, (int)(comm - p->comms), src, dst, &n);
    for (i = 0; i < n; i++)
        direct = direct || rows[i].connector == 1;
    for (i = 0; i < n; i++) {
        struct ct_link_fact seen = {.speed = CT_NONE};

        if ((direct && rows[i].connector != 1) ||
            !ct_link_of_conn(ends, &rows[i], p, &seen))
            continue;
        if (!found || ct_link_is_worse(&seen, fact))
            *fact = seen;
        found = true;
    }
    return found;
}

/* NVLink SHARP joins all GPUs of the node, and shows no connections. */
static bool by_nvls(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    struct ct_link_fact topology = {.link = CT_LINK_NODE, .speed = CT_NONE};

    if (!ct_one_node(ends) || !has_nvls(ends))
        return false;
    ct_link_by_topology(ends, &topology);
    fact->link = CT_LINK_NVSWITCH;
    fact->speed = topology.link <= CT_LINK_NVSWITCH ? topology.speed : CT_NONE;
    fact->evidence = "conn";
    snprintf(fact->detail, sizeof(fact->detail), "%d NVLS channels" UNSHOWN,
             said_of(ends->a, ends->comm_a)->nvls_channels);
    return true;
}

static bool in_one_fabric(const struct ct_ends *ends)
{
    struct ct_link_fact fact = {.link = CT_LINK_NODE};

    return ct_link_by_topology(ends, &fact) && fact.link == CT_LINK_MNNVL;
}

/* Over whichever port of NCCL's on each side: known where both sides' are. */
static int64_t slowest_port(const struct ct_ends *ends,
                            const struct ct_via *via)
{
    struct ct_via_port a, b;

    ct_via_port(ends->a, via, &a);
    ct_via_port(ends->b, via, &b);
    return a.mbps == CT_NONE || b.mbps == CT_NONE ? CT_NONE
                                                  : ct_slower(a.mbps, b.mbps);
}

/* What NCCL did not connect yet goes over the network that it has for it. Its
 * "IB" does not tell InfiniBand from RoCE: the ports do. */
static bool by_network(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    const struct ct_nccl_comm_row *said;
    char text[80];
    struct ct_via via;

    if (!ends->a || !ends->b || ct_one_node(ends))
        return false;
    said = said_of(ends->a, ends->comm_a);
    if (!said || !said->network || said->mnnvl == 1 ||
        (said->mnnvl == CT_NONE && in_one_fabric(ends)))
        return false;
    snprintf(text, sizeof(text), "NET/%.60s/", said->network);
    via = ct_via_parse(text);
    fact->link = CT_LINK_NETWORK;
    fact->speed = CT_NONE;
    if (via.transport == CT_VIA_SOCKET) {
        fact->link = CT_LINK_TCP;
        fact->speed = slowest_port(ends, &via);
    } else if (via.transport == CT_VIA_PLUGIN) {
        fact->link = CT_LINK_NET_PLUGIN;
    } else {
        ct_link_by_ports(ends, fact);
    }
    fact->evidence = "conn";
    snprintf(fact->detail, sizeof(fact->detail), "Using network %.60s" UNSHOWN,
             said->network);
    return true;
}

/* The two directions have one transport, but may have been set up apart. */
bool ct_link_by_conn(const struct ct_ends *ends, struct ct_link_fact *fact)
{
    const int rank = ends->rank, peer = ends->peer;

    return worst_of(ends, ends->a, ends->comm_a, rank, peer, fact) ||
           worst_of(ends, ends->b, ends->comm_b, rank, peer, fact) ||
           worst_of(ends, ends->b, ends->comm_b, peer, rank, fact) ||
           worst_of(ends, ends->a, ends->comm_a, peer, rank, fact) ||
           by_nvls(ends, fact) || by_network(ends, fact);
}
