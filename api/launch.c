/* Interpreting and launching variants on the caller's tensors. */
#include "api/api.h"

#include <string.h>

struct kiln_launch {
  struct api_object own;
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

/* A DLPack tensor as the runtime and the interpreter take it. */
static bool convert(struct kiln_context *ctx, const char *name, const struct kiln_tensor *t,
                    struct rt_tensor *out) {
  memset(out, 0, sizeof *out);
  if (!dtype_of(t, &out->dtype)) {
    API_ERROR(ctx, SHAPE_BINDING, "argument `%s`: DLPack type code %u with %u bits x %u is unknown",
              name, t->dtype_code, t->dtype_bits, t->dtype_lanes);
    return false;
  }
  if (t->ndim < 0 || t->ndim > RECIPE_MAX_RANK) {
    API_ERROR(ctx, SHAPE_BINDING, "argument `%s` has rank %d; at most %d is possible", name,
              t->ndim, RECIPE_MAX_RANK);
    return false;
  }
  out->rank = (uint32_t)t->ndim;
  out->data = t->data ? (char *)t->data + t->byte_offset : NULL;
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
  int device;
  struct kiln_launch *launch;
};

static bool check_count(struct kiln_context *ctx, const struct ir_module *m, uint32_t n) {
  if (n == m->args.n)
    return true;
  API_ERROR(ctx, SHAPE_BINDING, "kernel `%s` takes %u arguments, got %u", ir_sym(m, m->kernel),
            m->args.n, n);
  return false;
}

static enum kiln_status interpret(void *user) {
  struct args_call *c = user;
  struct kiln_context *ctx = c->v->own.ctx;
  const struct ir_module *m = c->v->tile;
  if (!check_count(ctx, m, c->n_args))
    return KILN_INVALID;
  struct interp_arg *args = ARENA_ARRAY(&c->v->shown.arena, struct interp_arg, c->n_args + 1);
  for (uint32_t i = 0; i < c->n_args; i++) {
    args[i].f = c->args[i].number;
    args[i].i = dtype_is_float(m->args.at[i].dtype) ? 0 : (int64_t)c->args[i].number;
    struct rt_tensor t;
    if (!c->args[i].tensor)
      continue;
    if (!convert(ctx, ir_sym(m, m->args.at[i].name), c->args[i].tensor, &t))
      return KILN_INVALID;
    args[i].tensor.data = t.data;
    args[i].tensor.dtype = t.dtype;
    args[i].tensor.rank = t.rank;
    memcpy(args[i].tensor.dim, t.dim, sizeof t.dim);
    memcpy(args[i].tensor.stride, t.stride, sizeof t.stride);
  }
  struct interp_options opt = {.domain = c->exact ? INTERP_DOUBLE : INTERP_ROUNDED,
                               .interrupted = api_interrupted,
                               .user = ctx};
  uint32_t before = ctx->diags.list.n;
  return interp_run(m, args, c->n_args, &opt, &ctx->diags, &ctx->mem)
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
  struct kiln_context *ctx = c->v->own.ctx;
  const struct ir_module *m = c->v->machine;
  if (!check_count(ctx, m, c->n_args))
    return KILN_INVALID;
  struct rt_arg *args = ARENA_ARRAY(&c->v->shown.arena, struct rt_arg, c->n_args + 1);
  for (uint32_t i = 0; i < c->n_args; i++) {
    args[i].f64 = c->args[i].number;
    args[i].i64 = dtype_is_float(m->args.at[i].dtype) ? 0 : (int64_t)c->args[i].number;
    args[i].absent = !c->args[i].tensor && m->args.at[i].kind != IR_ARG_SCALAR;
    if (c->args[i].tensor &&
        !convert(ctx, ir_sym(m, m->args.at[i].name), c->args[i].tensor, &args[i].tensor))
      return KILN_INVALID;
  }
  return api_from_rt(
      rt_prepare(c->v->module, m->recipe, args, c->n_args, NULL, &c->launch->prepared));
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
  if (!l) {
    API_ERROR(ctx, NO_MEMORY, "out of memory");
    return KILN_NO_MEMORY;
  }
  api_object_init(&l->own, ctx);
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
  struct kiln_context *ctx = l->own.ctx;
  rt_prepared_free(l->prepared);
  api_object_free(&l->own);
  mem_drop(&ctx->mem, l, sizeof *l);
}
