/* Prepared launches: a recipe bound to arguments, evaluated once into what cuLaunchKernelEx takes.
 *
 * rt_prepare allocates everything; rt_rebind evaluates again into the same memory; rt_launch only
 * hands the evaluated steps to the driver. */
#include "runtime/bind.h"
#include "runtime/internal.h"
#include "runtime/tmap.h"

#include "base/check.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdlib.h>

struct step {
  bool is_kernel, is_empty;
  size_t offset, bytes; /* memset */
  CUfunction function;
  CUlaunchConfig config;
  CUlaunchAttribute attributes[2]; /* cluster, programmatic dependent launch */
  void **params;                   /* into rt_prepared.pointers */
  uint64_t *cells;                 /* their values */
};

struct rt_prepared {
  struct rt_module *module;
  const struct recipe *recipe;
  struct rt_bindings *bindings;
  bool ready;
  struct step *steps;
  uint64_t *cells;
  void **pointers;
  char *map_bytes;   /* room for the tensor maps, and to align them in */
  CUtensorMap *maps; /* in map_bytes */
  uint32_t n_steps, n_cells, n_maps;
  struct rt_buffer *own; /* workspace, unless given */
  CUdeviceptr workspace;
  size_t workspace_bytes, given_bytes;
  bool given;
};

/* ---- set-up that depends on recipe and device alone ---- */

/* Does a cubin for `target` run on compute capability major.minor? */
static bool runs_on(const char *target, int major, int minor) {
  if (!str_starts(target, "sm_"))
    return false;
  char *end;
  long v = strtol(target + 3, &end, 10);
  bool exact = *end == 'a' || *end == 'f';
  long tmajor = v / 10, tminor = v % 10;
  return tmajor == major && (exact ? tminor == minor : tminor <= minor);
}

static enum rt_status set_attribute(struct rt_prepared *p, struct step *s, const char *entry,
                                    int attribute, int value) {
  CUresult r = p->module->dev->ctx->cuda.cuFuncSetAttribute(s->function, attribute, value);
  return r == CUDA_SUCCESS ? RT_OK
                           : rt_cuda_failed(p->module->dev, r, "setting attribute %d of kernel %s",
                                            attribute, entry);
}

static enum rt_status set_up_kernel(struct rt_prepared *p, const struct recipe_step *rs,
                                    struct step *s) {
  struct rt_device *dev = p->module->dev;
  const struct cuda_api *cuda = &dev->ctx->cuda;
  CUresult r = cuda->cuModuleGetFunction(&s->function, p->module->handle, rs->entry);
  if (r != CUDA_SUCCESS)
    return rt_cuda_failed(dev, r, "finding kernel %s in its cubin", rs->entry);
  int max_threads = 0, static_smem = 0;
  r = cuda->cuFuncGetAttribute(&max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, s->function);
  if (r == CUDA_SUCCESS)
    r = cuda->cuFuncGetAttribute(&static_smem, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, s->function);
  if (r != CUDA_SUCCESS)
    return rt_cuda_failed(dev, r, "reading the attributes of kernel %s", rs->entry);
  uint32_t threads = rs->block[0] * rs->block[1] * rs->block[2];
  if (threads > (uint32_t)max_threads)
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_LIMIT,
                   "kernel %s: %u threads a block, the compiled kernel allows %d", rs->entry,
                   threads, max_threads);
  size_t smem = (size_t)rs->smem_bytes + (size_t)static_smem;
  if (smem > dev->info.smem_per_block_optin)
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_LIMIT,
                   "kernel %s: %zu bytes of shared memory, %s allows %zu a block", rs->entry, smem,
                   dev->info.name, dev->info.smem_per_block_optin);
  enum rt_status status = RT_OK;
  if (smem > 48 * 1024)
    status = set_attribute(p, s, rs->entry, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           (int)rs->smem_bytes);
  uint32_t cluster = rs->cluster[0] * rs->cluster[1] * rs->cluster[2];
  if (status == RT_OK && cluster > 8)
    status = set_attribute(p, s, rs->entry, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  s->config.blockDimX = rs->block[0];
  s->config.blockDimY = rs->block[1];
  s->config.blockDimZ = rs->block[2];
  s->config.sharedMemBytes = rs->smem_bytes;
  if (cluster > 1) {
    CUlaunchAttribute *x = &s->attributes[s->config.numAttrs++];
    x->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    x->value.clusterDim.x = rs->cluster[0];
    x->value.clusterDim.y = rs->cluster[1];
    x->value.clusterDim.z = rs->cluster[2];
  }
  if (rs->pdl) {
    CUlaunchAttribute *x = &s->attributes[s->config.numAttrs++];
    x->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    x->value.programmaticStreamSerializationAllowed = 1;
  }
  s->config.attrs = s->config.numAttrs ? s->attributes : NULL;
  return status;
}

enum rt_status rt_check_target(struct rt_device *dev, const char *kernel, const char *target) {
  if (runs_on(target, dev->info.cc_major, dev->info.cc_minor))
    return RT_OK;
  return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_DRIVER,
                 "kernel %s was compiled for %s; GPU %d (%s) is %s", kernel, target, dev->ordinal,
                 dev->info.name, dev->info.arch);
}

static enum rt_status set_up(struct rt_prepared *p) {
  struct rt_device *dev = p->module->dev;
  enum rt_status status = rt_check_target(dev, p->recipe->kernel, p->recipe->target);
  if (status == RT_OK)
    status = rt_enter(dev);
  uint32_t cell = 0, map = 0;
  for (uint32_t i = 0; i < p->n_steps && status == RT_OK; i++) {
    const struct recipe_step *rs = &p->recipe->steps.at[i];
    struct step *s = &p->steps[i];
    s->is_kernel = rs->kind == RECIPE_KERNEL;
    if (!s->is_kernel)
      continue;
    s->cells = p->cells + cell;
    s->params = p->pointers + cell;
    for (uint32_t k = 0; k < rs->params.n; k++)
      s->params[k] = rs->params.at[k].kind == RECIPE_PARAM_TMAP ? (void *)&p->maps[map++]
                                                                : (void *)&s->cells[k];
    cell += rs->params.n;
    status = set_up_kernel(p, rs, s);
  }
  return status;
}

/* ---- evaluation ---- */

static enum rt_status bad(const struct rt_prepared *p) {
  (void)p; /* the error was reported where it was found */
  return RT_BAD_INPUT;
}

static enum rt_status get_workspace(struct rt_prepared *p) {
  struct rt_ctx *ctx = p->module->dev->ctx;
  int64_t bytes = 0;
  if (p->recipe->workspace_bytes.id &&
      !rt_evaluate(p->bindings, p->recipe->workspace_bytes, "the workspace", &bytes))
    return bad(p);
  if (bytes < 0)
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                   "kernel %s: its workspace of %" PRId64 " bytes is negative", p->recipe->kernel,
                   bytes);
  p->workspace_bytes = (size_t)bytes;
  if (p->given) {
    if ((size_t)bytes > p->given_bytes)
      return rt_fail(ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                     "kernel %s needs %" PRId64 " bytes of workspace, %zu were given",
                     p->recipe->kernel, bytes, p->given_bytes);
    return RT_OK;
  }
  if (bytes == 0 || (p->own && rt_buffer_bytes(p->own) >= (size_t)bytes))
    return RT_OK;
  rt_buffer_free(p->own);
  p->own = NULL;
  p->workspace = 0;
  enum rt_status status = rt_buffer_new(p->module->dev, "the workspace", (size_t)bytes, &p->own);
  /* What no one writes is NaN or -1: a kernel that reads it is seen. */
  if (status == RT_OK)
    status = rt_buffer_fill(p->own, 0xff, NULL);
  if (status == RT_OK) /* other streams do not wait for the default stream */
    status = rt_device_sync(p->module->dev);
  if (status == RT_OK)
    p->workspace = (CUdeviceptr)(uintptr_t)rt_buffer_data(p->own);
  return status;
}

static enum rt_status evaluate_memset(struct rt_prepared *p, const struct recipe_step *rs,
                                      struct step *s) {
  int64_t offset, bytes;
  if (!rt_evaluate(p->bindings, rs->offset, "a memset", &offset) ||
      !rt_evaluate(p->bindings, rs->bytes, "a memset", &bytes))
    return bad(p);
  if (offset < 0 || bytes < 0 || (uint64_t)offset > p->workspace_bytes ||
      (uint64_t)bytes > p->workspace_bytes - (uint64_t)offset)
    return rt_fail(p->module->dev->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                   "kernel %s: a memset of %" PRId64 " bytes at %" PRId64
                   " does not lie in the workspace of %zu",
                   p->recipe->kernel, bytes, offset, p->workspace_bytes);
  s->offset = (size_t)offset;
  s->bytes = (size_t)bytes;
  return RT_OK;
}

static enum rt_status evaluate_param(struct rt_prepared *p, const struct recipe_step *rs,
                                     uint32_t k, void *to) {
  const struct recipe_param *q = &rs->params.at[k];
  const struct rt_arg *arg = NULL;
  int64_t v = 0;
  uint64_t *cell = to;
  *cell = 0;
  switch (q->kind) {
  case RECIPE_PARAM_PTR:
    arg = &p->bindings->args[q->arg];
    *cell = arg->absent ? 0 : (uint64_t)(uintptr_t)arg->tensor.data;
    return RT_OK;
  case RECIPE_PARAM_SCALAR:
    arg = &p->bindings->args[q->arg];
    if (dtype_is_float(p->recipe->args.at[q->arg].dtype))
      num_store(p->recipe->args.at[q->arg].dtype, cell, 0, arg->f64);
    else
      num_store_int(p->recipe->args.at[q->arg].dtype, cell, 0, arg->i64);
    return RT_OK;
  case RECIPE_PARAM_TMAP: return rt_encode_map(p->bindings, q, to);
  case RECIPE_PARAM_WORKSPACE:
  case RECIPE_PARAM_I32:
  case RECIPE_PARAM_I64: break;
  }
  if (!rt_evaluate(p->bindings, q->value, "a kernel parameter", &v))
    return bad(p);
  if (q->kind == RECIPE_PARAM_WORKSPACE) {
    if (v < 0 || (uint64_t)v > p->workspace_bytes)
      return rt_fail(p->module->dev->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                     "kernel %s: offset %" PRId64 " does not lie in the workspace of %zu bytes",
                     rs->entry, v, p->workspace_bytes);
    *cell = p->workspace + (uint64_t)v;
    return RT_OK;
  }
  if (q->kind == RECIPE_PARAM_I32 && (v < INT32_MIN || v > INT32_MAX))
    return rt_fail(p->module->dev->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                   "kernel %s: parameter %u is %" PRId64 ", which does not fit in 32 bits",
                   rs->entry, k, v);
  if (q->kind == RECIPE_PARAM_I32) {
    int32_t narrow = (int32_t)v;
    memcpy(cell, &narrow, sizeof narrow);
  } else {
    memcpy(cell, &v, sizeof v);
  }
  return RT_OK;
}

static enum rt_status evaluate_kernel(struct rt_prepared *p, const struct recipe_step *rs,
                                      struct step *s) {
  static const int64_t limits[3] = {INT32_MAX, 65535, 65535};
  unsigned *dims[3] = {&s->config.gridDimX, &s->config.gridDimY, &s->config.gridDimZ};
  s->is_empty = false;
  for (int i = 0; i < 3; i++) {
    int64_t v;
    if (!rt_evaluate(p->bindings, rs->grid[i], "the grid", &v))
      return bad(p);
    if (v < 0 || v > limits[i])
      return rt_fail(p->module->dev->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                     "kernel %s: grid dim %c is %" PRId64 ", CUDA allows 0 to %" PRId64, rs->entry,
                     "xyz"[i], v, limits[i]);
    if (v % rs->cluster[i])
      return rt_fail(p->module->dev->ctx, RT_BAD_INPUT, DIAG_SHAPE_BINDING,
                     "kernel %s: grid dim %c of %" PRId64 " is not a multiple of its cluster's %u",
                     rs->entry, "xyz"[i], v, rs -> cluster[i]);
    *dims[i] = (unsigned)v;
    s->is_empty |= v == 0;
  }
  /* Parameters of a launch that does not happen need have no value. */
  enum rt_status status = RT_OK;
  for (uint32_t k = 0; k < rs->params.n && status == RT_OK && !s->is_empty; k++)
    status = evaluate_param(p, rs, k, s->params[k]);
  return status;
}

enum rt_status rt_rebind(struct rt_prepared *p, const struct rt_arg *args, uint32_t n_args) {
  p->ready = false;
  enum rt_status status = rt_bindings_set(p->bindings, args, n_args);
  if (status == RT_OK)
    status = get_workspace(p);
  for (uint32_t i = 0; i < p->n_steps && status == RT_OK; i++) {
    const struct recipe_step *rs = &p->recipe->steps.at[i];
    status = rs->kind == RECIPE_KERNEL ? evaluate_kernel(p, rs, &p->steps[i])
                                       : evaluate_memset(p, rs, &p->steps[i]);
  }
  p->ready = status == RT_OK;
  return status;
}

/* Memory from the allocator is aligned for less than a tensor map wants. */
static size_t map_room(const struct rt_prepared *p) {
  return (p->n_maps + 1) * sizeof(CUtensorMap);
}

static bool allocate(struct rt_prepared *p, const struct mem_alloc *mem) {
  p->n_steps = p->recipe->steps.n;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const struct recipe_step *rs = &p->recipe->steps.at[i];
    p->n_cells += rs->params.n;
    for (uint32_t k = 0; k < rs->params.n; k++)
      p->n_maps += rs->params.at[k].kind == RECIPE_PARAM_TMAP;
  }
  p->steps = mem_get0(mem, p->n_steps * sizeof *p->steps);
  p->cells = mem_get0(mem, p->n_cells * sizeof *p->cells);
  p->pointers = mem_get0(mem, p->n_cells * sizeof *p->pointers);
  if (p->n_maps) {
    p->map_bytes = mem_get0(mem, map_room(p));
    size_t off = (size_t)(-(uintptr_t)p->map_bytes % _Alignof(CUtensorMap));
    p->maps = p->map_bytes ? (CUtensorMap *)(void *)(p->map_bytes + off) : NULL;
  }
  return p->steps && p->cells && p->pointers && p->bindings && (!p->n_maps || p->maps);
}

enum rt_status rt_prepare(struct rt_module *m, const struct recipe *recipe,
                          const struct rt_arg *args, uint32_t n_args,
                          const struct rt_prepare_options *options, struct rt_prepared **out) {
  *out = NULL;
  struct rt_ctx *ctx = m->dev->ctx;
  struct rt_prepared *p = mem_get0(&ctx->mem, sizeof *p);
  if (!p)
    return rt_no_memory(ctx);
  p->module = m;
  p->recipe = recipe;
  if (options && options->workspace) {
    p->given = true;
    p->workspace = (CUdeviceptr)(uintptr_t)options->workspace;
    p->given_bytes = options->workspace_bytes;
  }
  p->bindings =
      rt_bindings_new(ctx, recipe, m->dev->info.sm_count, options && options->allow_overlap);
  enum rt_status status = allocate(p, &ctx->mem) ? set_up(p) : rt_no_memory(ctx);
  if (status == RT_OK)
    status = rt_rebind(p, args, n_args);
  if (status == RT_OK)
    *out = p;
  else
    rt_prepared_free(p);
  return status;
}

void rt_prepared_free(struct rt_prepared *p) {
  if (!p)
    return;
  const struct mem_alloc *mem = &p->module->dev->ctx->mem;
  rt_buffer_free(p->own);
  rt_bindings_free(p->bindings);
  mem_drop(mem, p->steps, p->n_steps * sizeof *p->steps);
  mem_drop(mem, p->cells, p->n_cells * sizeof *p->cells);
  mem_drop(mem, p->pointers, p->n_cells * sizeof *p->pointers);
  mem_drop(mem, p->map_bytes, p->map_bytes ? map_room(p) : 0);
  mem_drop(mem, p, sizeof *p);
}

/* ---- launching ---- */

enum rt_status rt_launch(struct rt_prepared *p, rt_stream stream) {
  struct rt_device *dev = p->module->dev;
  const struct cuda_api *cuda = &dev->ctx->cuda;
  if (!p->ready)
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_USAGE,
                   "kernel %s: its last binding failed; it cannot be launched", p->recipe->kernel);
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const struct step *s = &p->steps[i];
    CUresult r = CUDA_SUCCESS;
    if (s->is_kernel && !s->is_empty) {
      CUlaunchConfig config = s->config; /* threads may share the prepared launch */
      config.hStream = stream;
      r = cuda->cuLaunchKernelEx(&config, s->function, s->params, NULL);
    } else if (!s->is_kernel && s->bytes) {
      r = cuda->cuMemsetD8Async(p->workspace + s->offset, 0, s->bytes, stream);
    }
    if (r != CUDA_SUCCESS)
      return rt_cuda_failed(dev, r, "launching %s",
                            s->is_kernel ? p->recipe->steps.at[i].entry : "a memset");
  }
  return RT_OK;
}

bool rt_prepared_grid(const struct rt_prepared *p, uint32_t i, uint32_t grid[3]) {
  for (uint32_t k = 0; k < p->n_steps; k++)
    if (p->steps[k].is_kernel && i-- == 0) {
      grid[0] = p->steps[k].config.gridDimX;
      grid[1] = p->steps[k].config.gridDimY;
      grid[2] = p->steps[k].config.gridDimZ;
      return true;
    }
  return false;
}

size_t rt_prepared_workspace(const struct rt_prepared *p) {
  return p->workspace_bytes;
}

enum rt_status rt_prepared_check_guards(struct rt_prepared *p) {
  return p->own ? rt_buffer_check_guards(p->own) : RT_OK;
}
