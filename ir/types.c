/* Types of values, and where views come from; see ir.h. */
#include "base/check.h"
#include "ir/ir.h"

struct ir_type ir_tile(enum dtype t, uint32_t rank, const int64_t *dim) {
  KILN_ASSERT(rank <= IR_MAX_RANK);
  struct ir_type r = {.kind = IR_TILE, .dtype = (uint8_t)t, .rank = (uint8_t)rank};
  for (uint32_t i = 0; i < rank; i++)
    r.dim[i] = dim[i];
  return r;
}

bool ir_shape_eq(struct ir_type a, struct ir_type b) {
  if (a.kind != b.kind || a.rank != b.rank)
    return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.dim[i] != b.dim[i])
      return false;
  return true;
}

bool ir_type_eq(struct ir_type a, struct ir_type b) {
  return a.dtype == b.dtype && ir_shape_eq(a, b);
}

/* Saturates: a count past int64 is as wrong as any other that is too large. A dim known only at
 * launch makes the count unknown: IR_DYN. */
int64_t ir_elems(struct ir_type t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t.rank; i++) {
    if (t.dim[i] == IR_DYN)
      return IR_DYN;
    if (__builtin_mul_overflow(n, t.dim[i], &n))
      return INT64_MAX;
  }
  return n;
}

void ir_type_describe(struct ir_type t, struct strbuf *out) {
  if (t.kind == IR_NONE) {
    sb_puts(out, "none");
    return;
  }
  sb_puts(out, t.kind == IR_VIEW ? "view " : t.kind == IR_PTR ? "ptr " : "");
  sb_puts(out, dtype_name((enum dtype)t.dtype));
  if (t.kind != IR_TILE && t.kind != IR_VIEW)
    return;
  sb_putc(out, '(');
  for (uint32_t i = 0; i < t.rank; i++) {
    if (i)
      sb_putc(out, ',');
    if (t.dim[i] == IR_DYN)
      sb_putc(out, '?');
    else
      sb_printf(out, "%lld", (long long)t.dim[i]);
  }
  sb_putc(out, ')');
}

bool ir_is_view_op(enum ir_opcode opcode) {
  switch ((int)opcode) {
  case IR_VIEW_AT:
  case IR_VIEW_SLICE:
  case IR_VIEW_TRANSPOSE:
  case IR_VIEW_EVERY:
  case IR_VIEW_RESHAPE: return true;
  default: return false;
  }
}

uint32_t ir_given_args(const struct ir_module *m) {
  uint32_t n = m->args.n;
  while (n && m->args.at[n - 1].kind == IR_ARG_SCRATCH)
    n--;
  return n;
}

bool ir_view_arg(const struct ir_module *m, struct ir_val view, uint32_t *arg) {
  /* Views are not carried, so the chain of ops leads to the body's arguments. In an invalid module
   * it may be a circle. */
  for (uint32_t steps = 0; steps < m->ops.n; steps++) {
    const struct ir_value *x = ir_value_at(m, view);
    const struct ir_opnode *def = ir_op_at(m, x->def);
    if (x->def.id && ir_is_view_op(def->opcode) && def->n_in) {
      view = def->in[0];
      continue;
    }
    if (x->block.id != m->body.id)
      return false;
    uint32_t k = 0;
    for (uint32_t i = 0; i < m->args.n; i++)
      if (m->args.at[i].present && k++ == x->index) {
        *arg = i;
        return m->args.at[i].kind != IR_ARG_SCALAR;
      }
    return false;
  }
  return false;
}
