/* Calls without communication. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#include "nccl/api.h"
#include "nccl/comm.h"
#include "nccl/log.h"
#include "nccl/release.h"

static _Thread_local char last_error[256];

ncclResult_t nccl_fail(ncclResult_t result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    if (result != ncclSuccess && result != ncclInProgress)
        log_warn("init.cc", 0, "%s", last_error);
    return result;
}

NCCL_API(const char *, GetLastError, (ncclComm_t comm))
{
    (void)comm;
    return last_error;
}

NCCL_API(const char *, GetErrorString, (ncclResult_t result))
{
    static const char *const text[ncclNumResults] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] =
            "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] =
            "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] =
            "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] =
            "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] =
            "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] =
            "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };

    return (unsigned)result < ncclNumResults ? text[result]
                                             : "unknown result code";
}

NCCL_API(ncclResult_t, GetVersion, (int *version))
{
    if (!version)
        return nccl_fail(ncclInvalidArgument, "GetVersion: NULL");
    *version = nccl_release();
    return ncclSuccess;
}

void pncclResetDebugInit(void);
void ncclResetDebugInit(void)
    __attribute__((visibility("default"), weak, alias("pncclResetDebugInit")));
__attribute__((visibility("default"))) void pncclResetDebugInit(void)
{
    log_reset();
}

/* The caller may have no device current yet: then it is the first. */
NCCL_API(ncclResult_t, MemAlloc, (void **ptr, size_t size))
{
    CUdeviceptr p = 0;
    CUcontext ctx = NULL;
    CUresult rc;

    if (!ptr || !size)
        return nccl_fail(ncclInvalidArgument, "MemAlloc: %zu bytes", size);
    rc = cuInit(0);
    if (!rc)
        rc = cuCtxGetCurrent(&ctx);
    if (!rc && !ctx) {
        rc = cuDevicePrimaryCtxRetain(&ctx, 0);
        if (!rc)
            rc = cuCtxSetCurrent(ctx);
    }
    if (!rc)
        rc = cuMemAlloc(&p, size);
    if (rc)
        return nccl_fail(ncclUnhandledCudaError, "MemAlloc: %zu bytes", size);
    *ptr = (void *)(uintptr_t)p;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, MemFree, (void *ptr))
{
    if (cuMemFree((CUdeviceptr)(uintptr_t)ptr))
        return nccl_fail(ncclUnhandledCudaError, "MemFree");
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommRegister,
         (const ncclComm_t comm, void *buff, size_t size, void **handle))
{
    ncclResult_t result = comm_check_ready(comm);

    if (result)
        return result;
    if (!buff || !size || !handle)
        return nccl_fail(ncclInvalidArgument, "CommRegister");
    *handle = buff;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))
{
    (void)handle;
    return comm_check(comm);
}
