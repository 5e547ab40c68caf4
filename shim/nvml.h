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

struct nvml_fabric_2 { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    struct nvml_fabric fabric;
    unsigned health;
};
#define NVML_FABRIC_2 ((unsigned)sizeof(struct nvml_fabric_2) | 2U << 24)
_Static_assert(sizeof(struct nvml_fabric_2) == 36, "as NVML has it");

enum { NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3 };
enum { NVML_FABRIC_COMPLETED = 3 };
enum { NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 };
enum { NVML_P2P_READ = 0 };
enum { /* nvmlGpuTopologyLevel_t */
       NVML_ANCESTOR_INTERNAL = 0,
       NVML_ANCESTOR_SINGLE = 10,
       NVML_ANCESTOR_MULTIPLE = 20,
       NVML_ANCESTOR_HOSTBRIDGE = 30,
       NVML_ANCESTOR_NODE = 40,
       NVML_ANCESTOR_SYSTEM = 50
};
/* Drivers since 610 count links up to 71, those before up to 17. */
enum { NVML_LINKS = 72, NVML_LINKS_ONCE = 18 };

struct nvml {
#define NVML(name_, symbol_, params_) int(*name_) params_;
#include "nvml.def"
};

/* NULL and why not. */
const struct nvml *nvml_open(const char **why);

#endif
