/* The network that NCCL would use on this machine, with this environment. */
#ifndef FABRIC_NCCL_NETWORK_H
#define FABRIC_NCCL_NETWORK_H

#include <stdint.h>

#include "common/config.h"
#include "common/machine.h"

struct network {
    char name[FABRIC_NAME]; /* IB, Socket, or the plugin's */
    int is_socket;
    int n; /* NICs that it uses */
    struct {
        int place; /* among the machine's; -1: eth0 beside them */
        char name[FABRIC_NIC_NAME];
    } nic[FABRIC_MAX_NICS];
    int64_t mbps; /* of each */
    int gdr;      /* NICs reach memory of GPUs that are near enough */
};

/* Decided once a process. */
const struct network *network_used(void);

/* Its number of the NIC that is the GPU's own. */
int network_nic_of_gpu(int gpu);
/* Whether the way is near enough for GPUDirect RDMA. */
int network_has_gdr(int gpu, int nic);

#endif
