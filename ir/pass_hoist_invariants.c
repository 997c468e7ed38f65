/* Loop-invariant motion: what a loop computes anew in every iteration from values of outside moves
 * before the loop, innermost loops first, so that it may leave several.
 *
 * Contract:
 * 1. Pure ops without blocks move. A loop that does not run at all then has them computed in vain:
 *    they have no effect, and what an index op gives there is not used.
 * 2. Loads move too, out of `for` loops that run at least once as their constant bounds show (a
 *    load that was never made could be of what another program writes), and that write no memory.
 * 3. Only what stands in the loop's own block moves: what a branch inside computes may be too dear
 *    to compute without it.
 * 4. The order of ops that move is kept. Tile stage only: later stages have placed their ops. */
#include "base/check.h"
#include "ir/passes.h"
#include "ir/rules.h"
#include "ir/walk.h"

struct hoist {
  struct ir_module *m;
  bool changed;
};

static bool is_defined_in(const struct ir_module *m, struct ir_val v, struct ir_block b) {
  const struct ir_value *x = ir_value_at(m, v);
  return (x->def.id ? ir_op_at(m, x->def)->block.id : x->block.id) == b.id;
}

/* Operands of an op in block b are defined in b or outside of the loop that owns it. */
static bool is_invariant(const struct ir_module *m, const struct ir_opnode *n, struct ir_block b) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (is_defined_in(m, n->in[i], b))
      return false;
  return true;
}

static bool const_int(const struct ir_module *m, struct ir_val v, int64_t *out) {
  struct ir_constant k;
  if (!ir_constant_of(m, v, &k) || dtype_is_float(k.dtype))
    return false;
  *out = k.i;
  return true;
}

static bool runs(const struct ir_module *m, const struct ir_opnode *loop) {
  int64_t lo, hi;
  return loop->opcode == IR_FOR && const_int(m, loop->in[0], &lo) &&
         const_int(m, loop->in[1], &hi) && lo < hi;
}

static bool writes(const struct ir_module *m, struct ir_block b) {
  struct ir_op o = ir_block_at(m, b)->first;
  for (; o.id; o = ir_walk_next(m, o, b))
    if (ir_info(ir_op_at(m, o)->opcode)->traits & IR_WRITES)
      return true;
  return false;
}

static void hoist_from(struct hoist *h, struct ir_op loop, struct ir_block b, bool loads) {
  struct ir_module *m = h->m;
  struct ir_block outside = ir_op_at(m, loop)->block;
  for (struct ir_op o = ir_block_at(m, b)->first, next; o.id; o = next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    uint32_t traits = ir_info(n->opcode)->traits;
    next = n->next;
    bool may_move = traits & IR_PURE || (loads && traits & IR_READS && !(traits & IR_EFFECT));
    if (!may_move || traits & IR_TERM || n->n_blocks || !is_invariant(m, n, b))
      continue;
    ir_move_before(m, o, outside, loop);
    h->changed = true;
  }
}

static void visit_block(struct hoist *h, struct ir_block b, uint32_t depth) {
  struct ir_module *m = h->m;
  KILN_ASSERT(depth <= IR_MAX_DEPTH);
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_op_at(m, o)->next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    for (uint32_t i = 0; i < n->n_blocks; i++)
      visit_block(h, n->blocks[i], depth + 1);
    if (n->opcode != IR_FOR && n->opcode != IR_WHILE)
      continue;
    for (uint32_t i = 0; i < n->n_blocks; i++)
      hoist_from(h, o, n->blocks[i], runs(m, n) && !writes(m, n->blocks[i]));
  }
}

bool ir_pass_hoist_invariants(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)ctx;
  struct hoist h = {.m = m};
  if (m->stage == IR_TILE_STAGE)
    visit_block(&h, m->body, 0);
  *changed = h.changed;
  return true;
}
