/*
 * The part of cuBLAS 13 that the stand-ins offer, in our own words: names,
 * values and signatures of its C API. What the library's callers only pass
 * through (descriptors, types, algorithms) is opaque here.
 */
#ifndef FABRIC_CUBLAS_H
#define FABRIC_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#define CUBLAS_VERSION 130000

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;

typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtDescriptor *cublasLtDescriptor_t;

/* One algorithm is as good as another: nothing is computed. */
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t bytes);
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, int mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, int *mode);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, int mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, int *mode);
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, int transa, int transb,
                              int m, int n, int k, const float *alpha,
                              const float *a, int lda, const float *b, int ldb,
                              const float *beta, float *c, int ldc);
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, int trans, int m, int n,
                              const float *alpha, const float *a, int lda,
                              const float *x, int incx, const float *beta,
                              float *y, int incy);
cublasStatus_t
cublasSgemmStridedBatched(cublasHandle_t handle, int transa, int transb, int m,
                          int n, int k, const float *alpha, const float *a,
                          int lda, long long stridea, const float *b, int ldb,
                          long long strideb, const float *beta, float *c,
                          int ldc, long long stridec, int batches);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, int transa, int transb,
                            int m, int n, int k, const void *alpha,
                            const void *a, int typea, int lda, const void *b,
                            int typeb, int ldb, const void *beta, void *c,
                            int typec, int ldc, int compute, int algo);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, int transa, int transb, int m, int n, int k,
    const void *alpha, const void *a, int typea, int lda, long long stridea,
    const void *b, int typeb, int ldb, long long strideb, const void *beta,
    void *c, int typec, int ldc, long long stridec, int batches, int compute,
    int algo);

size_t cublasLtGetVersion(void);
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtDescriptor_t *desc, int compute,
                                        int scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtDescriptor_t desc);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtDescriptor_t desc,
                                              int attribute, const void *value,
                                              size_t bytes);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtDescriptor_t *layout,
                                          int type, uint64_t rows,
                                          uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtDescriptor_t layout);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtDescriptor_t layout,
                                                int attribute,
                                                const void *value,
                                                size_t bytes);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtDescriptor_t *preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtDescriptor_t preference);
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtDescriptor_t preference,
                                     int attribute, const void *value,
                                     size_t bytes);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtDescriptor_t desc,
    cublasLtDescriptor_t layouta, cublasLtDescriptor_t layoutb,
    cublasLtDescriptor_t layoutc, cublasLtDescriptor_t layoutd,
    cublasLtDescriptor_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *found);
cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtDescriptor_t desc,
               const void *alpha, const void *a, cublasLtDescriptor_t layouta,
               const void *b, cublasLtDescriptor_t layoutb, const void *beta,
               const void *c, cublasLtDescriptor_t layoutc, void *d,
               cublasLtDescriptor_t layoutd, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t bytes, cudaStream_t stream);

#endif
