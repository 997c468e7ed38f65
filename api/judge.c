/* References: what a result is judged by.
 *
 * With an oracle: R is the oracle in double precision on the rounded inputs; the baseline is the
 * same oracle with every operation rounded to f32 (matrix products accumulate in f32: cuBLAS on a
 * GPU) and the result rounded to the output's dtype: the unfused composition in the same precision.
 * Without one: R is the kernel's interpretation in double precision, the baseline its
 * interpretation with rounding, and the level is self-checked, never verified.
 *
 * The a-priori bound is known where the oracle makes exactly one matrix product of the output's
 * shape: gamma_K |A||B|, times 1.2 for what follows it (the slope of the activations is at most
 * 1.13) and with 8 more roundings for sums that follow. Where a dot of the kernel lets the matrix
 * unit sum 8-bit floats in its own way, n of k at a time, (n + 2) 2^-13 |A||B| is added: what that
 * may lose (docs/numerics.md). */
#include "api/api.h"

#include "base/threads.h"
#include "ir/mma.h"

#include <math.h>
#include <string.h>

/* The oracle under way: how its matrix products are to be computed, and what they were. */
struct api_oracle_call {
  struct arena *a;
  const struct api_problem *p;
  struct fe_array *arrays; /* per argument */
  bool single;
  VEC(struct api_matmul) seen;
  double *magnitude; /* |A||B| of the first product */
};

static int argument_of(const struct api_oracle_call *o, const double *data) {
  for (uint32_t i = 0; i < o->p->n_args; i++)
    if (data && o->arrays[i].data == data)
      return (int)i;
  return -1;
}

/* Loops over many elements go side by side; a part is no shorter than this. */
#define PART (1 << 16)

struct absolute {
  const double *x;
  double *y;
  int64_t cols, row_stride, col_stride;
};

static void absolute_rows(void *user, int64_t first, int64_t end) {
  const struct absolute *s = user;
  for (int64_t i = first; i < end; i++)
    for (int64_t j = 0; j < s->cols; j++)
      s->y[i * s->cols + j] = fabs(s->x[i * s->row_stride + j * s->col_stride]);
}

static double *absolute(struct arena *a, const double *x, int64_t rows, int64_t cols, int64_t rs,
                        int64_t cs) {
  double *y = arena_get(a, sizeof(double) * ((size_t)(rows * cols) + 1));
  struct absolute s = {x, y, cols, rs, cs};
  threads_split(rows, PART / (cols + 1) + 1, absolute_rows, &s);
  return y;
}

struct product {
  struct api_oracle_call *o;
  const struct fe_matmul *mm;
  struct rt_ctx *rt;
  struct rt_device *dev;
  bool ok;
};

/* Notes the product; of the first one also |A||B|. */
static void note_product(void *user) {
  struct product *x = user;
  struct api_oracle_call *o = x->o;
  const struct fe_matmul *mm = x->mm;
  struct api_matmul seen = {.m = mm->m, .n = mm->n, .k = mm->k};
  seen.a = argument_of(o, mm->a);
  seen.b = argument_of(o, mm->b);
  seen.a_trans = mm->a_col != 1;
  seen.b_trans = mm->b_col != 1;
  VEC_PUSH(o->a, &o->seen, seen);
  if (o->seen.n > 1)
    return;
  o->magnitude = arena_get(o->a, sizeof(double) * ((size_t)(mm->m * mm->n) + 1));
  struct arena_mark mark = arena_get_mark(o->a);
  double *aa = absolute(o->a, mm->a, mm->m, mm->k, mm->a_row, mm->a_col);
  double *bb = absolute(o->a, mm->b, mm->k, mm->n, mm->b_row, mm->b_col);
  x->ok = rt_matmul_f64(x->rt, x->dev, mm->m, mm->n, mm->k, aa, mm->k, 1, bb, mm->n, 1,
                        o->magnitude) == RT_OK;
  arena_reset(o->a, mark);
}

bool api_oracle_matmul(struct kiln_file *file, const struct fe_matmul *mm) {
  struct kiln_context *ctx = file->own.ctx;
  struct product x = {.o = file->oracle, .mm = mm, .ok = true};
  if (api_runtime(ctx, &x.rt) != KILN_OK || api_device_if_any(ctx, &x.dev) != KILN_OK)
    return false;
  bool single = x.o && x.o->single;
  if ((single ? rt_matmul_f32 : rt_matmul_f64)(x.rt, x.dev, mm->m, mm->n, mm->k, mm->a, mm->a_row,
                                               mm->a_col, mm->b, mm->b_row, mm->b_col,
                                               mm->c) != RT_OK)
    return false;
  if (!x.o || single)
    return true;
  /* Under a guard of its own: the caller is Lua, which no jump may cross. */
  if (!arena_guard(x.o->a, note_product, &x))
    api_no_memory(ctx);
  else if (x.ok)
    return true;
  return false;
}

static bool is_output(const struct api_arg *arg) {
  return arg->kind == IR_ARG_OUT || arg->kind == IR_ARG_INOUT;
}

/* One buffer of doubles per output: zeros, as a kernel may leave elements out, which an oracle does
 * not. */
static double **output_buffers(const struct api_problem *p, struct arena *a) {
  bool all = p->kernel && p->kernel->has_oracle;
  double **out = ARENA_ARRAY(a, double *, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    size_t bytes = sizeof(double) * ((size_t)api_elements(&p->args[i]) + 1);
    if (is_output(&p->args[i]) && !p->args[i].absent)
      out[i] = all ? arena_get(a, bytes) : arena_get0(a, bytes);
  }
  return out;
}

struct rounding {
  enum dtype t;
  double *values;
};

static void round_part(void *user, int64_t first, int64_t end) {
  const struct rounding *r = user;
  for (int64_t n = first; n < end; n++)
    r->values[n] = num_round(r->t, r->values[n]);
}

static void round_outputs(const struct api_problem *p, double **values) {
  for (uint32_t i = 0; i < p->n_args; i++) {
    struct rounding r = {p->args[i].dtype, values[i]};
    if (values[i])
      threads_split(api_elements(&p->args[i]), PART, round_part, &r);
  }
}

static bool run_oracle(const struct api_problem *p, struct api_oracle_call *o, double **results) {
  struct arena *a = o->a;
  struct fe_array *out = ARENA_ARRAY(a, struct fe_array, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    out[i] = o->arrays[i];
    out[i].data = results[i];
  }
  struct fe_problem fp = {.config = &p->config,
                          .dim = api_dim_lookup,
                          .dim_user = (void *)(uintptr_t)p,
                          .absent = p->absent,
                          .single = o->single};
  p->file->oracle = o;
  bool ok = fe_oracle(p->file->fe, p->kernel, &fp, o->arrays, out);
  p->file->oracle = NULL;
  return ok;
}

struct bounding {
  const double *magnitude;
  double factor, most, *bound;
};

static void bound_part(void *user, int64_t first, int64_t end) {
  const struct bounding *b = user;
  for (int64_t n = first; n < end; n++)
    b->bound[n] = b->factor * (b->magnitude[n] + b->most);
}

/* What the matrix unit's own sums of 8-bit floats may lose, as a share of |A||B|. */
struct short_sums {
  int64_t k; /* of the product */
  double loss;
};

static void look_for_short_sums(void *user, struct ir_module *m, struct ir_op o) {
  struct short_sums *s = user;
  const struct ir_attr *prec = ir_get_attr(m, o, IR_ATTR_prec);
  if (ir_op_at(m, o)->opcode != IR_DOT || !prec)
    return;
  enum ir_prec word = ir_prec_find(ir_sym(m, prec->s));
  int64_t n = word == IR_PREC_PROMOTED ? IR_PROMOTED_K : word == IR_PREC_FAST ? s->k : 0;
  if (n > 0)
    s->loss = fmax(s->loss, (double)(n + 2) * 0x1p-13);
}

static enum kiln_status by_oracle(const struct api_problem *p, const struct ir_module *module,
                                  double **inputs, struct arena *a, struct api_reference *ref) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct api_mark before = api_mark(ctx);
  struct api_oracle_call o = {.a = a, .p = p};
  o.arrays = ARENA_ARRAY(a, struct fe_array, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    o.arrays[i].rank = arg->rank;
    memcpy(o.arrays[i].dim, arg->dim, sizeof arg->dim);
    o.arrays[i].data = arg->absent ? NULL : inputs[i];
  }
  if (!run_oracle(p, &o, ref->ref))
    return api_failure_since(ctx, before);
  ref->matmuls = o.seen.at;
  ref->n_matmuls = o.seen.n;
  ref->base = output_buffers(p, a);
  struct api_oracle_call again = {.a = a, .p = p, .arrays = o.arrays, .single = true};
  if (!run_oracle(p, &again, ref->base))
    return api_failure_since(ctx, before);
  round_outputs(p, ref->base);
  ref->source = "the kernel's oracle in double precision";
  ref->baseline = "the oracle's composition with f32 operations";
  ref->level = KILN_LEVEL_VERIFIED;
  for (uint32_t i = 0; i < p->n_args && o.seen.n == 1; i++) {
    const struct api_arg *arg = &p->args[i];
    const struct api_matmul *mm = &o.seen.at[0];
    if (!ref->ref[i] || arg->rank != 2 || arg->dim[0] != mm->m || arg->dim[1] != mm->n)
      continue;
    struct short_sums sums = {.k = mm->k};
    ir_walk((struct ir_module *)(uintptr_t)module, module->body, look_for_short_sums, &sums);
    struct bounding b = {.magnitude = o.magnitude,
                         .factor = 1.2 * (rt_gamma(mm->k + 8, DT_F32) + sums.loss)};
    for (int64_t n = 0; n < mm->m * mm->n; n++)
      b.most = fmax(b.most, fabs(ref->ref[i][n]));
    ref->bound[i] = b.bound = arena_get(a, sizeof(double) * ((size_t)(mm->m * mm->n) + 1));
    threads_split(mm->m * mm->n, PART, bound_part, &b);
  }
  return KILN_OK;
}

/* The kernel's own interpretation; outputs are received as f64 arrays in the double domain. */
static enum kiln_status interpret(const struct api_problem *p, const struct ir_module *m,
                                  double **inputs, enum interp_domain domain, double **results,
                                  struct arena *a) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct interp_arg *args = ARENA_ARRAY(a, struct interp_arg, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    double *data = results[i] ? results[i] : inputs[i];
    if (results[i] && arg->kind == IR_ARG_INOUT)
      memcpy(results[i], inputs[i], sizeof(double) * (size_t)api_elements(arg));
    if (arg->absent)
      continue;
    if (arg->kind == IR_ARG_SCALAR) {
      args[i].f = inputs[i][0];
      args[i].i = api_scalar_int(arg->dtype, inputs[i][0]);
      continue;
    }
    if (domain == INTERP_DOUBLE && dtype_is_float(arg->dtype)) {
      args[i].tensor = interp_dense(data, DT_F64, arg->rank, arg->dim);
    } else {
      int64_t n = api_elements(arg);
      void *dense = arena_get0(a, (size_t)dtype_bytes(arg->dtype, n) + 1);
      num_store_n(arg->dtype, dense, 0, (size_t)n, data);
      args[i].tensor = interp_dense(dense, arg->dtype, arg->rank, arg->dim);
    }
  }
  struct interp_options opt = {.domain = domain,
                               .max_steps = ctx->opt.max_steps,
                               .interrupted = api_interrupted,
                               .user = ctx};
  struct api_mark before = api_mark(ctx);
  if (!interp_run(m, args, p->n_args, &opt, &ctx->diags, &ctx->mem))
    return api_failure_since(ctx, before);
  for (uint32_t i = 0; i < p->n_args; i++)
    if (results[i] && args[i].tensor.data != results[i])
      num_load_n(args[i].tensor.dtype, args[i].tensor.data, 0, (size_t)api_elements(&p->args[i]),
                 results[i]);
  return KILN_OK;
}

static enum kiln_status by_itself(const struct api_problem *p, const struct ir_module *m,
                                  double **inputs, struct arena *a, struct api_reference *ref) {
  enum kiln_status st = interpret(p, m, inputs, INTERP_DOUBLE, ref->ref, a);
  if (st != KILN_OK)
    return st;
  ref->base = output_buffers(p, a);
  st = interpret(p, m, inputs, INTERP_ROUNDED, ref->base, a);
  ref->source = "the kernel's own double-precision interpretation";
  ref->baseline = "the kernel's interpretation with rounding";
  ref->level = KILN_LEVEL_SELF_CHECKED;
  return st;
}

enum kiln_status api_reference_make(const struct api_problem *p, const struct ir_module *module,
                                    double **inputs, struct arena *a, struct api_reference *out) {
  memset(out, 0, sizeof *out);
  out->ref = output_buffers(p, a);
  out->bound = ARENA_ARRAY(a, double *, p->n_args + 1);
  return p->kernel && p->kernel->has_oracle ? by_oracle(p, module, inputs, a, out)
                                            : by_itself(p, module, inputs, a, out);
}

struct rounding_search {
  bool
      *rounded; /* by value: a sum or product that was narrowed, so that it may have been rounded */
  bool exact;
};

/* Each result is an operand's value, at most with another sign. */
static bool moves_values(enum ir_opcode op) {
  static const enum ir_opcode movers[] = {
      IR_SPLAT, IR_BROADCAST, IR_RESHAPE,    IR_TRANSPOSE,  IR_ITEM, IR_SELECT,  IR_MIN,
      IR_MAX,   IR_NEG,       IR_REDUCE_MAX, IR_REDUCE_MIN, IR_ABS,  IR_EXTRACT, IR_CONCAT};
  for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
    if (movers[i] == op)
      return true;
  return false;
}

static void look_for_rounding(void *user, struct ir_module *m, struct ir_op o) {
  struct rounding_search *s = user;
  const struct ir_opnode *op = ir_op_at(m, o);
  const struct ir_attr *value = ir_get_attr(m, o, IR_ATTR_value);
  bool is_float = false, narrow = false, takes_rounded = false;
  for (uint32_t i = 0; i < op->n_out; i++) {
    struct ir_type type = ir_type_of(m, op->out[i]);
    enum dtype t = (enum dtype)type.dtype;
    bool value_is_float = type.kind != IR_VIEW && dtype_is_float(t);
    is_float |= value_is_float;
    narrow |= value_is_float && dtype_bits(t) < 32;
  }
  for (uint32_t i = 0; i < op->n_in; i++)
    takes_rounded |= s->rounded[op->in[i].id];
  /* Infinities are whole: max and min take them. */
  bool whole = !value || value->f == nearbyint(value->f), moves = moves_values(op->opcode);
  bool computes = narrow && op->opcode != IR_LOAD && op->opcode != IR_GATHER &&
                  op->opcode != IR_CONST && !moves;
  if (is_float && (!(ir_info(op->opcode)->traits & IR_EXACT) || !whole))
    s->exact = false;
  if (computes && op->opcode != IR_CAST) /* arithmetic in a narrow type */
    s->exact = false;
  if (takes_rounded && !moves && op->opcode != IR_STORE && op->opcode != IR_SCATTER)
    s->exact = false;
  for (uint32_t i = 0; i < op->n_out; i++)
    s->rounded[op->out[i].id] = computes || takes_rounded;
}

bool api_is_exact(const struct ir_module *m, struct arena *a) {
  struct rounding_search s = {ARENA_ARRAY(a, bool, m->values.n + 1), true};
  ir_walk((struct ir_module *)(uintptr_t)m, m->body, look_for_rounding, &s);
  return s.exact;
}
