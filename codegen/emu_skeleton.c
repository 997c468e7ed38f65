/* Emulator: what a skeleton leaves out of the program.
 *
 * A skeleton has synchronisation and addresses, no values. So ops that make floats are left out,
 * and so is arithmetic that only they use. Fragments hold values too: where no wgmma works on them
 * while the warp goes on, what goes into them and out of them is left out as well, with the loops
 * that do nothing else; whether an element was written before it is read is for a run with values
 * to say. */
#include "codegen/emu_impl.h"

struct leaver {
  const struct emu *e;
  const struct ir_module *m;
  bool *left;   /* by op */
  bool *needed; /* by value */
};

static bool has_wgmma(const struct ir_module *m) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->block.id && ir_op_at(m, o)->opcode == IR_WGMMA)
      return true;
  return false;
}

/* Does the op do nothing but make floats, or move them within registers? */
static bool is_value_only(const struct leaver *v, const struct ir_opnode *n) {
  switch ((int)n->opcode) {
  case IR_MMA:
  case IR_UNZIP: return v->e->frags_hold;
  case IR_FGET:
  case IR_FPUT:
  case IR_FFILL:
    return v->e->frags_hold && dtype_is_float((enum dtype)v->m->res.at[n->res[0]].type.dtype);
  default:
    return n->n_out == 1 && ((ir_info(n->opcode)->traits & IR_PURE) || n->opcode == IR_SHUFFLE) &&
           ir_type_of(v->m, n->out[0]).kind == IR_SCALAR &&
           dtype_is_float(emu_dtype(v->e, n->out[0]));
  }
}

static bool is_unused(const struct leaver *v, const struct ir_opnode *n) {
  for (uint32_t k = 0; k < n->n_out; k++)
    if (v->needed[n->out[k].id])
      return false;
  return n->n_out && !n->n_blocks && (ir_info(n->opcode)->traits & IR_PURE);
}

/* From the last op to the first, so that uses come before what they use. False: all of it is left
 * out. */
static bool look_at_block(struct leaver *v, struct ir_block b) {
  bool any = false;
  for (struct ir_op o = ir_block_at(v->m, b)->last; o.id; o = ir_op_at(v->m, o)->prev) {
    const struct ir_opnode *n = ir_op_at(v->m, o);
    bool kept = n->n_blocks != 0;
    if (n->opcode == IR_EACH)
      kept = look_at_block(v, n->blocks[0]);
    else
      for (uint32_t k = n->n_blocks; k-- > 0;)
        look_at_block(v, n->blocks[k]);
    kept = kept || (!n->n_blocks && !is_value_only(v, n) && !is_unused(v, n));
    v->left[o.id] = !kept;
    for (uint32_t k = 0; k < n->n_in && kept; k++)
      v->needed[n->in[k].id] = true;
    any |= kept && !(ir_info(n->opcode)->traits & IR_TERM);
  }
  return any;
}

const bool *emu_skeleton_leaves(struct emu *e, struct arena *a) {
  struct leaver v = {.e = e,
                     .m = e->m,
                     .left = ARENA_ARRAY(a, bool, e->m->ops.n),
                     .needed = ARENA_ARRAY(a, bool, e->m->values.n)};
  e->frags_hold = !has_wgmma(e->m);
  look_at_block(&v, e->m->body);
  return v.left;
}
