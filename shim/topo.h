/* What is around a GPU: through NVML where there is one, else what the driver
 * tells, and sysfs. Slow; the writer asks once per device. */
#ifndef SHIM_TOPO_H
#define SHIM_TOPO_H

#include "batch.h"

#include <stdint.h>

/* Where the program's settings are read. */
void topo_begin(const char *sysfs);

/* Adds a device row and those of what it reaches, for a CUDA device ordinal;
 * with the first, those of the host. Texts that the rows point to live as long
 * as the process. */
void topo_describe(int64_t device, struct batch *batch);

#endif
