/* Over what a GPU reaches the other GPUs of its host, as NVML tells. */
#ifndef SHIM_NVLINKS_H
#define SHIM_NVLINKS_H

#include "batch.h"
#include "nvml.h"

/* handle is that of the device, whose address is pci. */
void nvlinks_describe(const struct nvml *nvml, void *handle, int64_t device,
                      const char *pci, struct batch *batch);

/* A gpu_link row without links; peer is an address or NULL. */
struct row_gpu_link *gpu_link_add(struct batch *batch, int64_t device,
                                  const char *pci, const char *peer,
                                  const char *kind, const char *source);

#endif
