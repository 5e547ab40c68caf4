/* Devices and their primary contexts; the only contexts there are. */
#ifndef FABRIC_CUDA_DEVICE_H
#define FABRIC_CUDA_DEVICE_H

#include <cuda.h>

#define FABRIC_MAX_DEVICES 64

CUcontext context_current(void);
CUcontext context_primary(int device);
int context_device(CUcontext ctx);

/* Changes when the device is reset, which ends all that was made there. */
int context_life(int device);
int context_is_known(CUcontext ctx);

#endif
