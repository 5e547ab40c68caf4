/* The host's network ports. For the writer's thread alone. */
#ifndef SHIM_NICS_H
#define SHIM_NICS_H

#include "batch.h"
#include "pcie.h"

/* Adds the nic rows at the first call, and at each those of gpu_nic of a
 * device. */
void nics_describe(struct batch *batch, int64_t device, const struct pcie *gpu);

#endif
