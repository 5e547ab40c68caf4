/*
 * Data that can be checked: small whole numbers, so that a sum over ranks is
 * exact in every type, fp16 and bf16 included.
 */
#ifndef JOBS_PATTERN_H
#define JOBS_PATTERN_H

#include <stddef.h>

#include <cuda_runtime.h>
#include <nccl.h>

/* More ranks would make sums that bf16 cannot hold. */
#define PATTERN_MAX_RANKS 32

size_t pattern_bytes(ncclDataType_t type);

/* A new device buffer; rank's contribution to the pattern named salt. */
void *pattern_new(size_t count, ncclDataType_t type, int salt, int rank);

/*
 * Checks, in stream order and on the host, a part of a device buffer: it must
 * hold the sum of the contributions of ranks [first, first + n). Each call
 * looks at another part, whole looks at all. What is wrong is printed;
 * pattern_failures counts it once the stream has come by.
 */
void pattern_check(const void *data, size_t count, ncclDataType_t type,
                   int salt, int first, int n, int whole, const char *what,
                   cudaStream_t stream);
int pattern_failures(void);

#endif
