/*
 * What NCCL's search of the topology comes to for a communicator: its nodes,
 * channels, and the rings and trees of each. The first ring is in the order of
 * ranks, as is the data path; the others leave each node by another NIC.
 */
#ifndef FABRIC_NCCL_LAYOUT_H
#define FABRIC_NCCL_LAYOUT_H

#include "nccl/comm.h"
#include "nccl/segment.h"

#define LAYOUT_NONE (-1)
#define LAYOUT_MOST_CHANNELS 32

struct tree {
    int up; /* ranks; LAYOUT_NONE: none, as the next three */
    int down[3];
};

struct layout {
    int nranks;
    int mnnvl; /* NVLink between hosts: they are one node */
    int nodes;
    int *node; /* of each rank; nodes are numbered by their first rank */
    int local_ranks, local_rank;
    int nics;           /* that a node's ranks use; of the node with fewest */
    int graph_channels; /* the search's; each is used twice */
    int channels, nvls_channels, p2p_channels, p2p_channels_per_peer;
    int *ring; /* ranks in order, of each channel */
};

/* Made at the first call, when all ranks have their seats; kept till the end.
 * NULL without memory. */
const struct layout *layout_of(struct ncclComm *comm);
void layout_free(struct layout *layout);

const struct peer *layout_peer(const struct ncclComm *comm, int rank);

int layout_ring_next(const struct layout *l, int channel, int rank);
int layout_ring_previous(const struct layout *l, int channel, int rank);
struct tree layout_tree(const struct layout *l, int channel, int rank);
/* Of NVLS between nodes: each of a node's ranks has channels of its own. */
struct tree layout_nvls_tree(const struct layout *l, int channel, int rank);

#endif
