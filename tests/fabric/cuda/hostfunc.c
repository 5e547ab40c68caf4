/*
 * Host functions. They are the only compute that the sample jobs have, so a
 * straggler's factor applies to them.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <cuda.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/export.h"
#include "common/identity.h"
#include "cuda/stream.h"

struct call {
    CUhostFn fn;
    void *data;
};

static double factor = 1;
static pthread_once_t factor_once = PTHREAD_ONCE_INIT;

static void find_factor(void)
{
    const struct fabric_config *config = fabric_config();

    for (int i = 0; i < config->stragglers; i++) {
        if (config->straggler[i].rank == fabric_rank())
            factor = config->straggler[i].compute;
    }
}

/* Takes as long as the function really took, however late it started. */
static int64_t run_call(void *arg, int64_t start_ns)
{
    const struct call *call = arg;
    int64_t begin_ns = fabric_now_ns();
    int64_t took_ns;

    pthread_once(&factor_once, find_factor);
    call->fn(call->data);
    took_ns = fabric_now_ns() - begin_ns;
    if (factor > 1) {
        took_ns = (int64_t)((double)took_ns * factor);
        fabric_sleep_until_ns(begin_ns + took_ns);
    }
    return start_ns + took_ns;
}

static const struct fabric_task call_task = {run_call, free, NULL};

FABRIC_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn,
                                     void *userData)
{
    struct call *call;
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    call = malloc(sizeof(*call));
    if (!call)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *call = (struct call){fn, userData};
    rc = stream_push(s, &call_task, call);
    if (rc)
        free(call);
    return rc;
}
