/* The walk over ops in order. Not recursive: nesting depth costs no C stack, so it may run on
 * modules that the verifier has not seen. */
#include "ir/walk.h"

struct ir_op ir_walk_up(const struct ir_module *m, struct ir_block b, struct ir_block stop) {
  while (b.id != stop.id) {
    const struct ir_opnode *parent = ir_op_at(m, ir_block_at(m, b)->parent);
    uint32_t i = 0;
    while (parent->blocks[i].id != b.id)
      i++;
    for (i++; i < parent->n_blocks; i++)
      if (ir_block_at(m, parent->blocks[i])->first.id)
        return ir_block_at(m, parent->blocks[i])->first;
    if (parent->next.id)
      return parent->next;
    b = parent->block;
  }
  return (struct ir_op){0};
}

struct ir_op ir_walk_next(const struct ir_module *m, struct ir_op o, struct ir_block stop) {
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_blocks; i++)
    if (ir_block_at(m, n->blocks[i])->first.id)
      return ir_block_at(m, n->blocks[i])->first;
  return n->next.id ? n->next : ir_walk_up(m, n->block, stop);
}

void ir_walk(struct ir_module *m, struct ir_block b, ir_visit fn, void *user) {
  struct ir_op o = ir_block_at(m, b)->first;
  while (o.id) {
    /* The visitor may remove the op it is given, with what is nested in it. */
    struct ir_op next = ir_op_at(m, o)->next;
    struct ir_block block = ir_op_at(m, o)->block;
    fn(user, m, o);
    if (ir_op_at(m, o)->block.id)
      o = ir_walk_next(m, o, b);
    else
      o = next.id ? next : ir_walk_up(m, block, b);
  }
}
