/*
 * A transport as NCCL's log names it ("P2P/CUMEM", "NET/IB/3(7)/GDRDMA"), taken
 * apart, and the network port that it goes through.
 */
#ifndef COMMTRACE_VIA_H
#define COMMTRACE_VIA_H

#include "trace/trace.h"

enum ct_transport {
    CT_VIA_UNKNOWN,
    CT_VIA_P2P,
    CT_VIA_SHM,
    CT_VIA_VERBS, /* InfiniBand or RoCE */
    CT_VIA_SOCKET,
    CT_VIA_PLUGIN
};

struct ct_via {
    enum ct_transport transport;
    bool indirect; /* P2P through a third GPU */
    bool mnnvl;    /* P2P to another host */
    bool gdr;      /* the network reads and writes the GPU's memory */
    bool proxy;    /* over the port of another GPU (PXN) */
    int device;    /* NCCL's number of the port; CT_NONE: none */
};

struct ct_via ct_via_parse(const char *text);

static inline bool ct_via_is_network(const struct ct_via *via)
{
    return via->transport >= CT_VIA_VERBS;
}

struct ct_via_port {
    char name[64];                /* "mlx5_0", "eth0"; "": not known which */
    int port;                     /* CT_NONE: not said */
    const char *link_layer;       /* InfiniBand, Ethernet; NULL: unknown */
    int64_t mbps;                 /* CT_NONE: unknown */
    const struct ct_nic_row *nic; /* its row; NULL: none */
};

/* Which port that is, on the side of process: by the list that NCCL prints of
 * the ports it uses, without a number what all of these have in common, else
 * what all ports that it may be have. */
void ct_via_port(const struct ct_process *process, const struct ct_via *via,
                 struct ct_via_port *port);

/* Whether a port is up, and such as NCCL's own InfiniBand transport uses. */
bool ct_nic_is_verbs(const struct ct_nic_row *nic);

#endif
