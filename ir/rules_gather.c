/* Verifier and type rules of the ops that take an index per dim of a view: gather, scatter,
 * atomic. */
#include "ir/rules_impl.h"

/* What the indices of the view select: a scalar, or a tile as the indices' tiles broadcast. n_more
 * operands follow the indices. False after an error. */
static bool check_indices(struct ir_check *c, uint32_t n_more, struct ir_type *out) {
  struct ir_type_text a, b;
  if (c->n->n_in < 1 + n_more || in(c, 0).kind != IR_VIEW) {
    ir_rule_fail(c, "needs a view, its indices%s", n_more ? " and a value" : "");
    return false;
  }
  struct ir_type view = in(c, 0), t = ir_scalar((enum dtype)view.dtype);
  if (c->n->n_in != 1u + view.rank + n_more) {
    ir_rule_fail(c, "%s needs %d indices, %d are given", ir_type_text(view, &a), view.rank,
                 (int)c->n->n_in - 1 - (int)n_more);
    return false;
  }
  for (uint32_t i = 1; i <= view.rank; i++) {
    struct ir_type x = in(c, i);
    if (x.dtype != DT_INDEX || (x.kind != IR_SCALAR && x.kind != IR_TILE)) {
      ir_rule_fail(c, "index %u must be an index scalar or tile, not %s", i, ir_type_text(x, &a));
      return false;
    }
    if (x.kind == IR_SCALAR)
      continue;
    bool first = t.kind == IR_SCALAR, fits = first || x.rank == t.rank;
    x.dtype = t.dtype;
    if (first)
      t = x;
    for (uint32_t d = 0; fits && d < x.rank; d++) {
      fits = x.dim[d] == 1 || t.dim[d] == 1 || x.dim[d] == t.dim[d];
      t.dim[d] = t.dim[d] == 1 ? x.dim[d] : t.dim[d];
    }
    if (!fits) {
      ir_rule_fail(c,
                   "index %u is %s, those before it are together %s: ranks are equal, sizes "
                   "equal or 1",
                   i, ir_type_text(in(c, i), &a), ir_type_text(t, &b));
      return false;
    }
  }
  *out = t;
  return true;
}

/* Is t what the indices select? */
static bool check_selected(struct ir_check *c, const char *what, struct ir_type t,
                           struct ir_type selected) {
  struct ir_type_text a, b;
  if (ir_type_eq(t, selected))
    return true;
  ir_rule_fail(c, "the %s must be %s, as the view and the indices are, not %s", what,
               ir_type_text(selected, &a), ir_type_text(t, &b));
  return false;
}

void ir_rule_gather(struct ir_check *c) {
  struct ir_type t;
  if (check_indices(c, 0, &t) && check_selected(c, "result", ir_type_of(c->m, c->n->out[0]), t))
    ir_rule_check_num(c, IR_ATTR_pad, "pad", (enum dtype)t.dtype);
}

void ir_rule_scatter(struct ir_check *c) {
  struct ir_type t;
  if (check_indices(c, 1, &t) && check_selected(c, "value", in(c, c->n->n_in - 1u), t))
    ir_rule_check_written(c, c->n->in[0]);
}

bool ir_has_atomic(const char *kind, enum dtype t) {
  bool wide_int = t == DT_S32 || t == DT_S64;
  if (str_eq(kind, "add"))
    return wide_int || t == DT_F32 || t == DT_F64 || t == DT_F16 || t == DT_BF16;
  if (str_eq(kind, "min") || str_eq(kind, "max"))
    return wide_int || t == DT_F32;
  if (str_eq(kind, "exchange"))
    return wide_int || t == DT_F32 || t == DT_F64;
  return wide_int && (str_eq(kind, "and") || str_eq(kind, "or") || str_eq(kind, "xor"));
}

void ir_rule_check_sem(struct ir_check *c, const char *kind, struct ir_type t) {
  const struct ir_attr *sem = ir_get_attr(c->m, c->op, IR_ATTR_sem);
  if (!sem)
    return;
  if (!str_eq(ir_sym(c->m, sem->s), "acq_rel"))
    ir_rule_fail(c, "sem is `%s`; it is acq_rel or left out", ir_sym(c->m, sem->s));
  else if (t.kind != IR_SCALAR || t.dtype != DT_S32 || !str_eq(kind, "add"))
    ir_rule_fail(c, "sem = acq_rel is of the sum of one s32");
}

void ir_rule_atomic(struct ir_check *c) {
  static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor", "exchange"};
  struct ir_type t;
  if (!check_indices(c, 1, &t) || !check_selected(c, "value", in(c, c->n->n_in - 1u), t) ||
      !check_selected(c, "result", ir_type_of(c->m, c->n->out[0]), t))
    return;
  ir_rule_check_written(c, c->n->in[0]);
  const char *kind = ir_sym(c->m, ir_get_attr(c->m, c->op, IR_ATTR_kind)->s);
  bool known = false;
  for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    known |= str_eq(kind, kinds[i]);
  if (!known)
    ir_rule_fail(c, "kind is `%s`; it must be add, min, max, and, or, xor or exchange", kind);
  else if (!ir_has_atomic(kind, (enum dtype)t.dtype))
    ir_rule_fail(c, "there is no atomic %s of %s", kind, dtype_name((enum dtype)t.dtype));
  else
    ir_rule_check_sem(c, kind, t);
}
