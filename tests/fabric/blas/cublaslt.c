/* The stand-in cuBLASLt: descriptors, one algorithm, products as no-ops. */
#include <stdlib.h>
#include <string.h>

#include "blas/product.h"
#include "common/export.h"

struct cublasLtContext {
    char unused;
};

struct cublasLtDescriptor {
    char unused;
};

static cublasStatus_t create(cublasLtDescriptor_t *descriptor)
{
    *descriptor = calloc(1, sizeof(**descriptor));
    return *descriptor ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t destroy(cublasLtDescriptor_t descriptor)
{
    free(descriptor);
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

FABRIC_API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = calloc(1, sizeof(**handle));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

FABRIC_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtDescriptor_t *desc,
                                                   int compute, int scale)
{
    (void)compute;
    (void)scale;
    return create(desc);
}

FABRIC_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtDescriptor_t desc)
{
    return destroy(desc);
}

FABRIC_API cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtDescriptor_t desc, int attribute, const void *value, size_t bytes)
{
    (void)desc;
    (void)attribute;
    (void)value;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtDescriptor_t *layout, int type,
                           uint64_t rows, uint64_t cols, int64_t ld)
{
    (void)type;
    (void)rows;
    (void)cols;
    (void)ld;
    return create(layout);
}

FABRIC_API cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtDescriptor_t layout)
{
    return destroy(layout);
}

FABRIC_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtDescriptor_t layout, int attribute, const void *value, size_t bytes)
{
    (void)layout;
    (void)attribute;
    (void)value;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtDescriptor_t *preference)
{
    return create(preference);
}

FABRIC_API cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtDescriptor_t preference)
{
    return destroy(preference);
}

FABRIC_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtDescriptor_t preference, int attribute, const void *value,
    size_t bytes)
{
    (void)preference;
    (void)attribute;
    (void)value;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtDescriptor_t desc,
    cublasLtDescriptor_t layouta, cublasLtDescriptor_t layoutb,
    cublasLtDescriptor_t layoutc, cublasLtDescriptor_t layoutd,
    cublasLtDescriptor_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *found)
{
    (void)handle;
    (void)desc;
    (void)layouta;
    (void)layoutb;
    (void)layoutc;
    (void)layoutd;
    (void)preference;
    if (wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(results, 0, sizeof(*results));
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtDescriptor_t desc,
               const void *alpha, const void *a, cublasLtDescriptor_t layouta,
               const void *b, cublasLtDescriptor_t layoutb, const void *beta,
               const void *c, cublasLtDescriptor_t layoutc, void *d,
               cublasLtDescriptor_t layoutd, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t bytes, cudaStream_t stream)
{
    (void)handle;
    (void)desc;
    (void)alpha;
    (void)a;
    (void)layouta;
    (void)b;
    (void)layoutb;
    (void)beta;
    (void)c;
    (void)layoutc;
    (void)d;
    (void)layoutd;
    (void)algo;
    (void)workspace;
    (void)bytes;
    return product(stream);
}
