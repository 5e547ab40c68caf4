/* The newest NCCL release whose calls are wrapped, for CT_NCCL_ROWS. */
#ifndef SHIM_ROWS_WRAPPED_H
#define SHIM_ROWS_WRAPPED_H

#define SHIM_NCCL_ROWS 21999

#endif
