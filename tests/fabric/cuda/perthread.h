/* The default stream that each thread has for itself, if it asks for it. */
#ifndef FABRIC_CUDA_PERTHREAD_H
#define FABRIC_CUDA_PERTHREAD_H

#include <cuda.h>

CUresult perthread_stream(int device, CUstream *stream);

#endif
