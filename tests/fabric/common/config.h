/*
 * The description of the machines, read once from the file that FABRIC names.
 * tests/fabric/README.md documents every key. A mistake in the file ends the
 * process with one line: a test must not run on a machine nobody described.
 */
#ifndef FABRIC_CONFIG_H
#define FABRIC_CONFIG_H

#include <stdint.h>

#define FABRIC_MAX_RULES 64
#define FABRIC_NAME 96
#define FABRIC_MAX_NICS 64

/* T = alpha + bytes / bandwidth, each times (1 +- jitter). */
struct fabric_link {
    int64_t alpha_ns;
    double bytes_per_ns;
    double jitter;
};

enum fabric_link_class { FABRIC_INTRA, FABRIC_INTER, FABRIC_LINK_CLASSES };

/* What the rank computes (host functions, kernels) takes factor times. */
struct fabric_straggler {
    int rank;
    double compute;
};

enum fabric_fault_action {
    FABRIC_DIE,
    FABRIC_STOP,
    FABRIC_ERROR,
    FABRIC_ASYNC
};

/* Strikes when the rank issues its op number op; the first is 1. */
struct fabric_fault {
    int rank;
    uint64_t op;
    enum fabric_fault_action action;
};

enum fabric_nvlink {
    FABRIC_NVLINK_NONE,
    FABRIC_NVLINK_DIRECT, /* each GPU to every other one */
    FABRIC_NVLINK_SWITCH
};

enum fabric_network {
    FABRIC_TCP,
    FABRIC_IB,
    FABRIC_ROCE,
    FABRIC_PLUGIN /* one that NCCL has a network plugin for */
};

/* What is inside a host, and what leaves it. common/machine.h says what is
 * where. */
struct fabric_hardware {
    enum fabric_nvlink nvlink;
    int nvlink_version;
    char nvlink_domain[FABRIC_NAME]; /* empty: each host is its own */
    int p2p;                         /* GPUs reach each other over PCIe */
    int pcie_switch; /* GPUs that share a PCIe switch; 0: there is none */
    int numa;        /* GPUs of a NUMA node; 0: the host has one node */
    int c2c;
    enum fabric_network network;
    char plugin[FABRIC_NAME]; /* name of the network plugin */
    int64_t nic_mbps;
    int nics; /* per host; -1: not said */
    int gdr;  /* NICs reach the memory of GPUs */
};

struct fabric_config {
    int hosts;
    int ranks_per_host;
    struct fabric_link link[FABRIC_LINK_CLASSES];
    uint64_t seed;
    int64_t catch_up_ns;
    struct fabric_hardware hardware;
    char gpu[FABRIC_NAME];
    int nccl_version;
    struct fabric_straggler straggler[FABRIC_MAX_RULES];
    int stragglers;
    struct fabric_fault fault[FABRIC_MAX_RULES];
    int faults;
    int from_file;
};

const struct fabric_config *fabric_config(void);

/* "2.12" where there is a library of the very release that the file asks for,
 * in a folder nccl-2.12; NULL: the default one answers its version. */
const char *fabric_nccl_release(const struct fabric_config *config);

/* Fills config from the file; 0, or -1 with "file:line: reason" in error. */
int fabric_config_read(struct fabric_config *config, const char *path,
                       char *error, int error_size);

#endif
