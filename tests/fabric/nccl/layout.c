#include "nccl/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/machine.h"
#include "nccl/network.h"
#include "nccl/release.h"
#include "nccl/transport.h"

const struct peer *layout_peer(const struct ncclComm *comm, int rank)
{
    return &segment_seat(comm->segment, rank)->peer;
}

/* Several hosts, all of whose GPUs are of one NVLink domain. */
static int is_mnnvl(const struct ncclComm *comm)
{
    const struct peer *first = layout_peer(comm, 0);
    int hosts = 0;

    if (!transport_may_mnnvl())
        return 0;
    for (int i = 0; i < comm->nranks; i++)
        hosts |= layout_peer(comm, i)->host_id != first->host_id;
    return hosts;
}

static void number_nodes(struct layout *l, const struct ncclComm *comm)
{
    for (int i = 0; i < l->nranks; i++) {
        l->node[i] = LAYOUT_NONE;
        for (int j = 0; j < i && l->node[i] == LAYOUT_NONE; j++) {
            if (l->mnnvl ||
                layout_peer(comm, i)->host_id == layout_peer(comm, j)->host_id)
                l->node[i] = l->node[j];
        }
        if (l->node[i] == LAYOUT_NONE)
            l->node[i] = l->nodes++;
    }
    for (int i = 0; i < l->nranks; i++) {
        if (l->node[i] != l->node[comm->rank])
            continue;
        l->local_rank += i < comm->rank;
        l->local_ranks++;
    }
}

/* The NICs of a node's ranks, each once, in the order of ranks. */
static int node_nics(const struct layout *l, const struct ncclComm *comm,
                     int node, int nics[FABRIC_MAX_NICS])
{
    int n = 0;

    for (int i = 0; i < l->nranks; i++) {
        int nic = network_nic_of_gpu(layout_peer(comm, i)->gpu);
        int known = 0;

        if (l->node[i] != node)
            continue;
        for (int k = 0; k < n; k++)
            known |= nics[k] == nic;
        if (!known && n < FABRIC_MAX_NICS)
            nics[n++] = nic;
    }
    return n;
}

static int fewest_nics(const struct layout *l, const struct ncclComm *comm)
{
    int nics[FABRIC_MAX_NICS];
    int least = LAYOUT_MOST_CHANNELS / 2;

    for (int node = 0; node < l->nodes; node++) {
        int n = node_nics(l, comm, node, nics);

        if (n < least)
            least = n;
    }
    return least;
}

static int graph_channels(const struct layout *l)
{
    if (l->nodes > 1)
        return l->nics > 1 ? l->nics : 1;
    return fabric_config()->hardware.nvlink && l->nranks > 1 ? 4 : 1;
}

/* Whether each node's ranks follow one another. */
static int is_by_node(const struct layout *l)
{
    for (int i = 1; i < l->nranks; i++) {
        if (l->node[i] < l->node[i - 1])
            return 0;
    }
    return 1;
}

/* A node's ranks, from first on, begin with the one at the channel's NIC. */
static void fill_node(struct layout *l, const struct ncclComm *comm, int first,
                      int n, int channel)
{
    int nics[FABRIC_MAX_NICS];
    int count = node_nics(l, comm, l->node[first], nics);
    int entry = 0;
    int *ring = l->ring + (size_t)channel * (size_t)l->nranks;

    while (entry < n - 1 &&
           network_nic_of_gpu(layout_peer(comm, first + entry)->gpu) !=
               nics[channel % l->graph_channels % count])
        entry++;
    for (int i = 0; i < n; i++)
        ring[first + i] = first + (entry + i) % n;
}

static void fill_ring(struct layout *l, const struct ncclComm *comm,
                      int channel)
{
    int by_node = l->nodes > 1 && is_by_node(l);
    int n;

    for (int first = 0; first < l->nranks; first += n) {
        n = by_node ? 1 : l->nranks;
        while (by_node && first + n < l->nranks &&
               l->node[first + n] == l->node[first])
            n++;
        if (by_node)
            fill_node(l, comm, first, n, channel);
        for (int i = 0; i < n && !by_node; i++)
            l->ring[channel * l->nranks + i] = i;
    }
}

static struct layout *make(const struct ncclComm *comm)
{
    struct layout *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->nranks = comm->nranks;
    l->node = calloc((size_t)l->nranks, sizeof(int));
    if (!l->node)
        goto err_free;
    l->mnnvl = is_mnnvl(comm);
    number_nodes(l, comm);
    l->nics = l->nodes > 1 ? fewest_nics(l, comm) : 0;
    l->graph_channels = graph_channels(l);
    l->channels = 2 * l->graph_channels;
    l->nvls_channels = l->nranks > 1 && transport_has_nvls(l) ? 16 : 0;
    l->p2p_channels = l->channels;
    l->p2p_channels_per_peer = l->nodes > 1 ? 1 : 2;
    l->ring = calloc((size_t)l->channels, (size_t)l->nranks * sizeof(int));
    if (!l->ring)
        goto err_free;
    for (int c = 0; c < l->channels; c++)
        fill_ring(l, comm, c);
    return l;

err_free:
    layout_free(l);
    return NULL;
}

const struct layout *layout_of(struct ncclComm *comm)
{
    struct layout *l = atomic_load(&comm->layout);
    struct layout *none = NULL;

    if (l)
        return l;
    l = make(comm);
    if (l && !atomic_compare_exchange_strong(&comm->layout, &none, l)) {
        layout_free(l);
        l = none;
    }
    return l;
}

void layout_free(struct layout *l)
{
    if (!l)
        return;
    free(l->ring);
    free(l->node);
    free(l);
}

/* The rank that is so many places behind, on the channel's ring. */
static int at_distance(const struct layout *l, int channel, int rank, int steps)
{
    const int *ring = l->ring + (size_t)channel * (size_t)l->nranks;
    int i = 0;

    while (ring[i] != rank)
        i++;
    return ring[(i + steps) % l->nranks];
}

int layout_ring_next(const struct layout *l, int channel, int rank)
{
    return at_distance(l, channel, rank, 1);
}

int layout_ring_previous(const struct layout *l, int channel, int rank)
{
    return at_distance(l, channel, rank, l->nranks - 1);
}

/* The ring's first rank of a node, which is the one at the network. */
static int head(const struct layout *l, int channel, int node)
{
    const int *ring = l->ring + (size_t)channel * (size_t)l->nranks;

    for (int i = 0; i < l->nranks; i++) {
        if (l->node[ring[i]] == node)
            return ring[i];
    }
    return LAYOUT_NONE;
}

/* The next rank of the same node along the ring; the chain has an end. */
static int chain(const struct layout *l, int channel, int rank, int steps)
{
    const int *ring = l->ring + (size_t)channel * (size_t)l->nranks;
    int i = 0;

    while (ring[i] != rank)
        i++;
    for (i += steps; i >= 0 && i < l->nranks; i += steps) {
        if (l->node[ring[i]] == l->node[rank])
            return ring[i];
    }
    return LAYOUT_NONE;
}

static void add_down(struct tree *tree, int rank)
{
    int i = 0;

    while (i < 3 && tree->down[i] != LAYOUT_NONE)
        i++;
    if (rank != LAYOUT_NONE && i < 3)
        tree->down[i] = rank;
}

/* A node's rank at a place among its own. */
static int at_place(const struct layout *l, int node, int place)
{
    for (int i = 0; i < l->nranks; i++) {
        if (l->node[i] == node && !place--)
            return i;
    }
    return LAYOUT_NONE;
}

/* Nodes are a binary tree, on some channels from the other end. */
struct nodes {
    int up, down[2]; /* LAYOUT_NONE: none */
};

static int turned(const struct layout *l, int node, int mirror)
{
    return mirror ? l->nodes - 1 - node : node;
}

static struct nodes neighbours(const struct layout *l, int node, int mirror)
{
    int place = turned(l, node, mirror);
    struct nodes n = {LAYOUT_NONE, {LAYOUT_NONE, LAYOUT_NONE}};

    if (place)
        n.up = turned(l, (place - 1) / 2, mirror);
    for (int i = 0; i < 2; i++) {
        if (2 * place + 1 + i < l->nodes)
            n.down[i] = turned(l, 2 * place + 1 + i, mirror);
    }
    return n;
}

/* In each node hangs a chain. */
struct tree layout_tree(const struct layout *l, int channel, int rank)
{
    struct tree tree = {LAYOUT_NONE, {LAYOUT_NONE, LAYOUT_NONE, LAYOUT_NONE}};
    struct nodes nodes =
        neighbours(l, l->node[rank], channel >= l->channels / 2);

    add_down(&tree, chain(l, channel, rank, 1));
    if (head(l, channel, l->node[rank]) != rank) {
        tree.up = chain(l, channel, rank, -1);
        return tree;
    }
    for (int i = 0; i < 2 && nodes.down[i] != LAYOUT_NONE; i++)
        add_down(&tree, head(l, channel, nodes.down[i]));
    if (nodes.up != LAYOUT_NONE)
        tree.up = head(l, channel, nodes.up);
    return tree;
}

struct tree layout_nvls_tree(const struct layout *l, int channel, int rank)
{
    struct tree tree = {LAYOUT_NONE, {LAYOUT_NONE, LAYOUT_NONE, LAYOUT_NONE}};
    struct nodes nodes =
        neighbours(l, l->node[rank], channel >= l->nvls_channels / 2);
    int place = channel % l->local_ranks;

    if (at_place(l, l->node[rank], place) != rank)
        return tree;
    for (int i = 0; i < 2 && nodes.down[i] != LAYOUT_NONE; i++)
        add_down(&tree, at_place(l, nodes.down[i], place));
    if (nodes.up != LAYOUT_NONE)
        tree.up = at_place(l, nodes.up, place);
    return tree;
}
