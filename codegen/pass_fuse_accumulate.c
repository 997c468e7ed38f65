/* x + dot(a, b, 0) -> dot(a, b, x), so that a dot accumulates in place.
 *
 * Before: any tile module. After: a dot whose accumulator is zero and whose only use is an add takes
 * the other summand as its accumulator, where that is of the dot's type and defined before it. The
 * language says that `acc + dot(x, y)` accumulates; the sum's order is free. */
#include "codegen/pass.h"

static bool is_zero(const struct ir_module *m, struct ir_val v) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (def.id && ir_op_at(m, def)->opcode == IR_SPLAT)
    def = ir_value_at(m, ir_op_at(m, def)->in[0])->def;
  if (!def.id || ir_op_at(m, def)->opcode != IR_CONST)
    return false;
  const struct ir_attr *a = ir_get_attr(m, def, IR_ATTR_value);
  return dtype_is_float((enum dtype)ir_type_of(m, v).dtype) ? a->f == 0 : a->i == 0;
}

/* Is v visible at op `at`: an argument of, or defined earlier in, a block around it? */
static bool is_visible(const struct ir_module *m, struct ir_val v, struct ir_op at) {
  const struct ir_value *x = ir_value_at(m, v);
  if (x->block.id) /* the add sees it, and blocks around the dot are blocks around the add */
    return true;
  for (struct ir_op o = at; o.id;) {
    if (o.id == x->def.id)
      return true;
    const struct ir_opnode *n = ir_op_at(m, o);
    o = n->prev.id ? n->prev : ir_block_at(m, n->block)->parent;
  }
  return false;
}

static bool try_fuse(struct ir_module *m, const struct cg_uses *u, struct ir_op add) {
  const struct ir_opnode *n = ir_op_at(m, add);
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_op dot = ir_value_at(m, n->in[i])->def;
    if (!dot.id || ir_op_at(m, dot)->opcode != IR_DOT || u->count[n->in[i].id] != 1 ||
        ir_op_at(m, dot)->block.id != n->block.id || !is_zero(m, ir_op_at(m, dot)->in[2]) ||
        !is_visible(m, n->in[1 - i], dot))
      continue;
    struct ir_val sum = n->out[0], product = n->in[i];
    ir_op_at(m, dot)->in[2] = n->in[1 - i];
    ir_value_at(m, product)->name = ir_value_at(m, sum)->name;
    ir_replace_uses(m, sum, product);
    ir_remove(m, add);
    return true;
  }
  return false;
}

bool cg_pass_fuse_accumulate(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct cg_uses u = cg_collect_uses(m, ctx->scratch);
  VEC(struct ir_op) adds = {0};
  for (uint32_t i = 1; i < m->ops.n; i++)
    if (m->ops.at[i].block.id && m->ops.at[i].opcode == IR_ADD &&
        ir_type_of(m, m->ops.at[i].out[0]).kind == IR_TILE)
      VEC_PUSH(ctx->scratch, &adds, ((struct ir_op){i}));
  for (uint32_t i = 0; i < adds.n; i++)
    *changed |= try_fuse(m, &u, adds.at[i]);
  return true;
}
