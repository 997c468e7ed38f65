/* Interpreting and launching variants on the caller's tensors. */
#include "api/api.h"

#include <string.h>

struct kiln_launch {
  struct kiln_context *ctx;
  struct rt_prepared *prepared;
};

static bool dtype_of(const struct kiln_tensor *t, enum dtype *out) {
  static const struct {
    uint8_t code, bits;
  } dl[] = {
#define DTYPE(id, text, bits, kind, dl_code, dl_bits) {dl_code, dl_bits},
#include "base/dtypes.def"
  };
  for (int i = 0; i < DT_COUNT; i++)
    if (i != DT_INDEX && dl[i].code == t->dtype_code && dl[i].bits == t->dtype_bits &&
        t->dtype_lanes == 1) {
      *out = (enum dtype)i;
      return true;
    }
  return false;
}

/* A DLPack tensor as the runtime and the interpreter take it. gpu: where it must lie. */
static bool convert(struct kiln_context *ctx, const char *name, const struct kiln_tensor *t,
                    bool gpu, struct rt_tensor *out) {
  memset(out, 0, sizeof *out);
  int32_t want = gpu ? 2 : 1;
  if (t->data && t->device_type != want) {
    API_ERROR(ctx, SHAPE_BINDING,
              "argument `%s` must lie in %s memory (DLPack device type %d), "
              "found device type %d",
              name, gpu ? "GPU" : "CPU", want, t->device_type);
    return false;
  }
  if (gpu && t->data && t->device_id != 0) {
    API_ERROR(ctx, SHAPE_BINDING,
              "argument `%s` lies on GPU %d (DLPack device id); the launch is on GPU 0", name,
              t->device_id);
    return false;
  }
  if (!dtype_of(t, &out->dtype)) {
    API_ERROR(ctx, SHAPE_BINDING, "argument `%s`: DLPack type code %u with %u bits x %u is unknown",
              name, t->dtype_code, t->dtype_bits, t->dtype_lanes);
    return false;
  }
  if (t->ndim < 0 || t->ndim > RECIPE_MAX_RANK || (t->ndim && !t->shape)) {
    API_ERROR(ctx, SHAPE_BINDING, "argument `%s` has rank %d%s; at most %d is possible", name,
              t->ndim, t->ndim > 0 && !t->shape ? " and no shape" : "", RECIPE_MAX_RANK);
    return false;
  }
  out->rank = (uint32_t)t->ndim;
  out->data = t->data ? (char *)t->data + t->byte_offset : NULL;
  unsigned size = dtype_bits(out->dtype) / 8;
  if (size > 1 && (uintptr_t)out->data % size) {
    API_ERROR(ctx, SHAPE_BINDING,
              "argument `%s`: its address is not a multiple of the element "
              "size %u",
              name, size);
    return false;
  }
  for (uint32_t d = 0; d < out->rank; d++) {
    out->dim[d] = t->shape[d];
    out->stride[d] = t->strides ? t->strides[d] : 0;
  }
  if (!t->strides)
    rt_tensor_contiguous(out);
  return true;
}

struct args_call {
  struct kiln_variant *v;
  const struct kiln_arg *args;
  uint32_t n_args;
  bool exact;
  struct kiln_launch *launch;
};

uint32_t api_recipe_args(const struct ir_module *m, const struct rt_arg *args, struct rt_arg *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->args.n; i++)
    if (m->args.at[i].kind != IR_ARG_SCRATCH)
      out[n++] = args[i];
  return n;
}

/* The caller's arguments against the module's: a runtime argument for each of the module's (an
 * empty one for scratch, which is not passed); NULL if one does not fit.
 * What dims and strides must be is checked by who runs them. */
static struct rt_arg *convert_args(const struct args_call *c, const struct ir_module *m, bool gpu) {
  struct kiln_context *ctx = c->v->own.ctx;
  uint32_t n_passed = 0, next = 0;
  for (uint32_t i = 0; i < m->args.n; i++)
    n_passed += m->args.at[i].kind != IR_ARG_SCRATCH;
  if (c->n_args != n_passed) {
    API_ERROR(ctx, SHAPE_BINDING, "kernel `%s` takes %u arguments, got %u", ir_sym(m, m->kernel),
              n_passed, c->n_args);
    return NULL;
  }
  struct rt_arg *out = ARENA_ARRAY(&c->v->shown.arena, struct rt_arg, m->args.n + 1);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *arg = &m->args.at[i];
    const char *name = ir_sym(m, arg->name);
    if (arg->kind == IR_ARG_SCRATCH)
      continue;
    const struct kiln_tensor *t = c->args[next].tensor;
    double x = c->args[next++].number;
    if (arg->kind != IR_ARG_SCALAR) {
      out[i].absent = !t || (!t->data && !arg->present);
      if (!out[i].absent && !convert(ctx, name, t, gpu, &out[i].tensor))
        return NULL;
    } else if (dtype_is_float(arg->dtype)) {
      out[i].f64 = x;
    } else if (x >= -0x1p63 && x < 0x1p63 && x == (double)(int64_t)x) {
      out[i].i64 = (int64_t)x;
    } else {
      API_ERROR(ctx, SHAPE_BINDING, "argument `%s`: expected a whole number that fits %s, found %g",
                name, dtype_name(arg->dtype), x);
      return NULL;
    }
  }
  return out;
}

static enum kiln_status interpret(void *user) {
  struct args_call *c = user;
  struct kiln_context *ctx = c->v->own.ctx;
  const struct ir_module *m = c->v->tile;
  if (!api_stage_upto(c->v, IR_SCHEDULED_STAGE, "the interpreter"))
    return KILN_INVALID;
  const struct rt_arg *given = convert_args(c, m, false);
  if (!given)
    return KILN_INVALID;
  struct interp_arg *args = ARENA_ARRAY(&c->v->shown.arena, struct interp_arg, m->args.n + 1);
  for (uint32_t i = 0; i < m->args.n; i++) {
    args[i].f = given[i].f64;
    args[i].i = given[i].i64;
    const struct rt_tensor *t = &given[i].tensor;
    struct interp_tensor *to = &args[i].tensor;
    *to = (struct interp_tensor){.data = t->data, .dtype = t->dtype, .rank = t->rank};
    memcpy(to->dim, t->dim, sizeof to->dim);
    memcpy(to->stride, t->stride, sizeof to->stride);
  }
  struct interp_options opt = {.domain = c->exact ? INTERP_DOUBLE : INTERP_ROUNDED,
                               .max_steps = ctx->opt.max_steps,
                               .interrupted = api_interrupted,
                               .print = api_print_line,
                               .user = ctx};
  struct api_mark before = api_mark(ctx);
  return interp_run(m, args, m->args.n, &opt, &ctx->diags, &ctx->mem)
             ? KILN_OK
             : api_failure_since(ctx, before);
}

enum kiln_status kiln_interpret(struct kiln_variant *v, const struct kiln_arg *args,
                                uint32_t n_args, bool exact) {
  arena_free(&v->shown.arena);
  struct args_call c = {.v = v, .args = args, .n_args = n_args, .exact = exact};
  return api_guarded(&v->shown, interpret, &c);
}

static enum kiln_status prepare(void *user) {
  struct args_call *c = user;
  const struct ir_module *m = c->v->machine;
  struct rt_arg *args = convert_args(c, m, true);
  if (!args)
    return KILN_INVALID;
  uint32_t n = api_recipe_args(m, args, args);
  return api_from_rt(rt_prepare(c->v->module, m->recipe, args, n, NULL, &c->launch->prepared));
}

enum kiln_status kiln_prepare(struct kiln_variant *v, int device, const struct kiln_arg *args,
                              uint32_t n_args, struct kiln_launch **out) {
  struct kiln_context *ctx = v->own.ctx;
  *out = NULL;
  if (device != 0) {
    API_ERROR(ctx, USAGE, "device %d: this version launches on device 0", device);
    return KILN_INVALID;
  }
  enum kiln_status st = api_load(v);
  if (st != KILN_OK)
    return st;
  struct kiln_launch *l = mem_get0(&ctx->mem, sizeof *l);
  if (!l)
    return api_no_memory(ctx);
  l->ctx = ctx;
  arena_free(&v->shown.arena);
  struct args_call c = {.v = v, .args = args, .n_args = n_args, .launch = l};
  st = api_guarded(&v->shown, prepare, &c);
  if (st == KILN_OK)
    *out = l;
  else
    kiln_launch_free(l);
  return st;
}

enum kiln_status kiln_launch(struct kiln_launch *launch, void *stream) {
  return api_from_rt(rt_launch(launch->prepared, stream));
}

void kiln_launch_free(struct kiln_launch *l) {
  if (!l)
    return;
  struct kiln_context *ctx = l->ctx;
  rt_prepared_free(l->prepared);
  mem_drop(&ctx->mem, l, sizeof *l);
}
