/* Interpreter: which value lives in which buffer.
 *
 * Before: a verified module; after: every value but views has a slot, every slot a buffer, every
 * view its place, and there is scratch memory for the neediest op; a run allocates nothing more but
 * race shadows. A value's slot is free again after the last op of its own block that uses it,
 * itself or in a nested block, and goes to the next value of its size. Results of a loop take over
 * the slots of its carried values. Slots never overlap an operand's, so ops need not care about
 * aliasing. */
#include "ir/interp_impl.h"

#include "base/check.h"

struct planner {
  struct interp *in;
  uint32_t *dies_head; /* by op: first value whose last use it is */
  uint32_t *dies_next; /* by value */
  struct map free;     /* buffer size -> free slot */
  uint32_t *free_next; /* by slot */
  uint32_t n_slots, n_views;
};

static struct ir_block block_of(const struct ir_module *m, struct ir_val v) {
  const struct ir_value *value = ir_value_at(m, v);
  return value->def.id ? ir_op_at(m, value->def)->block : value->block;
}

/* Ops are visited in order, so the last one to write wins. */
static void find_uses(struct interp *in, struct ir_block b) {
  const struct ir_module *m = in->m;
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *op = ir_op_at(m, o);
    KILN_ASSERT(interp_has_op(op->opcode)); /* the verifier knows the stage's ops */
    for (uint32_t k = 0; k < op->n_in; k++) {
      struct ir_block home = block_of(m, op->in[k]);
      struct ir_op user = o;
      while (ir_op_at(m, user)->block.id != home.id)
        user = ir_block_at(m, ir_op_at(m, user)->block)->parent;
      in->last_use[op->in[k].id] = user.id;
    }
    for (uint32_t k = 0; k < op->n_blocks; k++)
      find_uses(in, op->blocks[k]);
  }
}

static size_t round_up(size_t n) {
  return (n + 15) & ~(size_t)15;
}

static void take_slot(struct planner *p, struct ir_val v) {
  struct interp *in = p->in;
  if (ir_value_at(in->m, v)->type.kind == IR_VIEW) {
    in->view_at[v.id] = p->n_views++;
    return;
  }
  size_t bytes = round_up(val_elems(in, v) * cell_size(val_cell(in, v)));
  uint32_t *head = map_get(&p->free, bytes);
  if (head && *head) {
    in->slot[v.id] = *head;
    *head = p->free_next[*head];
    return;
  }
  uint32_t s = ++p->n_slots;
  in->slot[v.id] = s;
  in->buf_bytes[s] = bytes;
}

static void free_slot(struct planner *p, struct ir_val v) {
  uint32_t s = p->in->slot[v.id];
  if (!s)
    return;
  uint64_t key = p->in->buf_bytes[s];
  uint32_t *head = map_get(&p->free, key);
  p->free_next[s] = head ? *head : 0;
  map_put(&p->free, key, s);
}

static void take_args(struct planner *p, struct ir_block b) {
  const struct ir_blocknode *node = ir_block_at(p->in->m, b);
  for (uint32_t k = 0; k < node->args.n; k++)
    take_slot(p, node->args.at[k]);
}

static void plan_block(struct planner *p, struct ir_block b);

static size_t scratch_of(const struct interp *in, const struct ir_opnode *op) {
  size_t bytes = 0;
  if (op->opcode == IR_DOT)
    return interp_dot_scratch(in, op);
  if (op->opcode == IR_REDUCE_SUM)
    return interp_reduce_scratch(in, op);
  if (op->opcode == IR_YIELD || op->opcode == IR_CONDITION)
    for (uint32_t k = 0; k < op->n_in; k++)
      bytes += in->buf_bytes[in->slot[op->in[k].id]];
  return bytes;
}

static void plan_op(struct planner *p, struct ir_op o) {
  struct interp *in = p->in;
  const struct ir_module *m = in->m;
  const struct ir_opnode *op = ir_op_at(m, o);
  if (op->opcode == IR_FOR) {
    const struct ir_blocknode *body = ir_block_at(m, op->blocks[0]);
    take_args(p, op->blocks[0]);
    plan_block(p, op->blocks[0]);
    for (uint32_t k = 0; k < op->n_out; k++)
      in->slot[op->out[k].id] = in->slot[body->args.at[k + 1].id];
    free_slot(p, body->args.at[0]);
  } else if (op->opcode == IR_WHILE) {
    const struct ir_blocknode *test = ir_block_at(m, op->blocks[0]);
    const struct ir_blocknode *body = ir_block_at(m, op->blocks[1]);
    take_args(p, op->blocks[0]);
    take_args(p, op->blocks[1]);
    plan_block(p, op->blocks[0]);
    plan_block(p, op->blocks[1]);
    for (uint32_t k = 0; k < op->n_out; k++)
      in->slot[op->out[k].id] = in->slot[body->args.at[k].id];
    for (uint32_t k = 0; k < test->args.n; k++)
      free_slot(p, test->args.at[k]);
  } else {
    if (op->opcode == IR_MERGE)
      take_args(p, op->blocks[0]);
    for (uint32_t k = 0; k < op->n_out; k++)
      take_slot(p, op->out[k]);
    for (uint32_t k = 0; k < op->n_blocks; k++)
      plan_block(p, op->blocks[k]);
    for (uint32_t k = 0; op->opcode == IR_MERGE && k < 2u * op->n_in; k++)
      free_slot(p, ir_block_at(m, op->blocks[0])->args.at[k]);
  }
  size_t scratch = scratch_of(in, op);
  if (scratch > in->scratch_bytes)
    in->scratch_bytes = scratch;
  for (uint32_t v = p->dies_head[o.id]; v; v = p->dies_next[v])
    free_slot(p, (struct ir_val){v});
  for (uint32_t k = 0; k < op->n_out; k++)
    if (!in->last_use[op->out[k].id])
      free_slot(p, op->out[k]);
}

static void plan_block(struct planner *p, struct ir_block b) {
  IR_EACH_OP (p->in->m, b, o)
    plan_op(p, o);
}

void interp_plan(struct interp *in) {
  const struct ir_module *m = in->m;
  struct planner p = {.in = in};
  struct arena *a = in->arena;
  in->last_use = ARENA_ARRAY(a, uint32_t, m->values.n);
  in->slot = ARENA_ARRAY(a, uint32_t, m->values.n);
  in->view_at = ARENA_ARRAY(a, uint32_t, m->values.n);
  in->buf_bytes = ARENA_ARRAY(a, size_t, m->values.n + 1);
  p.dies_head = ARENA_ARRAY(a, uint32_t, m->ops.n);
  p.dies_next = ARENA_ARRAY(a, uint32_t, m->values.n);
  p.free_next = ARENA_ARRAY(a, uint32_t, m->values.n + 1);
  map_init(&p.free, a);
  find_uses(in, m->body);
  /* What a loop that is cut uses lives until its merge op: that one's block runs amid the loop, and
   * must not take its places. */
  for (uint32_t v = 1; in->cut_of && v < m->values.n; v++)
    if (in->cut_of[in->last_use[v]])
      in->last_use[v] = in->cuts[in->cut_of[in->last_use[v]] - 1].how.merge.id;
  /* Block arguments live as long as their block: their owner frees them. */
  for (uint32_t v = 1; v < m->values.n; v++)
    if (m->values.at[v].def.id && in->last_use[v]) {
      p.dies_next[v] = p.dies_head[in->last_use[v]];
      p.dies_head[in->last_use[v]] = v;
    }
  take_args(&p, m->body);
  plan_block(&p, m->body);
  in->n_slots = p.n_slots;
  in->n_views = p.n_views + 1;
  in->views = ARENA_ARRAY(a, struct interp_view, in->n_views);
  in->buf = ARENA_ARRAY(a, void *, p.n_slots + 1);
  for (uint32_t s = 1; s <= p.n_slots; s++)
    in->buf[s] = arena_get(a, in->buf_bytes[s]);
  in->scratch = arena_get(a, in->scratch_bytes);
}
