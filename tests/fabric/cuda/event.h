/* Events: the time at which a stream came by. */
#ifndef FABRIC_CUDA_EVENT_H
#define FABRIC_CUDA_EVENT_H

#include <cuda.h>

/* What is queued on second from now on waits for what is queued on first. */
CUresult event_order(CUstream first, CUstream second);

#endif
