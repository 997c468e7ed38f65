/* Copies of ops within a module. */
#include "ir/ir.h"

static struct ir_val mapped(const struct ir_copy *c, struct ir_val v) {
  return v.id < c->n && c->to[v.id].id ? c->to[v.id] : v;
}

static void copy_op(struct ir_copy *c, struct ir_builder *b, struct ir_op o) {
  struct ir_module *m = b->m;
  const struct ir_opnode n = *ir_op_at(m, o); /* the table moves */
  struct ir_val *in = ARENA_ARRAY(c->scratch, struct ir_val, n.n_in + 1);
  struct ir_type *t = ARENA_ARRAY(c->scratch, struct ir_type, n.n_out + 1);
  for (uint32_t i = 0; i < n.n_in; i++)
    in[i] = mapped(c, n.in[i]);
  for (uint32_t i = 0; i < n.n_out; i++)
    t[i] = ir_type_of(m, n.out[i]);
  uint32_t loc = b->loc;
  b->loc = n.loc;
  struct ir_op copy = ir_build(b, n.opcode, n.n_in, in, n.n_out, t);
  b->loc = loc;
  for (uint32_t i = 0; i < n.n_attrs; i++)
    ir_set_attr(m, copy, n.attrs[i]);
  ir_op_at(m, copy)->sched = n.sched;
  for (uint32_t i = 0; i < n.n_out; i++) {
    struct ir_val v = ir_op_at(m, copy)->out[i];
    ir_value_at(m, v)->name = ir_value_at(m, n.out[i])->name;
    ir_value_at(m, v)->layout = ir_value_at(m, n.out[i])->layout;
    c->to[n.out[i].id] = v;
  }
  for (uint32_t i = 0; i < n.n_blocks; i++) {
    struct ir_block to = ir_op_at(m, copy)->blocks[i];
    for (uint32_t k = 0; k < ir_block_at(m, n.blocks[i])->args.n; k++) {
      struct ir_val arg = ir_block_at(m, n.blocks[i])->args.at[k];
      c->to[arg.id] = ir_add_arg(m, to, ir_type_of(m, arg));
      ir_value_at(m, c->to[arg.id])->name = ir_value_at(m, arg)->name;
    }
    ir_copy_block(c, n.blocks[i], to);
  }
}

struct ir_copy ir_copy_begin(struct ir_module *m, struct arena *scratch) {
  return (struct ir_copy){scratch, ARENA_ARRAY(scratch, struct ir_val, m->values.n), m->values.n,
                          m};
}

void ir_copy_block(struct ir_copy *c, struct ir_block from, struct ir_block to) {
  struct ir_builder b = {.m = c->m, .block = to};
  for (struct ir_op o = ir_block_at(c->m, from)->first; o.id; o = ir_op_at(c->m, o)->next)
    copy_op(c, &b, o);
}

struct ir_op ir_copy_op(struct ir_copy *c, struct ir_builder *b, struct ir_op o) {
  copy_op(c, b, o);
  struct ir_block at = b->block;
  return b->before.id ? ir_op_at(c->m, b->before)->prev : ir_block_at(c->m, at)->last;
}
