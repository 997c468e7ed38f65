/* Loops whose loads run ahead of the dots they feed: a ring of slots in shared memory.
 *
 * With S slots, iteration i computes on slot i % S while the copies for iterations up to i + S - 1
 * are on their way. Each thread counts its copies in groups, one per iteration, empty groups too,
 * so that "at most S - 2 groups open" means "mine for this iteration have landed" in every
 * iteration.
 *
 *   prologue    for s < S - 1: copies for iteration s into slot s; commit
 *   loop        wait(S - 2); barrier        all threads' copies for i have landed, and all threads
 *               copies for i + S - 1        are done with slot (i - 1) % S, which these overwrite
 *               commit; compute on slot i % S
 *
 * One barrier an iteration is enough: a slot's readers of iteration i - 1 are before the barrier of
 * iteration i, its writers after. In a loop that does nothing but one dot, the fragments of an
 * iteration's first step are loaded before the last step of the iteration before multiplies; the
 * wait and the barrier then stand before that last step, and the order of slots is the same.
 *
 * Loops that follow each other (pass_peel_loops.c) share the ring: it is filled before the first of
 * them, the slots go on from loop to loop, and copies run ahead over the ends of loops. Where a
 * loop leaves out the check of an edge that a later one makes, it ends S - 1 iterations early, so
 * that none of its copies are the later one's; the later one does these iterations too. */
#include "base/check.h"
#include "codegen/lower.h"
#include "codegen/schedule.h"

/* A load that runs ahead. */
struct ahead {
  struct ir_op load;
  struct cg_smem *smem;
  /* Where one offset is the loop's index and the others do not change in the loop: that dim, and
   * the copy for index 0, its pointers computed before the loop. Else -1. */
  int k_dim;
  struct cg_copy copy;
  int64_t masks[IR_MAX_RANK]; /* edges to check in this loop */
  int64_t all[IR_MAX_RANK];   /* in any of the loops that share the ring */
};

struct ring {
  struct ir_op loop;
  struct ir_block body; /* scheduled */
  uint32_t slots, pipe;
  struct ir_val lo, hi, step, index; /* index: the scheduled loop's */
  struct ir_val end;                 /* hi of the last loop that shares the ring */
  VEC(struct ahead) loads;
  struct ir_val read, write; /* slots, where the loop begins */
  bool dots;                 /* the loops do nothing but one dot; `ahead`: whose first fragments */
  bool ahead;                /* are loaded an iteration before */
  struct cg_dot dot;
};

static struct ir_val shifted(struct lower *l, const struct ring *x, struct ir_val v,
                             struct ir_val at);

/* View v of the loop's body with the loop index replaced by `at`. */
static const struct cg_view *shifted_view(struct lower *l, const struct ring *x, struct ir_val v,
                                          struct ir_val at) {
  struct ir_op def = ir_value_at(l->m, v)->def;
  if (!def.id || ir_op_at(l->m, def)->block.id != x->body.id)
    return cg_view_at(l, v);
  const struct ir_opnode n = *ir_op_at(l->m, def);
  struct ir_val in[2 * IR_MAX_RANK];
  for (uint32_t i = 1; i < n.n_in; i++)
    in[i - 1] = shifted(l, x, n.in[i], at);
  return cg_make_view(l, def, shifted_view(l, x, n.in[0], at), in);
}

/* Value v, the same. */
static struct ir_val shifted(struct lower *l, const struct ring *x, struct ir_val v,
                             struct ir_val at) {
  struct ir_module *m = l->m;
  if (v.id == x->index.id)
    return at;
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id || ir_op_at(m, def)->block.id != x->body.id)
    return cg_scalar(l, v);
  struct ir_val in[3] = {{0}};
  uint32_t n = ir_op_at(m, def)->n_in;
  if (ir_op_at(m, def)->opcode == IR_CONST)
    return cg_index(l, ir_attr_int(m, def, IR_ATTR_value, 0));
  if (ir_op_at(m, def)->opcode == IR_DIM) {
    const struct cg_view *view = shifted_view(l, x, ir_op_at(m, def)->in[0], at);
    return cg_view_size(l, &view->dim[ir_attr_int(m, def, IR_ATTR_axis, 0)]);
  }
  for (uint32_t i = 0; i < n; i++)
    in[i] = shifted(l, x, ir_op_at(m, def)->in[i], at);
  return cg_scalar_op(l, def, in);
}

/* The one dim whose offset is the loop's index, if the others and the view are the same in every
 * iteration, and the dim has a stride. */
static int index_dim(struct lower *l, const struct ring *x, struct ir_op load) {
  int k = -1;
  struct ir_val view = ir_op_at(l->m, load)->in[0];
  struct ir_op made = ir_value_at(l->m, view)->def;
  if (made.id && ir_op_at(l->m, made)->block.id == x->body.id)
    return -1;
  for (uint32_t i = 1; i < ir_op_at(l->m, load)->n_in; i++) {
    struct ir_val v = ir_op_at(l->m, load)->in[i];
    struct ir_op def = ir_value_at(l->m, v)->def;
    if (v.id == x->index.id && k < 0)
      k = (int)i - 1;
    else if (v.id == x->index.id || (def.id && ir_op_at(l->m, def)->block.id == x->body.id))
      return -1;
  }
  return k >= 0 && cg_view_at(l, view)->dim[k].div == 1 ? k : -1;
}

static struct ahead open_ahead(struct lower *l, const struct ring *x, struct ir_op load) {
  struct ahead a = {.load = load, .smem = cg_smem_for_load(l, load, x->slots, x->pipe)};
  a.k_dim = index_dim(l, x, load);
  struct cg_access s = cg_access_shape(l, load);
  memcpy(a.masks, s.masks, sizeof a.masks);
  memcpy(a.all, s.masks, sizeof a.all);
  if (a.k_dim < 0)
    return a;
  s.view = cg_view_at(l, ir_op_at(l->m, load)->in[0]);
  s.masks[a.k_dim] = 0;
  for (uint32_t d = 0; d < s.rank; d++)
    s.offset[d] =
        (int)d == a.k_dim ? cg_index(l, 0) : cg_scalar(l, ir_op_at(l->m, load)->in[1 + d]);
  cg_bind_access(l, &s);
  a.copy = cg_open_copy(l, &s, a.smem);
  return a;
}

/* The copy of a load for loop index `at`, with the edges to check. */
static struct cg_copy copy_at(struct lower *l, const struct ring *x, const struct ahead *a,
                              struct ir_val at, const int64_t *masks) {
  struct ir_module *m = l->m;
  l->b.loc = ir_op_at(m, a->load)->loc;
  if (a->k_dim < 0) {
    struct cg_access s = cg_access_shape(l, a->load);
    s.view = shifted_view(l, x, ir_op_at(m, a->load)->in[0], at);
    for (uint32_t d = 0; d < s.rank; d++)
      s.offset[d] = shifted(l, x, ir_op_at(m, a->load)->in[1 + d], at);
    memcpy(s.masks, masks, sizeof s.masks);
    cg_bind_access(l, &s);
    return cg_open_copy(l, &s, a->smem);
  }
  struct cg_copy c = a->copy;
  struct ir_val by = cg_mul(l, at, c.x.view->dim[a->k_dim].stride);
  c.p.ptr = ir_build1(&l->b, IR_PTR_ADD, ir_type_of(m, c.p.ptr), 2, (struct ir_val[]){c.p.ptr, by});
  c.x.masks[a->k_dim] = masks[a->k_dim];
  c.x.offset[a->k_dim] = at;
  cg_bind_edges(l, &c.x, (uint32_t)a->k_dim);
  return c;
}

/* Is there an iteration with this index? */
static struct ir_val is_iteration(struct lower *l, const struct ring *x, struct ir_val at) {
  return cg_cmp(l, IR_LT, at, x->end);
}

/* Copies what iteration `at` needs into slot `slot`; commits. fills: it may be one of any of the
 * loops that share the ring. */
static void issue(struct lower *l, const struct ring *x, struct ir_val at, struct ir_val slot,
                  bool fills) {
  struct ir_val mask = is_iteration(l, x, at);
  for (uint32_t i = 0; i < x->loads.n; i++) {
    const struct ahead *a = &x->loads.at[i];
    struct cg_copy c = copy_at(l, x, a, at, fills ? a->all : a->masks);
    cg_copy_all(l, &c, cg_muli(l, slot, c.s->slot_bytes), mask);
  }
  cg_commit(l, x->pipe);
}

/* The prologue, as one rolled loop: the copies are much code. */
static void fill_ring(struct lower *l, const struct ring *x) {
  struct ir_val s, bounds[3] = {cg_s32(l, 0), cg_s32(l, x->slots - 1), cg_s32(l, 1)};
  if (x->slots == 2) {
    issue(l, x, x->lo, cg_s32(l, 0), true);
    return;
  }
  struct ir_op loop = cg_open_for(l, bounds, 0, NULL, &s, NULL);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(l->m, loop)->blocks[0]);
  issue(l, x, cg_add(l, x->lo, cg_mul(l, x->step, cg_cast(l, s, DT_INDEX))), s, true);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
}

static void bind_slots(struct lower *l, const struct ring *x, struct ir_val slot) {
  for (uint32_t i = 0; i < x->loads.n; i++) {
    struct cg_lval *v = &l->val[ir_op_at(l->m, x->loads.at[i].load)->out[0].id];
    v->kind = CG_LV_SMEM;
    v->smem = x->loads.at[i].smem;
    v->scalar = cg_muli(l, slot, v->smem->slot_bytes);
  }
}

static struct ir_val next_slot(struct lower *l, const struct ring *x, struct ir_val slot) {
  struct ir_val next = cg_addi(l, slot, 1);
  struct ir_val wraps = cg_cmp(l, IR_EQ, next, cg_s32(l, x->slots));
  return cg_select(l, wraps, cg_s32(l, 0), next);
}

static bool is_ahead(const struct ring *x, struct ir_op o) {
  for (uint32_t i = 0; i < x->loads.n; i++)
    if (x->loads.at[i].load.id == o.id)
      return true;
  return false;
}

/* The one dot of a loop that does nothing else, if its first fragments can be loaded ahead: its
 * steps must alternate between the two halves of a fragment across iterations. */
static struct ir_op only_dot(struct lower *l, const struct ring *x, const struct cg_carried *c) {
  struct ir_module *m = l->m;
  struct ir_op dot = {0};
  const struct ir_op none = {0};
  IR_EACH_OP (m, x->body, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (n->opcode == IR_DOT && !dot.id) {
      struct ir_op a = cg_trace_operand(m, n->in[0]).load, b = cg_trace_operand(m, n->in[1]).load;
      if (!cg_mma_of(m, o) || !a.id || !b.id || !is_ahead(x, a) || !is_ahead(x, b))
        return none;
      dot = o;
    } else if (n->opcode != IR_YIELD && !is_ahead(x, o)) {
      bool scalar = n->n_out == 1 && ir_type_of(m, n->out[0]).kind == IR_SCALAR &&
                    cg_is_elementwise(n->opcode);
      bool view = (n->opcode == IR_TRANSPOSE || n->opcode == IR_RESHAPE) &&
                  cg_is_smem_only(m, &l->uses, n->out[0]);
      bool made_again = ir_is_view_op(n->opcode) || n->opcode == IR_DIM;
      if (!scalar && !view && !made_again && n->opcode != IR_CONST)
        return none;
    }
  }
  /* It must accumulate what the loop carries: then its accumulator is there before the loop is. */
  if (!dot.id || c->n != 1 || ir_op_at(m, dot)->in[2].id != c->args[0].id ||
      l->uses.count[c->args[0].id] != 1 || c->yields[0].id != ir_op_at(m, dot)->out[0].id)
    return none;
  return dot;
}

static void lower_body(struct lower *l, const struct ring *x, struct ir_val k, struct ir_val read,
                       struct ir_val write) {
  cg_wait(l, x->pipe, x->slots - 2);
  issue(l, x, cg_add(l, k, cg_muli(l, x->step, x->slots - 1)), write, false);
  bind_slots(l, x, read);
  IR_EACH_OP (l->m, x->body, o) {
    if (!(ir_info(ir_op_at(l->m, o)->opcode)->traits & IR_TERM) && !is_ahead(x, o))
      cg_lower_op(l, o);
  }
}

/* All steps of the loop's one dot but the last; with them, load by load, the copies for iteration
 * `at` into slot `write`. The fragments of step 0 are there. */
static void lower_steps(struct lower *l, const struct ring *x, struct cg_dot *d, struct ir_val at,
                        struct ir_val write) {
  uint32_t steps = cg_mma_steps(d);
  struct ir_val mask = is_iteration(l, x, at);
  for (uint32_t i = 0; i < x->loads.n || i + 1 < steps; i++) {
    struct cg_copy c;
    struct cg_overlap o = {.mask = mask};
    if (i < x->loads.n) {
      c = copy_at(l, x, &x->loads.at[i], at, x->loads.at[i].masks);
      o.slot = cg_muli(l, write, c.s->slot_bytes);
      o.c = &c;
    }
    if (i + 1 < steps) {
      struct ir_val next = cg_s32(l, i + 1);
      cg_mma_overlap(l, d, cg_s32(l, i), next, &o);
    } else {
      cg_copy_all(l, &c, o.slot, mask);
    }
  }
  cg_commit(l, x->pipe);
}

/* The loop's one dot, each iteration by itself. The wait for the next iteration's data stands
 * before the last step, whose fragments are loaded by then: it runs while the threads meet
 * again. */
static void lower_dot_plain(struct lower *l, const struct ring *x, struct cg_dot *d,
                            struct ir_val at, struct ir_val read, struct ir_val write) {
  bind_slots(l, x, read);
  cg_move_dot(l, d);
  cg_mma_load(l, d, cg_s32(l, 0));
  lower_steps(l, x, d, at, write);
  cg_wait(l, x->pipe, x->slots - 2);
  cg_mma_issue(l, d, cg_s32(l, cg_mma_steps(d) - 1));
}

/* The loop's one dot, its first fragments already there. */
static void lower_dot_ahead(struct lower *l, const struct ring *x, struct cg_dot *d,
                            struct ir_val at, struct ir_val read, struct ir_val write,
                            struct ir_val next) {
  bind_slots(l, x, read);
  cg_move_dot(l, d);
  lower_steps(l, x, d, at, write);
  cg_wait(l, x->pipe, x->slots - 2);
  bind_slots(l, x, next);
  cg_move_dot(l, d);
  struct ir_val first = cg_s32(l, 0);
  cg_mma_overlap(l, d, cg_s32(l, cg_mma_steps(d) - 1), first, NULL);
}

/* ---- loops that share a ring ---- */

static bool runs_ahead(const struct ir_module *m, struct ir_op o) {
  return ir_op_at(m, o)->opcode == IR_LOAD && ir_op_at(m, o)->sched.stage == 0 &&
         !cg_goes_to_registers(m, o);
}

/* The first load from o on, in its block, that runs ahead; 0: none. */
static struct ir_op next_load(const struct ir_module *m, struct ir_op o) {
  while (o.id && !runs_ahead(m, o))
    o = ir_op_at(m, o)->next;
  return o;
}

/* The loop that goes on with the ring of loop o: its loads are the same ones. 0: none. */
static struct ir_op next_loop(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o), *next = ir_op_at(m, n->next);
  const struct ir_op none = {0};
  if (!n->next.id || next->opcode != IR_FOR || !ir_attr_int(m, n->next, IR_ATTR_follows, 0) ||
      ir_attr_int(m, o, IR_ATTR_slots, 1) != ir_attr_int(m, n->next, IR_ATTR_slots, 1))
    return none;
  struct ir_op x = next_load(m, ir_block_at(m, n->blocks[0])->first);
  struct ir_op y = next_load(m, ir_block_at(m, next->blocks[0])->first);
  while (x.id && y.id) {
    const struct ir_opnode *a = ir_op_at(m, x), *b = ir_op_at(m, y);
    if (a->in[0].id != b->in[0].id ||
        !ir_type_eq(ir_type_of(m, a->out[0]), ir_type_of(m, b->out[0])) ||
        !str_eq(cg_attr_word(m, x, IR_ATTR_path), cg_attr_word(m, y, IR_ATTR_path)))
      return none;
    x = next_load(m, a->next);
    y = next_load(m, b->next);
  }
  return x.id || y.id ? none : n->next;
}

/* Do the loops from `loop` on do nothing but one dot each? */
static bool only_dots(struct lower *l, struct ir_op loop) {
  struct ir_module *m = l->m;
  for (struct ir_op o = loop; o.id; o = next_loop(m, o)) {
    struct ring x = {.body = ir_op_at(m, o)->blocks[0]};
    struct cg_carried c = cg_carried_of_for(l, o);
    IR_EACH_OP (m, x.body, load) {
      struct ahead a = {.load = load};
      if (runs_ahead(m, load))
        VEC_PUSH(l->a, &x.loads, a);
    }
    if (!only_dot(l, &x, &c).id)
      return false;
  }
  return true;
}

/* What loops share: buffers, the pipe, the end, edges that any of them checks. */
static bool open_ring(struct lower *l, struct ir_op o, struct ring *x) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  struct ir_op last = o;
  *x = (struct ring){.loop = o, .body = n.blocks[0]};
  x->slots = (uint32_t)ir_attr_int(m, o, IR_ATTR_slots, 1);
  if (x->slots < 2)
    return false;
  x->index = ir_block_at(m, x->body)->args.at[0];
  x->lo = cg_scalar(l, n.in[0]);
  x->step = cg_scalar(l, n.in[2]);
  x->pipe = cg_new_pipe(l, x->slots);
  x->read = cg_s32(l, 0);
  x->write = cg_s32(l, x->slots - 1);
  IR_EACH_OP (m, x->body, load) {
    if (!runs_ahead(m, load))
      continue;
    struct ahead a = open_ahead(l, x, load);
    VEC_PUSH(l->a, &x->loads, a);
  }
  for (struct ir_op next; (next = next_loop(m, last)).id; last = next) {
    struct ir_op load = ir_block_at(m, ir_op_at(m, next)->blocks[0])->first;
    for (uint32_t i = 0; i < x->loads.n; i++, load = ir_op_at(m, load)->next) {
      load = next_load(m, load);
      struct cg_access s = cg_access_shape(l, load);
      for (uint32_t d = 0; d < s.rank; d++)
        x->loads.at[i].all[d] |= s.masks[d];
    }
  }
  x->end = cg_scalar(l, ir_op_at(m, last)->in[1]);
  x->dots = only_dots(l, o);
  return true;
}

/* Loop o goes on with the ring that the loop before it left. */
static void go_on(struct lower *l, struct ir_op o, struct ring *x) {
  struct ir_module *m = l->m;
  struct ir_op load = {0};
  x->loop = o;
  x->body = ir_op_at(m, o)->blocks[0];
  x->index = ir_block_at(m, x->body)->args.at[0];
  x->lo = x->hi;
  load = ir_block_at(m, x->body)->first;
  for (uint32_t i = 0; i < x->loads.n; i++, load = ir_op_at(m, load)->next) {
    load = next_load(m, load);
    struct cg_access s = cg_access_shape(l, load);
    x->loads.at[i].load = load;
    memcpy(x->loads.at[i].masks, s.masks, sizeof s.masks);
  }
}

/* Where the loop ends: early, where a later one checks edges that it does not. */
static struct ir_val end_of(struct lower *l, const struct ring *x) {
  struct ir_val hi = cg_scalar(l, ir_op_at(l->m, x->loop)->in[1]);
  bool early = false;
  for (uint32_t i = 0; i < x->loads.n; i++)
    for (uint32_t d = 0; d < IR_MAX_RANK; d++)
      early = early || (x->loads.at[i].all[d] & ~x->loads.at[i].masks[d]);
  if (!early || !next_loop(l->m, x->loop).id)
    return hi;
  struct ir_val less = cg_op2(l, IR_SUB, hi, cg_muli(l, x->step, x->slots - 1));
  return cg_op2(l, IR_MAX, less, x->lo);
}

/* Before the loop's one dot runs for the first time. */
static void open_dots(struct lower *l, struct ring *x, struct ir_op dot, uint32_t acc) {
  l->b.loc = ir_op_at(l->m, dot)->loc;
  bind_slots(l, x, x->read);
  cg_open_dot(l, dot, &x->dot);
  x->dot.acc = acc;
  cg_mma_open(l, &x->dot);
  x->ahead = cg_mma_steps(&x->dot) % 2 == 0 && cg_knob_get(l->m, CG_KNOB_PREFETCH) == 1;
  cg_wait(l, x->pipe, x->slots - 2);
  if (x->ahead)
    cg_mma_load(l, &x->dot, cg_s32(l, 0));
}

bool cg_lower_pipelined_for(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ring x;
  bool goes_on = l->ring_next.id == o.id;
  if (goes_on) {
    x = *l->ring;
    go_on(l, o, &x);
  } else if (!open_ring(l, o, &x)) {
    return false;
  }
  struct cg_carried c = cg_carried_of_for(l, o);
  cg_open_carried(l, o, &c);
  if (!goes_on) {
    /* Inside another loop the ring is filled again: not before everyone has done with it. */
    if (ir_block_at(m, ir_op_at(m, o)->block)->parent.id)
      cg_put_barrier(&l->b);
    fill_ring(l, &x);
  }
  struct ir_op dot = x.dots ? only_dot(l, &x, &c) : (struct ir_op){0};
  if (dot.id && !goes_on)
    open_dots(l, &x, dot, c.frag[0]);
  x.dot.op = dot;
  if (dot.id)
    x.dot.acc = c.frag[0];
  l->b.loc = ir_op_at(m, o)->loc;
  x.hi = end_of(l, &x);
  /* Two scalars more than the loop carries: the slots to read and to write. */
  struct ir_val *inits = ARENA_ARRAY(l->a, struct ir_val, c.n_scalars + 2);
  struct ir_val *args = ARENA_ARRAY(l->a, struct ir_val, c.n_scalars + 2), k;
  inits[0] = x.read;
  inits[1] = x.write;
  for (uint32_t i = 0; i < c.n_scalars; i++)
    inits[2 + i] = c.scalars[i];
  struct ir_op loop =
      cg_open_for(l, (struct ir_val[]){x.lo, x.hi, x.step}, c.n_scalars + 2, inits, &k, args);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(m, loop)->blocks[0]);
  cg_set_scalar(l, x.index, k);
  cg_bind(l, &c, c.args, args + 2);
  struct ir_val *out = ARENA_ARRAY(l->a, struct ir_val, c.n_scalars + 2);
  out[0] = next_slot(l, &x, args[0]);
  if (dot.id) {
    struct ir_val at = cg_add(l, k, cg_muli(l, x.step, x.slots - 1));
    if (x.ahead)
      lower_dot_ahead(l, &x, &x.dot, at, args[0], args[1], out[0]);
    else
      lower_dot_plain(l, &x, &x.dot, at, args[0], args[1]);
    l->val[ir_op_at(m, dot)->out[0].id].kind = CG_LV_FRAG;
    l->val[ir_op_at(m, dot)->out[0].id].frag = x.dot.acc;
  } else {
    lower_body(l, &x, k, args[0], args[1]);
  }
  out[1] = next_slot(l, &x, args[1]);
  uint32_t n = cg_put_yields(l, c.n, c.yields, c.frag, out + 2);
  cg_leave_block(l, saved, IR_YIELD, n + 2, out);
  cg_bind(l, &c, c.results, ir_op_at(m, loop)->out + 2);
  l->ring_next = next_loop(m, o);
  if (l->ring_next.id) {
    x.read = ir_op_at(m, loop)->out[0];
    x.write = ir_op_at(m, loop)->out[1];
    l->ring = arena_copy(l->a, &x, sizeof x);
  }
  return true;
}
