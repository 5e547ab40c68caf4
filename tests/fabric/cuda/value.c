/* Words that a stream writes when it comes by. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <cuda.h>

#include "common/export.h"
#include "cuda/stream.h"

struct word {
    CUdeviceptr at;
    uint64_t value;
    int bytes;
};

/* Release: whoever sees the word sees what the stream did before. */
static int64_t run_write(void *arg, int64_t start_ns)
{
    const struct word *word = arg;
    void *at = (void *)(uintptr_t)word->at;

    if (word->bytes == 4)
        atomic_store_explicit((_Atomic uint32_t *)at, (uint32_t)word->value,
                              memory_order_release);
    else
        atomic_store_explicit((_Atomic uint64_t *)at, word->value,
                              memory_order_release);
    return start_ns;
}

static const struct fabric_task write_task = {run_write, free, NULL};

static CUresult push_write(CUstream handle, struct word given, unsigned flags)
{
    struct word *word;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    if (!given.at || given.at % (unsigned)given.bytes || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    word = malloc(sizeof(*word));
    if (!word)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *word = given;
    rc = stream_push(s, &write_task, word);
    if (rc)
        free(word);
    return rc;
}

FABRIC_API CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address,
                                         cuuint32_t value, unsigned int flags)
{
    return push_write(stream, (struct word){address, value, 4}, flags);
}

FABRIC_API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address,
                                         cuuint64_t value, unsigned int flags)
{
    return push_write(stream, (struct word){address, value, 8}, flags);
}
