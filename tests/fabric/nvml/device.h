/* Handles of devices, for the files of the stand-in NVML. */
#ifndef FABRIC_NVML_DEVICE_H
#define FABRIC_NVML_DEVICE_H

#include <nvml.h>

/* Of the host's GPUs; -1: no handle of ours. */
int device_index(nvmlDevice_t device);
nvmlReturn_t device_check(nvmlDevice_t device);
void device_pci(nvmlPciInfo_t *pci, unsigned bus, unsigned id);

#endif
