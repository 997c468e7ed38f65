/* Emulator: a flat program from the module, once per run.
 *
 * Control becomes instructions of its own; blocks follow each other in the order of the text:
 *   if:    IF (-> ELSE) then... ELSE (-> END) else... END
 *   for:   FOR TEST (-> EXIT) body... NEXT (-> TEST) EXIT;      each: EACH body... NEXT (-> body)
 *   while: WHILE (block 0)... TEST (-> EXIT) (block 1)... NEXT (-> block 0) EXIT
 * Each value has a slot from the instruction that makes it to its last use; values made before a
 * loop and read within live to its end. The results of a loop are the slots of what it carries.
 * Constants, and ops on constants alone whose result the rounded domain fixes, are made here, as
 * the interpreter does (docs/numerics.md: otherwise folding would change algebraic results). */
#include "codegen/emu_impl.h"

#include "base/check.h"
#include "ir/passes.h"

#include <string.h>

struct life {
  uint32_t first, last; /* instructions; last: 0 if never used */
  uint32_t depth;       /* loops around its definition */
  bool made;
  bool is_const;
  bool uniform;     /* the same in all lanes that are active where it is made */
  uint32_t same_as; /* a value whose slot it has; 0: its own */
};

struct use {
  uint32_t val, loop; /* loop 0: none */
};

struct planner {
  struct emu *e;
  struct arena *a;
  struct diag_sink *diags;
  const struct ir_module *m;
  VEC(struct emu_insn) insn;
  VEC(uint32_t) loop_end; /* by loop: its last instruction */
  VEC(uint32_t) stack;    /* loops around, outermost first */
  VEC(struct use) later;  /* uses that last to the end of a loop */
  struct life *life;
  struct ir_constant *constant;
  emu_slot *place;
  uint32_t depth;   /* frames */
  const bool *left; /* by op: what a skeleton leaves out; NULL: no skeleton */
  bool failed;
};

/* ---- lives ---- */

static uint32_t here(const struct planner *p) {
  return p->insn.n;
}

static uint32_t root(const struct planner *p, struct ir_val v) {
  uint32_t id = v.id;
  while (p->life[id].same_as)
    id = p->life[id].same_as;
  return id;
}

static void make(struct planner *p, struct ir_val v) {
  struct life *l = &p->life[root(p, v)];
  if (l->made)
    return;
  l->made = true;
  l->first = l->last = here(p);
  l->depth = p->stack.n;
}

static void use(struct planner *p, struct ir_val v) {
  struct life *l = &p->life[root(p, v)];
  if (l->is_const)
    return;
  if (l->last < here(p))
    l->last = here(p);
  if (l->depth < p->stack.n)
    VEC_PUSH(p->a, &p->later, ((struct use){root(p, v), p->stack.at[l->depth]}));
}

/* ---- constants ---- */

static bool fold(struct planner *p, const struct ir_opnode *n) {
  struct ir_constant in[3] = {{0}}, out;
  if (n->opcode == IR_CONST) {
    if (!ir_constant_of(p->m, n->out[0], &out))
      return false;
  } else {
    if (!interp_is_elem(n->opcode) && n->opcode != IR_CAST)
      return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (!p->life[n->in[k].id].is_const)
        return false;
      in[k] = p->constant[n->in[k].id];
    }
    if (!ir_fold(n->opcode, emu_dtype(p->e, n->out[0]), in, &out))
      return false;
  }
  p->life[n->out[0].id].is_const = true;
  p->constant[n->out[0].id] = out;
  return true;
}

static void fill_const(struct planner *p, char *cells, enum dtype t, const struct ir_constant *c) {
  for (uint32_t l = 0; l < EMU_LANES; l++)
    switch (emu_cell(p->e, t)) {
    case CELL_FLOAT: ((float *)cells)[l] = (float)c->f; break;
    case CELL_DOUBLE: ((double *)cells)[l] = c->f; break;
    case CELL_INT: ((int64_t *)cells)[l] = c->i; break;
    case CELL_BOOL: ((uint8_t *)cells)[l] = c->i != 0; break;
    case CELL_PAYLOAD: ((int64_t *)cells)[l] = interp_embed(c->f); break;
    }
}

/* ---- what is the same in all lanes ---- */

static bool is_uniform(const struct planner *p, struct ir_val v) {
  return p->life[v.id].is_const || p->life[v.id].uniform;
}

/* ---- instructions ---- */

static struct emu_insn *add(struct planner *p, struct ir_op o, emu_fn *fn) {
  struct emu_insn i = {.fn = fn, .op = o, .n = ir_op_at(p->m, o)};
  VEC_PUSH(p->a, &p->insn, i);
  return &VEC_LAST(&p->insn);
}

/* Values of lists become places when all slots are known: until then a place is a value. */
static emu_slot *places(struct planner *p, uint32_t n, const struct ir_val *v) {
  emu_slot *out = ARENA_ARRAY(p->a, emu_slot, n + 1);
  for (uint32_t k = 0; k < n; k++)
    out[k] = v[k].id;
  return out;
}

static void set_moves(struct planner *p, struct emu_insn *i, uint32_t n, const struct ir_val *from,
                      const struct ir_val *to) {
  struct emu_move *moves = ARENA_ARRAY(p->a, struct emu_move, n + 1);
  for (uint32_t k = 0; k < n; k++)
    moves[k] =
        (struct emu_move){.from = from[k].id,
                          .to = to[k].id,
                          .bytes = (uint32_t)cell_size(emu_cell(p->e, emu_dtype(p->e, from[k])))};
  i->moves = moves;
  i->n_moves = n;
  if (p->e->plan.max_moves < n)
    p->e->plan.max_moves = n;
}

static void use_all(struct planner *p, uint32_t n, const struct ir_val *v) {
  for (uint32_t k = 0; k < n; k++)
    use(p, v[k]);
}

static const struct ir_opnode *end_of(const struct planner *p, struct ir_block b) {
  return ir_op_at(p->m, ir_block_at(p->m, b)->last);
}

static void enter(struct planner *p, uint32_t more) {
  p->depth += more;
  if (p->e->plan.max_depth < p->depth)
    p->e->plan.max_depth = p->depth;
}

static uint32_t open_loop(struct planner *p) {
  uint32_t loop = p->loop_end.n;
  VEC_PUSH(p->a, &p->loop_end, 0);
  VEC_PUSH(p->a, &p->stack, loop);
  enter(p, 1);
  return loop;
}

static void close_loop(struct planner *p, uint32_t loop) {
  p->loop_end.at[loop] = here(p);
  p->stack.n--;
  p->depth--;
}

static void plan_block(struct planner *p, struct ir_block b);

static void plan_if(struct planner *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  use(p, n->in[0]);
  for (uint32_t k = 0; k < n->n_out; k++)
    make(p, n->out[k]);
  uint32_t begin = here(p), middle;
  add(p, o, emu_if)->in = places(p, 1, n->in);
  enter(p, 1);
  plan_block(p, n->blocks[0]);
  const struct ir_opnode *yield = end_of(p, n->blocks[0]);
  use_all(p, n->n_out, yield->in);
  use_all(p, n->n_out, n->out);
  middle = here(p);
  set_moves(p, add(p, o, emu_else), n->n_out, yield->in, n->out);
  p->insn.at[begin].target = middle;
  plan_block(p, n->blocks[1]);
  yield = end_of(p, n->blocks[1]);
  use_all(p, n->n_out, yield->in);
  use_all(p, n->n_out, n->out);
  p->insn.at[middle].target = here(p);
  set_moves(p, add(p, o, emu_end), n->n_out, yield->in, n->out);
  p->depth--;
}

/* out[k] has the slot of arg[k]. */
static void share(struct planner *p, uint32_t n, const struct ir_val *out,
                  const struct ir_val *arg) {
  for (uint32_t k = 0; k < n; k++)
    p->life[out[k].id].same_as = arg[k].id;
}

static void plan_for(struct planner *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  const struct ir_val *args = ir_block_at(p->m, n->blocks[0])->args.at;
  uint32_t carried = n->n_out;
  use_all(p, n->n_in, n->in);
  for (uint32_t k = 0; k <= carried; k++)
    make(p, args[k]);
  share(p, carried, n->out, args + 1);
  struct emu_insn *i = add(p, o, emu_for);
  i->in = places(p, 3, n->in);
  i->out = places(p, 1, args);
  set_moves(p, i, carried, n->in + 3, args + 1);
  p->life[args[0].id].uniform = is_uniform(p, n->in[0]) && is_uniform(p, n->in[2]);
  uint32_t loop = open_loop(p), test = here(p);
  use_all(p, 3, n->in);
  i = add(p, o, emu_for_test);
  i->in = places(p, 3, n->in);
  i->out = places(p, 1, args);
  plan_block(p, n->blocks[0]);
  const struct ir_opnode *yield = end_of(p, n->blocks[0]);
  use_all(p, carried, yield->in);
  use_all(p, 1 + carried, args);
  i = add(p, o, emu_next);
  i->in = places(p, 3, n->in);
  i->out = places(p, 1, args);
  i->target = test;
  set_moves(p, i, carried, yield->in, args + 1);
  p->insn.at[test].target = here(p);
  close_loop(p, loop);
  add(p, o, emu_exit);
}

static void plan_each(struct planner *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  const struct ir_val *args = ir_block_at(p->m, n->blocks[0])->args.at;
  if (p->left && p->left[o.id])
    return;
  make(p, args[0]);
  p->life[args[0].id].uniform = true;
  struct emu_insn *i = add(p, o, emu_each);
  i->out = places(p, 1, args);
  uint32_t loop = open_loop(p), first = here(p);
  plan_block(p, n->blocks[0]);
  use(p, args[0]);
  i = add(p, o, emu_each_next);
  i->out = places(p, 1, args);
  i->imm = ir_attr_int(p->m, o, IR_ATTR_count, 1);
  i->target = first;
  close_loop(p, loop);
}

static void plan_while(struct planner *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  const struct ir_blocknode *head = ir_block_at(p->m, n->blocks[0]);
  const struct ir_blocknode *body = ir_block_at(p->m, n->blocks[1]);
  use_all(p, n->n_in, n->in);
  for (uint32_t k = 0; k < head->args.n; k++)
    make(p, head->args.at[k]);
  for (uint32_t k = 0; k < body->args.n; k++)
    make(p, body->args.at[k]);
  share(p, n->n_out, n->out, body->args.at);
  struct emu_insn *i = add(p, o, emu_while);
  set_moves(p, i, n->n_in, n->in, head->args.at);
  uint32_t loop = open_loop(p), first = here(p), test;
  plan_block(p, n->blocks[0]);
  const struct ir_opnode *condition = end_of(p, n->blocks[0]);
  use_all(p, condition->n_in, condition->in);
  test = here(p);
  i = add(p, o, emu_while_test);
  i->in = places(p, 1, condition->in);
  set_moves(p, i, n->n_out, condition->in + 1, body->args.at);
  plan_block(p, n->blocks[1]);
  const struct ir_opnode *yield = end_of(p, n->blocks[1]);
  use_all(p, n->n_in, yield->in);
  use_all(p, head->args.n, head->args.at);
  use_all(p, body->args.n, body->args.at);
  i = add(p, o, emu_next);
  i->target = first;
  set_moves(p, i, n->n_in, yield->in, head->args.at);
  p->insn.at[test].target = here(p);
  close_loop(p, loop);
  add(p, o, emu_exit);
}

/* The attribute that an op's function reads again and again. */
static void set_imm(struct planner *p, struct emu_insn *i, struct ir_op o) {
  switch ((int)i->n->opcode) {
  case IR_DIGITS: i->data = ir_get_attr(p->m, o, IR_ATTR_map); break;
  case IR_CP_ASYNC: i->imm = ir_attr_int(p->m, o, IR_ATTR_bytes, 16); break;
  case IR_PIPE_WAIT: i->imm = ir_attr_int(p->m, o, IR_ATTR_pending, 0); break;
  case IR_UNZIP: i->imm = ir_attr_int(p->m, o, IR_ATTR_count, 2); break;
  case IR_RANDOM: i->imm = ir_attr_int(p->m, o, IR_ATTR_word, 0); break;
  case IR_SHUFFLE: i->imm = ir_attr_int(p->m, o, IR_ATTR_mask, 0); break;
  case IR_MMA: i->data = emu_plan_mma(p->e, o, p->a); break;
  case IR_WGMMA: i->data = emu_plan_wgmma(p->e, o, p->a); break;
  case IR_LDMATRIX:
  case IR_STMATRIX:
    i->imm = ir_attr_int(p->m, o, IR_ATTR_num, 4);
    i->imm2 = ir_attr_int(p->m, o, IR_ATTR_trans, 0);
    break;
  default: break;
  }
}

static void refuse(struct planner *p, struct ir_op o, const char *why) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  diag_report(p->diags, DIAG_ERROR, DIAG_INTERNAL, p->m->locs.at[n->loc].at,
              "the emulator does not know '%s'%s", ir_info(n->opcode)->name, why);
  p->failed = true;
}

/* Ops that give each lane what its operands' cells are in that lane. */
static bool is_lanewise(enum ir_opcode opcode) {
  return interp_is_elem(opcode) || opcode == IR_CAST || opcode == IR_PTR_ADD || opcode == IR_DIGITS;
}

static uint8_t cell_bytes(const struct planner *p, struct ir_val v) {
  bool ptr = ir_type_of(p->m, v).kind == IR_PTR;
  return (uint8_t)cell_size(ptr ? CELL_INT : emu_cell(p->e, emu_dtype(p->e, v)));
}

/* An op of a warp's own number, or that computes with what is uniform, gives the same in all lanes;
 * the latter is then computed once. */
static void mark_uniform(struct planner *p, struct emu_insn *i) {
  const struct ir_opnode *n = i->n;
  for (uint32_t k = 0; k < n->n_in && k < 8; k++)
    i->uniform |= (uint8_t)(is_uniform(p, n->in[k]) << k);
  if (n->opcode == IR_WARP_ID || n->opcode == IR_BLOCK_ID || n->opcode == IR_WARPGROUP_ID ||
      n->opcode == IR_CLUSTER_RANK || n->opcode == IR_GRID_SIZE || n->opcode == IR_IN_ROLE) {
    p->life[n->out[0].id].uniform = true;
    return;
  }
  if (!is_lanewise(n->opcode) || n->n_in > 3)
    return;
  for (uint32_t k = 0; k < n->n_in; k++) {
    if (!is_uniform(p, n->in[k]))
      return;
    i->bytes[k] = cell_bytes(p, n->in[k]);
  }
  i->bytes[3] = cell_bytes(p, n->out[0]);
  i->once = true;
  p->life[n->out[0].id].uniform = true;
}

static void plan_op(struct planner *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  if (p->left && p->left[o.id]) {
    for (uint32_t k = 0; k < n->n_out; k++)
      make(p, n->out[k]);
    return;
  }
  emu_fn *fn = emu_find_fn(n->opcode);
  if (!fn) {
    refuse(p, o, "");
    return;
  }
  use_all(p, n->n_in, n->in);
  for (uint32_t k = 0; k < n->n_out; k++)
    make(p, n->out[k]);
  struct emu_insn *i = add(p, o, fn);
  i->in = places(p, n->n_in, n->in);
  i->out = places(p, n->n_out, n->out);
  if (n->n_in)
    i->in_dtype = emu_dtype(p->e, n->in[n->n_in - 1]);
  if (n->n_out)
    i->out_dtype = emu_dtype(p->e, n->out[0]);
  for (uint32_t k = 0; k < n->n_res && k < 3; k++)
    i->res[k] = &p->m->res.at[n->res[k]];
  i->follows = n->n_out && (ir_info(n->opcode)->traits & IR_PURE || n->opcode == IR_SHUFFLE);
  for (uint32_t k = 0; k < 3 && !i->buf; k++)
    i->buf = i->res[k] && i->res[k]->kind == IR_RES_BUF ? i->res[k] : NULL;
  if (i->buf) {
    i->buf_at = ir_res_int(i->buf, IR_ATTR_offset, 0);
    i->buf_bytes = ir_res_int(i->buf, IR_ATTR_bytes, 0);
  }
  mark_uniform(p, i);
  set_imm(p, i, o);
  p->e->serial |= n->opcode == IR_GATOMIC || (n->opcode == IR_GPRINT && p->e->opt->print) ||
                  ir_get_attr(p->m, o, IR_ATTR_reduce) != NULL;
  p->e->syncs |= n->opcode == IR_GATOMIC && ir_get_attr(p->m, o, IR_ATTR_sem) != NULL;
  if ((n->opcode == IR_MMA || n->opcode == IR_WGMMA) && !i->data)
    refuse(p, o, " of this shape and these dtypes");
}

static void plan_block(struct planner *p, struct ir_block b) {
  IR_EACH_OP (p->m, b, o) {
    const struct ir_opnode *n = ir_op_at(p->m, o);
    if ((ir_info(n->opcode)->traits & IR_TERM) || fold(p, n))
      continue;
    switch ((int)n->opcode) {
    case IR_IF: plan_if(p, o); break;
    case IR_FOR: plan_for(p, o); break;
    case IR_EACH: plan_each(p, o); break;
    case IR_WHILE: plan_while(p, o); break;
    default: plan_op(p, o);
    }
  }
}

/* ---- slots ---- */

/* Slots by a scan over the program: a value takes a slot that was free before its instruction. */
static void place_values(struct planner *p) {
  const struct ir_module *m = p->m;
  struct emu_plan *plan = &p->e->plan;
  uint32_t n = p->insn.n + 1;
  for (uint32_t k = 0; k < p->later.n; k++) {
    struct life *l = &p->life[p->later.at[k].val];
    uint32_t end = p->loop_end.at[p->later.at[k].loop];
    l->last = l->last < end ? end : l->last;
  }
  /* Values by first and by last instruction: lists through the arrays. */
  uint32_t *starts = ARENA_ARRAY(p->a, uint32_t, n), *ends = ARENA_ARRAY(p->a, uint32_t, n);
  uint32_t *next_start = ARENA_ARRAY(p->a, uint32_t, m->values.n);
  uint32_t *next_end = ARENA_ARRAY(p->a, uint32_t, m->values.n);
  for (uint32_t v = 1; v < m->values.n; v++) {
    struct life *l = &p->life[v];
    if (!l->made || l->is_const || l->same_as)
      continue;
    next_start[v] = starts[l->first];
    starts[l->first] = v;
    next_end[v] = ends[l->last];
    ends[l->last] = v;
  }
  VEC(uint32_t) free = {0};
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t v = starts[k]; v; v = next_start[v])
      p->place[v] = free.n ? VEC_POP(&free) : plan->n_slots++;
    for (uint32_t v = ends[k]; v; v = next_end[v])
      VEC_PUSH(p->a, &free, p->place[v]);
  }
}

static void place_consts(struct planner *p) {
  struct emu_plan *plan = &p->e->plan;
  for (uint32_t v = 1; v < p->m->values.n; v++)
    if (p->life[v].is_const)
      p->place[v] = EMU_CONST | plan->n_consts++;
  plan->consts = ARENA_ARRAY(p->a, char, (size_t)plan->n_consts *EMU_SLOT + 1);
  for (uint32_t v = 1; v < p->m->values.n; v++)
    if (p->life[v].is_const)
      fill_const(p, plan->consts + (size_t)(p->place[v] & ~EMU_CONST) * EMU_SLOT,
                 emu_dtype(p->e, (struct ir_val){v}), &p->constant[v]);
}

static void resolve(struct planner *p, const emu_slot *list, uint32_t n) {
  emu_slot *at = (emu_slot *)(uintptr_t)list;
  for (uint32_t k = 0; k < n; k++)
    at[k] = p->place[root(p, (struct ir_val){at[k]})];
}

static uint32_t count_in(const struct emu_insn *i) {
  bool loops = i->n->opcode == IR_FOR;
  return !i->in ? 0 : loops ? 3 : i->n->n_blocks ? 1 : i->n->n_in;
}

static uint32_t count_out(const struct emu_insn *i) {
  return !i->out ? 0 : i->n->n_blocks ? 1 : i->n->n_out;
}

static void resolve_moves(struct planner *p, struct emu_insn *i) {
  struct emu_move *moves = (struct emu_move *)(uintptr_t)i->moves;
  for (uint32_t k = 0; k < i->n_moves; k++) {
    moves[k].from = p->place[root(p, (struct ir_val){moves[k].from})];
    moves[k].to = p->place[root(p, (struct ir_val){moves[k].to})];
  }
  for (uint32_t k = 0; k < i->n_moves; k++)
    for (uint32_t j = 0; j < k; j++)
      moves[k].late |= moves[k].from == moves[j].to;
}

/* ---- shared memory ---- */

/* Bytes that an op's accesses to shared memory move at once; 0: it has none. */
static uint32_t shared_bytes(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  switch ((int)n->opcode) {
  case IR_RSTORE: return (n->n_in - 3u) * emu_bytes((enum dtype)m->res.at[n->res[0]].type.dtype);
  case IR_RLOAD:
  case IR_SLOAD: return n->n_out * emu_bytes((enum dtype)m->res.at[n->res[0]].type.dtype);
  case IR_SSTORE: return (n->n_in - 2u) * emu_bytes((enum dtype)m->res.at[n->res[0]].type.dtype);
  case IR_CP_ASYNC: return (uint32_t)ir_attr_int(m, o, IR_ATTR_bytes, 16);
  default: return 0;
  }
}

/* Of a skeleton: iterations of a loop, so that each slot of a pipe is used again. */
static uint32_t count_trips(const struct ir_module *m) {
  int64_t most = 1;
  for (uint32_t r = 1; r < m->res.n; r++) {
    int64_t slots =
        m->res.at[r].kind == IR_RES_PIPE ? ir_res_int(&m->res.at[r], IR_ATTR_slots, 1) : 1;
    most = slots > most ? slots : most;
  }
  return (uint32_t)most + 2;
}

static void choose_granule(struct planner *p) {
  const struct ir_module *m = p->m;
  struct emu_plan *plan = &p->e->plan;
  plan->granule = 16;
  plan->unit = 8;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    uint32_t bytes = ir_op_at(m, o)->block.id ? shared_bytes(m, o) : 0;
    bytes &= -bytes; /* the largest power of 2 in it */
    if (bytes && bytes < plan->granule)
      plan->granule = bytes;
  }
  plan->granule_shift = (uint32_t)__builtin_ctz(plan->granule);
  for (uint32_t r = 1; r < m->res.n; r++)
    if (m->res.at[r].kind == IR_RES_BUF) {
      uint32_t size = emu_bytes((enum dtype)m->res.at[r].type.dtype);
      plan->unit = size < plan->unit ? size : plan->unit;
    }
}

bool emu_make_plan(struct emu *e, struct arena *a, struct diag_sink *diags) {
  const struct ir_module *m = e->m;
  struct planner plan = {.e = e, .a = a, .diags = diags, .m = m}, *p = &plan;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  p->life = ARENA_ARRAY(a, struct life, m->values.n);
  p->constant = ARENA_ARRAY(a, struct ir_constant, m->values.n);
  p->place = ARENA_ARRAY(a, emu_slot, m->values.n);
  VEC_PUSH(a, &p->loop_end, 0);
  for (uint32_t k = 0; k < body->args.n; k++) {
    make(p, body->args.at[k]);
    p->life[body->args.at[k].id].uniform = true;
  }
  p->left = p->e->skeleton ? emu_skeleton_leaves(p->e, a) : NULL;
  plan_block(p, m->body);
  if (p->failed)
    return false;
  add(p, body->last, NULL); /* the end */
  place_values(p);
  place_consts(p);
  for (uint32_t k = 0; k < p->insn.n; k++) {
    struct emu_insn *i = &p->insn.at[k];
    resolve(p, i->in, count_in(i));
    resolve(p, i->out, count_out(i));
    resolve_moves(p, i);
  }
  e->plan.entry = places(p, body->args.n, body->args.at);
  resolve(p, e->plan.entry, body->args.n);
  e->plan.insn = p->insn.at;
  e->plan.n_insns = p->insn.n;
  choose_granule(p);
  e->trips = count_trips(m);
  return true;
}
