/* The part of the CUDA driver's interface that Kiln uses, declared here so that no CUDA header is
 * needed to build. Names and values are the driver's (cuda.h); tests/unit/test_rt_abi.c compares
 * every signature, size, offset and value below with the installed header.
 *
 * CUDA_FUNCTIONS(X): X(member of struct cuda_api, exported symbol, result, parameters). Exported
 * symbols carry the version suffix that cuda.h's macros would add; all exist since CUDA 12.0. */
#ifndef KILN_RUNTIME_ABI_CUDA_H
#define KILN_RUNTIME_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct CUuuid_st {
  char bytes[16];
} CUuuid;

/* CUDA_ENUMS(X): X(name, value), by type. Only what is used; a CUresult may be any other number. */
#define CUDA_RESULTS(X)                                                                            \
  X(CUDA_SUCCESS, 0)                                                                               \
  X(CUDA_ERROR_INVALID_VALUE, 1)                                                                   \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                   \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                 \
  X(CUDA_ERROR_DEINITIALIZED, 4)                                                                   \
  X(CUDA_ERROR_NO_DEVICE, 100)                                                                     \
  X(CUDA_ERROR_INVALID_DEVICE, 101)                                                                \
  X(CUDA_ERROR_INVALID_IMAGE, 200)                                                                 \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                               \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                             \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                             \
  X(CUDA_ERROR_CONTAINED, 226)                                                                     \
  X(CUDA_ERROR_INVALID_PTX, 218)                                                                   \
  X(CUDA_ERROR_INVALID_HANDLE, 400)                                                                \
  X(CUDA_ERROR_NOT_FOUND, 500)                                                                     \
  X(CUDA_ERROR_NOT_READY, 600)                                                                     \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                               \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                       \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                \
  X(CUDA_ERROR_ASSERT, 710)                                                                        \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                          \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                           \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                            \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                         \
  X(CUDA_ERROR_INVALID_PC, 718)                                                                    \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                                 \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                    \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                    \
  X(CUDA_ERROR_UNKNOWN, 999)

#define CUDA_DEVICE_ATTRIBUTES(X)                                                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                                  \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                            \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                  \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                                     \
  X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                               \
  X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                                         \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                                        \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                              \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                              \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                  \
  X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                      \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                     \
  X(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111)

#define CUDA_FUNCTION_ATTRIBUTES(X)                                                                \
  X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                    \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                        \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                                         \
  X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                                 \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                            \
  X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)

#define CUDA_OTHER_VALUES(X)                                                                       \
  X(CU_STREAM_NON_BLOCKING, 1)                                                                     \
  X(CU_EVENT_DEFAULT, 0)                                                                           \
  X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                              \
  X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                            \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                        \
  X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                                      \
  X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                      \
  X(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                                                              \
  X(CU_TENSOR_MAP_DATA_TYPE_INT32, 3)                                                              \
  X(CU_TENSOR_MAP_DATA_TYPE_INT64, 5)                                                              \
  X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                            \
  X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                                                            \
  X(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8)                                                            \
  X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                                           \
  X(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 11)                                                          \
  X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                                              \
  X(CU_TENSOR_MAP_SWIZZLE_NONE, 0)                                                                 \
  X(CU_TENSOR_MAP_SWIZZLE_32B, 1)                                                                  \
  X(CU_TENSOR_MAP_SWIZZLE_64B, 2)                                                                  \
  X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                                 \
  X(CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)                                                            \
  X(CU_TENSOR_MAP_L2_PROMOTION_L2_64B, 1)                                                          \
  X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                                                         \
  X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                                                         \
  X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)                                                          \
  X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, 1)

#define CUDA_VALUES(X)                                                                             \
  CUDA_RESULTS(X) CUDA_DEVICE_ATTRIBUTES(X) CUDA_FUNCTION_ATTRIBUTES(X) CUDA_OTHER_VALUES(X)

/* One enum: the driver's functions take plain ints here, which have the same size and kind. */
enum cuda_value {
#define X(name, value) name = value,
  CUDA_VALUES(X)
#undef X
};

typedef int CUresult; /* an enum in cuda.h; values unknown to this list must be representable */

typedef union CUlaunchAttributeValue_union {
  char pad[64];
  uint64_t align_as_pointer;
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
  int id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

/* 128 opaque bytes, aligned to 64. */
typedef struct CUtensorMap_st {
  _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

/* Structs that cross the interface, for the ABI test. */
#define CUDA_STRUCTS(X)                                                                            \
  X(CUuuid) X(CUlaunchAttributeValue) X(CUlaunchAttribute) X(CUlaunchConfig) X(CUtensorMap)

/* The first group must be there; the driver is refused otherwise. */
#define CUDA_FUNCTIONS(X)                                                                          \
  X(cuInit, cuInit, CUresult, (unsigned int flags))                                                \
  X(cuDriverGetVersion, cuDriverGetVersion, CUresult, (int *version))                              \
  X(cuGetErrorName, cuGetErrorName, CUresult, (CUresult error, const char **text))                 \
  X(cuGetErrorString, cuGetErrorString, CUresult, (CUresult error, const char **text))             \
  X(cuDeviceGetCount, cuDeviceGetCount, CUresult, (int *count))                                    \
  X(cuDeviceGet, cuDeviceGet, CUresult, (CUdevice * device, int ordinal))                          \
  X(cuDeviceGetName, cuDeviceGetName, CUresult, (char *name, int len, CUdevice dev))               \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, CUresult, (CUuuid * uuid, CUdevice dev))                  \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, CUresult, (size_t * bytes, CUdevice dev))               \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, CUresult, (int *value, int attrib, CUdevice dev))  \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, CUresult, (char *id, int len, CUdevice dev))         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, CUresult, (CUcontext * ctx, CUdevice dev)) \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, CUresult, (CUdevice dev))             \
  X(cuCtxGetCurrent, cuCtxGetCurrent, CUresult, (CUcontext * ctx))                                 \
  X(cuCtxSetCurrent, cuCtxSetCurrent, CUresult, (CUcontext ctx))                                   \
  X(cuCtxSynchronize, cuCtxSynchronize, CUresult, (void))                                          \
  X(cuModuleLoadData, cuModuleLoadData, CUresult, (CUmodule * module, const void *image))          \
  X(cuModuleUnload, cuModuleUnload, CUresult, (CUmodule module))                                   \
  X(cuModuleGetFunction, cuModuleGetFunction, CUresult,                                            \
    (CUfunction * function, CUmodule module, const char *name))                                    \
  X(cuFuncSetAttribute, cuFuncSetAttribute, CUresult, (CUfunction f, int attrib, int value))       \
  X(cuFuncGetAttribute, cuFuncGetAttribute, CUresult, (int *value, int attrib, CUfunction f))      \
  X(cuMemAlloc, cuMemAlloc_v2, CUresult, (CUdeviceptr * ptr, size_t bytes))                        \
  X(cuMemFree, cuMemFree_v2, CUresult, (CUdeviceptr ptr))                                          \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2, CUresult, (CUdeviceptr dst, const void *src, size_t bytes))     \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, CUresult, (void *dst, CUdeviceptr src, size_t bytes))           \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, CUresult,                                             \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                             \
  X(cuMemsetD8Async, cuMemsetD8Async, CUresult,                                                    \
    (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream))                             \
  X(cuStreamCreate, cuStreamCreate, CUresult, (CUstream * stream, unsigned int flags))             \
  X(cuStreamDestroy, cuStreamDestroy_v2, CUresult, (CUstream stream))                              \
  X(cuStreamSynchronize, cuStreamSynchronize, CUresult, (CUstream stream))                         \
  X(cuStreamIsCapturing, cuStreamIsCapturing, CUresult, (CUstream stream, int *status))            \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, CUresult, (CUstream stream, int mode))          \
  X(cuStreamEndCapture, cuStreamEndCapture, CUresult, (CUstream stream, CUgraph * graph))          \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags, CUresult,                                     \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                                 \
  X(cuGraphLaunch, cuGraphLaunch, CUresult, (CUgraphExec exec, CUstream stream))                   \
  X(cuGraphExecDestroy, cuGraphExecDestroy, CUresult, (CUgraphExec exec))                          \
  X(cuGraphDestroy, cuGraphDestroy, CUresult, (CUgraph graph))                                     \
  X(cuEventCreate, cuEventCreate, CUresult, (CUevent * event, unsigned int flags))                 \
  X(cuEventDestroy, cuEventDestroy_v2, CUresult, (CUevent event))                                  \
  X(cuEventRecord, cuEventRecord, CUresult, (CUevent event, CUstream stream))                      \
  X(cuEventSynchronize, cuEventSynchronize, CUresult, (CUevent event))                             \
  X(cuEventElapsedTime, cuEventElapsedTime, CUresult, (float *ms, CUevent start, CUevent end))     \
  X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, CUresult,                                      \
    (CUtensorMap * map, int dtype, uint32_t rank, void *address, const uint64_t *dims,             \
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,          \
     int swizzle, int l2, int fill))                                                               \
  X(cuLaunchKernelEx, cuLaunchKernelEx, CUresult,                                                  \
    (const CUlaunchConfig *config, CUfunction f, void **params, void **extra))

struct cuda_api {
#define X(member, symbol, result, params) result(*member) params;
  CUDA_FUNCTIONS(X)
#undef X
};

#endif
