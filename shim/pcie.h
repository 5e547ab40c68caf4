/* Where devices sit on PCIe, and how far they are from each other. Addresses
 * are those of sysfs: domain:bus:device.function in lower case. */
#ifndef SHIM_PCIE_H
#define SHIM_PCIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PCIE_DEPTH = 16, PCIE_ADDRESS = 20 };

struct pcie {
    int depth; /* 0: unknown to sysfs */
    /* From the root port down to the device itself, as numbers. */
    uint64_t chain[PCIE_DEPTH];
    int64_t numa; /* CT_NULL: unknown; -1: the system has none */
};

/* From any spelling: NVML's has a longer domain, the driver's capitals. False,
 * and empty, where it is none. */
bool pcie_address(const char *from, char address[PCIE_ADDRESS]);

/* Of a device by its address. Remembered, and there as long as the process. */
const struct pcie *pcie_find(const char *address);

/* The last PCI function that a link of sysfs leads through, and its address;
 * nowhere, and empty, where it is through none, as for virtual devices. */
const struct pcie *pcie_behind(const char *target, char address[PCIE_ADDRESS]);

/* PIX, PXB, PHB, SYS as NCCL has them; NULL: unknown. (Of Broadcom's switches
 * that show two levels NCCL makes one: PXB here is PIX there.) */
const char *pcie_way(const struct pcie *a, const struct pcie *b);

#endif
