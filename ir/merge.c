/* Mergeable loops; see merge.h.
 *
 * A carried value is a sum if between the block's argument and what is yielded for it there is
 * nothing but ops that add to it, each the only use of what it adds to: also inside of a nested
 * loop or of both sides of a conditional. So for extremes. */
#include "ir/merge.h"

#include "base/check.h"
#include "ir/walk.h"

struct finder {
  const struct ir_module *m;
  enum ir_merge_kind kind; /* of the chain in hand; SAME until its first op */
};

/* Which use of v in block b, of ops of b itself and, by `inner`, inside of one of them. */
struct use {
  struct ir_op op;  /* of block b; 0: no use */
  uint32_t operand; /* of that op */
  bool inner, many;
};

static struct ir_op in_block(const struct ir_module *m, struct ir_op o, struct ir_block b) {
  while (o.id && ir_op_at(m, o)->block.id != b.id)
    o = ir_block_at(m, ir_op_at(m, o)->block)->parent;
  return o;
}

static struct use find_use(const struct ir_module *m, struct ir_val v, struct ir_block b) {
  struct use u = {{0}, 0, false, false};
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_walk_next(m, o, b)) {
    const struct ir_opnode *n = ir_op_at(m, o);
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (n->in[i].id != v.id)
        continue;
      struct ir_op user = in_block(m, o, b);
      bool inner = user.id != o.id;
      if (u.op.id && (u.op.id != user.id || !u.inner || !inner))
        u.many = true;
      u = (struct use){user, i, inner, u.many};
    }
  }
  return u;
}

static int32_t follow(struct finder *f, struct ir_val v, struct ir_block b);

/* The kind of chain that an op continues with v as its operand i; NONE: it does not. */
static enum ir_merge_kind kind_of(enum ir_opcode opcode, uint32_t i) {
  switch ((int)opcode) {
  case IR_ADD: return IR_MERGE_SUM;
  case IR_SUB: return i == 0 ? IR_MERGE_SUM : IR_MERGE_NONE;
  case IR_FMA:
  case IR_DOT: return i == 2 ? IR_MERGE_SUM : IR_MERGE_NONE;
  case IR_MAX: return IR_MERGE_MAX;
  case IR_MIN: return IR_MERGE_MIN;
  default: return IR_MERGE_NONE;
  }
}

/* Which result of an op with blocks goes on with the chain that enters it; -1: none. */
static int32_t through(struct finder *f, struct ir_val v, const struct ir_opnode *n,
                       const struct use *u) {
  if (n->opcode == IR_FOR && !u->inner && u->operand >= 3) {
    const struct ir_blocknode *body = ir_block_at(f->m, n->blocks[0]);
    int32_t k = follow(f, body->args.at[u->operand - 2], n->blocks[0]);
    return k == (int32_t)u->operand - 3 ? k : -1;
  }
  if (n->opcode == IR_MERGE && !u->inner)
    return (int32_t)u->operand; /* of a nested loop */
  if (n->opcode != IR_IF || !u->inner)
    return -1;
  int32_t x = follow(f, v, n->blocks[0]), y = x < 0 ? -1 : follow(f, v, n->blocks[1]);
  return x == y ? x : -1;
}

/* Follows v through block b: the number of the yielded value that it ends in, or -1. */
static int32_t follow(struct finder *f, struct ir_val v, struct ir_block b) {
  for (;;) {
    struct use u = find_use(f->m, v, b);
    if (!u.op.id || u.many)
      return -1;
    const struct ir_opnode *n = ir_op_at(f->m, u.op);
    if (n->opcode == IR_YIELD)
      return (int32_t)u.operand;
    if (n->n_blocks) {
      int32_t k = through(f, v, n, &u);
      if (k < 0)
        return -1;
      v = n->out[k];
      continue;
    }
    enum ir_merge_kind kind = kind_of(n->opcode, u.operand);
    if (kind == IR_MERGE_NONE || (f->kind != IR_MERGE_SAME && f->kind != kind))
      return -1;
    f->kind = kind;
    v = n->out[0];
  }
}

static bool is_number(const struct ir_module *m, struct ir_val v) {
  return ir_type_of(m, v).dtype != DT_BOOL;
}

static enum ir_merge_kind infer(const struct ir_module *m, const struct ir_opnode *loop,
                                uint32_t k) {
  const struct ir_blocknode *body = ir_block_at(m, loop->blocks[0]);
  struct ir_val arg = body->args.at[1 + k], init = loop->in[3 + k];
  struct ir_val end = ir_op_at(m, body->last)->in[k];
  if (end.id == arg.id || end.id == init.id)
    return IR_MERGE_SAME;
  struct finder f = {m, IR_MERGE_SAME};
  if (!is_number(m, arg) || follow(&f, arg, loop->blocks[0]) != (int32_t)k)
    return IR_MERGE_NONE;
  return f.kind == IR_MERGE_SAME ? IR_MERGE_NONE : f.kind;
}

static bool has_effect(const struct ir_module *m, struct ir_block b) {
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_walk_next(m, o, b))
    if (ir_info(ir_op_at(m, o)->opcode)->traits & (IR_WRITES | IR_EFFECT))
      return true;
  return false;
}

bool ir_find_merge(const struct ir_module *m, struct ir_op loop, struct ir_op merge,
                   struct arena *a, struct ir_merge *out) {
  const struct ir_opnode *n = ir_op_at(m, loop);
  KILN_ASSERT(n->opcode == IR_FOR);
  *out = (struct ir_merge){loop, merge, n->n_out, NULL};
  out->kind = ARENA_ARRAY(a, enum ir_merge_kind, n->n_out + 1);
  bool all = n->n_out > 0 && !has_effect(m, n->blocks[0]);
  for (uint32_t k = 0; k < n->n_out; k++) {
    out->kind[k] = merge.id ? IR_MERGE_CUSTOM : infer(m, n, k);
    all = all && out->kind[k] != IR_MERGE_NONE;
  }
  return all;
}

struct ir_op ir_merge_loop(const struct ir_module *m, struct ir_op merge) {
  const struct ir_opnode *n = ir_op_at(m, merge);
  for (uint32_t i = 0; i < n->n_in; i++) {
    struct ir_op def = ir_value_at(m, n->in[i])->def;
    if (def.id && ir_op_at(m, def)->opcode == IR_FOR)
      return def;
  }
  return (struct ir_op){0};
}

/* ---- merge ops ---- */

/* The op that merges two parts of a value. */
static struct ir_val merged(struct ir_builder *b, enum ir_merge_kind kind, struct ir_val p,
                            struct ir_val q) {
  struct ir_val in[2] = {p, q};
  enum ir_opcode opcode = kind == IR_MERGE_SUM ? IR_ADD : kind == IR_MERGE_MAX ? IR_MAX : IR_MIN;
  return kind == IR_MERGE_SAME ? p : ir_build1(b, opcode, ir_type_of(b->m, p), 2, in);
}

static void add_merge(struct ir_module *m, struct ir_merge *x) {
  const struct ir_opnode *loop = ir_op_at(m, x->loop);
  struct ir_op next = loop->next;
  struct ir_builder b = {m, loop->block, next, loop->loc};
  struct ir_type *t = ARENA_ARRAY(m->arena, struct ir_type, x->n);
  struct ir_val *out = ARENA_ARRAY(m->arena, struct ir_val, x->n);
  for (uint32_t k = 0; k < x->n; k++) {
    out[k] = loop->out[k];
    t[k] = ir_type_of(m, out[k]);
  }
  struct ir_op o = x->merge = ir_build(&b, IR_MERGE, x->n, out, x->n, t);
  b.block = ir_op_at(m, o)->blocks[0];
  b.before = (struct ir_op){0};
  for (uint32_t k = 0; k < 2 * x->n; k++)
    ir_add_arg(m, b.block, t[k % x->n]);
  struct ir_val *y = ARENA_ARRAY(m->arena, struct ir_val, x->n);
  for (uint32_t k = 0; k < x->n; k++) {
    struct ir_val p = ir_block_at(m, b.block)->args.at[k];
    struct ir_val q = ir_block_at(m, b.block)->args.at[x->n + k];
    y[k] = merged(&b, x->kind[k], p, q);
  }
  ir_build(&b, IR_YIELD, x->n, y, 0, NULL);
  /* Uses of the loop's results behind the op are now of the op's. */
  for (uint32_t k = 0; k < x->n; k++) {
    ir_replace_uses(m, out[k], ir_op_at(m, o)->out[k]);
    ir_op_at(m, o)->in[k] = out[k];
  }
}

struct found {
  struct ir_merges *out;
  struct ir_op *merge_of; /* by op: the merge op behind a loop */
};

static void note_merge(void *user, struct ir_module *m, struct ir_op o) {
  struct found *f = user;
  if (ir_op_at(m, o)->opcode == IR_MERGE)
    f->merge_of[ir_merge_loop(m, o).id] = o;
}

static void note_loop(void *user, struct ir_module *m, struct ir_op o) {
  struct found *f = user;
  struct ir_merge x;
  if (ir_op_at(m, o)->opcode == IR_FOR && ir_find_merge(m, o, f->merge_of[o.id], f->out->arena, &x))
    VEC_PUSH(f->out->arena, &f->out->list, x);
}

void ir_add_merges(struct ir_module *m, struct ir_merges *out) {
  struct found f = {out, ARENA_ARRAY(out->arena, struct ir_op, m->ops.n)};
  ir_walk(m, m->body, note_merge, &f);
  ir_walk(m, m->body, note_loop, &f);
  for (uint32_t i = 0; i < out->list.n; i++)
    if (!out->list.at[i].merge.id)
      add_merge(m, &out->list.at[i]);
}

void ir_drop_merges(struct ir_module *m) {
  struct ir_op next;
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id; o = next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (n->opcode != IR_MERGE) {
      next = ir_walk_next(m, o, m->body);
      continue;
    }
    next = n->next;
    for (uint32_t k = 0; k < n->n_out; k++)
      ir_replace_uses(m, n->out[k], n->in[k]);
    ir_remove(m, o);
  }
}

bool ir_has_merge(const struct ir_module *m) {
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id; o = ir_walk_next(m, o, m->body))
    if (ir_op_at(m, o)->opcode == IR_MERGE)
      return true;
  return false;
}
