/* Streams, events and host functions. */
#include "common/export.h"
#include "cudart/runtime.h"

FABRIC_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                    unsigned int flags,
                                                    int priority)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc : cuStreamCreateWithPriority(stream, flags, priority));
}

FABRIC_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                                 unsigned int flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

FABRIC_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

FABRIC_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return runtime_result(cuStreamDestroy(stream));
}

FABRIC_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamSynchronize(stream));
}

FABRIC_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamQuery(stream));
}

FABRIC_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream,
                                           cudaEvent_t event,
                                           unsigned int flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamWaitEvent(stream, event, flags));
}

FABRIC_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamGetPriority(stream, priority));
}

FABRIC_API cudaError_t cudaStreamGetFlags(cudaStream_t stream,
                                          unsigned int *flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamGetFlags(stream, flags));
}

FABRIC_API cudaError_t cudaStreamGetId(cudaStream_t stream,
                                       unsigned long long *id)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamGetId(stream, id));
}

FABRIC_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuStreamGetDevice(stream, device));
}

FABRIC_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
                                          void *userData)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuLaunchHostFunc(stream, fn, userData));
}

FABRIC_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event,
                                                unsigned int flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuEventCreate(event, flags));
}

FABRIC_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

FABRIC_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return runtime_result(cuEventDestroy(event));
}

FABRIC_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuEventRecord(event, stream));
}

FABRIC_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                                cudaStream_t stream,
                                                unsigned int flags)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc
                             : cuEventRecordWithFlags(event, stream, flags));
}

FABRIC_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return runtime_result(cuEventQuery(event));
}

FABRIC_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return runtime_result(cuEventSynchronize(event));
}

FABRIC_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start,
                                            cudaEvent_t end)
{
    return runtime_result(cuEventElapsedTime(ms, start, end));
}
