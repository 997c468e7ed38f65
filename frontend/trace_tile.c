/* Ops that know shapes: reductions, dot, iota, transpose, reshape. */
#include "frontend/dsl.h"
#include "ir/mma.h"

#include <inttypes.h>
#include <math.h>

static enum dtype dtype_of(const struct dsl_val *v) {
  return (enum dtype)v->t.dtype;
}

static const struct dsl_pad *copy_pads(struct fe_file *f, const struct dsl_pad *p, uint32_t rank) {
  return arena_copy(fe_trace_arena(f->fe), p, rank * sizeof *p);
}

static bool need_body(struct fe_file *f, const char *what) {
  if (f->mode == DSL_BODY)
    return true;
  fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                "%s is not available here: tiles live in a kernel's body", what);
  return false;
}

/* ---- reductions ---- */

static double neutral_of(enum ir_opcode op) {
  return op == IR_REDUCE_SUM ? 0 : op == IR_REDUCE_MAX ? -INFINITY : INFINITY;
}

static struct dsl_val *reduce_in(struct fe_file *f, enum ir_opcode op, struct dsl_val *x,
                                 uint32_t axis) {
  struct ir_type t = x->t;
  t.dim[axis] = 1;
  struct ir_op o = dsl_build(f, op, 1, &x->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  if (!x->pads)
    return r;
  struct dsl_pad p[IR_MAX_RANK];
  bool any = false;
  for (uint32_t d = 0; d < t.rank; d++) {
    p[d] = x->pads[d];
    if (d == axis)
      p[d] = (struct dsl_pad){0};
    else if (p[d].known && op == IR_REDUCE_SUM)
      p[d].value *= (double)x->t.dim[axis];
    any |= p[d].src || p[d].known || p[d].pos || p[d].masked;
  }
  if (any)
    r->pads = copy_pads(f, p, t.rank);
  return r;
}

static bool check_reduce(struct fe_file *f, enum ir_opcode op, const char *what,
                         const struct dsl_val *x) {
  enum dtype t = dtype_of(x);
  if (!need_body(f, what))
    return false;
  if (x->t.kind != IR_TILE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tile, got %s", what, dsl_describe_type(f, x->t));
    return false;
  }
  if (t == DT_BOOL || (op == IR_REDUCE_SUM && dtype_bits(t) <= 8)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s of %s: cast it to %s first", what,
                  dsl_describe_type(f, x->t), dtype_is_float(t) ? "f32" : "s32");
    return false;
  }
  return true;
}

/* Sums of f16 and bf16 run in f32 and are rounded once. */
static bool sums_wider(enum ir_opcode op, const struct dsl_val *x) {
  return op == IR_REDUCE_SUM && (dtype_of(x) == DT_F16 || dtype_of(x) == DT_BF16);
}

/* To the maximum of what is never below 0, neither 0 nor anything below it makes a difference. */
static double neutral_along(enum ir_opcode op, const struct dsl_val *x, uint32_t dim) {
  struct dsl_pad p = dsl_pad_of(x, dim);
  if (op != IR_REDUCE_MAX || !dsl_never_negative(x))
    return neutral_of(op);
  return p.known && p.value <= 0 ? p.value : 0;
}

struct dsl_val *dsl_reduce(struct fe_file *f, enum ir_opcode op, const char *what,
                           struct dsl_val *x, uint32_t axis) {
  if (!check_reduce(f, op, what, x))
    return NULL;
  if (axis >= x->t.rank) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s over axis %" PRIu32 " of %s: axes count from 0", what,
                  axis, dsl_describe_type(f, x->t));
    return NULL;
  }
  if (!dsl_pad_check(f, x, axis, neutral_along(op, x, axis), what))
    return NULL;
  enum dtype t = dtype_of(x);
  bool wider = sums_wider(op, x);
  struct dsl_val *r = reduce_in(f, op, wider ? dsl_cast(f, x, DT_F32) : x, axis);
  return wider ? dsl_cast(f, r, t) : r;
}

struct dsl_val *dsl_reduce_all(struct fe_file *f, enum ir_opcode op, const char *what,
                               struct dsl_val *x) {
  if (!check_reduce(f, op, what, x))
    return NULL;
  for (uint32_t d = 0; d < x->t.rank; d++)
    if (!dsl_pad_check(f, x, d, neutral_along(op, x, d), what))
      return NULL;
  enum dtype t = dtype_of(x);
  bool wider = sums_wider(op, x);
  struct dsl_val *r = wider ? dsl_cast(f, x, DT_F32) : x;
  for (uint32_t d = r->t.rank; d-- > 0;)
    if (r->t.dim[d] != 1)
      r = reduce_in(f, op, r, d);
  struct ir_type s = ir_scalar(dtype_of(r));
  r = dsl_new_val(f, s, dsl_build1(f, IR_ITEM, s, 1, &r->v));
  return wider ? dsl_cast(f, r, t) : r;
}

/* ---- dot ---- */

static bool dot_dtypes(enum dtype t, enum dtype *acc) {
  switch ((int)t) {
  case DT_F64: *acc = DT_F64; return true;
  case DT_F32:
  case DT_F16:
  case DT_BF16:
  case DT_E4M3:
  case DT_E5M2: *acc = DT_F32; return true;
  case DT_S8:
  case DT_U8: *acc = DT_S32; return true;
  default: return false;
  }
}

static bool is_fp8(enum dtype t) {
  return t == DT_E4M3 || t == DT_E5M2;
}

/* Whether padding along the contracted dim adds nothing: one side is 0 there. */
static bool check_dot_pad(struct fe_file *f, const struct dsl_val *a, const struct dsl_val *b) {
  struct dsl_pad pa = dsl_pad_of(a, 1), pb = dsl_pad_of(b, 0);
  bool bad_a = pa.known && !isfinite(pa.value) && !a->is_const;
  bool bad_b = pb.known && !isfinite(pb.value) && !b->is_const;
  if ((bad_a && pb.src) || (bad_b && pa.src)) {
    fe_soft_error(f->fe, DIAG_PADDED_REDUCE,
                  "dot over K, which may be padded: the %s operand holds %g there, and times the "
                  "other's 0 that is not 0; load it with pad = 0, or mask it with where",
                  bad_a ? "first" : "second", bad_a ? pa.value : pb.value);
    return false;
  }
  if ((pa.known && pa.value == 0 && pa.src) || (pb.known && pb.value == 0 && pb.src))
    return true;
  return dsl_pad_check(f, a, 1, 0, "dot") && dsl_pad_check(f, b, 0, 0, "dot");
}

struct dsl_val *dsl_dot(struct fe_file *f, struct dsl_val *a, struct dsl_val *b,
                        struct dsl_val *acc, const char *prec) {
  if (!need_body(f, "dot"))
    return NULL;
  if (a->t.kind != IR_TILE || b->t.kind != IR_TILE || a->t.rank != 2 || b->t.rank != 2) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "dot takes tiles (M,K) and (K,N), got %s and %s",
                  dsl_describe_type(f, a->t), dsl_describe_type(f, b->t));
    return NULL;
  }
  enum dtype ta = dtype_of(a), tb = dtype_of(b), tc;
  if (ta != tb && !(is_fp8(ta) && is_fp8(tb))) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                  "dot of %s and %s: two dtypes never mix; cast one of them",
                  dsl_describe_type(f, a->t), dsl_describe_type(f, b->t));
    return NULL;
  }
  if (!dot_dtypes(ta, &tc)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                  "dot of %s: it takes f64, f32, f16, bf16, e4m3, e5m2, s8 or u8",
                  dsl_describe_type(f, a->t));
    return NULL;
  }
  if (a->t.dim[1] != b->t.dim[0]) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "dot of %s and %s: K is %" PRId64 " in the first (its dim 1) and %" PRId64
                  " in the second (its dim 0)%s",
                  dsl_describe_type(f, a->t), dsl_describe_type(f, b->t), a->t.dim[1], b->t.dim[0],
                  a->t.dim[1] == b->t.dim[1] ? "; transpose the second with :T()" : "");
    return NULL;
  }
  const int64_t dim[2] = {a->t.dim[0], b->t.dim[1]};
  struct ir_type t = ir_tile(tc, 2, dim);
  if (acc && !ir_type_eq(acc->t, t)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "dot of %s and %s accumulates into %s, got %s",
                  dsl_describe_type(f, a->t), dsl_describe_type(f, b->t), dsl_describe_type(f, t),
                  dsl_describe_type(f, acc->t));
    return NULL;
  }
  if (prec && !ir_prec_takes(ir_prec_find(prec), ta)) {
    fe_soft_error(f->fe, DIAG_OPERAND, "prec = \"%s\" is for %s, not %s", prec,
                  ir_prec_operands(ir_prec_find(prec)), dtype_name(ta));
    return NULL;
  }
  if (!check_dot_pad(f, a, b))
    return NULL;
  if (!acc) {
    acc = dsl_const_num(f, tc, 0);
    acc = dsl_grow(f, acc, t);
  }
  const struct ir_val in[3] = {a->v, b->v, acc->v};
  struct ir_op o = dsl_build(f, IR_DOT, 3, in, 1, &t);
  if (prec)
    ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_prec, .s = symtab_get(f->m->syms, prec)});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  /* A row of zeros gives a row of zeros, plus what the accumulator has there. */
  struct dsl_pad p[2] = {dsl_pad_of(a, 0), dsl_pad_of(b, 1)};
  bool any = false;
  for (uint32_t d = 0; d < 2; d++) {
    struct dsl_pad c = dsl_pad_of(acc, d);
    p[d].known = p[d].src && p[d].known && p[d].value == 0 && c.known;
    p[d].value = c.value;
    p[d].pos = p[d].masked = false;
    if (!p[d].src)
      p[d].src = c.src;
    any |= p[d].src != 0;
  }
  if (any)
    r->pads = copy_pads(f, p, 2);
  return r;
}

/* ---- shapes ---- */

struct dsl_val *dsl_iota(struct fe_file *f, uint32_t axis, int64_t n) {
  if (!need_body(f, "iota"))
    return NULL;
  const int64_t dim[2] = {axis == 0 ? n : 1, axis == 0 ? 1 : n};
  struct ir_type t = ir_tile(DT_INDEX, 2, dim);
  struct ir_op o = dsl_build(f, IR_IOTA, 0, NULL, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  r->has_range = true;
  r->hi = n - 1;
  struct dsl_pad p[2] = {{0}, {0}};
  p[axis].pos = true;
  r->pads = copy_pads(f, p, 2);
  return r;
}

struct dsl_val *dsl_transpose(struct fe_file *f, struct dsl_val *x) {
  if (x->t.kind != IR_TILE || x->t.rank != 2) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, ":T() takes a tile of rank 2, got %s",
                  dsl_describe_type(f, x->t));
    return NULL;
  }
  static const int64_t perm[2] = {1, 0};
  const int64_t dim[2] = {x->t.dim[1], x->t.dim[0]};
  struct ir_type t = ir_tile(dtype_of(x), 2, dim);
  struct ir_op o = dsl_build(f, IR_TRANSPOSE, 1, &x->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_perm, .ints = perm, .n_ints = 2});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  r->is_const = x->is_const;
  r->value = x->value;
  if (x->pads) {
    const struct dsl_pad p[2] = {x->pads[1], x->pads[0]};
    r->pads = copy_pads(f, p, 2);
  }
  return r;
}

/* Pads follow a reshape where only dims of 1 come or go; otherwise every dim is padded by all. */
static const struct dsl_pad *reshape_pads(struct fe_file *f, const struct dsl_val *x,
                                          struct ir_type t) {
  struct dsl_pad out[IR_MAX_RANK] = {{0}};
  uint32_t i = 0, d = 0, src = 0;
  bool simple = true;
  for (; simple && d < t.rank; d++) {
    while (i < x->t.rank && x->t.dim[i] == 1 && t.dim[d] != 1)
      i++;
    if (t.dim[d] == 1 && (i >= x->t.rank || x->t.dim[i] != 1))
      continue;
    if (i >= x->t.rank || x->t.dim[i] != t.dim[d])
      simple = false;
    else
      out[d] = x->pads[i++];
  }
  for (uint32_t k = 0; k < x->t.rank; k++)
    if (x->pads[k].src)
      src = x->pads[k].src;
  if (!simple)
    for (d = 0; d < t.rank; d++)
      out[d] = (struct dsl_pad){.src = src};
  return copy_pads(f, out, t.rank);
}

struct dsl_val *dsl_reshape(struct fe_file *f, struct dsl_val *x, uint32_t rank,
                            const int64_t *dim) {
  if (x->t.kind != IR_TILE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "a reshape takes a tile, got %s",
                  dsl_describe_type(f, x->t));
    return NULL;
  }
  struct ir_type t = ir_tile(dtype_of(x), rank, dim);
  if (ir_elems(t) != ir_elems(x->t)) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "a reshape of %s to %s: %" PRId64 " elements cannot become %" PRId64,
                  dsl_describe_type(f, x->t), dsl_shape_text(f, t), ir_elems(x->t), ir_elems(t));
    return NULL;
  }
  if (ir_type_eq(t, x->t))
    return x;
  struct dsl_val *r = dsl_new_val(f, t, dsl_build1(f, IR_RESHAPE, t, 1, &x->v));
  r->never_negative = x->never_negative;
  r->has_range = x->has_range;
  r->lo = x->lo;
  r->hi = x->hi;
  r->is_const = x->is_const;
  r->value = x->value;
  if (x->pads)
    r->pads = reshape_pads(f, x, t);
  return r;
}
