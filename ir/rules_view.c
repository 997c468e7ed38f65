/* Verifier and type rules of views. A view's dim is static only where that is sure: it was so in
 * the parent, or the size is a constant. */
#include "ir/rules_impl.h"

/* Operand 1 is a view, the result a view of its dtype. */
static bool check_views(struct ir_check *c) {
  struct ir_type_text a, b;
  if (!c->n->n_in) {
    ir_rule_fail(c, "needs a view");
    return false;
  }
  if (in(c, 0).kind == IR_VIEW && out(c, 0).kind == IR_VIEW && in(c, 0).dtype == out(c, 0).dtype)
    return true;
  ir_rule_fail(c, "takes a view to a view of its dtype, not %s to %s", ir_type_text(in(c, 0), &a),
               ir_type_text(out(c, 0), &b));
  return false;
}

/* Operands from..from+n-1 are index scalars. */
static bool check_index(struct ir_check *c, uint32_t from, uint32_t n, const char *what) {
  struct ir_type_text a;
  for (uint32_t i = 0; i < n; i++)
    if (!ir_type_eq(in(c, from + i), ir_scalar(DT_INDEX))) {
      ir_rule_fail(c, "%s %u must be an index scalar, not %s", what, i + 1,
                   ir_type_text(in(c, from + i), &a));
      return false;
    }
  return true;
}

static bool check_axis(struct ir_check *c, int64_t *axis) {
  struct ir_type_text a;
  struct ir_type t = in(c, 0);
  *axis = ir_attr_int(c->m, c->op, IR_ATTR_axis, 0);
  if (*axis >= 0 && *axis < t.rank)
    return true;
  ir_rule_fail(c, "axis is %lld; %s has axes 0 to %d", (long long)*axis, ir_type_text(t, &a),
               t.rank - 1);
  return false;
}

static void check_result(struct ir_check *c, struct ir_type want) {
  struct ir_type_text a, b;
  if (!ir_type_eq(out(c, 0), want))
    ir_rule_fail(c, "the result must be %s, not %s", ir_type_text(want, &a),
                 ir_type_text(out(c, 0), &b));
}

void ir_rule_view_at(struct ir_check *c) {
  struct ir_type_text a;
  int64_t axis;
  if (!check_views(c) || !check_index(c, 1, 1, "index") || !check_axis(c, &axis))
    return;
  struct ir_type t = in(c, 0);
  if (t.rank < 2) {
    ir_rule_fail(c, "needs a view of rank 2 or more, not %s", ir_type_text(t, &a));
    return;
  }
  t.rank--;
  for (uint32_t d = (uint32_t)axis; d <= t.rank; d++)
    t.dim[d] = d < t.rank ? t.dim[d + 1] : 0;
  check_result(c, t);
}

/* The result's dims are the sizes, operands from `from` on. */
static void check_sizes(struct ir_check *c, uint32_t from) {
  struct ir_type t = out(c, 0);
  for (uint32_t d = 0; d < t.rank; d++) {
    struct ir_op def = ir_value_at(c->m, c->n->in[from + d])->def;
    const struct ir_attr *value =
        ir_op_at(c->m, def)->opcode == IR_CONST ? ir_get_attr(c->m, def, IR_ATTR_value) : NULL;
    if (t.dim[d] != IR_DYN && (!value || value->i != t.dim[d]))
      ir_rule_fail(c, "dim %u of the result is %lld, which is not the constant that size %u is", d,
                   (long long)t.dim[d], d + 1);
  }
}

void ir_rule_view_slice(struct ir_check *c) {
  struct ir_type_text a;
  if (!check_views(c))
    return;
  struct ir_type t = in(c, 0);
  if (c->n->n_in != 1u + 2u * t.rank || out(c, 0).rank != t.rank) {
    ir_rule_fail(c, "%s needs %d offsets and as many sizes", ir_type_text(t, &a), t.rank);
    return;
  }
  if (check_index(c, 1, t.rank, "offset") && check_index(c, 1u + t.rank, t.rank, "size"))
    check_sizes(c, 1u + t.rank);
}

void ir_rule_view_transpose(struct ir_check *c) {
  if (!check_views(c))
    return;
  struct ir_type t = in(c, 0), want = t;
  const struct ir_attr *perm = ir_get_attr(c->m, c->op, IR_ATTR_perm);
  unsigned seen = 0;
  for (uint32_t i = 0; i < perm->n_ints; i++)
    if (perm->ints[i] >= 0 && perm->ints[i] < t.rank)
      seen |= 1u << perm->ints[i];
  if (perm->n_ints != t.rank || seen != (1u << t.rank) - 1) {
    ir_rule_fail(c, "perm must name each of the dims 0 to %d once", t.rank - 1);
    return;
  }
  for (uint32_t i = 0; i < t.rank; i++)
    want.dim[i] = t.dim[perm->ints[i]];
  check_result(c, want);
}

void ir_rule_view_every(struct ir_check *c) {
  int64_t axis, count = ir_attr_int(c->m, c->op, IR_ATTR_count, 0);
  if (!check_views(c) || !check_axis(c, &axis))
    return;
  struct ir_type t = in(c, 0);
  if (count < 1 || count > IR_MAX_ELEMS) {
    ir_rule_fail(c, "count is %lld; it must be 1 to %lld", (long long)count,
                 (long long)IR_MAX_ELEMS);
    return;
  }
  if (t.dim[axis] != IR_DYN && __builtin_mul_overflow(t.dim[axis], count, &t.dim[axis]))
    t.dim[axis] = IR_DYN;
  check_result(c, t);
}

void ir_rule_view_reshape(struct ir_check *c) {
  if (!check_views(c))
    return;
  struct ir_type t = out(c, 0);
  if (!t.rank || c->n->n_in != 1u + t.rank)
    ir_rule_fail(c, "needs a size for each of the result's %d dims", t.rank);
  else if (check_index(c, 1, t.rank, "size"))
    check_sizes(c, 1);
}

void ir_rule_dim(struct ir_check *c) {
  struct ir_type_text a, b;
  int64_t axis;
  if (in(c, 0).kind != IR_VIEW || !ir_type_eq(out(c, 0), ir_scalar(DT_INDEX)))
    ir_rule_fail(c, "takes a view to an index, not %s to %s", ir_type_text(in(c, 0), &a),
                 ir_type_text(out(c, 0), &b));
  else
    check_axis(c, &axis);
}

/* Is some op between the argument and this view a view_every? */
static bool repeats(const struct ir_module *m, struct ir_val view) {
  for (uint32_t steps = 0; steps < m->ops.n; steps++) {
    const struct ir_opnode *def = ir_op_at(m, ir_value_at(m, view)->def);
    if (def->opcode == IR_VIEW_EVERY)
      return true;
    if (!ir_is_view_op(def->opcode) || !def->n_in)
      return false;
    view = def->in[0];
  }
  return false;
}

void ir_rule_check_written(struct ir_check *c, struct ir_val view) {
  uint32_t arg;
  if (!ir_view_arg(c->m, view, &arg))
    return;
  const struct ir_arg *a = &c->m->args.at[arg];
  if (a->kind == IR_ARG_IN)
    ir_rule_fail(c, "`%s` is an `in` argument: it cannot be written", ir_sym(c->m, a->name));
  else if (repeats(c->m, view))
    ir_rule_fail(c, "a view_every cannot be written: several coordinates are one element of `%s`",
                 ir_sym(c->m, a->name));
}
