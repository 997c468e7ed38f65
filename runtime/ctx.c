/* The runtime's context, its errors and its log. */
#include "runtime/internal.h"

#include <stdio.h>

struct new_ctx {
  struct rt_ctx *ctx;
  const struct rt_options *options;
};

static const char *copy_text(struct arena *a, const char *s) {
  return s ? arena_strdup(a, s) : NULL;
}

static void copy_options(void *user) {
  struct new_ctx *x = user;
  struct rt_options *o = &x->ctx->options;
  struct arena *a = &x->ctx->arena;
  if (x->options)
    *o = *x->options;
  o->nvrtc = copy_text(a, o->nvrtc);
  o->cuda_home = copy_text(a, o->cuda_home);
  o->private_dir = copy_text(a, o->private_dir);
  o->worker_path = copy_text(a, o->worker_path);
  if (!o->compile_timeout_ms)
    o->compile_timeout_ms = 120 * 1000;
  if (!o->compile_memory)
    o->compile_memory = (uint64_t)16 << 30;
}

enum rt_status rt_ctx_new(const struct mem_alloc *mem, struct diag_sink *diags,
                          const struct rt_options *options, struct rt_ctx **out) {
  *out = NULL;
  struct rt_ctx *ctx = mem_get0(mem, sizeof *ctx);
  if (ctx) {
    ctx->mem = *mem;
    ctx->diags = diags;
    arena_init(&ctx->arena, &ctx->mem, &ctx->trap);
    struct new_ctx x = {ctx, options};
    if (arena_guard(&ctx->arena, copy_options, &x)) {
      pthread_mutex_init(&ctx->reporting, NULL);
      *out = ctx;
      return RT_OK;
    }
    arena_free(&ctx->arena);
    mem_drop(mem, ctx, sizeof *ctx);
  }
  diag_report(diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE, "out of memory");
  return RT_NO_MEMORY;
}

void rt_ctx_free(struct rt_ctx *ctx) {
  if (!ctx)
    return;
  rt_pool_free(ctx);
  if (ctx->nvml_started)
    ctx->nvml.nvmlShutdown();
  pthread_mutex_destroy(&ctx->reporting);
  arena_free(&ctx->arena);
  struct mem_alloc mem = ctx->mem;
  mem_drop(&mem, ctx, sizeof *ctx);
}

/* note: NULL, or what to add. */
static void report(struct rt_ctx *ctx, enum diag_id id, const char *note, const char *fmt,
                   va_list ap) {
  pthread_mutex_lock(&ctx->reporting);
  diag_vreport(ctx->diags, DIAG_ERROR, id, DIAG_NOWHERE, fmt, ap);
  if (note)
    diag_note(ctx->diags, DIAG_NOWHERE, "%s", note);
  pthread_mutex_unlock(&ctx->reporting);
}

enum rt_status rt_fail(struct rt_ctx *ctx, enum rt_status status, enum diag_id id, const char *fmt,
                       ...) {
  va_list ap;
  va_start(ap, fmt);
  report(ctx, id, NULL, fmt, ap);
  va_end(ap);
  return status;
}

static void report_driver(struct rt_ctx *ctx, const char *note, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void report_driver(struct rt_ctx *ctx, const char *note, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(ctx, DIAG_DRIVER, note, fmt, ap);
  va_end(ap);
}

enum rt_status rt_no_memory(struct rt_ctx *ctx) {
  return rt_fail(ctx, RT_NO_MEMORY, DIAG_NO_MEMORY, "out of memory");
}

/* After these the context, and often the process's use of the device, is lost. */
static bool is_sticky(CUresult e) {
  static const CUresult sticky[] = {CUDA_ERROR_DEINITIALIZED,
                                    CUDA_ERROR_ECC_UNCORRECTABLE,
                                    CUDA_ERROR_CONTAINED,
                                    CUDA_ERROR_ILLEGAL_ADDRESS,
                                    CUDA_ERROR_LAUNCH_TIMEOUT,
                                    CUDA_ERROR_ASSERT,
                                    CUDA_ERROR_HARDWARE_STACK_ERROR,
                                    CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                    CUDA_ERROR_MISALIGNED_ADDRESS,
                                    CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                    CUDA_ERROR_INVALID_PC,
                                    CUDA_ERROR_LAUNCH_FAILED,
                                    CUDA_ERROR_UNKNOWN};
  for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++)
    if (sticky[i] == e)
      return true;
  return false;
}

enum rt_status rt_cuda_failed(struct rt_device *dev, CUresult error, const char *fmt, ...) {
  struct rt_ctx *ctx = dev->ctx;
  char call[200];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(call, sizeof call, fmt, ap);
  va_end(ap);
  const char *name = NULL, *text = NULL;
  if (ctx->cuda.cuGetErrorName(error, &name) || !name)
    name = "unknown error";
  if (ctx->cuda.cuGetErrorString(error, &text) || !text)
    text = "no description";
  bool sticky = is_sticky(error);
  if (sticky && !dev->dead) {
    dev->dead = true;
    dev->dead_of = error;
  }
  enum rt_status status = error == CUDA_ERROR_OUT_OF_MEMORY ? RT_NO_MEMORY
                          : sticky                          ? RT_DEAD
                                                            : RT_FAILED;
  bool capture = error == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
                 error == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  report_driver(
      ctx,
      capture ? "a stream capture is under way: prepare launches before the capture begins" : NULL,
      "%s failed: %s (%d): %s%s", call, name, error, text,
      sticky ? "; the device's context is lost, the process must be restarted to use it" : "");
  return status;
}

void rt_log(struct rt_ctx *ctx, const char *fmt, ...) {
  if (!ctx->options.log)
    return;
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  ctx->options.log(ctx->options.log_user, line);
}

enum rt_status rt_enter(struct rt_device *dev) {
  struct rt_ctx *ctx = dev->ctx;
  if (dev->dead)
    return rt_fail(ctx, RT_DEAD, DIAG_DRIVER,
                   "GPU %d cannot be used: an earlier CUDA error (%d) destroyed its context",
                   dev->ordinal, dev->dead_of);
  CUcontext current = NULL;
  CUresult r = ctx->cuda.cuCtxGetCurrent(&current);
  if (r == CUDA_SUCCESS && current != dev->context)
    r = ctx->cuda.cuCtxSetCurrent(dev->context);
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(dev, r, "cuCtxSetCurrent");
}
