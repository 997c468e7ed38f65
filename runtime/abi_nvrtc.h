/* The part of NVRTC's interface that Kiln uses; see abi_cuda.h for the form. Symbols exist since
 * NVRTC 12.0. */
#ifndef KILN_RUNTIME_ABI_NVRTC_H
#define KILN_RUNTIME_ABI_NVRTC_H

#include <stddef.h>

typedef struct _nvrtcProgram *nvrtcProgram;

#define NVRTC_VALUES(X)                                                                            \
  X(NVRTC_SUCCESS, 0)                                                                              \
  X(NVRTC_ERROR_OUT_OF_MEMORY, 1)                                                                  \
  X(NVRTC_ERROR_INVALID_OPTION, 5)                                                                 \
  X(NVRTC_ERROR_COMPILATION, 6)

enum nvrtc_value {
#define X(name, value) name = value,
  NVRTC_VALUES(X)
#undef X
};

typedef int nvrtcResult;

#define NVRTC_FUNCTIONS(X)                                                                         \
  X(nvrtcVersion, nvrtcVersion, nvrtcResult, (int *major, int *minor))                             \
  X(nvrtcGetErrorString, nvrtcGetErrorString, const char *, (nvrtcResult result))                  \
  X(nvrtcCreateProgram, nvrtcCreateProgram, nvrtcResult,                                           \
    (nvrtcProgram * program, const char *source, const char *name, int n_headers,                  \
     const char *const *headers, const char *const *names))                                        \
  X(nvrtcDestroyProgram, nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))               \
  X(nvrtcCompileProgram, nvrtcCompileProgram, nvrtcResult,                                         \
    (nvrtcProgram program, int n_options, const char *const *options))                             \
  X(nvrtcGetCUBINSize, nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, size_t * size))      \
  X(nvrtcGetCUBIN, nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char *cubin))                \
  X(nvrtcGetPTXSize, nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t * size))          \
  X(nvrtcGetPTX, nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char *ptx))                      \
  X(nvrtcGetProgramLogSize, nvrtcGetProgramLogSize, nvrtcResult,                                   \
    (nvrtcProgram program, size_t * size))                                                         \
  X(nvrtcGetProgramLog, nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char *log))

struct nvrtc_api {
#define X(member, symbol, result, params) result(*member) params;
  NVRTC_FUNCTIONS(X)
#undef X
};

#endif
