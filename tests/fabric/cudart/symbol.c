#include "cudart/symbol.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include <cuda_runtime.h>

#include "common/export.h"
#include "common/hash.h"
#include "cudart/runtime.h"

/* A fat binary becomes a module when something of it is used. */
struct binary {
    CUmodule module;
};

struct symbol {
    const void *host; /* NULL: a free place */
    const char *name; /* in the program that registered it */
    struct binary *binary;
    CUfunction function;
    size_t bytes;
};

/* PyTorch registers tens of thousands: a hash table, at most half full. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols;
static size_t places;
static size_t used;

static struct symbol *place_of(struct symbol *table, size_t size,
                               const void *host)
{
    size_t i = fabric_mix((uint64_t)(uintptr_t)host) & (size - 1);

    while (table[i].host && table[i].host != host)
        i = (i + 1) & (size - 1);
    return &table[i];
}

static int grow(void)
{
    size_t size = places ? 2 * places : 1024;
    struct symbol *table = calloc(size, sizeof(*table));

    if (!table)
        return -1;
    for (size_t i = 0; i < places; i++) {
        if (symbols[i].host)
            *place_of(table, size, symbols[i].host) = symbols[i];
    }
    free(symbols);
    symbols = table;
    places = size;
    return 0;
}

static void enlist(const struct symbol *symbol)
{
    struct symbol *place;

    pthread_mutex_lock(&lock);
    if (2 * used < places || !grow()) {
        place = place_of(symbols, places, symbol->host);
        used += !place->host;
        *place = *symbol;
    }
    pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static struct symbol *find(const void *host)
{
    struct symbol *symbol;

    if (!host || !places)
        return NULL;
    symbol = place_of(symbols, places, host);
    return symbol->host && symbol->binary ? symbol : NULL;
}

static CUresult load(struct binary *binary)
{
    return binary->module ? CUDA_SUCCESS
                          : cuModuleLoadData(&binary->module, NULL);
}

CUresult symbol_function(const void *host, CUfunction *function)
{
    struct symbol *symbol;
    CUresult rc = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    symbol = find(host);
    if (!symbol)
        rc = CUDA_ERROR_NOT_FOUND;
    else if (!symbol->function)
        rc = load(symbol->binary);
    if (!rc && !symbol->function)
        rc = cuModuleGetFunction(&symbol->function, symbol->binary->module,
                                 symbol->name);
    if (!rc)
        *function = symbol->function;
    pthread_mutex_unlock(&lock);
    return rc;
}

CUresult symbol_variable(const void *host, CUdeviceptr *ptr, size_t *bytes)
{
    struct symbol *symbol;
    CUresult rc = CUDA_ERROR_NOT_FOUND;

    pthread_mutex_lock(&lock);
    symbol = find(host);
    if (symbol)
        rc = load(symbol->binary);
    if (!rc)
        rc = cuModuleGetGlobal(ptr, NULL, symbol->binary->module, symbol->name);
    if (!rc && bytes)
        *bytes = symbol->bytes;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* A binary that goes takes its symbols along; their places stay taken. */
static void forget(const struct binary *binary)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < places; i++) {
        if (symbols[i].binary == binary)
            symbols[i].binary = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* What nvcc compiles into every program that has kernels. */
FABRIC_API void **__cudaRegisterFatBinary(void *fatCubin);
FABRIC_API void __cudaRegisterFatBinaryEnd(void **handle);
FABRIC_API void __cudaUnregisterFatBinary(void **handle);
FABRIC_API char __cudaInitModule(void **handle);
FABRIC_API void __cudaRegisterFunction(void **handle, const char *host,
                                       char *device, const char *name,
                                       int threadLimit, void *tid, void *bid,
                                       void *blockDim, void *gridDim,
                                       int *warpSize);
FABRIC_API void __cudaRegisterVar(void **handle, char *host, char *device,
                                  const char *name, int ext, size_t bytes,
                                  int constant, int global);

void **__cudaRegisterFatBinary(void *fatCubin)
{
    struct binary *binary = calloc(1, sizeof(*binary));

    (void)fatCubin;
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *binary = (struct binary *)handle;

    if (!binary)
        return;
    forget(binary);
    if (binary->module)
        cuModuleUnload(binary->module);
    free(binary);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int threadLimit, void *tid,
                            void *bid, void *blockDim, void *gridDim,
                            int *warpSize)
{
    (void)device;
    (void)threadLimit;
    (void)tid;
    (void)bid;
    (void)blockDim;
    (void)gridDim;
    (void)warpSize;
    enlist(&(struct symbol){
        .host = host, .name = name, .binary = (struct binary *)handle});
}

void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int ext, size_t bytes, int constant,
                       int global)
{
    (void)device;
    (void)ext;
    (void)constant;
    (void)global;
    enlist(&(struct symbol){.host = host,
                            .name = name,
                            .binary = (struct binary *)handle,
                            .bytes = bytes});
}
