/* Launching kernels, and asking about them. */
#include <string.h>

#include "common/export.h"
#include "cudart/runtime.h"
#include "cudart/symbol.h"

static cudaError_t function_of(const void *fn, CUfunction *function)
{
    CUresult rc = runtime_ready();

    *function = NULL;
    if (!rc)
        rc = symbol_function(fn, function);
    return rc == CUDA_ERROR_NOT_FOUND
               ? runtime_error(cudaErrorInvalidDeviceFunction)
               : runtime_result(rc);
}

FABRIC_API cudaError_t cudaLaunchKernel(const void *fn, dim3 grid, dim3 block,
                                        void **args, size_t sharedBytes,
                                        cudaStream_t stream)
{
    CUfunction function;
    cudaError_t error = function_of(fn, &function);

    if (error)
        return error;
    return runtime_result(
        cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                       block.z, (unsigned)sharedBytes, stream, args, NULL));
}

FABRIC_API cudaError_t cudaLaunchCooperativeKernel(const void *fn, dim3 grid,
                                                   dim3 block, void **args,
                                                   size_t sharedBytes,
                                                   cudaStream_t stream)
{
    return cudaLaunchKernel(fn, grid, block, args, sharedBytes, stream);
}

FABRIC_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                           const void *fn, void **args)
{
    return cudaLaunchKernel(fn, config->gridDim, config->blockDim, args,
                            config->dynamicSmemBytes, config->stream);
}

FABRIC_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function,
                                           const void *symbol)
{
    return function_of(symbol, function);
}

FABRIC_API cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol)
{
    CUdeviceptr p = 0;
    CUresult rc = runtime_ready();

    if (!rc)
        rc = symbol_variable(symbol, &p, NULL);
    if (!rc)
        *ptr = (void *)(size_t)p;
    return runtime_result(rc);
}

FABRIC_API cudaError_t
cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *fn)
{
    CUfunction function;
    cudaError_t error = function_of(fn, &function);

    if (error)
        return error;
    memset(attributes, 0, sizeof(*attributes));
    cuFuncGetAttribute(&attributes->maxThreadsPerBlock,
                       CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    cuFuncGetAttribute(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS,
                       function);
    cuFuncGetAttribute(&attributes->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION,
                       function);
    cuFuncGetAttribute(&attributes->binaryVersion,
                       CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
    cuFuncGetAttribute(&attributes->maxDynamicSharedSizeBytes,
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       function);
    return cudaSuccess;
}

FABRIC_API cudaError_t cudaFuncSetAttribute(const void *fn,
                                            enum cudaFuncAttribute attr,
                                            int value)
{
    CUfunction function;

    (void)attr;
    (void)value;
    return function_of(fn, &function);
}

FABRIC_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *fn, int blockSize, size_t sharedBytes,
    unsigned int flags)
{
    CUfunction function;
    cudaError_t error = function_of(fn, &function);

    if (error)
        return error;
    return runtime_result(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, blockSize, sharedBytes, flags));
}

FABRIC_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, const void *fn, int blockSize, size_t sharedBytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, fn, blockSize, sharedBytes, 0);
}

/*
 * What nvcc makes of kernel<<<...>>>(...): it pushes the configuration, and
 * the kernel's host function pops it. Arguments may push and launch, too.
 */
#define CALL_DEPTH 16

struct call {
    dim3 grid;
    dim3 block;
    size_t sharedBytes;
    void *stream;
};

static _Thread_local struct call calls[CALL_DEPTH];
static _Thread_local int call_depth;

FABRIC_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                                size_t sharedBytes,
                                                void *stream);
FABRIC_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                                  size_t *sharedBytes,
                                                  void *stream);
FABRIC_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
FABRIC_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
                                          dim3 block, void **args,
                                          size_t sharedBytes,
                                          cudaStream_t stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes,
                                     void *stream)
{
    if (call_depth == CALL_DEPTH)
        return 1;
    calls[call_depth++] = (struct call){grid, block, sharedBytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                       size_t *sharedBytes, void *stream)
{
    const struct call *call;

    if (!call_depth)
        return cudaErrorUnknown;
    call = &calls[--call_depth];
    *grid = call->grid;
    *block = call->block;
    *sharedBytes = call->sharedBytes;
    *(void **)stream = call->stream;
    return cudaSuccess;
}

/* The handle of a kernel is the address that it is registered under. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    CUfunction function;
    cudaError_t error = function_of(host, &function);

    if (!error)
        *kernel = (cudaKernel_t)host;
    return error;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t sharedBytes,
                               cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, sharedBytes, stream);
}
