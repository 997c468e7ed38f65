/* The last step of a trace: `acc + dot(x, y)` becomes one dot that accumulates onto acc.
 *
 * A dot from zero takes the other operand of an add as its accumulator if the add is its only
 * use, in the same block, and that operand is made before it (so that nothing moves). Other
 * products are left alone. The zeros that lose their use go with the passes' dead code. */
#include "frontend/dsl.h"

struct fuse {
  uint32_t *uses;
  struct ir_val *now; /* per value: what stands for it; 0: itself */
  struct arena *scratch;
  VEC(struct ir_op) gone;
};

static void count_uses(void *user, struct ir_module *m, struct ir_op o) {
  struct fuse *x = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    x->uses[n->in[i].id]++;
}

static bool is_zero(const struct ir_module *m, struct ir_val v) {
  struct ir_op o = ir_value_at(m, v)->def;
  if (o.id && ir_op_at(m, o)->opcode == IR_SPLAT)
    o = ir_value_at(m, ir_op_at(m, o)->in[0])->def;
  if (!o.id || ir_op_at(m, o)->opcode != IR_CONST)
    return false;
  const struct ir_attr *a = ir_get_attr(m, o, IR_ATTR_value);
  return a->i == 0 && a->f == 0;
}

/* Ops of one block are numbered in their order: a trace only appends. */
static bool made_before(const struct ir_module *m, struct ir_val v, struct ir_op o) {
  struct ir_op def = ir_value_at(m, v)->def;
  return !def.id || ir_op_at(m, def)->block.id != ir_op_at(m, o)->block.id || def.id < o.id;
}

static void fuse(void *user, struct ir_module *m, struct ir_op o) {
  struct fuse *x = user;
  struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (x->now[n->in[i].id].id)
      n->in[i] = x->now[n->in[i].id];
  if (n->opcode != IR_ADD)
    return;
  for (uint32_t i = 2; i-- > 0;) {
    struct ir_val product = n->in[i], acc = n->in[1 - i];
    struct ir_op dot = ir_value_at(m, product)->def;
    if (!dot.id || ir_op_at(m, dot)->opcode != IR_DOT || x->uses[product.id] != 1 ||
        ir_op_at(m, dot)->block.id != n->block.id || !is_zero(m, ir_op_at(m, dot)->in[2]) ||
        !made_before(m, acc, dot))
      continue;
    ir_op_at(m, dot)->in[2] = acc;
    x->now[n->out[0].id] = product;
    if (ir_value_at(m, n->out[0])->name.id)
      ir_value_at(m, product)->name = ir_value_at(m, n->out[0])->name;
    x->uses[product.id] = x->uses[n->out[0].id];
    VEC_PUSH(x->scratch, &x->gone, o);
    return;
  }
}

void dsl_fuse_dots(struct ir_module *m, struct arena *scratch) {
  struct fuse x = {.uses = ARENA_ARRAY(scratch, uint32_t, m->values.n),
                   .now = ARENA_ARRAY(scratch, struct ir_val, m->values.n),
                   .scratch = scratch};
  ir_walk(m, m->body, count_uses, &x);
  ir_walk(m, m->body, fuse, &x);
  for (uint32_t i = 0; i < x.gone.n; i++)
    ir_remove(m, x.gone.at[i]);
}
