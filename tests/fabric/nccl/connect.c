#include "nccl/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gpu.h"
#include "nccl/layout.h"
#include "nccl/log.h"
#include "nccl/network.h"
#include "nccl/release.h"

enum { UNKNOWN, WANTED, TOLD };

/* A state per end, channel and peer, for each connector. */
struct connections {
    int channels;
    int nranks;
    unsigned algorithms;
    int new_peers;
    unsigned char *state[2];
};

struct connections *connections_new(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);
    struct connections *c = l ? calloc(1, sizeof(*c)) : NULL;
    size_t size;

    if (!c)
        return NULL;
    c->channels =
        l->channels > l->nvls_channels ? l->channels : l->nvls_channels;
    c->nranks = l->nranks;
    size = 2 * (size_t)c->channels * (size_t)c->nranks;
    c->state[0] = calloc(2, size);
    if (!c->state[0]) {
        free(c);
        return NULL;
    }
    c->state[1] = c->state[0] + size;
    return c;
}

void connections_free(struct connections *c)
{
    if (!c)
        return;
    free(c->state[0]);
    free(c);
}

static unsigned char *state_of(struct connections *c, enum connector connector,
                               enum end end, int channel, int peer)
{
    size_t index = ((size_t)end * (size_t)c->channels + (size_t)channel) *
                       (size_t)c->nranks +
                   (size_t)peer;

    return &c->state[connector][index];
}

static void want(struct connections *c, enum connector connector, enum end end,
                 int channel, int peer)
{
    unsigned char *state;

    if (peer == LAYOUT_NONE)
        return;
    state = state_of(c, connector, end, channel, peer);
    if (*state == UNKNOWN)
        *state = WANTED;
}

/* "3[1]", in some releases "3[11000]", in the oldest of a network "3". */
static void rank_text(const struct ncclComm *comm, int rank, int is_net,
                      char *text, int size)
{
    int gpu = layout_peer(comm, rank)->gpu;

    if (is_net && nccl_release() < 2500)
        snprintf(text, (size_t)size, "%d", rank);
    else if (nccl_release() >= 2500 && nccl_release() < 21800)
        snprintf(text, (size_t)size, "%d[%x]", rank, FABRIC_PCI_BUS(gpu) << 12);
    else
        snprintf(text, (size_t)size, "%d[%d]", rank, gpu);
}

/* The connector is told of networks since 2.8, of P2P since 2.18, and never of
 * shared memory. */
static void channel_text(int channel, enum connector connector, int is_net,
                         int is_p2p, char *text, int size)
{
    int release = nccl_release();

    if (release < 2500)
        snprintf(text, (size_t)size, "Ring %02d", channel);
    else if ((is_net && release >= 20800) || (is_p2p && release >= 21801))
        snprintf(text, (size_t)size, "Channel %02d/%d", channel,
                 (int)connector);
    else
        snprintf(text, (size_t)size, "Channel %02d", channel);
}

/* Whether the NIC reaches the GPU's memory, and why not. */
static void tell_gdr(struct ncclComm *comm, int channel,
                     enum connector connector, enum end end, int src, int dst)
{
    struct net_way way =
        transport_net_way(comm, channel, connector, end, src, dst);
    enum path distance =
        transport_gdr_distance(way.gpu, network_used()->nic[way.nic].place);
    enum path level = transport_gdr_level();
    int is_enabled = distance <= level;
    char gpu[16];

    if (!network_used()->gdr)
        return;
    if (nccl_release() >= 22703)
        snprintf(gpu, sizeof(gpu), "%d", comm->rank);
    else
        snprintf(gpu, sizeof(gpu), "%x", FABRIC_PCI_BUS(way.gpu) << 12);
    log_info(LOG_NET,
             "GPU Direct RDMA %s for GPU %s / HCA %x (distance %d %s %d)%s%s",
             is_enabled ? "Enabled" : "Disabled", gpu, (unsigned)way.nic,
             path_number(distance), is_enabled ? "<=" : ">", path_number(level),
             !is_enabled       ? ""
             : end == END_SEND ? ", read 1"
                               : ", read 0",
             is_enabled && nccl_release() >= 22703 ? " mode Default" : "");
}

static void tell(struct ncclComm *comm, int channel, enum connector connector,
                 enum end end, int peer)
{
    int src = end == END_SEND ? comm->rank : peer;
    int dst = end == END_SEND ? peer : comm->rank;
    char via[128], head[32], from[32], to[32];
    int is_net = transport_via(comm, channel, connector, end, src, dst, via,
                               sizeof(via));
    int is_p2p = !strncmp(via, "P2P", 3);

    if (end == END_RECEIVE && !is_net)
        return;
    if (is_net && nccl_release() >= 20800)
        tell_gdr(comm, channel, connector, end, src, dst);
    channel_text(channel, connector, is_net, is_p2p, head, sizeof(head));
    rank_text(comm, src, is_net, from, sizeof(from));
    rank_text(comm, dst, is_net, to, sizeof(to));
    log_info((unsigned)LOG_INIT | (is_net   ? LOG_NET
                                   : is_p2p ? LOG_P2P
                                            : LOG_SHM),
             "%s : %s -> %s%s via %s", head, from, to,
             !is_net           ? ""
             : end == END_SEND ? " [send]"
                               : " [receive]",
             via);
}

static void tell_wanted(struct connections *c, struct ncclComm *comm,
                        enum connector connector, enum end end, int peer)
{
    for (int channel = 0; channel < c->channels; channel++) {
        unsigned char *state = state_of(c, connector, end, channel, peer);

        if (*state != WANTED)
            continue;
        *state = TOLD;
        tell(comm, channel, connector, end, peer);
    }
}

/* From near peers to far ones, what comes in before what goes out. */
static void tell_all(struct connections *c, struct ncclComm *comm,
                     enum connector connector)
{
    for (int i = 1; i < c->nranks; i++) {
        tell_wanted(c, comm, connector, END_RECEIVE,
                    (comm->rank + c->nranks - i) % c->nranks);
        tell_wanted(c, comm, connector, END_SEND, (comm->rank + i) % c->nranks);
    }
}

static void want_ring(struct connections *c, struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    for (int i = 0; i < l->channels; i++) {
        want(c, CONNECTOR_COLLECTIVE, END_RECEIVE, i,
             layout_ring_previous(l, i, comm->rank));
        want(c, CONNECTOR_COLLECTIVE, END_SEND, i,
             layout_ring_next(l, i, comm->rank));
    }
}

/* Up and down, both ways: to reduce, and to tell the result. */
static void want_tree(struct connections *c, int channel,
                      const struct tree *tree)
{
    for (int k = 0; k < 4; k++) {
        int peer = k < 3 ? tree->down[k] : tree->up;

        want(c, CONNECTOR_COLLECTIVE, END_RECEIVE, channel, peer);
        want(c, CONNECTOR_COLLECTIVE, END_SEND, channel, peer);
    }
}

static void want_trees(struct connections *c, struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    for (int i = 0; i < l->channels; i++) {
        struct tree tree = layout_tree(l, i, comm->rank);

        want_tree(c, i, &tree);
    }
}

static void want_nvls_trees(struct connections *c, struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    for (int i = 0; i < l->nvls_channels; i++) {
        struct tree tree = layout_nvls_tree(l, i, comm->rank);

        want_tree(c, i, &tree);
    }
}

/* Over all that the ring is told to use. */
static void find_gdr(struct ncclComm *comm, int *pxn, int *gdr)
{
    char via[128];

    *pxn = 0;
    *gdr = 1;
    for (int i = 0; i < layout_of(comm)->channels; i++) {
        int next = layout_ring_next(layout_of(comm), i, comm->rank);

        if (!transport_via(comm, i, CONNECTOR_COLLECTIVE, END_SEND, comm->rank,
                           next, via, sizeof(via)))
            continue;
        *pxn |= strchr(via, '(') != NULL;
        *gdr &= strstr(via, "GDRDMA") != NULL;
    }
}

static void tell_rings(struct ncclComm *comm)
{
    int pxn, gdr;

    if (nccl_release() < 2500)
        return;
    if (nccl_release() < 22501) {
        log_info(LOG_INIT, "Connected all rings");
        return;
    }
    find_gdr(comm, &pxn, &gdr);
    log_info(LOG_INIT, "Connected all rings, use ring PXN %d GDR %d", pxn, gdr);
}

static void tell_nvls(struct ncclComm *comm)
{
    const struct layout *l = layout_of(comm);

    if (nccl_release() >= 22203)
        log_info(LOG_INIT | LOG_NVLS,
                 "NVLS comm %p headRank %d nHeads %d buffSize %d "
                 "nvlsPerRankSize %d nvlsTotalSize %lld",
                 (void *)comm, l->local_rank, l->local_ranks, 1 << 22, 1 << 26,
                 (long long)l->local_ranks << 26);
}

void connect_algorithm(struct connections *c, struct ncclComm *comm,
                       enum algorithm algorithm)
{
    if (c->algorithms >> algorithm & 1)
        return;
    c->algorithms |= 1u << algorithm;
    switch (algorithm) {
    case ALGORITHM_RING:
        want_ring(c, comm);
        tell_all(c, comm, CONNECTOR_COLLECTIVE);
        tell_rings(comm);
        break;
    case ALGORITHM_TREE:
        want_trees(c, comm);
        tell_all(c, comm, CONNECTOR_COLLECTIVE);
        if (nccl_release() >= 2500)
            log_info(LOG_INIT, "Connected all trees");
        break;
    case ALGORITHM_NVLS:
        tell_nvls(comm);
        break;
    case ALGORITHM_NVLS_TREE:
        tell_nvls(comm);
        want_nvls_trees(c, comm);
        tell_all(c, comm, CONNECTOR_COLLECTIVE);
        log_info(LOG_INIT, "Connected NVLS tree");
        break;
    default:
        break;
    }
}

/* Both ends count the channels of a pair from the distance between them. */
void connect_note_peer(struct connections *c, struct ncclComm *comm, int peer,
                       enum end end)
{
    const struct layout *l = layout_of(comm);
    int distance = end == END_SEND ? peer - comm->rank : comm->rank - peer;
    int first = (distance + l->nranks) % l->nranks * l->p2p_channels_per_peer;

    if (peer == comm->rank)
        return;
    for (int k = 0; k < l->p2p_channels_per_peer; k++) {
        int channel = (first + k) % l->p2p_channels;
        unsigned char *state = state_of(c, CONNECTOR_P2P, end, channel, peer);

        c->new_peers |= *state == UNKNOWN;
        if (*state == UNKNOWN)
            *state = WANTED;
    }
}

unsigned connections_algorithms(const struct connections *c)
{
    return c->algorithms;
}

int connections_are_new(const struct connections *c)
{
    return c->new_peers;
}

void connect_peers(struct connections *c, struct ncclComm *comm)
{
    c->new_peers = 0;
    tell_all(c, comm, CONNECTOR_P2P);
}
