/* Removal of carried values of loops and of results of conditionals and merges. */
#include "base/check.h"
#include "ir/passes.h"

/* Removes the elements first + k with drop[k]; returns the new count. */
static uint32_t compact(struct ir_val *v, uint32_t n, uint32_t first, const bool *drop) {
  uint32_t kept = first;
  for (uint32_t i = first; i < n; i++)
    if (!drop[i - first])
      v[kept++] = v[i];
  return kept;
}

static void renumber(struct ir_module *m, const struct ir_val *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    ir_value_at(m, v[i])->index = i;
}

void ir_drop_carried(struct ir_module *m, struct ir_op o, const bool *drop) {
  struct ir_opnode *n = ir_op_at(m, o);
  KILN_ASSERT(n->opcode == IR_FOR || n->opcode == IR_IF || n->opcode == IR_MERGE);
  for (uint32_t b = 0; b < n->n_blocks; b++) {
    struct ir_blocknode *block = ir_block_at(m, n->blocks[b]);
    struct ir_opnode *yield = ir_op_at(m, block->last);
    KILN_ASSERT(yield->opcode == IR_YIELD);
    yield->n_in = (uint16_t)compact(yield->in, yield->n_in, 0, drop);
    if (n->opcode == IR_FOR) {
      block->args.n = compact(block->args.at, block->args.n, 1, drop);
      renumber(m, block->args.at, block->args.n);
    }
    if (n->opcode == IR_MERGE) { /* those of the second part first */
      block->args.n = compact(block->args.at, block->args.n, n->n_out, drop);
      uint32_t kept = compact(block->args.at, n->n_out, 0, drop);
      for (uint32_t i = n->n_out; i < block->args.n; i++)
        block->args.at[kept + i - n->n_out] = block->args.at[i];
      block->args.n -= n->n_out - kept;
      renumber(m, block->args.at, block->args.n);
    }
  }
  if (n->opcode == IR_MERGE)
    n->n_in = (uint16_t)compact(n->in, n->n_in, 0, drop);
  if (n->opcode == IR_FOR)
    n->n_in = (uint16_t)compact(n->in, n->n_in, 3, drop);
  n->n_out = (uint16_t)compact(n->out, n->n_out, 0, drop);
  renumber(m, n->out, n->n_out);
}
