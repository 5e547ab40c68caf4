/*
 * Which way NCCL takes between two ranks, as it follows from the machine and
 * from the NCCL_* variables.
 */
#ifndef FABRIC_NCCL_TRANSPORT_H
#define FABRIC_NCCL_TRANSPORT_H

#include <stdint.h>

struct ncclComm;
struct layout;
struct peer;

/* NCCL's classes of ways, nearest first. */
enum path {
    PATH_LOC,
    PATH_NVL,
    PATH_NVB,
    PATH_C2C,
    PATH_PIX,
    PATH_PXB,
    PATH_P2C,
    PATH_PXN,
    PATH_PHB,
    PATH_SYS,
    PATH_NET,
    PATHS
};

const char *path_name(enum path path);
/* Its number in the release, which the log prints as a distance. */
int path_number(enum path path);

/* Of a connection: rings and trees, or sends and receives of the user's. */
enum connector { CONNECTOR_COLLECTIVE, CONNECTOR_P2P };
enum end { END_SEND, END_RECEIVE };

/* A variable that is a number. */
int64_t transport_parameter(const char *name, int64_t otherwise);
/* One that is a class of ways, by name or by number. */
enum path transport_level(const char *name, enum path otherwise);

/* Whether hosts of an NVLink domain talk over it; and whether the switches of a
 * node take part in collectives. */
int transport_may_mnnvl(void);
int transport_has_nvls(const struct layout *l);
/* Connections are made when the first op needs them. */
int transport_is_lazy(void);

enum path transport_gpu_path(int a, int b);
/* The same, within a node: through the CPU where P2P is not used. */
enum path transport_peer_path(const struct layout *l, const struct peer *a,
                              const struct peer *b);
enum path transport_gdr_distance(int gpu, int place);
enum path transport_gdr_level(void);

/* What the machine could do, and NCCL would, and the driver refuses. */
int transport_p2p_is_refused(int a, int b);

/* The NIC at one end of a way over the network. */
struct net_way {
    int nic;   /* by its number in network.h */
    int gpu;   /* that hands its bytes to the NIC: not always the rank's own */
    int proxy; /* rank of that GPU; -1: the rank's own */
};

struct net_way transport_net_way(struct ncclComm *comm, int channel,
                                 enum connector connector, enum end end,
                                 int src, int dst);

/* What the log calls the way from src to dst, "P2P/CUMEM": as the end at this
 * rank sees it. Returns whether both ends report it. */
int transport_via(struct ncclComm *comm, int channel, enum connector connector,
                  enum end end, int src, int dst, char *text, int size);

#endif
