/* Verifier and type rules of the ops that compute and access memory; control: rules_control.c. */
#include "ir/mma.h"
#include "ir/rules_impl.h"

#include "base/num.h"

#include <math.h>

static bool is_numeric(enum dtype t) {
  return dtype_is_float(t) || dtype_is_int(t);
}

/* All operands and the result have one scalar or tile type. */
static bool one_type(struct ir_check *c) {
  struct ir_type_text a, b;
  struct ir_type t = out(c, 0);
  if (!is_data(t)) {
    ir_rule_fail(c, "the result must be a scalar or a tile, not %s", ir_type_text(t, &a));
    return false;
  }
  for (uint32_t i = 0; i < c->n->n_in; i++)
    if (!ir_type_eq(in(c, i), t)) {
      ir_rule_fail(c, "operand %u is %s, the result %s: they must be of one type", i + 1,
                   ir_type_text(in(c, i), &a), ir_type_text(t, &b));
      return false;
    }
  return true;
}

static void one_type_where(struct ir_check *c, bool (*allowed)(enum dtype), const char *what) {
  struct ir_type_text a;
  if (one_type(c) && !allowed(dt(out(c, 0))))
    ir_rule_fail(c, "works on %s, not on %s", what, ir_type_text(out(c, 0), &a));
}

static bool is_bits(enum dtype t) {
  return t == DT_BOOL || dtype_is_int(t);
}

void ir_rule_arith(struct ir_check *c) {
  one_type_where(c, is_numeric, "floats and integers");
}

void ir_rule_float_arith(struct ir_check *c) {
  one_type_where(c, dtype_is_float, "floats");
}

void ir_rule_int_arith(struct ir_check *c) {
  one_type_where(c, dtype_is_int, "integers");
}

void ir_rule_bits(struct ir_check *c) {
  one_type_where(c, is_bits, "bools and integers");
}

/* Is the attribute a value of dtype t? */
static bool num_fits(const struct ir_attr *a, enum dtype t) {
  if (dtype_is_float(t))
    return isnan(a->f) ? t == DT_F64 || isnan(num_round(t, a->f)) : num_round(t, a->f) == a->f;
  int64_t cell = 0;
  num_store_int(t, &cell, 0, a->i);
  return num_load_int(t, &cell, 0) == a->i;
}

void ir_rule_check_num(struct ir_check *c, enum ir_attr_key key, const char *what, enum dtype t) {
  const struct ir_attr *a = ir_get_attr(c->m, c->op, key);
  if (!a || num_fits(a, t))
    return;
  if (dtype_is_float(t))
    ir_rule_fail(c, "%s %.17g is not a value of %s (the nearest is %.9g)", what, a->f,
                 dtype_name(t), num_round(t, a->f));
  else
    ir_rule_fail(c, "%s %lld is out of range of %s", what, (long long)a->i, dtype_name(t));
}

void ir_rule_const(struct ir_check *c) {
  struct ir_type_text a;
  if (out(c, 0).kind != IR_SCALAR)
    ir_rule_fail(c, "the result must be a scalar, not %s", ir_type_text(out(c, 0), &a));
  else
    ir_rule_check_num(c, IR_ATTR_value, "value", dt(out(c, 0)));
}

void ir_rule_splat(struct ir_check *c) {
  struct ir_type_text a, b;
  if (in(c, 0).kind != IR_SCALAR || out(c, 0).kind != IR_TILE || dt(in(c, 0)) != dt(out(c, 0)))
    ir_rule_fail(c, "takes a scalar to a tile of its dtype, not %s to %s",
                 ir_type_text(in(c, 0), &a), ir_type_text(out(c, 0), &b));
}

void ir_rule_iota(struct ir_check *c) {
  struct ir_type_text a;
  struct ir_type t = out(c, 0);
  int64_t axis = ir_attr_int(c->m, c->op, IR_ATTR_axis, 0);
  if (axis != 0 && axis != 1)
    ir_rule_fail(c, "axis is %lld; it must be 0 or 1", (long long)axis);
  else if (t.kind != IR_TILE || dt(t) != DT_INDEX || t.rank != 2 || t.dim[1 - axis] != 1)
    ir_rule_fail(c, "the result must be index(%s) for axis %lld, not %s", axis ? "1,n" : "n,1",
                 (long long)axis, ir_type_text(t, &a));
}

/* Operand 0 and the result are tiles of one dtype. */
static bool tile_to_tile(struct ir_check *c) {
  struct ir_type_text a, b;
  if (in(c, 0).kind == IR_TILE && out(c, 0).kind == IR_TILE && dt(in(c, 0)) == dt(out(c, 0)))
    return true;
  ir_rule_fail(c, "takes a tile to a tile of its dtype, not %s to %s", ir_type_text(in(c, 0), &a),
               ir_type_text(out(c, 0), &b));
  return false;
}

void ir_rule_broadcast(struct ir_check *c) {
  struct ir_type_text ta, tb;
  if (!tile_to_tile(c))
    return;
  struct ir_type a = in(c, 0), b = out(c, 0);
  bool ok = a.rank == b.rank;
  for (uint32_t i = 0; ok && i < a.rank; i++)
    ok = a.dim[i] == b.dim[i] || a.dim[i] == 1;
  if (!ok)
    ir_rule_fail(c, "cannot take %s to %s: the rank stays, only dims of 1 grow",
                 ir_type_text(a, &ta), ir_type_text(b, &tb));
}

void ir_rule_reshape(struct ir_check *c) {
  struct ir_type_text a, b;
  if (tile_to_tile(c) && ir_elems(in(c, 0)) != ir_elems(out(c, 0)))
    ir_rule_fail(c, "cannot take %s to %s: %lld elements are not %lld", ir_type_text(in(c, 0), &a),
                 ir_type_text(out(c, 0), &b), (long long)ir_elems(in(c, 0)),
                 (long long)ir_elems(out(c, 0)));
}

void ir_rule_transpose(struct ir_check *c) {
  struct ir_type_text ta, tb;
  if (!tile_to_tile(c))
    return;
  struct ir_type a = in(c, 0), b = out(c, 0);
  const struct ir_attr *perm = ir_get_attr(c->m, c->op, IR_ATTR_perm);
  unsigned seen = 0;
  for (uint32_t i = 0; i < perm->n_ints; i++)
    if (perm->ints[i] >= 0 && perm->ints[i] < a.rank)
      seen |= 1u << perm->ints[i];
  if (perm->n_ints != a.rank || seen != (1u << a.rank) - 1) {
    ir_rule_fail(c, "perm must name each of the dims 0 to %d once", a.rank - 1);
    return;
  }
  bool ok = a.rank == b.rank;
  for (uint32_t i = 0; ok && i < a.rank; i++)
    ok = b.dim[i] == a.dim[perm->ints[i]];
  if (!ok)
    ir_rule_fail(c, "%s permuted is not %s", ir_type_text(a, &ta), ir_type_text(b, &tb));
}

void ir_rule_item(struct ir_check *c) {
  struct ir_type_text a, b;
  if (in(c, 0).kind != IR_TILE || out(c, 0).kind != IR_SCALAR || dt(in(c, 0)) != dt(out(c, 0)) ||
      ir_elems(in(c, 0)) != 1)
    ir_rule_fail(c, "takes a tile of one element to a scalar of its dtype, not %s to %s",
                 ir_type_text(in(c, 0), &a), ir_type_text(out(c, 0), &b));
}

void ir_rule_compare(struct ir_check *c) {
  struct ir_type_text ta, tb;
  struct ir_type a = in(c, 0), b = in(c, 1), r = out(c, 0);
  if (!is_data(a) || !ir_type_eq(a, b))
    ir_rule_fail(c, "compares two scalars or tiles of one type, not %s and %s",
                 ir_type_text(a, &ta), ir_type_text(b, &tb));
  else if (dt(r) != DT_BOOL || !ir_shape_eq(a, r))
    ir_rule_fail(c, "the result must be bool of the operands' shape, not %s", ir_type_text(r, &ta));
  else if (dt(a) == DT_BOOL && c->n->opcode != IR_EQ && c->n->opcode != IR_NE)
    ir_rule_fail(c, "bools have no order: only eq and ne compare them");
}

void ir_rule_select(struct ir_check *c) {
  struct ir_type_text a, b;
  struct ir_type t = out(c, 0);
  if (!is_data(t) || !ir_type_eq(in(c, 1), t) || !ir_type_eq(in(c, 2), t))
    ir_rule_fail(c, "both values must have the result's type %s, not %s and %s",
                 ir_type_text(t, &(struct ir_type_text){{0}}), ir_type_text(in(c, 1), &a),
                 ir_type_text(in(c, 2), &b));
  else if (dt(in(c, 0)) != DT_BOOL || !ir_shape_eq(in(c, 0), t))
    ir_rule_fail(c, "the mask must be bool of the values' shape, not %s",
                 ir_type_text(in(c, 0), &a));
}

void ir_rule_cast(struct ir_check *c) {
  struct ir_type_text a, b;
  if (!is_data(in(c, 0)) || !ir_shape_eq(in(c, 0), out(c, 0)))
    ir_rule_fail(c, "changes the dtype alone, not %s to %s", ir_type_text(in(c, 0), &a),
                 ir_type_text(out(c, 0), &b));
}

void ir_rule_reduce(struct ir_check *c) {
  struct ir_type_text ta, tb;
  if (!tile_to_tile(c))
    return;
  struct ir_type a = in(c, 0), b = out(c, 0);
  int64_t axis = ir_attr_int(c->m, c->op, IR_ATTR_axis, 0);
  if (!is_numeric(dt(a)))
    ir_rule_fail(c, "works on floats and integers, not on %s", ir_type_text(a, &ta));
  else if (axis < 0 || axis >= a.rank)
    ir_rule_fail(c, "axis is %lld; %s has axes 0 to %d", (long long)axis, ir_type_text(a, &ta),
                 a.rank - 1);
  else {
    a.dim[axis] = 1;
    if (!ir_type_eq(a, b))
      ir_rule_fail(c, "the result must be %s, not %s", ir_type_text(a, &ta), ir_type_text(b, &tb));
  }
}

/* The accumulators that a dot of operands of dtype t may have; DT_COUNT ends the list. */
static const enum dtype *dot_accumulators(enum dtype t) {
  static const enum dtype f32_or_f16[] = {DT_F32, DT_F16, DT_COUNT}, f32[] = {DT_F32, DT_COUNT},
                          f64[] = {DT_F64, DT_COUNT}, s32[] = {DT_S32, DT_COUNT},
                          none[] = {DT_COUNT};
  switch (t) {
  case DT_F16:
  case DT_E4M3:
  case DT_E5M2: return f32_or_f16;
  case DT_BF16:
  case DT_F32: return f32;
  case DT_F64: return f64;
  case DT_S8:
  case DT_U8:
  case DT_S4:
  case DT_U4: return s32;
  case DT_BOOL:
  case DT_INDEX:
  case DT_S32:
  case DT_S64:
  case DT_COUNT: break;
  }
  return none;
}

void ir_rule_dot(struct ir_check *c) {
  struct ir_type_text ta, tb, tc;
  struct ir_type a = in(c, 0), b = in(c, 1), acc = in(c, 2), r = out(c, 0);
  bool shapes = a.kind == IR_TILE && b.kind == IR_TILE && acc.kind == IR_TILE && a.rank == 2 &&
                b.rank == 2 && acc.rank == 2 && a.dim[1] == b.dim[0] && a.dim[0] == acc.dim[0] &&
                b.dim[1] == acc.dim[1];
  if (!shapes) {
    ir_rule_fail(c, "takes a[M,K], b[K,N], acc[M,N], not %s, %s, %s", ir_type_text(a, &ta),
                 ir_type_text(b, &tb), ir_type_text(acc, &tc));
    return;
  }
  if (!ir_type_eq(acc, r)) {
    ir_rule_fail(c, "the result is %s, the accumulator %s: they must be of one type",
                 ir_type_text(r, &ta), ir_type_text(acc, &tb));
    return;
  }
  bool both_fp8 = (dt(a) == DT_E4M3 || dt(a) == DT_E5M2) && (dt(b) == DT_E4M3 || dt(b) == DT_E5M2);
  if (dt(a) != dt(b) && !both_fp8) {
    ir_rule_fail(c, "operands are %s and %s: they must have one dtype (e4m3 and e5m2 may mix)",
                 dtype_name(dt(a)), dtype_name(dt(b)));
    return;
  }
  const enum dtype *may = dot_accumulators(dt(a));
  while (*may != DT_COUNT && *may != dt(acc))
    may++;
  if (*may == DT_COUNT)
    ir_rule_fail(c, "%s cannot be multiplied into an accumulator of %s", dtype_name(dt(a)),
                 dtype_name(dt(acc)));
  const struct ir_attr *prec = ir_get_attr(c->m, c->op, IR_ATTR_prec);
  if (!prec)
    return;
  const char *text = ir_sym(c->m, prec->s);
  enum ir_prec p = ir_prec_find(text);
  if (p == IR_PREC_COUNT)
    ir_rule_fail(c, "prec is `%s`; it must be %s", text, ir_prec_words);
  else if (!ir_prec_takes(p, dt(a)))
    ir_rule_fail(c, "prec %s is for %s, not for %s", text, ir_prec_operands(p), dtype_name(dt(a)));
}

/* Operands 0: a view, 1..rank: its offsets. `tile` is what is read or written. n_more operands
 * follow the offsets. */
static bool check_access(struct ir_check *c, uint32_t n_more, struct ir_type tile) {
  struct ir_type_text a, b;
  if (c->n->n_in < 1 + n_more) {
    ir_rule_fail(c, "needs a view%s", n_more ? " and a tile" : "");
    return false;
  }
  struct ir_type view = in(c, 0);
  if (view.kind != IR_VIEW) {
    ir_rule_fail(c, "operand 1 must be a view, not %s", ir_type_text(view, &a));
    return false;
  }
  if (c->n->n_in != 1u + view.rank + n_more) {
    ir_rule_fail(c, "%s needs %d offsets, %d are given", ir_type_text(view, &a), view.rank,
                 (int)c->n->n_in - 1 - (int)n_more);
    return false;
  }
  for (uint32_t i = 1; i <= view.rank; i++)
    if (!ir_type_eq(in(c, i), ir_scalar(DT_INDEX))) {
      ir_rule_fail(c, "offset %u must be an index scalar, not %s", i, ir_type_text(in(c, i), &a));
      return false;
    }
  if (tile.kind != IR_TILE || tile.rank != view.rank || tile.dtype != view.dtype) {
    ir_rule_fail(c, "the tile must have the view's dtype and rank: %s against %s",
                 ir_type_text(tile, &a), ir_type_text(view, &b));
    return false;
  }
  return true;
}

void ir_rule_load(struct ir_check *c) {
  if (check_access(c, 0, out(c, 0)))
    ir_rule_check_num(c, IR_ATTR_pad, "pad", dt(out(c, 0)));
}

void ir_rule_store(struct ir_check *c) {
  uint32_t last = c->n->n_in ? c->n->n_in - 1u : 0;
  if (!check_access(c, 1, c->n->n_in ? in(c, last) : (struct ir_type){0}))
    return;
  ir_rule_check_written(c, c->n->in[0]);
}

void ir_rule_assert(struct ir_check *c) {
  struct ir_type_text a;
  if (!is_data(in(c, 0)) || dt(in(c, 0)) != DT_BOOL)
    ir_rule_fail(c, "needs a bool scalar or mask, not %s", ir_type_text(in(c, 0), &a));
}

void ir_rule_print(struct ir_check *c) {
  struct ir_type_text a;
  for (uint32_t i = 0; i < c->n->n_in; i++)
    if (!is_data(in(c, i)))
      ir_rule_fail(c, "prints scalars and tiles, not %s", ir_type_text(in(c, i), &a));
}
