/* Dots: where the operands lie, which fragment accumulates, which instruction multiplies. */
#include "base/check.h"
#include "codegen/lower.h"

static void open_operand(struct lower *l, struct cg_dot *d, int i) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, d->op)->in[i];
  int k_dim = i == 0 ? 1 : 0;
  if (str_eq(cg_attr_word(m, d->op, i ? IR_ATTR_b_path : IR_ATTR_a_path), "smem")) {
    struct cg_operand_source src = cg_trace_operand(m, v);
    const struct cg_lval *x = &l->val[ir_op_at(m, src.load)->out[0].id];
    KILN_ASSERT(x->kind == CG_LV_SMEM);
    d->x[i] = x->smem;
    d->slot[i] = x->scalar;
    d->k_inner[i] = x->smem->inner_dim == src.dim[k_dim];
    return;
  }
  int64_t k_pad = cg_dot_k_pad(m, d->op, d->k);
  int64_t mn = cg_layout_cover(cg_layout_at(l, d->acc_layout), (uint32_t)i);
  d->x[i] = i == 0 ? cg_write_operand(l, v, "lhs", mn, k_pad, 1)
                   : cg_write_operand(l, v, "rhs", k_pad, mn, 0);
  d->slot[i] = cg_s32(l, 0);
  d->k_inner[i] = i == 0;
}

/* Is v a fragment that op o, in its block, alone reads? */
static bool is_own(struct lower *l, struct ir_val v, struct ir_block b) {
  const struct ir_value *x = ir_value_at(l->m, v);
  struct ir_block home = x->def.id ? ir_op_at(l->m, x->def)->block : x->block;
  return l->val[v.id].kind == CG_LV_FRAG && l->uses.count[v.id] == 1 && home.id == b.id;
}

/* The fragment that v, read here alone, is computed from, register by register, and that nothing
 * else reads: v may take its place. 0: none. */
static uint32_t own_source(struct lower *l, struct ir_val v, struct ir_block b) {
  struct ir_module *m = l->m;
  struct ir_op def = ir_value_at(m, v)->def;
  if (l->val[v.id].kind != CG_LV_INLINE || l->uses.count[v.id] != 1 || !def.id ||
      ir_op_at(m, def)->block.id != b.id || !cg_is_elementwise(ir_op_at(m, def)->opcode))
    return 0;
  for (uint32_t i = 0; i < ir_op_at(m, def)->n_in; i++) {
    struct ir_val in = ir_op_at(m, def)->in[i];
    if (ir_type_of(m, in).kind == IR_TILE && cg_layout_of(l, in) == cg_layout_of(l, v) &&
        ir_type_eq(ir_type_of(m, in), ir_type_of(m, v)) && is_own(l, in, b))
      return l->val[in.id].frag;
  }
  return 0;
}

uint32_t cg_open_acc(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[2];
  struct ir_block b = ir_op_at(m, o)->block;
  if (is_own(l, v, b))
    return l->val[v.id].frag;
  uint32_t layout = cg_layout_of(l, ir_op_at(m, o)->out[0]), own = own_source(l, v, b);
  if (own && cg_layout_of(l, v) == layout) {
    cg_fill_frag(l, own, v, layout);
    return own;
  }
  uint32_t acc = cg_new_frag(l, "acc", ir_type_of(m, v), layout);
  cg_fill_frag(l, acc, v, layout);
  return acc;
}

void cg_open_dot(struct lower *l, struct ir_op o, struct cg_dot *d) {
  struct ir_module *m = l->m;
  const struct ir_attr *w = ir_get_attr(m, o, IR_ATTR_warps);
  struct ir_type a = ir_type_of(m, ir_op_at(m, o)->in[0]);
  struct ir_type c = ir_type_of(m, ir_op_at(m, o)->in[2]);
  *d = (struct cg_dot){.op = o, .m = c.dim[0], .n = c.dim[1], .k = a.dim[1]};
  d->w = (struct cg_warps){(uint32_t)w->ints[0], (uint32_t)w->ints[1]};
  d->mma = cg_mma_of(m, o);
  if (d->mma)
    d->atom = cg_mma_atom_of(m, o);
  d->splits = str_eq(cg_attr_word(m, o, IR_ATTR_prec), "tf32x3");
  d->promotes = str_eq(cg_attr_word(m, o, IR_ATTR_prec), "promoted") && d->mma &&
                cg_mma_sums_short(l->target, d->mma->a);
  d->acc_layout = cg_layout_of(l, ir_op_at(m, o)->out[0]);
  open_operand(l, d, 0);
  open_operand(l, d, 1);
}

void cg_move_dot(struct lower *l, struct cg_dot *d) {
  for (int i = 0; i < 2; i++) {
    struct ir_op load = cg_trace_operand(l->m, ir_op_at(l->m, d->op)->in[i]).load;
    d->slot[i] = l->val[ir_op_at(l->m, load)->out[0].id].scalar;
  }
}

void cg_take_acc(struct lower *l, struct cg_dot *d) {
  struct ir_val out = ir_op_at(l->m, d->op)->out[0];
  d->acc = cg_open_acc(l, d->op);
  l->val[out.id].kind = CG_LV_FRAG;
  l->val[out.id].frag = d->acc;
}

void cg_lower_dot(struct lower *l, struct ir_op o) {
  struct cg_dot d;
  if (cg_is_wgmma(l->m, o)) {
    cg_dot_wgmma(l, o);
    return;
  }
  cg_open_dot(l, o, &d);
  cg_take_acc(l, &d);
  if (d.mma)
    cg_dot_mma(l, &d);
  else
    cg_dot_fma(l, &d);
}
