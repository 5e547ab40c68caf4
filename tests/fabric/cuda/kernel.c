/*
 * Kernels: nothing of a module but the names that are asked for. A launch is
 * a task on its stream that computes nothing.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "common/export.h"
#include "cuda/device.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

/* What an empty kernel takes on a GPU of today. */
#define KERNEL_NS 2000
#define GLOBAL_BYTES ((size_t)1 << 20)

/* A function, a kernel of a library, or a global variable: they are one. */
struct CUfunc_st {
    struct CUmod_st *module;
    struct CUfunc_st *next;
    void *global; /* its memory, if anyone asked for it as a variable */
    char name[];
};

struct CUmod_st {
    pthread_mutex_t lock;
    struct CUfunc_st *functions;
};

static CUresult module_new(CUmodule *module)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    *module = calloc(1, sizeof(**module));
    if (!*module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_init(&(*module)->lock, NULL);
    return CUDA_SUCCESS;
}

static void module_free(CUmodule module)
{
    struct CUfunc_st *next;

    for (struct CUfunc_st *f = module->functions; f; f = next) {
        next = f->next;
        free(f->global);
        free(f);
    }
    pthread_mutex_destroy(&module->lock);
    free(module);
}

/* The caller holds the lock. */
static struct CUfunc_st *add(CUmodule module, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct CUfunc_st *f = calloc(1, sizeof(*f) + bytes);

    if (!f)
        return NULL;
    memcpy(f->name, name, bytes);
    f->module = module;
    f->next = module->functions;
    module->functions = f;
    return f;
}

static struct CUfunc_st *find(CUmodule module, const char *name)
{
    struct CUfunc_st *f;

    pthread_mutex_lock(&module->lock);
    f = module->functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    if (!f)
        f = add(module, name);
    pthread_mutex_unlock(&module->lock);
    return f;
}

FABRIC_API CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    (void)path;
    return module_new(module);
}

FABRIC_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    return module_new(module);
}

FABRIC_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                       unsigned int count,
                                       CUjit_option *options, void **values)
{
    (void)image;
    (void)count;
    (void)options;
    (void)values;
    return module_new(module);
}

FABRIC_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    (void)image;
    return module_new(module);
}

FABRIC_API CUresult cuModuleUnload(CUmodule module)
{
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    module_free(module);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                        const char *name)
{
    if (!function || !module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    *function = find(module, name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Nobody knows how large it is in the real module: large enough. */
FABRIC_API CUresult cuModuleGetGlobal(CUdeviceptr *ptr, size_t *bytes,
                                      CUmodule module, const char *name)
{
    CUfunction f;
    CUresult rc = cuModuleGetFunction(&f, module, name);

    if (rc)
        return rc;
    pthread_mutex_lock(&module->lock);
    if (!f->global)
        f->global = calloc(1, GLOBAL_BYTES);
    pthread_mutex_unlock(&module->lock);
    if (!f->global)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ptr)
        *ptr = (uintptr_t)f->global;
    if (bytes)
        *bytes = GLOBAL_BYTES;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
                                      CUjit_option *jitOptions,
                                      void **jitValues, unsigned int jitCount,
                                      CUlibraryOption *options, void **values,
                                      unsigned int count)
{
    (void)jitOptions;
    (void)jitValues;
    (void)jitCount;
    (void)options;
    (void)values;
    (void)count;
    return cuModuleLoadData((CUmodule *)library, code);
}

FABRIC_API CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload((CUmodule)library);
}

FABRIC_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    *module = (CUmodule)library;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                                       const char *name)
{
    return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

FABRIC_API CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes,
                                       CUlibrary library, const char *name)
{
    return cuModuleGetGlobal(ptr, bytes, (CUmodule)library, name);
}

FABRIC_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuFuncGetName(const char **name, CUfunction function)
{
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->name;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return cuFuncGetName(name, (CUfunction)kernel);
}

FABRIC_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    if (!module || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *module = function->module;
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuFuncGetAttribute(int *value,
                                       CUfunction_attribute attribute,
                                       CUfunction function)
{
    if (!value || !function)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 90;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = 49152;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuFuncSetAttribute(CUfunction function,
                                       CUfunction_attribute attribute,
                                       int value)
{
    (void)attribute;
    (void)value;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FABRIC_API CUresult cuFuncSetCacheConfig(CUfunction function,
                                         CUfunc_cache config)
{
    (void)config;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FABRIC_API CUresult cuKernelGetAttribute(int *value,
                                         CUfunction_attribute attribute,
                                         CUkernel kernel, CUdevice device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

FABRIC_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute,
                                         int value, CUkernel kernel,
                                         CUdevice device)
{
    (void)device;
    return cuFuncSetAttribute((CUfunction)kernel, attribute, value);
}

FABRIC_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int blockSize, size_t sharedBytes,
    unsigned int flags)
{
    (void)sharedBytes;
    (void)flags;
    if (!blocks || !function || blockSize < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = blockSize > 1024 ? 0 : 2048 / (blockSize < 64 ? 64 : blockSize);
    return CUDA_SUCCESS;
}

FABRIC_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int blockSize, size_t sharedBytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, blockSize, sharedBytes, 0);
}

static int64_t run_kernel(void *arg, int64_t start_ns)
{
    (void)arg;
    return start_ns + KERNEL_NS;
}

static const struct fabric_task kernel_task = {run_kernel, NULL, NULL};

static CUresult launch(CUfunction function, unsigned blocks, unsigned threads,
                       CUstream handle)
{
    CUstream s;
    CUresult rc = stream_resolve(handle, &s);

    if (rc)
        return rc;
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || !threads || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_push(s, &kernel_task, function);
}

FABRIC_API CUresult cuLaunchKernel(CUfunction function, unsigned int gridX,
                                   unsigned int gridY, unsigned int gridZ,
                                   unsigned int blockX, unsigned int blockY,
                                   unsigned int blockZ,
                                   unsigned int sharedBytes, CUstream stream,
                                   void **params, void **extra)
{
    (void)sharedBytes;
    (void)params;
    (void)extra;
    return launch(function, gridX && gridY && gridZ, blockX * blockY * blockZ,
                  stream);
}

FABRIC_API CUresult cuLaunchCooperativeKernel(
    CUfunction function, unsigned int gridX, unsigned int gridY,
    unsigned int gridZ, unsigned int blockX, unsigned int blockY,
    unsigned int blockZ, unsigned int sharedBytes, CUstream stream,
    void **params)
{
    return cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ,
                          sharedBytes, stream, params, NULL);
}

FABRIC_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                                     CUfunction function, void **params,
                                     void **extra)
{
    return cuLaunchKernel(
        function, config->gridDimX, config->gridDimY, config->gridDimZ,
        config->blockDimX, config->blockDimY, config->blockDimZ,
        config->sharedMemBytes, config->hStream, params, extra);
}
