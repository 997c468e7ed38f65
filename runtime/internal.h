/* What the runtime's files share: the context's and the device's insides, and error helpers. Tests
 * include it to put fakes behind the tables of functions. */
#ifndef KILN_RUNTIME_INTERNAL_H
#define KILN_RUNTIME_INTERNAL_H

#include "runtime/abi_cublas.h"
#include "runtime/abi_cuda.h"
#include "runtime/abi_nvml.h"
#include "runtime/abi_nvrtc.h"
#include "runtime/rt.h"

#include <pthread.h>

enum lib_state { LIB_UNTRIED, LIB_LOADED, LIB_MISSING };

struct rt_lib {
  enum lib_state state;
  const char *path, *why; /* in the context's arena */
  int major, minor;
};

typedef void (*rt_dgemm_fn)(int order, int transa, int transb, int m, int n, int k, double alpha,
                            const double *a, int lda, const double *b, int ldb, double beta,
                            double *c, int ldc); /* cblas_dgemm; enums as ints */

struct rt_worker_pool; /* pool.c */

struct rt_ctx {
  struct mem_alloc mem;
  struct diag_sink *diags;
  pthread_mutex_t reporting; /* launches may fail on several threads at once */
  struct rt_options options; /* strings in the arena */
  struct arena arena;        /* strings; lives as long as the context */
  struct oom_trap trap;

  struct rt_lib libs[RT_LIB_COUNT];
  struct cuda_api cuda;
  struct nvrtc_api nvrtc;
  struct cublas_api cublas;
  struct cublaslt_api cublaslt;
  struct nvml_api nvml;
  bool cuda_started, nvml_started;

  bool dgemm_tried;
  rt_dgemm_fn dgemm; /* OpenBLAS', found right; NULL: plain loops */
  const char *dgemm_name;

  struct rt_worker_pool *pool;
  bool said_in_process;
};

/* A module of Kiln's own device kernels, compiled on first use; device_kernels.c. */
struct rt_helper_kernel {
  struct rt_module *module;
  CUfunction function;
};
enum rt_helper { RT_HELPER_TO_F64, RT_HELPER_COMPARE, RT_HELPER_FILL, RT_HELPER_COUNT };

struct rt_device {
  struct rt_ctx *ctx;
  CUdevice handle;
  CUcontext context;
  int ordinal;
  bool dead;
  CUresult dead_of;
  struct rt_device_info info;
  CUstream stream;
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  CUdeviceptr lt_workspace;
  struct rt_helper_kernel helpers[RT_HELPER_COUNT][DT_COUNT];
  nvmlDevice_t nvml;
  CUdeviceptr flush; /* buffer whose writing empties L2; timing.c */
  size_t flush_bytes;
};

struct rt_module {
  struct rt_device *dev;
  CUmodule handle;
};

/* ctx.c */

/* Reports an error and returns `status`. */
enum rt_status rt_fail(struct rt_ctx *ctx, enum rt_status status, enum diag_id id, const char *fmt,
                       ...) __attribute__((format(printf, 4, 5)));
/* Host memory ran out. */
enum rt_status rt_no_memory(struct rt_ctx *ctx);
/* Reports that `call` gave `error`; marks the device dead where the error is sticky. */
enum rt_status rt_cuda_failed(struct rt_device *dev, CUresult error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* One line to the log callback. */
void rt_log(struct rt_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* RT_DEAD with a diagnostic if the device is dead; else makes its context current on this
 * thread. */
enum rt_status rt_enter(struct rt_device *dev);

/* load.c: fakes for tests, used instead of searching. A NULL table marks the library missing. */
void rt_use_cuda(struct rt_ctx *ctx, const struct cuda_api *api);
void rt_use_nvrtc(struct rt_ctx *ctx, const struct nvrtc_api *api, int major, int minor);
void rt_use_cublas(struct rt_ctx *ctx, const struct cublas_api *api, const struct cublaslt_api *lt);
void rt_use_nvml(struct rt_ctx *ctx, const struct nvml_api *api);
/* dlopen over the usual places, without the context's tables: the first file that opens, or
 * NULL. */
void *rt_open_host_library(struct rt_ctx *ctx, const char *const *names, const char **path);

/* nvrtc.c: one compilation in this process (also the helper's work). Fills out->status, cubin, ptx,
 * log, compile_ms, version; reports nothing. `error` gets a static or arena text on failure. */
void rt_nvrtc_compile(struct rt_ctx *ctx, const struct rt_compile_job *job, struct rt_compiled *out,
                      const char **error);

/* compile.c */
void rt_compiled_init(struct rt_compiled *c, const struct mem_alloc *mem);

/* pool.c: helper processes. Compiles all jobs that are not yet done; RT_MISSING (no diagnostic) if
 * there is no helper. errors[i]: why job i failed, in out[i].arena. */
enum rt_status rt_pool_compile(struct rt_ctx *ctx, const struct rt_compile_job *jobs, uint32_t n,
                               struct rt_compiled *out, const char **errors,
                               const char **why_missing);
void rt_pool_free(struct rt_ctx *ctx);

/* blas_host.c: multiplies correctly in all four layouts. */
bool rt_dgemm_is_right(rt_dgemm_fn dgemm);

/* device_kernels.c: the helper kernel for elements of type t. */
enum rt_status rt_helper_function(struct rt_device *dev, enum rt_helper which, enum dtype t,
                                  CUfunction *out);
void rt_helpers_free(struct rt_device *dev);

/* buffer.c */
struct rt_device *rt_buffer_device(const struct rt_buffer *b);

/* oracle_cublas.c, timing.c: what they hang on the device. */
void rt_blas_close(struct rt_device *dev);
void rt_timing_close(struct rt_device *dev);

#endif
