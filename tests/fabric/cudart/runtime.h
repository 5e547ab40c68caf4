/* How the runtime rests on the driver: primary contexts and a last error. */
#ifndef FABRIC_CUDART_RUNTIME_H
#define FABRIC_CUDART_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime.h>

/* Makes the thread's device current, as every runtime call does first. */
CUresult runtime_ready(void);

/* The runtime's error for the driver's, remembered as the last one. */
cudaError_t runtime_result(CUresult result);

#endif
