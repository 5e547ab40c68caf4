/* NVML as far as we ask it, opened at run time and out of the program's sight.
 */
#ifndef SHIM_NVML_H
#define SHIM_NVML_H

#include <stdbool.h>

struct nvml_pci { /* nvmlPciInfo_t */
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    char bus_id[32];
};

struct nvml_fabric { /* nvmlGpuFabricInfo_t */
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

enum { NVML_FABRIC_COMPLETED = 3 };
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };
enum { NVML_P2P_READ = 0 };
enum { NVML_LINKS = 18 };

struct nvml {
#define NVML(name_, symbol_, params_) int(*name_) params_;
#include "nvml.def"
};

/* NULL and why not. */
const struct nvml *nvml_open(const char **why);

#endif
