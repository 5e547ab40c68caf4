/* Arithmetic on every NCCL data type. */
#ifndef FABRIC_NCCL_REDUCE_H
#define FABRIC_NCCL_REDUCE_H

#include <stddef.h>

#include <nccl.h>

size_t type_bytes(ncclDataType_t type);

/* acc = acc (op) in, element by element; ncclAvg adds. */
void reduce_into(void *acc, const void *in, size_t count, ncclDataType_t type,
                 ncclRedOp_t op);
void reduce_multiply(void *data, size_t count, ncclDataType_t type,
                     double factor);
void reduce_divide(void *data, size_t count, ncclDataType_t type, int divisor);

/* One element as a number, and back. */
double number_read(const void *from, ncclDataType_t type);

#endif
