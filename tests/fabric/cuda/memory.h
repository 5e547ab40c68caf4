/* Device memory is host memory. */
#ifndef FABRIC_CUDA_MEMORY_H
#define FABRIC_CUDA_MEMORY_H

#include <stddef.h>

#define MEMORY_TOTAL_BYTES ((size_t)80 << 30)

#endif
