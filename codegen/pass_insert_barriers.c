/* Barriers between threads that hand each other data.
 *
 * Before: buffers placed. After: between a write to shared memory and a read of the same bytes by
 * other threads, and between a read and the write that follows it, lies a barrier; the same for
 * tensors that a program both stores to and loads from. Copies that a pipe counts become visible by
 * the pipe's wait and the barrier after it; a ring of two slots and more orders its own reads and
 * writes (lower_loop.c says how), so that only other buffers' accesses to its bytes count here.
 *
 * The state is, per buffer and tensor, whether there was a write or a read since the last barrier.
 * Loops are walked twice: the second time with what the first left behind. Conditions are the same
 * for all threads of a block wherever a branch holds a barrier, so branches need no more than the
 * union of both sides. */
#include "base/check.h"
#include "codegen/pass.h"
#include "codegen/recipe.h"
#include "ir/resource.h"

enum { WROTE = 1, READ = 2 };

struct sync {
  struct ir_module *m;
  struct arena *a;
  uint32_t n; /* resources, then params (tensors) */
  uint8_t *state;
  bool *written_tensor; /* per param: is it stored to? */
};

static uint32_t n_slots(const struct ir_module *m, uint32_t res) {
  return (uint32_t)cg_res_int(&m->res.at[res], IR_ATTR_slots, 1);
}

/* The parameter a pointer comes from. */
static uint32_t root_param(const struct ir_module *m, struct ir_val ptr) {
  while (ir_value_at(m, ptr)->def.id)
    ptr = ir_op_at(m, ir_value_at(m, ptr)->def)->in[0];
  return ir_value_at(m, ptr)->index;
}

static bool share_bytes(const struct ir_module *m, uint32_t a, uint32_t b) {
  if (a == b)
    return true;
  if (a >= m->res.n || b >= m->res.n || m->res.at[a].kind != IR_RES_BUF ||
      m->res.at[b].kind != IR_RES_BUF)
    return false;
  const struct ir_res *x = &m->res.at[a], *y = &m->res.at[b];
  int64_t ax = cg_res_int(x, IR_ATTR_offset, 0), ay = cg_res_int(y, IR_ATTR_offset, 0);
  return ax < ay + cg_res_int(y, IR_ATTR_bytes, 0) && ay < ax + cg_res_int(x, IR_ATTR_bytes, 0);
}

/* Must a barrier come before an access? */
static bool conflicts(const struct sync *s, uint32_t what, uint8_t access) {
  for (uint32_t i = 1; i < s->n; i++) {
    if (!s->state[i] || !share_bytes(s->m, what, i))
      continue;
    bool own_ring = i == what && what < s->m->res.n && n_slots(s->m, what) > 1;
    if (own_ring)
      continue;
    if ((access == READ && (s->state[i] & WROTE)) || (access == WROTE && (s->state[i] & READ)) ||
        (access == WROTE && i != what && (s->state[i] & WROTE)))
      return true;
  }
  return false;
}

static void barrier_before(struct sync *s, struct ir_op o) {
  /* Not inside a loop over registers, which is unrolled, nor a branch inside one. */
  struct ir_op at = o;
  for (struct ir_op p = o; p.id; p = ir_block_at(s->m, ir_op_at(s->m, p)->block)->parent)
    if (ir_op_at(s->m, p)->opcode == IR_EACH)
      at = p;
  struct ir_builder b = {
      .m = s->m, .block = ir_op_at(s->m, at)->block, .before = at, .loc = ir_op_at(s->m, at)->loc};
  ir_build(&b, IR_BARRIER, 0, NULL, 0, NULL);
  memset(s->state, 0, s->n);
}

static void access(struct sync *s, struct ir_op o, uint32_t what, uint8_t kind) {
  if (conflicts(s, what, kind))
    barrier_before(s, o);
  s->state[what] |= kind;
}

static void visit(struct sync *s, struct ir_op o) {
  struct ir_module *m = s->m;
  const struct ir_opnode copy = *ir_op_at(m, o), *n = &copy; /* the table of ops may move */
  uint32_t param;
  switch ((int)n->opcode) {
  case IR_BARRIER: memset(s->state, 0, s->n); return;
  case IR_PIPE_WAIT: {
    struct ir_op next = n->next;
    if (next.id && ir_op_at(m, next)->opcode == IR_BARRIER)
      return; /* from the first walk over this loop */
    struct ir_builder b = {.m = m, .block = n->block, .before = next, .loc = n->loc};
    ir_build(&b, IR_BARRIER, 0, NULL, 0, NULL);
    return;
  }
  case IR_GLOAD:
    param = root_param(m, n->in[0]);
    if (s->written_tensor[param])
      access(s, o, m->res.n + param, READ);
    return;
  case IR_GSTORE: access(s, o, m->res.n + root_param(m, n->in[0]), WROTE); return;
  default: break;
  }
  for (uint32_t i = 0; i < n->n_res; i++) {
    uint8_t what = m->res.at[n->res[i]].kind == IR_RES_BUF ? ir_res_access(n, i) : 0;
    if (what & IR_ACCESS_READ)
      access(s, o, n->res[i], READ);
    if (what & IR_ACCESS_WRITE)
      access(s, o, n->res[i], WROTE);
  }
}

static void walk(struct sync *s, struct ir_block b);

static void walk_op(struct sync *s, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(s->m, o);
  visit(s, o);
  if (n.opcode == IR_IF) {
    uint8_t *before = arena_copy(s->a, s->state, s->n);
    walk(s, n.blocks[0]);
    uint8_t *after = arena_copy(s->a, s->state, s->n);
    memcpy(s->state, before, s->n);
    walk(s, n.blocks[1]);
    for (uint32_t i = 0; i < s->n; i++)
      s->state[i] |= after[i];
    return;
  }
  bool loops = n.opcode == IR_FOR || n.opcode == IR_WHILE || n.opcode == IR_EACH;
  uint8_t *before = loops ? arena_copy(s->a, s->state, s->n) : NULL;
  for (int round = 0; round < (loops ? 2 : 1); round++)
    for (uint32_t i = 0; i < n.n_blocks; i++)
      walk(s, n.blocks[i]);
  /* A loop may run no iteration at all. */
  for (uint32_t i = 0; loops && n.opcode != IR_EACH && i < s->n; i++)
    s->state[i] |= before[i];
}

static void walk(struct sync *s, struct ir_block b) {
  for (struct ir_op o = ir_block_at(s->m, b)->first; o.id; o = ir_op_at(s->m, o)->next)
    walk_op(s, o);
}

bool cg_pass_insert_barriers(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct sync s = {.m = m, .a = ctx->scratch, .n = m->res.n + m->params.n};
  s.state = ARENA_ARRAY(s.a, uint8_t, s.n + 1);
  s.written_tensor = ARENA_ARRAY(s.a, bool, m->params.n + 1);
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->opcode == IR_GSTORE)
      s.written_tensor[root_param(m, ir_op_at(m, o)->in[0])] = true;
  walk(&s, m->body);
  *changed = true;
  return true;
}
