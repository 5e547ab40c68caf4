/* Device memory is host memory, and every address range has its owner. */
#ifndef FABRIC_CUDA_MEMORY_H
#define FABRIC_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define MEMORY_TOTAL_BYTES ((size_t)80 << 30)

enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_HOST,       /* page-locked, allocated here */
    MEMORY_REGISTERED, /* page-locked, the program's own */
    MEMORY_RESERVED,   /* addresses of a device without memory of their own */
};

struct memory_block {
    uintptr_t start;
    size_t bytes;
    int device;
    enum memory_kind kind;
};

CUresult memory_enlist(uintptr_t start, size_t bytes, int device,
                       enum memory_kind kind);
/* Forgets the block that starts there, if it is of one of two kinds. */
int memory_delist(uintptr_t start, enum memory_kind kind,
                  enum memory_kind or_kind, struct memory_block *was);
/* The block that holds the address; 0 when there is none. */
int memory_find(uintptr_t address, struct memory_block *block);

/* Counts physical memory of a device that is no block of its own. */
void memory_use(int device, int64_t bytes);

#endif
