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

static CUresult make_current(int device)
{
    CUcontext ctx;
    CUresult rc = cuDevicePrimaryCtxRetain(&ctx, device);

    return rc ? rc : cuCtxSetCurrent(ctx);
}

CUresult runtime_ready(void)
{
    CUcontext ctx;
    CUresult rc;

    pthread_once(&init_once, init);
    if (init_result)
        return init_result;
    rc = cuCtxGetCurrent(&ctx);
    if (rc || ctx)
        return rc;
    return make_current(0);
}

/* The two enumerations share their values; not ready is no error to keep. */
cudaError_t runtime_result(CUresult result)
{
    cudaError_t error = (cudaError_t)(int)result;

    if (error && error != cudaErrorNotReady)
        last_error = error;
    return error;
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
    {cudaErrorNotReady, "cudaErrorNotReady"},
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
    *version = CUDART_VERSION;
    return cudaSuccess;
}

FABRIC_API cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult rc;

    *count = 0;
    pthread_once(&init_once, init);
    rc = init_result ? init_result : cuDeviceGetCount(count);
    return runtime_result(rc);
}

FABRIC_API cudaError_t cudaGetDevice(int *device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxGetDevice(device));
}

FABRIC_API cudaError_t cudaSetDevice(int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : make_current(device));
}

FABRIC_API cudaError_t cudaDeviceGetAttribute(int *value,
                                              enum cudaDeviceAttr attr,
                                              int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(
        rc ? rc
           : cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

FABRIC_API cudaError_t cudaDeviceGetPCIBusId(char *busId, int len, int device)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuDeviceGetPCIBusId(busId, len, device));
}

FABRIC_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuDeviceCanAccessPeer(can, device, peer));
}

FABRIC_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    int device;
    int can = 0;
    cudaError_t error = cudaGetDevice(&device);

    if (error)
        return error;
    if (flags)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    error = cudaDeviceCanAccessPeer(&can, device, peer);
    if (error || can)
        return error;
    return runtime_result(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

FABRIC_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least,
                                                        int *greatest)
{
    return runtime_result(cuCtxGetStreamPriorityRange(least, greatest));
}

FABRIC_API cudaError_t cudaDeviceSynchronize(void)
{
    CUresult rc = runtime_ready();

    return runtime_result(rc ? rc : cuCtxSynchronize());
}

FABRIC_API cudaError_t cudaDeviceReset(void)
{
    return cudaDeviceSynchronize();
}
