/* Verifier and type rules of ops on parts of tiles, on bits, and of the reductions that do not give
 * what they take: see rules.c for the others. */
#include "ir/rules_impl.h"

/* The operand is a tile and `axis` one of its dims. */
static bool axis_of_tile(struct ir_check *c, int64_t *axis) {
  struct ir_type_text a;
  struct ir_type t = in(c, 0);
  *axis = ir_attr_int(c->m, c->op, IR_ATTR_axis, 0);
  if (t.kind != IR_TILE) {
    ir_rule_fail(c, "takes a tile, not %s", ir_type_text(t, &a));
    return false;
  }
  if (*axis < 0 || *axis >= t.rank) {
    ir_rule_fail(c, "axis is %lld; %s has axes 0 to %d", (long long)*axis, ir_type_text(t, &a),
                 t.rank - 1);
    return false;
  }
  return true;
}

static void want_result(struct ir_check *c, struct ir_type want) {
  struct ir_type_text a, b;
  if (!ir_type_eq(out(c, 0), want))
    ir_rule_fail(c, "the result must be %s, not %s", ir_type_text(want, &a),
                 ir_type_text(out(c, 0), &b));
}

static bool numeric_operand(struct ir_check *c) {
  struct ir_type_text a;
  if (dtype_is_float(dt(in(c, 0))) || dtype_is_int(dt(in(c, 0))))
    return true;
  ir_rule_fail(c, "works on floats and integers, not on %s", ir_type_text(in(c, 0), &a));
  return false;
}

void ir_rule_mask_reduce(struct ir_check *c) {
  struct ir_type_text a;
  struct ir_type t = in(c, 0);
  int64_t axis;
  if (!axis_of_tile(c, &axis))
    return;
  t.dim[axis] = 1;
  if (dt(t) != DT_BOOL)
    ir_rule_fail(c, "works on masks, not on %s", ir_type_text(in(c, 0), &a));
  else
    want_result(c, t);
}

void ir_rule_arg_reduce(struct ir_check *c) {
  struct ir_type t = in(c, 0);
  int64_t axis;
  if (!axis_of_tile(c, &axis) || !numeric_operand(c))
    return;
  t.dim[axis] = 1;
  t.dtype = DT_INDEX;
  want_result(c, t);
}

void ir_rule_scan(struct ir_check *c) {
  int64_t axis;
  if (axis_of_tile(c, &axis) && numeric_operand(c))
    want_result(c, in(c, 0));
}

void ir_rule_extract(struct ir_check *c) {
  struct ir_type_text ta, tb;
  struct ir_type a = in(c, 0), b = out(c, 0);
  const struct ir_attr *offsets = ir_get_attr(c->m, c->op, IR_ATTR_offsets);
  if (a.kind != IR_TILE || b.kind != IR_TILE || dt(a) != dt(b) || a.rank != b.rank) {
    ir_rule_fail(c, "takes a tile to a tile of its dtype and rank, not %s to %s",
                 ir_type_text(a, &ta), ir_type_text(b, &tb));
    return;
  }
  if (offsets->n_ints != a.rank) {
    ir_rule_fail(c, "%s needs %d offsets, %u are given", ir_type_text(a, &ta), a.rank,
                 offsets->n_ints);
    return;
  }
  for (uint32_t d = 0; d < a.rank; d++)
    if (offsets->ints[d] < 0 || offsets->ints[d] > a.dim[d] - b.dim[d]) {
      ir_rule_fail(c, "%lld elements from %lld on are not inside dim %u of %s", (long long)b.dim[d],
                   (long long)offsets->ints[d], d, ir_type_text(a, &ta));
      return;
    }
}

void ir_rule_concat(struct ir_check *c) {
  struct ir_type_text ta, tb;
  int64_t axis;
  if (!c->n->n_in) {
    ir_rule_fail(c, "needs at least one tile");
    return;
  }
  if (!axis_of_tile(c, &axis))
    return;
  struct ir_type sum = in(c, 0);
  for (uint32_t i = 1; i < c->n->n_in; i++) {
    struct ir_type t = in(c, i), same = t;
    same.dim[axis] = in(c, 0).dim[axis];
    if (!ir_type_eq(same, in(c, 0))) {
      ir_rule_fail(c, "operand %u is %s, the first %s: they may differ along axis %lld alone",
                   i + 1, ir_type_text(t, &ta), ir_type_text(in(c, 0), &tb), (long long)axis);
      return;
    }
    if (t.dim[axis] > IR_MAX_ELEMS || sum.dim[axis] > IR_MAX_ELEMS) {
      ir_rule_fail(c, "operand %u is too long", i + 1);
      return;
    }
    sum.dim[axis] += t.dim[axis];
  }
  want_result(c, sum);
}

static bool has_bits(struct ir_type t) {
  return is_data(t) && dt(t) != DT_BOOL && dt(t) != DT_INDEX;
}

void ir_rule_bitcast(struct ir_check *c) {
  struct ir_type_text ta, tb;
  struct ir_type a = in(c, 0), b = out(c, 0);
  if (!has_bits(a) || !has_bits(b)) {
    ir_rule_fail(c, "works on floats and integers that memory holds, not on %s to %s",
                 ir_type_text(a, &ta), ir_type_text(b, &tb));
    return;
  }
  bool ok = a.kind == b.kind && a.rank == b.rank;
  uint32_t last = a.rank ? a.rank - 1u : 0;
  for (uint32_t d = 0; ok && d < last; d++)
    ok = a.dim[d] == b.dim[d];
  int64_t wide_a = dtype_bits(dt(a)), wide_b = dtype_bits(dt(b));
  if (ok && a.rank)
    ok = a.dim[last] <= IR_MAX_ELEMS && b.dim[last] <= IR_MAX_ELEMS &&
         a.dim[last] * wide_a == b.dim[last] * wide_b;
  else
    ok = ok && wide_a == wide_b;
  if (!ok)
    ir_rule_fail(c, "cannot take %s to %s: all dims stay but the last, which holds the same bits",
                 ir_type_text(a, &ta), ir_type_text(b, &tb));
}

void ir_rule_random(struct ir_check *c) {
  struct ir_type_text a;
  struct ir_type seed = in(c, 0), t = in(c, 1);
  int64_t word = ir_attr_int(c->m, c->op, IR_ATTR_word, 0);
  if (!ir_type_eq(seed, ir_scalar(DT_S64)))
    ir_rule_fail(c, "the seed must be an s64 scalar, not %s", ir_type_text(seed, &a));
  else if (!is_data(t) || (dt(t) != DT_S64 && dt(t) != DT_INDEX))
    ir_rule_fail(c, "the counters must be s64 or index, not %s", ir_type_text(t, &a));
  else if (word < 0 || word > 3)
    ir_rule_fail(c, "word is %lld; it must be 0 to 3", (long long)word);
  else {
    t.dtype = DT_S32;
    want_result(c, t);
  }
}
