/* Software pipelining: which loads of a loop run ahead of the dots they feed.
 *
 * Before: layouts assigned. After: every op has its role and its (stage, order). A loop in which
 * loads feed dots through shared memory has `slots` (2 and more, or none); such a load stands at
 * stage 0 and everything else at stage slots - 1, so that the load for iteration i is issued while
 * iteration i - slots + 1 is computed. Legal: a load depends only on the loop index and on values
 * from outside the loop, so every edge u -> v at distance d has stage(v) + d >= stage(u), and equal
 * stages keep their order.
 * The emitted loop has one barrier an iteration: see lower_loop.c. */
#include "codegen/pass.h"
#include "codegen/schedule.h"

/* Is v, a scalar or a view, computed from values outside the loop's block and its index by scalar
 * arithmetic and ops on views? */
static bool runs_ahead(const struct ir_module *m, struct ir_block loop, struct ir_val v,
                       int depth) {
  const struct ir_value *x = ir_value_at(m, v);
  if (x->block.id)
    return x->block.id != loop.id || x->index == 0;
  const struct ir_opnode *n = ir_op_at(m, x->def);
  if (n->block.id != loop.id)
    return true; /* defined around the loop: dominance leaves no other place */
  if (!(ir_info(n->opcode)->traits & IR_PURE) || x->type.kind == IR_TILE || depth > 64)
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (ir_type_of(m, n->in[i]).kind == IR_TILE || !runs_ahead(m, loop, n->in[i], depth + 1))
      return false;
  return true;
}

static bool is_pipelined(const struct ir_module *m, struct ir_block loop, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode != IR_LOAD || cg_goes_to_registers(m, o) || cg_is_stored(m, o))
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!runs_ahead(m, loop, n->in[i], 0))
      return false;
  return true;
}

/* With a producer, the copies are its; scalars, views and loops are everyone's. */
static uint32_t roles_of(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (m->roles.n < 2)
    return 1;
  const char *path = cg_attr_word(m, o, IR_ATTR_path);
  if (n->opcode == IR_LOAD && (str_eq(path, "tma") || str_eq(path, "staging")))
    return 2;
  bool scalar = n->n_out == 1 && ir_type_of(m, n->out[0]).kind != IR_TILE &&
                (ir_info(n->opcode)->traits & IR_PURE);
  return scalar || n->opcode == IR_FOR ? 3 : 1;
}

struct pipeliner {
  struct ir_pass_ctx *ctx;
  int64_t slots; /* of loops that have none pinned */
  bool failed;
};

static void schedule(void *user, struct ir_module *m, struct ir_op o) {
  struct pipeliner *p = user;
  int64_t pinned = ir_attr_int(m, o, IR_ATTR_slots, 0), slots = pinned ? pinned : p->slots;
  ir_op_at(m, o)->sched.role_mask = roles_of(m, o);
  if (ir_op_at(m, o)->opcode != IR_FOR)
    return;
  struct ir_block body = ir_op_at(m, o)->blocks[0];
  bool any = false;
  IR_EACH_OP (m, body, x) {
    any = any || is_pipelined(m, body, x);
  }
  if (pinned > 1 && !any) {
    cg_error(m, p->ctx->diags, o, DIAG_CONFIG,
             "schedule `%s.slots`: no load of this loop can run ahead of a dot",
             cg_attr_word(m, o, IR_ATTR_label));
    p->failed = true;
  }
  if (any && slots > 1)
    cg_set_int(m, o, IR_ATTR_slots, slots);
  int16_t order = 0;
  IR_EACH_OP (m, body, x) {
    bool ahead = any && slots > 1 && is_pipelined(m, body, x);
    ir_op_at(m, x)->sched.stage = ahead || !any || slots < 2 ? 0 : (int16_t)(slots - 1);
    ir_op_at(m, x)->sched.order = order;
    order = (int16_t)(order < INT16_MAX ? order + 1 : order);
  }
}

bool cg_pass_pipeline_loops(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct pipeliner p = {.ctx = ctx, .slots = cg_knob_get(m, CG_KNOB_STAGES)};
  ir_walk(m, m->body, schedule, &p);
  *changed = true;
  return !p.failed;
}
