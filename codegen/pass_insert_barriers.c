/* Barriers between threads that hand each other data.
 *
 * Before: buffers placed. After: between a write to shared memory and a read of the same bytes by
 * other threads, and between a read and the write that follows it, lies a barrier; the same for
 * tensors that a program both stores to and loads from, and between stores and atomics whose order
 * shows. Copies that a pipe counts become visible by the pipe's wait and the barrier after it; a
 * ring of two slots and more orders its own reads and writes (lower_loop.c says how), so that only
 * other buffers' accesses to its bytes count here.
 *
 * The state is, per buffer and tensor, whether there was a write or a read since the last barrier.
 * Loops are walked twice: the second time with what the first left behind. Conditions are the same
 * for all threads of a block wherever a branch holds a barrier, so branches need no more than the
 * union of both sides. */
#include "base/check.h"
#include "codegen/pass.h"
#include "codegen/recipe.h"
#include "ir/resource.h"

/* APART: wrote, but nothing that another store writes. */
enum { WROTE = 1, READ = 2, ATOMIC = 4, APART = 8 };

/* Where an access stands: the loop over registers around it, or the op; and in which turn of the
 * loops around that. One tile op's accesses are at one place. */
struct place {
  uint32_t unit, turn;
};

/* The atomics on a tensor since the last barrier. */
struct atomics {
  uint32_t kind;
  struct place at;
  bool blind;
};

struct sync {
  struct ir_module *m;
  struct arena *a;
  uint32_t n_res; /* resources, without a barrier that this pass adds */
  uint32_t n;     /* these, then params (tensors) */
  uint8_t *state;
  bool *written_tensor;    /* per param: is it written to? */
  struct atomics *atomics; /* per state */
  struct place *wrote;     /* per state: the last write that is not apart */
  uint32_t turn;
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

static bool share_bytes(const struct sync *s, uint32_t a, uint32_t b) {
  const struct ir_module *m = s->m;
  if (a == b)
    return true;
  if (a >= s->n_res || b >= s->n_res || m->res.at[a].kind != IR_RES_BUF ||
      m->res.at[b].kind != IR_RES_BUF)
    return false;
  const struct ir_res *x = &m->res.at[a], *y = &m->res.at[b];
  int64_t ax = cg_res_int(x, IR_ATTR_offset, 0), ay = cg_res_int(y, IR_ATTR_offset, 0);
  return ax < ay + cg_res_int(y, IR_ATTR_bytes, 0) && ay < ax + cg_res_int(x, IR_ATTR_bytes, 0);
}

/* Must a barrier come before an access? */
static bool conflicts(const struct sync *s, uint32_t what, uint8_t access) {
  for (uint32_t i = 1; i < s->n; i++) {
    if (!s->state[i] || !share_bytes(s, what, i))
      continue;
    bool own_ring = i == what && what < s->n_res && n_slots(s->m, what) > 1;
    if (own_ring)
      continue;
    if (s->state[i] & ATOMIC)
      return true;
    if ((access == READ && (s->state[i] & (WROTE | APART))) ||
        (access == WROTE && (s->state[i] & READ)) ||
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
  cg_put_barrier(&b);
  memset(s->state, 0, s->n);
}

static void access(struct sync *s, struct ir_op o, uint32_t what, uint8_t kind) {
  if (conflicts(s, what, kind))
    barrier_before(s, o);
  s->state[what] |= kind;
}

static struct place place_of(const struct sync *s, struct ir_op o) {
  struct place at = {.turn = s->turn};
  for (struct ir_op p = o; p.id; p = ir_block_at(s->m, ir_op_at(s->m, p)->block)->parent)
    if (p.id == o.id || ir_op_at(s->m, p)->opcode == IR_EACH)
      at.unit = p.id;
  return at;
}

static bool same_place(struct place a, struct place b) {
  return a.unit && a.unit == b.unit && a.turn == b.turn;
}

/* Stores to a tensor come in the order of the program where they may meet. */
static void access_store(struct sync *s, struct ir_op o, uint32_t what) {
  bool apart = ir_attr_int(s->m, o, IR_ATTR_apart, 0) != 0;
  struct place at = place_of(s, o);
  uint8_t state = s->state[what];
  bool meets = (state & WROTE) && !same_place(at, s->wrote[what]);
  if ((state & (READ | ATOMIC)) || meets || (!apart && (state & APART)))
    barrier_before(s, o);
  s->state[what] |= apart ? APART : WROTE;
  if (!apart)
    s->wrote[what] = at;
}

/* Atomics on a tensor come in the order of the program, each as one, its elements in any order: a
 * barrier between two, but where no one sees the order: of one kind, and old values unwanted. */
static void access_atomic(struct sync *s, struct ir_op o, uint32_t what) {
  struct ir_module *m = s->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct atomics now = {.kind = ir_get_attr(m, o, IR_ATTR_kind)->s.id, .at = place_of(s, o)};
  now.blind = n->n_out == 0 && !str_eq(ir_sym(m, ir_get_attr(m, o, IR_ATTR_kind)->s), "exchange");
  const struct atomics *was = &s->atomics[what];
  bool same = same_place(was->at, now.at);
  bool any_order = was->blind && now.blind && was->kind == now.kind;
  uint8_t state = s->state[what];
  if ((state & (WROTE | READ | APART)) || ((state & ATOMIC) && !same && !any_order))
    barrier_before(s, o);
  s->state[what] |= ATOMIC;
  s->atomics[what] = now;
}

static void visit(struct sync *s, struct ir_op o) {
  struct ir_module *m = s->m;
  const struct ir_opnode copy = *ir_op_at(m, o), *n = &copy; /* the table of ops may move */
  uint32_t param;
  switch ((int)n->opcode) {
  case IR_BARRIER:
  case IR_BAR_SYNC:
    if (cg_is_barrier(m, o))
      memset(s->state, 0, s->n);
    return;
  case IR_PIPE_WAIT: {
    struct ir_op next = n->next;
    if (next.id && cg_is_barrier(m, next))
      return; /* from the first walk over this loop */
    struct ir_builder b = {.m = m, .block = n->block, .before = next, .loc = n->loc};
    cg_put_barrier(&b);
    return;
  }
  case IR_GLOAD:
    param = root_param(m, n->in[0]);
    if (s->written_tensor[param])
      access(s, o, s->n_res + param, READ);
    return;
  case IR_GSTORE: access_store(s, o, s->n_res + root_param(m, n->in[0])); return;
  case IR_GATOMIC: access_atomic(s, o, s->n_res + root_param(m, n->in[0])); return;
  default: break;
  }
  for (uint32_t i = 0; i < n->n_res; i++) {
    const struct ir_res *r = &m->res.at[n->res[i]];
    /* What the asynchronous proxy touches has its own order: pipes, named barriers. */
    bool ours = r->kind == IR_RES_BUF && !ir_res_attr(r, IR_ATTR_swizzle_bytes);
    uint8_t what = ours ? ir_res_access(n, i) : 0;
    if (what & IR_ACCESS_READ)
      access(s, o, n->res[i], READ);
    if (what & IR_ACCESS_WRITE)
      access(s, o, n->res[i], WROTE);
  }
}

/* A state to come back to, or to join with what another way leaves behind. */
struct saved {
  uint8_t *state;
  struct atomics *atomics;
  struct place *wrote;
};

static struct saved save(const struct sync *s) {
  return (struct saved){arena_copy(s->a, s->state, s->n),
                        arena_copy(s->a, s->atomics, s->n * sizeof *s->atomics),
                        arena_copy(s->a, s->wrote, s->n * sizeof *s->wrote)};
}

static void restore(struct sync *s, const struct saved *x) {
  memcpy(s->state, x->state, s->n);
  memcpy(s->atomics, x->atomics, s->n * sizeof *s->atomics);
  memcpy(s->wrote, x->wrote, s->n * sizeof *s->wrote);
}

static void merge(struct sync *s, const struct saved *other) {
  for (uint32_t i = 0; i < s->n; i++) {
    struct atomics *x = &s->atomics[i];
    const struct atomics *y = &other->atomics[i];
    uint8_t state = s->state[i], more = other->state[i];
    bool any_order = x->blind && y->blind && x->kind == y->kind;
    if (!(state & ATOMIC))
      *x = *y;
    else if ((more & ATOMIC) && !same_place(x->at, y->at) && !any_order)
      *x = (struct atomics){0}; /* at no place: in order with all that follows */
    if (!(state & WROTE))
      s->wrote[i] = other->wrote[i];
    else if ((more & WROTE) && !same_place(s->wrote[i], other->wrote[i]))
      s->wrote[i] = (struct place){0};
    s->state[i] |= more;
  }
}

static void walk(struct sync *s, struct ir_block b);

static void walk_op(struct sync *s, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(s->m, o);
  visit(s, o);
  if (n.opcode == IR_IF) {
    struct saved before = save(s);
    walk(s, n.blocks[0]);
    struct saved after = save(s);
    restore(s, &before);
    walk(s, n.blocks[1]);
    merge(s, &after);
    return;
  }
  bool loops = n.opcode == IR_FOR || n.opcode == IR_WHILE || n.opcode == IR_EACH;
  struct saved before = {0};
  if (loops)
    before = save(s);
  for (int round = 0; round < (loops ? 2 : 1); round++) {
    s->turn += n.opcode == IR_FOR || n.opcode == IR_WHILE;
    for (uint32_t i = 0; i < n.n_blocks; i++)
      walk(s, n.blocks[i]);
  }
  /* A loop may run no iteration at all. */
  if (loops && n.opcode != IR_EACH)
    merge(s, &before);
}

static void walk(struct sync *s, struct ir_block b) {
  for (struct ir_op o = ir_block_at(s->m, b)->first; o.id; o = ir_op_at(s->m, o)->next)
    walk_op(s, o);
}

bool cg_pass_insert_barriers(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct sync s = {.m = m, .a = ctx->scratch, .n_res = m->res.n, .n = m->res.n + m->params.n};
  s.state = ARENA_ARRAY(s.a, uint8_t, s.n + 1);
  s.written_tensor = ARENA_ARRAY(s.a, bool, m->params.n + 1);
  s.atomics = ARENA_ARRAY(s.a, struct atomics, s.n + 1);
  s.wrote = ARENA_ARRAY(s.a, struct place, s.n + 1);
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->opcode == IR_GSTORE || ir_op_at(m, o)->opcode == IR_GATOMIC)
      s.written_tensor[root_param(m, ir_op_at(m, o)->in[0])] = true;
  walk(&s, m->body);
  *changed = true;
  return true;
}
