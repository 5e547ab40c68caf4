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

struct fabric_config {
    int hosts;
    int ranks_per_host;
    struct fabric_link link[FABRIC_LINK_CLASSES];
    uint64_t seed;
    int64_t catch_up_ns;
    int nvlink;
    char nvlink_domain[FABRIC_NAME]; /* empty: each host is its own */
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
