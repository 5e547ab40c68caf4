#include "common/machine.h"

#include <stdio.h>

const char *fabric_path_name(enum fabric_path path)
{
    static const char *const names[] = {
        [FABRIC_PIX] = "PIX",
        [FABRIC_PHB] = "PHB",
        [FABRIC_SYS] = "SYS",
    };

    return names[path];
}

int fabric_nics(const struct fabric_config *config)
{
    if (config->hardware.nics >= 0)
        return config->hardware.nics;
    return config->hardware.network == FABRIC_TCP ? 1 : config->ranks_per_host;
}

int fabric_has_switches(const struct fabric_config *config)
{
    return config->hardware.nvlink == FABRIC_NVLINK_SWITCH &&
           !*config->hardware.nvlink_domain;
}

int fabric_is_rdma(const struct fabric_config *config)
{
    return config->hardware.network == FABRIC_IB ||
           config->hardware.network == FABRIC_ROCE;
}

void fabric_nic_name(const struct fabric_config *config, int nic,
                     char name[FABRIC_NIC_NAME])
{
    static const char *const prefix[] = {
        [FABRIC_TCP] = "eth",
        [FABRIC_IB] = "mlx5_",
        [FABRIC_ROCE] = "mlx5_",
        [FABRIC_PLUGIN] = "hsn",
    };

    snprintf(name, FABRIC_NIC_NAME, "%s%d", prefix[config->hardware.network],
             nic);
}

int fabric_nic_of_gpu(const struct fabric_config *config, int gpu)
{
    return fabric_nics(config)
               ? gpu * fabric_nics(config) / config->ranks_per_host
               : -1;
}

int fabric_gpu_of_nic(const struct fabric_config *config, int nic)
{
    int nics = fabric_nics(config), gpus = config->ranks_per_host;

    /* The least GPU whose NIC it is. */
    return nics <= gpus ? (nic * gpus + nics - 1) / nics : nic * gpus / nics;
}

int fabric_gpu_numa(const struct fabric_config *config, int gpu)
{
    return config->hardware.numa ? gpu / config->hardware.numa : -1;
}

int fabric_nic_numa(const struct fabric_config *config, int nic)
{
    return fabric_gpu_numa(config, fabric_gpu_of_nic(config, nic));
}

int fabric_gpu_switch(const struct fabric_config *config, int gpu)
{
    int shared = config->hardware.pcie_switch;

    return shared ? gpu / shared : -1;
}

/* Plain Ethernet is nobody's care: it sits at the CPU. */
int fabric_nic_switch(const struct fabric_config *config, int nic)
{
    return config->hardware.network == FABRIC_TCP
               ? -1
               : fabric_gpu_switch(config, fabric_gpu_of_nic(config, nic));
}

static enum fabric_path path(int switch_a, int numa_a, int switch_b, int numa_b)
{
    if (switch_a >= 0 && switch_a == switch_b)
        return FABRIC_PIX;
    return numa_a == numa_b ? FABRIC_PHB : FABRIC_SYS;
}

enum fabric_path fabric_gpu_gpu_path(const struct fabric_config *config, int a,
                                     int b)
{
    return path(fabric_gpu_switch(config, a), fabric_gpu_numa(config, a),
                fabric_gpu_switch(config, b), fabric_gpu_numa(config, b));
}

enum fabric_path fabric_gpu_nic_path(const struct fabric_config *config,
                                     int gpu, int nic)
{
    return path(fabric_gpu_switch(config, gpu), fabric_gpu_numa(config, gpu),
                fabric_nic_switch(config, nic), fabric_nic_numa(config, nic));
}
