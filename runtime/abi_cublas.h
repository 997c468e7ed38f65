/* The part of cuBLAS' and cuBLASLt's interfaces that Kiln uses; see abi_cuda.h for the form.
 * cudaStream_t is CUstream. */
#ifndef KILN_RUNTIME_ABI_CUBLAS_H
#define KILN_RUNTIME_ABI_CUBLAS_H

#include "runtime/abi_cuda.h"

typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef void *cublasLtMatmulDesc_t; /* pointers to opaque structs */
typedef void *cublasLtMatrixLayout_t;
typedef void *cublasLtMatmulPreference_t;
typedef int cublasStatus_t; /* an enum; unknown values must be representable */

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

#define CUBLAS_VALUES(X)                                                                           \
  X(CUBLAS_STATUS_SUCCESS, 0)                                                                      \
  X(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                                 \
  X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                               \
  X(CUBLAS_OP_N, 0)                                                                                \
  X(CUBLAS_OP_T, 1)                                                                                \
  X(CUBLAS_PEDANTIC_MATH, 2)                                                                       \
  X(CUBLAS_COMPUTE_32F, 68)                                                                        \
  X(CUBLAS_COMPUTE_32I, 72)                                                                        \
  X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                                              \
  X(CUDA_R_32F, 0)                                                                                 \
  X(CUDA_R_64F, 1)                                                                                 \
  X(CUDA_R_16F, 2)                                                                                 \
  X(CUDA_R_8I, 3)                                                                                  \
  X(CUDA_R_32I, 10)                                                                                \
  X(CUDA_R_16BF, 14)                                                                               \
  X(CUDA_R_8F_E4M3, 28)                                                                            \
  X(CUDA_R_8F_E5M2, 29)

#define CUBLASLT_VALUES(X)                                                                         \
  X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                                \
  X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                                \
  X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                              \
  X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                                          \
  X(CUBLASLT_EPILOGUE_DEFAULT, 1)                                                                  \
  X(CUBLASLT_EPILOGUE_RELU, 2)                                                                     \
  X(CUBLASLT_EPILOGUE_BIAS, 4)                                                                     \
  X(CUBLASLT_EPILOGUE_RELU_BIAS, 6)                                                                \
  X(CUBLASLT_EPILOGUE_GELU, 32)                                                                    \
  X(CUBLASLT_EPILOGUE_GELU_BIAS, 36)                                                               \
  X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                   \
  X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                                 \
  X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                                                 \
  X(CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                                             \
  X(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)                                                          \
  X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)                                                     \
  X(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4)

enum cublas_value {
#define X(name, value) name = value,
  CUBLAS_VALUES(X) CUBLASLT_VALUES(X)
#undef X
};

#define CUBLASLT_STRUCTS(X) X(cublasLtMatmulAlgo_t) X(cublasLtMatmulHeuristicResult_t)

#define CUBLAS_FUNCTIONS(X)                                                                        \
  X(cublasCreate, cublasCreate_v2, cublasStatus_t, (cublasHandle_t * handle))                      \
  X(cublasDestroy, cublasDestroy_v2, cublasStatus_t, (cublasHandle_t handle))                      \
  X(cublasGetVersion, cublasGetVersion_v2, cublasStatus_t, (cublasHandle_t handle, int *version))  \
  X(cublasSetStream, cublasSetStream_v2, cublasStatus_t, (cublasHandle_t handle, CUstream stream)) \
  X(cublasSetMathMode, cublasSetMathMode, cublasStatus_t, (cublasHandle_t handle, int mode))       \
  X(cublasGetStatusString, cublasGetStatusString, const char *, (cublasStatus_t status))           \
  X(cublasDgemm, cublasDgemm_v2, cublasStatus_t,                                                   \
    (cublasHandle_t handle, int transa, int transb, int m, int n, int k, const double *alpha,      \
     const double *A, int lda, const double *B, int ldb, const double *beta, double *C, int ldc))

#define CUBLASLT_FUNCTIONS(X)                                                                      \
  X(cublasLtCreate, cublasLtCreate, cublasStatus_t, (cublasLtHandle_t * handle))                   \
  X(cublasLtDestroy, cublasLtDestroy, cublasStatus_t, (cublasLtHandle_t handle))                   \
  X(cublasLtGetVersion, cublasLtGetVersion, size_t, (void))                                        \
  X(cublasLtGetStatusString, cublasLtGetStatusString, const char *, (cublasStatus_t status))       \
  X(cublasLtMatmulDescCreate, cublasLtMatmulDescCreate, cublasStatus_t,                            \
    (cublasLtMatmulDesc_t * desc, int compute_type, int scale_type))                               \
  X(cublasLtMatmulDescDestroy, cublasLtMatmulDescDestroy, cublasStatus_t,                          \
    (cublasLtMatmulDesc_t desc))                                                                   \
  X(cublasLtMatmulDescSetAttribute, cublasLtMatmulDescSetAttribute, cublasStatus_t,                \
    (cublasLtMatmulDesc_t desc, int attr, const void *value, size_t size))                         \
  X(cublasLtMatrixLayoutCreate, cublasLtMatrixLayoutCreate, cublasStatus_t,                        \
    (cublasLtMatrixLayout_t * layout, int type, uint64_t rows, uint64_t cols, int64_t ld))         \
  X(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutDestroy, cublasStatus_t,                      \
    (cublasLtMatrixLayout_t layout))                                                               \
  X(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceCreate, cublasStatus_t,                \
    (cublasLtMatmulPreference_t * pref))                                                           \
  X(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy, cublasStatus_t,              \
    (cublasLtMatmulPreference_t pref))                                                             \
  X(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute, cublasStatus_t,    \
    (cublasLtMatmulPreference_t pref, int attr, const void *value, size_t size))                   \
  X(cublasLtMatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic, cublasStatus_t,                \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t A,                 \
     cublasLtMatrixLayout_t B, cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,                 \
     cublasLtMatmulPreference_t pref, int n, cublasLtMatmulHeuristicResult_t results[],            \
     int *found))                                                                                  \
  X(cublasLtMatmul, cublasLtMatmul, cublasStatus_t,                                                \
    (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,         \
     cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,  \
     const void *C, cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,           \
     const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, CUstream stream))

struct cublas_api {
#define X(member, symbol, result, params) result(*member) params;
  CUBLAS_FUNCTIONS(X)
#undef X
};

struct cublaslt_api {
#define X(member, symbol, result, params) result(*member) params;
  CUBLASLT_FUNCTIONS(X)
#undef X
};

#endif
