/* Ops along an axis that do not give what they take: any and all of masks, positions of extremes,
 * running sums. Sums, maxima and minima: trace_tile.c. And random numbers. */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

static enum dtype dtype_of(const struct dsl_val *v) {
  return (enum dtype)v->t.dtype;
}

static bool is_mask_op(enum ir_opcode op) {
  return op == IR_REDUCE_ANY || op == IR_REDUCE_ALL;
}

static double neutral_of(enum ir_opcode op) {
  switch ((int)op) {
  case IR_REDUCE_ALL: return 1;
  case IR_ARGMAX: return -INFINITY;
  case IR_ARGMIN: return INFINITY;
  default: return 0;
  }
}

static bool check(struct fe_file *f, enum ir_opcode op, const char *what, const struct dsl_val *x) {
  enum dtype t = dtype_of(x);
  if (f->mode != DSL_BODY) {
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                  "%s is not available here: tiles live in a kernel's body", what);
    return false;
  }
  if (x->t.kind != IR_TILE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tile, got %s", what, dsl_describe_type(f, x->t));
    return false;
  }
  if (is_mask_op(op)) {
    if (t == DT_BOOL)
      return true;
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                  "%s takes a mask (a comparison's result), got %s; compare it first, as x ~= 0",
                  what, dsl_describe_type(f, x->t));
    return false;
  }
  if (t == DT_BOOL || (op == IR_SCAN_SUM && dtype_bits(t) <= 8)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s of %s: cast it to %s first", what,
                  dsl_describe_type(f, x->t), dtype_is_float(t) ? "f32" : "s32");
    return false;
  }
  return true;
}

/* What stands in the padding along the other dims. */
static struct dsl_pad pad_after(enum ir_opcode op, struct dsl_pad p, bool along) {
  if (op == IR_SCAN_SUM) {
    p.pos = false;
    p.known = p.known && p.value == 0 && !along; /* along the axis: the sum so far */
    return p;
  }
  if (along)
    return (struct dsl_pad){0};
  if (!is_mask_op(op)) {
    p.pos = p.known = false;
    p.value = 0;
  }
  return p;
}

static struct dsl_val *build(struct fe_file *f, enum ir_opcode op, struct dsl_val *x,
                             uint32_t axis) {
  struct ir_type t = x->t;
  if (op != IR_SCAN_SUM)
    t.dim[axis] = 1;
  if (op == IR_ARGMAX || op == IR_ARGMIN)
    t.dtype = DT_INDEX;
  struct ir_op o = dsl_build(f, op, 1, &x->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  if (!x->pads)
    return r;
  struct dsl_pad p[IR_MAX_RANK];
  for (uint32_t d = 0; d < t.rank; d++)
    p[d] = pad_after(op, x->pads[d], d == axis);
  r->pads = arena_copy(fe_trace_arena(f->fe), p, t.rank * sizeof *p);
  return r;
}

struct dsl_val *dsl_fold_axis(struct fe_file *f, enum ir_opcode op, const char *what,
                              struct dsl_val *x, uint32_t axis) {
  enum dtype t = dtype_of(x);
  if (!check(f, op, what, x) || !dsl_pad_check(f, x, axis, neutral_of(op), what))
    return NULL;
  bool wider = op == IR_SCAN_SUM && (t == DT_F16 || t == DT_BF16);
  struct dsl_val *r = build(f, op, wider ? dsl_cast(f, x, DT_F32) : x, axis);
  return wider ? dsl_cast(f, r, t) : r;
}

struct dsl_val *dsl_fold_all(struct fe_file *f, enum ir_opcode op, const char *what,
                             struct dsl_val *x) {
  if (!check(f, op, what, x))
    return NULL;
  for (uint32_t d = 0; d < x->t.rank; d++)
    if (!dsl_pad_check(f, x, d, neutral_of(op), what))
      return NULL;
  if (!is_mask_op(op)) { /* a position counts elements row by row */
    const int64_t n = ir_elems(x->t);
    x = dsl_reshape(f, x, 1, &n);
  }
  for (uint32_t d = x->t.rank; d-- > 0;)
    if (x->t.dim[d] != 1 || !is_mask_op(op))
      x = build(f, op, x, d);
  struct ir_type s = ir_scalar(dtype_of(x));
  return dsl_new_val(f, s, dsl_build1(f, IR_ITEM, s, 1, &x->v));
}

/* ---- random numbers ---- */

/* An integer of a tile or scalar, or a number, in 64 bits. */
static struct dsl_val *wide(struct fe_file *f, const char *what, const char *name,
                            const struct dsl_opnd *x, bool scalar) {
  if (x->kind != DSL_DEV) {
    const char *why;
    if (x->kind != DSL_BOOL && dsl_fits(f, DT_S64, x, &why))
      return dsl_const(f, DT_S64, x);
  } else if (dtype_is_int(dtype_of(x->dev)) && (!scalar || x->dev->t.kind == IR_SCALAR)) {
    bool is_wide = dtype_of(x->dev) == DT_INDEX && !scalar;
    return is_wide ? x->dev : dsl_cast(f, x->dev, DT_S64);
  }
  fe_soft_error(f->fe, DIAG_OPERAND, "the %s of %s is %s; it must be an integer%s", name, what,
                dsl_describe_opnd(f, x), scalar ? " scalar" : " tile or scalar");
  return NULL;
}

struct dsl_val *dsl_random(struct fe_file *f, const char *what, const struct dsl_opnd *seed,
                           const struct dsl_opnd *counter, int64_t word) {
  if (f->mode != DSL_BODY) {
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                  "%s is not available here: it works in a kernel's body and in its oracle", what);
    return NULL;
  }
  struct dsl_val *s = wide(f, what, "seed", seed, true);
  struct dsl_val *c = wide(f, what, "counter", counter, false);
  if (!s || !c)
    return NULL;
  struct ir_type t = c->t;
  t.dtype = DT_S32;
  const struct ir_val in[2] = {s->v, c->v};
  struct ir_op o = dsl_build(f, IR_RANDOM, 2, in, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_word, .i = word});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  r->pads = dsl_pad_elem(f, IR_RANDOM, 1, &c, t);
  return r;
}
