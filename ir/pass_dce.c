/* Removal of what has no use: pure ops and loads whose results nobody needs, loops and conditionals
 * without effects, and single carried values of those that stay.
 *
 * Marks from the effects backwards. A for or if that stays needs its condition or bounds; each of
 * its results is needed on its own, with the values that feed it round the loop. Loops on a
 * condition are kept whole: whether they end is part of what a kernel does. */
#include "base/bitset.h"
#include "ir/passes.h"
#include "ir/walk.h"

struct dce {
  struct ir_module *m;
  struct arena *scratch;
  struct bitset ops, values; /* needed */
  VEC(struct ir_op) todo_ops;
  VEC(struct ir_val) todo_values;
};

static void need_op(struct dce *d, struct ir_op o) {
  if (bitset_has(&d->ops, o.id))
    return;
  bitset_add(&d->ops, o.id);
  VEC_PUSH(d->scratch, &d->todo_ops, o);
}

static void need_value(struct dce *d, struct ir_val v) {
  if (bitset_has(&d->values, v.id))
    return;
  bitset_add(&d->values, v.id);
  VEC_PUSH(d->scratch, &d->todo_values, v);
}

/* Ops whose results are needed one by one. */
static bool is_split(const struct ir_opnode *n) {
  return n->opcode == IR_FOR || n->opcode == IR_IF;
}

static bool is_root(const struct ir_opnode *n) {
  uint32_t traits = ir_info(n->opcode)->traits;
  if (traits & (IR_WRITES | IR_EFFECT | IR_SYNC | IR_ASYNC))
    return true;
  /* Ops that own blocks and are not known here may do anything with them. */
  return n->n_blocks ? !is_split(n) && !(traits & IR_PURE)
                     : !(traits & (IR_PURE | IR_READS | IR_TERM));
}

static const struct ir_opnode *yield_of(const struct dce *d, const struct ir_opnode *n,
                                        uint32_t block) {
  return ir_op_at(d->m, ir_block_at(d->m, n->blocks[block])->last);
}

/* Result k of a for or if: what flows into it. */
static void need_carried(struct dce *d, const struct ir_opnode *n, uint32_t k) {
  for (uint32_t b = 0; b < n->n_blocks; b++)
    need_value(d, yield_of(d, n, b)->in[k]);
  if (n->opcode == IR_FOR) {
    need_value(d, n->in[3 + k]);
    need_value(d, ir_block_at(d->m, n->blocks[0])->args.at[1 + k]);
    need_value(d, n->out[k]); /* not for itself: the three stay or go together */
  }
}

static void visit_value(struct dce *d, struct ir_val v) {
  const struct ir_value *x = ir_value_at(d->m, v);
  if (x->def.id) {
    need_op(d, x->def);
    if (is_split(ir_op_at(d->m, x->def)))
      need_carried(d, ir_op_at(d->m, x->def), x->index);
    return;
  }
  struct ir_op owner = ir_block_at(d->m, x->block)->parent;
  if (!owner.id)
    return;
  need_op(d, owner);
  if (ir_op_at(d->m, owner)->opcode == IR_FOR && x->index)
    need_carried(d, ir_op_at(d->m, owner), x->index - 1);
}

static void visit_op(struct dce *d, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(d->m, o);
  struct ir_op owner = ir_block_at(d->m, n->block)->parent;
  if (owner.id)
    need_op(d, owner);
  uint32_t n_needed = n->opcode == IR_FOR ? 3u : n->n_in;
  if (n->opcode == IR_YIELD && owner.id && is_split(ir_op_at(d->m, owner)))
    n_needed = 0; /* value by value */
  for (uint32_t i = 0; i < n_needed; i++)
    need_value(d, n->in[i]);
  for (uint32_t b = 0; b < n->n_blocks; b++)
    if (ir_block_at(d->m, n->blocks[b])->last.id)
      need_op(d, ir_block_at(d->m, n->blocks[b])->last);
}

/* Of a for or if that stays: takes away the results that do not. */
static bool drop_results(struct dce *d, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(d->m, o);
  bool any = false;
  bool *drop = ARENA_ARRAY(d->scratch, bool, n->n_out);
  for (uint32_t k = 0; k < n->n_out; k++)
    any |= drop[k] = !bitset_has(&d->values, n->out[k].id);
  if (any)
    ir_drop_carried(d->m, o, drop);
  return any;
}

bool ir_pass_dce(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct dce d = {.m = m, .scratch = ctx->scratch};
  d.ops = bitset_new(ctx->scratch, m->ops.n);
  d.values = bitset_new(ctx->scratch, m->values.n);
  need_op(&d, ir_block_at(m, m->body)->last);
  struct ir_op o = ir_block_at(m, m->body)->first;
  for (; o.id; o = ir_walk_next(m, o, m->body))
    if (is_root(ir_op_at(m, o)))
      need_op(&d, o);
  while (d.todo_ops.n || d.todo_values.n)
    if (d.todo_ops.n)
      visit_op(&d, VEC_POP(&d.todo_ops));
    else
      visit_value(&d, VEC_POP(&d.todo_values));
  for (o = ir_block_at(m, m->body)->first; o.id;) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (bitset_has(&d.ops, o.id)) {
      if (is_split(n) && drop_results(&d, o))
        *changed = true;
      o = ir_walk_next(m, o, m->body);
      continue;
    }
    struct ir_op next = n->next.id ? n->next : ir_walk_up(m, n->block, m->body);
    ir_remove(m, o);
    *changed = true;
    o = next;
  }
  return true;
}
