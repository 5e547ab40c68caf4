/* The stand-in cuBLAS: handles, their settings, and products as no-ops. */
#include <stdlib.h>

#include "blas/product.h"
#include "common/export.h"

struct cublasContext {
    cudaStream_t stream;
    int math_mode;
    int pointer_mode;
};

FABRIC_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof(**handle));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

FABRIC_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle,
                                              int *version)
{
    (void)handle;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API const char *cublasGetStatusString(cublasStatus_t status)
{
    return status ? "CUBLAS_STATUS_ERROR" : "CUBLAS_STATUS_SUCCESS";
}

FABRIC_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle,
                                             cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle,
                                             cudaStream_t *stream)
{
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle,
                                                void *workspace, size_t bytes)
{
    (void)handle;
    (void)workspace;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle,
                                                 int count)
{
    (void)handle;
    (void)count;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, int mode)
{
    handle->math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, int *mode)
{
    *mode = handle->math_mode;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                                  int mode)
{
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                                  int *mode)
{
    *mode = handle->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

FABRIC_API cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, int transa,
                                         int transb, int m, int n, int k,
                                         const float *alpha, const float *a,
                                         int lda, const float *b, int ldb,
                                         const float *beta, float *c, int ldc)
{
    (void)transa;
    (void)transb;
    (void)m;
    (void)n;
    (void)k;
    (void)alpha;
    (void)a;
    (void)lda;
    (void)b;
    (void)ldb;
    (void)beta;
    (void)c;
    (void)ldc;
    return product(handle->stream);
}

FABRIC_API cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, int trans,
                                         int m, int n, const float *alpha,
                                         const float *a, int lda,
                                         const float *x, int incx,
                                         const float *beta, float *y, int incy)
{
    (void)trans;
    (void)m;
    (void)n;
    (void)alpha;
    (void)a;
    (void)lda;
    (void)x;
    (void)incx;
    (void)beta;
    (void)y;
    (void)incy;
    return product(handle->stream);
}

FABRIC_API cublasStatus_t cublasSgemmStridedBatched(
    cublasHandle_t handle, int transa, int transb, int m, int n, int k,
    const float *alpha, const float *a, int lda, long long stridea,
    const float *b, int ldb, long long strideb, const float *beta, float *c,
    int ldc, long long stridec, int batches)
{
    (void)transa;
    (void)transb;
    (void)m;
    (void)n;
    (void)k;
    (void)alpha;
    (void)a;
    (void)lda;
    (void)stridea;
    (void)b;
    (void)ldb;
    (void)strideb;
    (void)beta;
    (void)c;
    (void)ldc;
    (void)stridec;
    (void)batches;
    return product(handle->stream);
}

FABRIC_API cublasStatus_t cublasGemmEx(cublasHandle_t handle, int transa,
                                       int transb, int m, int n, int k,
                                       const void *alpha, const void *a,
                                       int typea, int lda, const void *b,
                                       int typeb, int ldb, const void *beta,
                                       void *c, int typec, int ldc, int compute,
                                       int algo)
{
    (void)transa;
    (void)transb;
    (void)m;
    (void)n;
    (void)k;
    (void)alpha;
    (void)a;
    (void)typea;
    (void)lda;
    (void)b;
    (void)typeb;
    (void)ldb;
    (void)beta;
    (void)c;
    (void)typec;
    (void)ldc;
    (void)compute;
    (void)algo;
    return product(handle->stream);
}

FABRIC_API cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, int transa, int transb, int m, int n, int k,
    const void *alpha, const void *a, int typea, int lda, long long stridea,
    const void *b, int typeb, int ldb, long long strideb, const void *beta,
    void *c, int typec, int ldc, long long stridec, int batches, int compute,
    int algo)
{
    (void)transa;
    (void)transb;
    (void)m;
    (void)n;
    (void)k;
    (void)alpha;
    (void)a;
    (void)typea;
    (void)lda;
    (void)stridea;
    (void)b;
    (void)typeb;
    (void)ldb;
    (void)strideb;
    (void)beta;
    (void)c;
    (void)typec;
    (void)ldc;
    (void)stridec;
    (void)batches;
    (void)compute;
    (void)algo;
    return product(handle->stream);
}
