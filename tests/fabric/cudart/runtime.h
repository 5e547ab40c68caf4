/* How the runtime rests on the driver: primary contexts and a last error. */
#ifndef FABRIC_CUDART_RUNTIME_H
#define FABRIC_CUDART_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime.h>

/* 13000, or in libcudart.so.12 12090. */
int runtime_version(void);

/* cuInit, once. */
CUresult runtime_init(void);

CUresult runtime_use_device(int device);

/* Makes the thread's device current, as every runtime call does first. */
CUresult runtime_ready(void);

/* Remembers the error as the thread's last one, and passes it on. */
cudaError_t runtime_error(cudaError_t error);

/* The runtime's error for the driver's, remembered as the last one. */
cudaError_t runtime_result(CUresult result);

#endif
