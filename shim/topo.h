/* What is around a GPU: through NVML where there is one, else what the driver
 * tells. Slow; the writer asks once per device. */
#ifndef SHIM_TOPO_H
#define SHIM_TOPO_H

#include "batch.h"

#include <stdint.h>

/* Adds a device row, and gpu_link rows, for a CUDA device ordinal. Texts that
 * the rows point to live as long as the process. */
void topo_describe(int64_t device, struct batch *batch);

#endif
