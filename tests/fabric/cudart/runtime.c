#include "cudart/runtime.h"

#include <pthread.h>
#include <stddef.h>

#include "common/export.h"

static _Thread_local cudaError_t last_error;
static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CUresult init_result;

static void init(void)
{
    init_result = cuInit(0);
}

CUresult runtime_use_device(int device)
{
    CUcontext ctx;
    CUresult rc = cuDevicePrimaryCtxRetain(&ctx, device);

    return rc ? rc : cuCtxSetCurrent(ctx);
}

CUresult runtime_init(void)
{
    pthread_once(&init_once, init);
    return init_result;
}

CUresult runtime_ready(void)
{
    CUcontext ctx;
    CUresult rc = runtime_init();

    if (rc)
        return rc;
    rc = cuCtxGetCurrent(&ctx);
    if (rc || ctx)
        return rc;
    return runtime_use_device(0);
}

/* Not ready is no error to keep. */
cudaError_t runtime_error(cudaError_t error)
{
    if (error && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

/* The two enumerations share their values. */
cudaError_t runtime_result(CUresult result)
{
    return runtime_error((cudaError_t)(int)result);
}

FABRIC_API cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

FABRIC_API cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

FABRIC_API const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;

    cuGetErrorString((CUresult)(int)error, &text);
    return text ? text : "unrecognized error code";
}

static const struct {
    cudaError_t error;
    const char *name;
} names[] = {
    {cudaSuccess, "cudaSuccess"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
    {cudaErrorInitializationError, "cudaErrorInitializationError"},
    {cudaErrorNoDevice, "cudaErrorNoDevice"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction"},
    {cudaErrorIllegalState, "cudaErrorIllegalState"},
    {cudaErrorNotReady, "cudaErrorNotReady"},
    {cudaErrorHostMemoryAlreadyRegistered,
     "cudaErrorHostMemoryAlreadyRegistered"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported"},
    {cudaErrorUnknown, "cudaErrorUnknown"},
};

FABRIC_API const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error)
            return names[i].name;
    }
    return "unrecognized error code";
}

FABRIC_API cudaError_t cudaDriverGetVersion(int *version)
{
    return runtime_result(cuDriverGetVersion(version));
}

FABRIC_API cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    *version = runtime_version();
    return cudaSuccess;
}

/* The driver itself may be looked up before there is any device. */
FABRIC_API cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **fn, unsigned int version,
    unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult rc = cuGetProcAddress(symbol, fn, (int)version, flags, &found);

    if (!status)
        return runtime_result(rc);
    *status = (enum cudaDriverEntryPointQueryResult)found;
    return rc == CUDA_ERROR_INVALID_VALUE ? runtime_result(rc) : cudaSuccess;
}

FABRIC_API cudaError_t
cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(
        symbol, fn, (unsigned int)runtime_version(), flags, status);
}

FABRIC_API cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

FABRIC_API cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}
