/* Verifier rules of structured control. Rules of owners check what their blocks take; what a
 * terminator passes on is reported at the terminator. */
#include "ir/merge.h"
#include "ir/rules.h"

static const struct ir_blocknode *block_of(const struct ir_check *c, uint32_t i) {
  return ir_block_at(c->m, c->n->blocks[i]);
}

/* What loops and conditionals may carry. Pointers exist in the machine stage only. */
static bool is_carriable(struct ir_type t) {
  return t.kind == IR_SCALAR || t.kind == IR_TILE || t.kind == IR_PTR;
}

/* The last op of a block if it is the terminator wanted there; a missing or another one is reported
 * by verify.c or by that op's own rule. */
static const struct ir_opnode *terminator(const struct ir_check *c, struct ir_block b,
                                          enum ir_opcode want) {
  struct ir_op last = ir_block_at(c->m, b)->last;
  if (!last.id || ir_op_at(c->m, last)->opcode != want)
    return NULL;
  return ir_op_at(c->m, last);
}

/* Values [from..] of `n` pass to `n_to` places of the given types. */
static void check_passed(struct ir_check *c, struct ir_op at, const struct ir_opnode *n,
                         uint32_t from, uint32_t n_to, const struct ir_val *to, const char *what) {
  struct ir_type_text a, b;
  if (n->n_in - from != n_to) {
    ir_rule_fail_at(c, at, "passes %u values, %s takes %u", n->n_in - from, what, n_to);
    return;
  }
  for (uint32_t i = 0; i < n_to; i++) {
    struct ir_type given = ir_type_of(c->m, n->in[from + i]), want = ir_type_of(c->m, to[i]);
    if (!ir_type_eq(given, want))
      ir_rule_fail_at(c, at, "value %u is %s, %s takes %s", i + 1, ir_type_text(given, &a), what,
                      ir_type_text(want, &b));
  }
}

static void check_yield(struct ir_check *c, struct ir_block b, uint32_t n_to,
                        const struct ir_val *to, const char *what) {
  const struct ir_opnode *n = terminator(c, b, IR_YIELD);
  if (n)
    check_passed(c, ir_block_at(c->m, b)->last, n, 0, n_to, to, what);
}

/* Carried values are scalars and tiles. */
static bool check_carried(struct ir_check *c, uint32_t n, const struct ir_val *v) {
  struct ir_type_text a;
  for (uint32_t i = 0; i < n; i++)
    if (!is_carriable(ir_type_of(c->m, v[i]))) {
      ir_rule_fail(c, "carries scalars and tiles, not %s",
                   ir_type_text(ir_type_of(c->m, v[i]), &a));
      return false;
    }
  return true;
}

/* Inits, block arguments from `first` on, and results agree in number and type. */
static void check_loop_values(struct ir_check *c, uint32_t first_init, const struct ir_blocknode *b,
                              uint32_t first_arg) {
  struct ir_type_text x, y;
  uint32_t n = c->n->n_in - first_init;
  if (b->args.n != first_arg + n) {
    ir_rule_fail(c, "the block has %u arguments; %u initial values need %u", b->args.n, n,
                 first_arg + n);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    struct ir_type init = ir_type_of(c->m, c->n->in[first_init + i]);
    struct ir_type arg = ir_type_of(c->m, b->args.at[first_arg + i]);
    if (!ir_type_eq(init, arg))
      ir_rule_fail(c, "carried value %u starts as %s, its block argument is %s", i + 1,
                   ir_type_text(init, &x), ir_type_text(arg, &y));
  }
}

/* Are the three bounds of a loop of the type its stage allows? */
static bool check_bounds(struct ir_check *c) {
  struct ir_type_text a;
  struct ir_type t = ir_type_of(c->m, c->n->in[0]);
  bool machine = c->m->stage == IR_MACHINE_STAGE;
  bool ok = t.kind == IR_SCALAR &&
            (t.dtype == DT_INDEX || (machine && (t.dtype == DT_S32 || t.dtype == DT_S64)));
  if (!ok) {
    ir_rule_fail(c, "bounds must be %s scalars, not %s", machine ? "index, s32 or s64" : "index",
                 ir_type_text(t, &a));
    return false;
  }
  for (uint32_t i = 1; i < 3; i++)
    if (!ir_type_eq(ir_type_of(c->m, c->n->in[i]), t)) {
      ir_rule_fail(c, "lo, hi and step must be of one type");
      return false;
    }
  return true;
}

void ir_rule_for(struct ir_check *c) {
  struct ir_type_text a;
  if (c->n->n_in < 3) {
    ir_rule_fail(c, "needs lo, hi and step");
    return;
  }
  if (!check_bounds(c))
    return;
  struct ir_op step = ir_value_at(c->m, c->n->in[2])->def;
  if (step.id && ir_op_at(c->m, step)->opcode == IR_CONST &&
      ir_attr_int(c->m, step, IR_ATTR_value, 1) < 1)
    ir_rule_fail(c, "the step is %lld; it must be at least 1",
                 (long long)ir_attr_int(c->m, step, IR_ATTR_value, 1));
  const struct ir_blocknode *b = block_of(c, 0);
  if (!b->args.n || !ir_type_eq(ir_type_of(c->m, b->args.at[0]), ir_type_of(c->m, c->n->in[0])))
    ir_rule_fail(c, "the block's first argument must be the loop index, of type %s",
                 ir_type_text(ir_type_of(c->m, c->n->in[0]), &a));
  else
    check_loop_values(c, 3, b, 1);
  if (!check_carried(c, c->n->n_in - 3u, c->n->in + 3))
    return;
  if (c->n->n_out != c->n->n_in - 3) {
    ir_rule_fail(c, "has %u results for %u carried values", c->n->n_out, c->n->n_in - 3u);
    return;
  }
  for (uint32_t i = 0; i < c->n->n_out; i++)
    if (!ir_type_eq(ir_type_of(c->m, c->n->out[i]), ir_type_of(c->m, c->n->in[3 + i])))
      ir_rule_fail(c, "result %u is %s, the carried value %s", i + 1,
                   ir_type_text(ir_type_of(c->m, c->n->out[i]), &a),
                   ir_type_text(ir_type_of(c->m, c->n->in[3 + i]), &(struct ir_type_text){{0}}));
  check_yield(c, c->n->blocks[0], c->n->n_out, c->n->out, "the for");
  int64_t parts = ir_attr_int(c->m, c->op, IR_ATTR_parts, 1);
  if (parts < 1 || parts > IR_MAX_PARTS || (parts > 1 && ir_block_at(c->m, c->n->block)->parent.id))
    ir_rule_fail(c, "parts is %lld; it must be 1 to %d, and only in the kernel's own block more",
                 (long long)parts, IR_MAX_PARTS);
  const struct ir_opnode *before = ir_op_at(c->m, c->n->prev);
  if (ir_attr_int(c->m, c->op, IR_ATTR_follows, 0) &&
      (!c->n->prev.id || before->opcode != IR_FOR || before->n_in < 3 ||
       before->in[1].id != c->n->in[0].id || before->in[2].id != c->n->in[2].id))
    ir_rule_fail(c, "follows: right before it must stand a for that ends where it begins, of the "
                    "same step");
}

void ir_rule_if(struct ir_check *c) {
  struct ir_type_text a;
  struct ir_type t = ir_type_of(c->m, c->n->in[0]);
  if (!ir_type_eq(t, ir_scalar(DT_BOOL)))
    ir_rule_fail(c, "the condition must be a bool scalar, not %s", ir_type_text(t, &a));
  check_carried(c, c->n->n_out, c->n->out);
  for (uint32_t i = 0; i < 2; i++) {
    if (block_of(c, i)->args.n)
      ir_rule_fail(c, "blocks of an if take no arguments");
    check_yield(c, c->n->blocks[i], c->n->n_out, c->n->out, "the if");
  }
}

void ir_rule_while(struct ir_check *c) {
  struct ir_type_text a, b;
  const struct ir_blocknode *body = block_of(c, 1);
  check_loop_values(c, 0, block_of(c, 0), 0);
  if (!check_carried(c, c->n->n_in, c->n->in) || !check_carried(c, c->n->n_out, c->n->out))
    return;
  if (c->n->n_out != body->args.n)
    ir_rule_fail(c, "has %u results; its second block takes %u values", c->n->n_out, body->args.n);
  else
    for (uint32_t i = 0; i < c->n->n_out; i++)
      if (!ir_type_eq(ir_type_of(c->m, c->n->out[i]), ir_type_of(c->m, body->args.at[i])))
        ir_rule_fail(c, "result %u is %s, argument %u of the second block %s", i + 1,
                     ir_type_text(ir_type_of(c->m, c->n->out[i]), &a), i + 1,
                     ir_type_text(ir_type_of(c->m, body->args.at[i]), &b));
  const struct ir_opnode *cond = terminator(c, c->n->blocks[0], IR_CONDITION);
  struct ir_op at = block_of(c, 0)->last;
  if (cond && cond->n_in)
    check_passed(c, at, cond, 1, c->n->n_out, c->n->out, "the while");
  /* The block's arguments are the carried values. */
  check_yield(c, c->n->blocks[1], block_of(c, 0)->args.n, block_of(c, 0)->args.at, "the while");
}

/* The block computes from its arguments and from what there was before the loop: it may run in the
 * middle of the loop. */
static void check_merge_block(struct ir_check *c, struct ir_op loop) {
  for (struct ir_op o = block_of(c, 0)->first; o.id; o = ir_op_at(c->m, o)->next) {
    const struct ir_opnode *n = ir_op_at(c->m, o);
    uint32_t traits = ir_info(n->opcode)->traits;
    if (n->n_blocks || !(traits & (IR_PURE | IR_TERM)))
      ir_rule_fail_at(c, o, "a merge computes: no control flow, memory or effects");
    for (uint32_t i = 0; loop.id && i < n->n_in; i++) {
      struct ir_op def = ir_value_at(c->m, n->in[i])->def;
      if (!def.id || ir_op_at(c->m, def)->block.id != c->n->block.id)
        continue;
      struct ir_op at = ir_op_at(c->m, loop)->next; /* from the loop itself up to here */
      bool late = def.id == loop.id;
      for (; at.id && at.id != c->op.id; at = ir_op_at(c->m, at)->next)
        late |= at.id == def.id;
      if (late)
        ir_rule_fail_at(c, o, "operand %u is not there yet when parts of the loop are merged",
                        i + 1);
    }
  }
}

void ir_rule_merge(struct ir_check *c) {
  struct ir_type_text a, b;
  const struct ir_blocknode *block = block_of(c, 0);
  struct ir_op loop = ir_merge_loop(c->m, c->op);
  uint32_t n = c->n->n_in;
  if (!n || c->n->n_out != n || block->args.n != 2 * n) {
    ir_rule_fail(c, "has %u operands, %u results and %u block arguments; n, n and 2n are wanted", n,
                 c->n->n_out, block->args.n);
    return;
  }
  if (!check_carried(c, n, c->n->in))
    return;
  for (uint32_t i = 0; i < n; i++) {
    struct ir_type t = ir_type_of(c->m, c->n->in[i]);
    struct ir_op def = ir_value_at(c->m, c->n->in[i])->def;
    if (!ir_type_eq(t, ir_type_of(c->m, c->n->out[i])))
      ir_rule_fail(c, "result %u is %s, the operand %s", i + 1,
                   ir_type_text(ir_type_of(c->m, c->n->out[i]), &a), ir_type_text(t, &b));
    for (uint32_t k = i; k < 2 * n; k += n)
      if (!ir_type_eq(t, ir_type_of(c->m, block->args.at[k])))
        ir_rule_fail(c, "block argument %u is %s, the operand %s", k + 1,
                     ir_type_text(ir_type_of(c->m, block->args.at[k]), &a), ir_type_text(t, &b));
    if (def.id && ir_op_at(c->m, def)->opcode == IR_FOR && def.id != loop.id)
      ir_rule_fail(c, "takes results of two loops");
  }
  for (uint32_t k = 0; loop.id && k < ir_op_at(c->m, loop)->n_out; k++) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < n; i++)
      times += c->n->in[i].id == ir_op_at(c->m, loop)->out[k].id;
    if (times != 1)
      ir_rule_fail(c, "takes result %u of the loop %u times; each is taken once", k + 1, times);
  }
  if (loop.id && ir_op_at(c->m, loop)->block.id != c->n->block.id)
    ir_rule_fail(c, "the loop must stand in the same block");
  else
    check_merge_block(c, loop);
  check_yield(c, c->n->blocks[0], n, c->n->out, "the merge");
}

static const struct ir_opnode *parent_of(const struct ir_check *c) {
  struct ir_op p = ir_block_at(c->m, c->n->block)->parent;
  return p.id ? ir_op_at(c->m, p) : NULL;
}

void ir_rule_yield(struct ir_check *c) {
  const struct ir_opnode *p = parent_of(c);
  if (!p)
    ir_rule_fail(c, "ends blocks of for, if, while and merge; the kernel's body ends in `return`");
  else if (p->opcode == IR_WHILE && p->blocks[0].id == c->n->block.id)
    ir_rule_fail(c, "the first block of a while ends in `condition`");
}

void ir_rule_condition(struct ir_check *c) {
  struct ir_type_text a;
  const struct ir_opnode *p = parent_of(c);
  if (!p || p->opcode != IR_WHILE || p->blocks[0].id != c->n->block.id)
    ir_rule_fail(c, "ends the first block of a while, no other");
  else if (!c->n->n_in)
    ir_rule_fail(c, "needs the condition");
  else if (!ir_type_eq(ir_type_of(c->m, c->n->in[0]), ir_scalar(DT_BOOL)))
    ir_rule_fail(c, "the condition must be a bool scalar, not %s",
                 ir_type_text(ir_type_of(c->m, c->n->in[0]), &a));
}

void ir_rule_return(struct ir_check *c) {
  if (parent_of(c))
    ir_rule_fail(c, "ends the kernel's body; a nested block ends in `yield`");
}
