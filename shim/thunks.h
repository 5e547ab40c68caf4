/* Functions that call a hook for one copy of NCCL, whoever calls them. */
#ifndef SHIM_THUNKS_H
#define SHIM_THUNKS_H

#include "real.h"

extern const real_function thunks[REAL_HOOKED][NCCL_COPIES];

#endif
