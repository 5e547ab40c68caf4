/* What programs register when they start: kernels and variables of fat
 * binaries, known by an address in the host program. */
#ifndef FABRIC_CUDART_SYMBOL_H
#define FABRIC_CUDART_SYMBOL_H

#include <cuda.h>

/* CUDA_ERROR_NOT_FOUND when nobody registered the address. */
CUresult symbol_function(const void *host, CUfunction *function);
CUresult symbol_variable(const void *host, CUdeviceptr *ptr, size_t *bytes);

#endif
