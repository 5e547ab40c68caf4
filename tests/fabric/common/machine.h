/*
 * What is where in a host of the described machine: over what its GPUs reach
 * each other and its NICs. NICs are those of the machine's network: RDMA
 * devices, interfaces of a plugin's network, or plain Ethernet. Where they are
 * not the latter, the host has another interface, eth0, for sockets.
 */
#ifndef FABRIC_MACHINE_H
#define FABRIC_MACHINE_H

#include "common/config.h"

#define FABRIC_NIC_NAME 16
#define FABRIC_NIC_BUS(nic_) (0x60u + (unsigned)(nic_))
#define FABRIC_SWITCH_BUS(switch_) (0x05u + (unsigned)(switch_))
#define FABRIC_SWITCHES 4
#define FABRIC_ETHERNET_BUS 0xf0u
#define FABRIC_ETHERNET_MBPS 25000

/* PCIe ways, by NCCL's names. */
enum fabric_path { FABRIC_PIX, FABRIC_PHB, FABRIC_SYS };

const char *fabric_path_name(enum fabric_path path);

int fabric_nics(const struct fabric_config *config);
/* mlx5_0, and for others than RDMA devices the interface: hsn0, eth0. */
void fabric_nic_name(const struct fabric_config *config, int nic,
                     char name[FABRIC_NIC_NAME]);
int fabric_is_rdma(const struct fabric_config *config);

/* NVSwitches that are PCI devices of the host: those of a rack are not. */
int fabric_has_switches(const struct fabric_config *config);

/* GPUs share NICs evenly: the first NIC of a GPU, -1 without any; and the first
 * GPU of a NIC, which it sits beside. */
int fabric_nic_of_gpu(const struct fabric_config *config, int gpu);
int fabric_gpu_of_nic(const struct fabric_config *config, int nic);

/* NUMA nodes; -1 where the host has one. */
int fabric_gpu_numa(const struct fabric_config *config, int gpu);
int fabric_nic_numa(const struct fabric_config *config, int nic);

/* PCIe switches by number; -1: at the CPU. */
int fabric_gpu_switch(const struct fabric_config *config, int gpu);
int fabric_nic_switch(const struct fabric_config *config, int nic);

enum fabric_path fabric_gpu_gpu_path(const struct fabric_config *config, int a,
                                     int b);
enum fabric_path fabric_gpu_nic_path(const struct fabric_config *config,
                                     int gpu, int nic);

#endif
