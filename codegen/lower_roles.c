/* Kernels with a producer: one thread issues the copies of the tensor memory unit, warpgroups of
 * consumers compute, and blocks stay for tile after tile of the grid.
 *
 *   the first thread      has tensor maps fetched
 *   the producer          inits the pipes; for each tile runs the loops around its loads: acquires
 *                         a slot, expects its bytes, issues the loads
 *   the consumers         for each tile run everything else: wait for a slot where the load stands,
 *                         release it when the dots that read it are done
 *
 * In a cluster blocks load shares of what all of them read, for all: a slot is free when the
 * consumers of all have released it. A block that has no tile, where their number is odd, loads its
 * shares and drains its slots.
 *
 * The scheduled body is walked once for each role; scalars are computed in both. Loads that the
 * same dots read share a pipe, whose cursors live for the whole kernel. What others read too goes
 * on to registers when it comes. A slot is released by the last op of the load's block that reads
 * it: a dot, or a loop with dots. */
#include "base/check.h"
#include "codegen/lower.h"
#include "codegen/schedule.h"

#define START_BAR 15 /* hardware barriers: consumers' groups count from 1 */

/* ---- small things ---- */

struct ir_builder cg_enter_if(struct lower *l, struct ir_val cond) {
  struct ir_op o = ir_build(&l->b, IR_IF, 1, &cond, 0, NULL);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(l->m, o)->blocks[1]);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
  return cg_enter_block(l, ir_op_at(l->m, o)->blocks[0]);
}

void cg_leave_if(struct lower *l, struct ir_builder saved) {
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
}

struct ir_op cg_res_op(struct lower *l, enum ir_opcode o, uint32_t n_res, const uint32_t *res,
                       uint32_t n_in, const struct ir_val *in) {
  struct ir_op op = ir_build(&l->b, o, n_in, in, 0, NULL);
  ir_set_res(l->m, op, n_res, res);
  return op;
}

static struct ir_op res_op1(struct lower *l, enum ir_opcode o, uint32_t res) {
  return cg_res_op(l, o, 1, &res, 0, NULL);
}

static uint32_t new_bar(struct lower *l, const char *name, int64_t id, int64_t count,
                        int64_t threads) {
  struct ir_attr attrs[3] = {{.key = IR_ATTR_id, .i = id},
                             {.key = IR_ATTR_threads, .i = threads},
                             {.key = IR_ATTR_count, .i = count}};
  struct ir_res r = {.kind = IR_RES_BAR, .name = symtab_get(l->m->syms, name), .attrs = attrs};
  r.n_attrs = count > 1 ? 3 : 2;
  return ir_add_res(l->m, r);
}

/* ---- feeds ---- */

static void number(void *user, struct ir_module *m, struct ir_op o) {
  struct cg_roles *r = ((struct lower *)user)->roles;
  (void)m;
  r->order[o.id] = ++r->n_ordered;
}

/* The op of block b that o is, or is in. */
static struct ir_op lift(const struct ir_module *m, struct ir_op o, struct ir_block b) {
  while (ir_op_at(m, o)->block.id != b.id)
    o = ir_block_at(m, ir_op_at(m, o)->block)->parent;
  return o;
}

/* Who reads v, a load's value or a view of it, where it lies in shared memory: the first and the
 * last of these ops, in block b. *others: someone reads it in registers. */
static void find_readers(struct lower *l, struct ir_val v, struct ir_block b, struct cg_feed *f,
                         bool *others) {
  const struct ir_module *m = l->m;
  const uint32_t *order = l->roles->order;
  *others = *others || !cg_is_smem_only(m, &l->uses, v);
  for (uint32_t i = l->uses.first[v.id]; i; i = l->uses.list.at[i].next) {
    struct cg_use use = l->uses.list.at[i];
    const struct ir_opnode *n = ir_op_at(m, use.op);
    if (n->opcode == IR_TRANSPOSE || n->opcode == IR_RESHAPE)
      find_readers(l, n->out[0], b, f, others);
    if (n->opcode != IR_DOT || use.operand > 1 || !cg_takes_loaded(m, use.op, use.operand))
      continue;
    struct ir_op at = lift(m, use.op, b);
    if (!f->first.id || order[at.id] < order[f->first.id])
      f->first = at;
    if (!f->last.id || order[at.id] > order[f->last.id])
      f->last = at;
  }
}

static uint32_t feed_of(struct lower *l, struct ir_op load, bool *to_regs) {
  struct ir_module *m = l->m;
  struct cg_roles *r = l->roles;
  struct ir_block b = ir_op_at(m, load)->block;
  struct cg_feed f = {.block = b, .n_loads = 1};
  *to_regs = false;
  find_readers(l, ir_op_at(m, load)->out[0], b, &f, to_regs);
  if (!f.last.id)
    f.first = f.last = load;
  for (uint32_t i = 0; i < r->feeds.n; i++) {
    struct cg_feed *x = &r->feeds.at[i];
    if (x->block.id == b.id && x->first.id == f.first.id && x->last.id == f.last.id) {
      x->n_loads++;
      return i;
    }
  }
  struct ir_op loop = ir_block_at(m, b)->parent;
  f.slots = loop.id ? (uint32_t)ir_attr_int(m, loop, IR_ATTR_slots, 1) : 1;
  VEC_PUSH(l->a, &r->feeds, f);
  return r->feeds.n - 1;
}

static void new_pipe(struct lower *l, struct cg_feed *f, uint32_t n, int64_t bytes) {
  struct symtab *syms = l->m->syms;
  struct sym name = symtab_get(syms, arena_printf(l->m->arena, "pipe%u", n));
  struct ir_attr attrs[4] = {
      {.key = IR_ATTR_kind, .s = symtab_get(syms, "tma")},
      {.key = IR_ATTR_slots, .i = f->slots},
      {.key = IR_ATTR_bytes, .i = bytes},
      {.key = IR_ATTR_arrivals, .i = l->roles->groups * (f->shared ? l->roles->blocks : 1)}};
  struct ir_res r = {.kind = IR_RES_PIPE, .name = name, .attrs = attrs, .n_attrs = 4};
  f->pipe = ir_add_res(l->m, r);
  for (int side = 0; side < 2; side++) {
    const char *word = side ? "consumer" : "producer";
    struct ir_attr of[2] = {{.key = IR_ATTR_pipe, .s = name},
                            {.key = IR_ATTR_side, .s = symtab_get(syms, word)}};
    struct ir_res c = {.kind = IR_RES_CURSOR, .attrs = of, .n_attrs = 2};
    c.name = symtab_get(syms, arena_printf(l->m->arena, "%s%u", side ? "read" : "fill", n));
    f->cursor[side] = ir_add_res(l->m, c);
  }
}

static void open_load(void *user, struct ir_module *m, struct ir_op o) {
  struct lower *l = user;
  const char *path = cg_attr_word(m, o, IR_ATTR_path);
  bool lands = str_eq(path, "staging");
  if (ir_op_at(m, o)->opcode != IR_LOAD || (!lands && !str_eq(path, "tma")))
    return;
  struct cg_unit_load x = {.load = o};
  const char *why = cg_box_of(m, l->intervals, o, &x.box);
  KILN_ASSERT(!why);
  (void)why;
  x.feed = feed_of(l, o, &x.to_regs);
  if (lands) {
    x.store = cg_only_writer(l, ir_op_at(m, o)->out[0]);
    KILN_ASSERT(x.store.id && ir_op_at(m, x.store)->opcode == IR_STORE);
    cg_open_landing(l, &x);
    VEC_PUSH(l->a, &l->roles->loads, x);
    return;
  }
  struct ir_type t = ir_type_of(m, ir_op_at(m, o)->out[0]);
  const char *name = ir_sym(m, m->args.at[x.box.arg].name);
  x.smem = cg_new_panels(l, name, (enum dtype)t.dtype, x.box.height, x.box.width, x.box.swizzle,
                         l->roles->feeds.at[x.feed].slots);
  x.smem->inner_dim = (int)ir_attr_int(m, o, IR_ATTR_vdim, 0);
  x.streamed = cg_is_streamed(m, o);
  x.shared = !l->roles->parted.id &&
             cg_is_shared(m, o, &x.box, l->roles->blocks, l->roles->axis, &x.share);
  l->roles->feeds.at[x.feed].shared |= x.shared;
  /* What only dots read, from shared memory, they read as tf32 (pass_choose_warpgroups.c); what
   * goes to registers comes as it was. */
  bool tf32 = t.dtype == DT_F32 && !x.to_regs;
  x.tmap = cg_new_tmap(l, &x.box, t, x.shared ? x.share.rows : x.box.height, tf32);
  VEC_PUSH(l->a, &l->roles->loads, x);
}

static void open_feeds(struct lower *l, struct ir_block body) {
  struct cg_roles *r = l->roles;
  ir_walk(l->m, body, open_load, l);
  for (uint32_t i = 0; i < r->feeds.n; i++) {
    int64_t bytes = 0;
    for (uint32_t k = 0; k < r->loads.n; k++)
      bytes += r->loads.at[k].feed == i ? r->loads.at[k].smem->slot_bytes : 0;
    new_pipe(l, &r->feeds.at[i], i + 1, bytes);
  }
}

struct cg_unit_load *cg_unit_load_of(struct lower *l, struct ir_op load) {
  struct cg_roles *r = l->roles;
  for (uint32_t i = 0; r && i < r->loads.n; i++)
    if (r->loads.at[i].load.id == load.id)
      return &r->loads.at[i];
  return NULL;
}

/* ---- consumers ---- */

void cg_consume_load(struct lower *l, struct ir_op load) {
  struct cg_unit_load *x = cg_unit_load_of(l, load);
  struct cg_feed *f = &l->roles->feeds.at[x->feed];
  struct cg_lval *v = &l->val[ir_op_at(l->m, load)->out[0].id];
  if (f->n_seen++ == 0)
    res_op1(l, IR_SLOT_WAIT, f->cursor[1]);
  if (f->n_seen == f->n_loads)
    f->n_seen = 0;
  if (x->store.id) {
    v->kind = CG_LV_INLINE;
    v->landed = x;
    return;
  }
  struct ir_type t = ir_scalar(DT_S32);
  struct ir_op at = ir_build(&l->b, IR_SLOT_AT, 0, NULL, 1, &t);
  ir_set_res(l->m, at, 2, (uint32_t[]){f->cursor[1], x->smem->buf});
  v->kind = CG_LV_SMEM;
  v->smem = x->smem;
  v->scalar = ir_op_at(l->m, at)->out[0];
  if (!x->to_regs)
    return;
  struct ir_val tile = ir_op_at(l->m, load)->out[0];
  v->frag = cg_read_panels(l, x->smem, v->scalar, ir_type_of(l->m, tile), cg_layout_of(l, tile));
  v->kind = CG_LV_FRAG;
  /* One thread releases the slot for its warpgroup: not before all have read. */
  cg_res_op(l, IR_BAR_SYNC, 1, &l->roles->group_bar, 1, &l->roles->group);
  cg_release_feeds(l, load, false, cg_bool(l, true));
  cg_advance_feeds(l, load);
}

/* Of a shared slot: in all blocks of the cluster, a thread each. */
static void release(struct lower *l, const struct cg_feed *f, bool behind) {
  const struct ir_val *rank = f->shared ? &l->roles->in_group : NULL;
  struct ir_op o = cg_res_op(l, IR_SLOT_RELEASE, 1, &f->cursor[1], f->shared, rank);
  if (behind)
    cg_set_int(l->m, o, IR_ATTR_behind, 1);
}

/* bool: does this thread release such slots for its warpgroup? */
static struct ir_val releases(struct lower *l, bool shared) {
  struct cg_roles *r = l->roles;
  return shared ? cg_cmp(l, IR_LT, r->in_group, cg_s32(l, r->blocks)) : r->one;
}

static void release_feeds(struct lower *l, struct ir_op last, bool shared, bool behind,
                          struct ir_val cond) {
  struct cg_roles *r = l->roles;
  struct ir_builder saved;
  bool any = false;
  for (uint32_t i = 0; i < r->feeds.n; i++) {
    if (r->feeds.at[i].last.id != last.id || r->feeds.at[i].shared != shared)
      continue;
    if (!any)
      saved = cg_enter_if(l, cg_op2(l, IR_AND, releases(l, shared), cond));
    any = true;
    release(l, &r->feeds.at[i], behind);
  }
  if (any)
    cg_leave_if(l, saved);
}

void cg_release_feeds(struct lower *l, struct ir_op last, bool behind, struct ir_val cond) {
  release_feeds(l, last, false, behind, cond);
  if (l->roles->blocks > 1)
    release_feeds(l, last, true, behind, cond);
}

void cg_advance_feeds(struct lower *l, struct ir_op last) {
  struct cg_roles *r = l->roles;
  for (uint32_t i = 0; i < r->feeds.n; i++)
    if (r->feeds.at[i].last.id == last.id)
      res_op1(l, IR_SLOT_NEXT, r->feeds.at[i].cursor[1]);
}

/* ---- dots that stay in flight ---- */

/* Is what the dot reads there, as it is, until the loop's next iteration has issued its dots? A
 * slot that a later op releases, or registers that are written in the loop, are not. */
static bool keeps_operands(struct lower *l, struct ir_op dot) {
  struct ir_module *m = l->m;
  struct ir_block b = ir_op_at(m, dot)->block;
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_val v = ir_op_at(m, dot)->in[i];
    if (!cg_takes_loaded(m, dot, i)) {
      struct ir_op def = ir_value_at(m, v)->def;
      if (i == 1 || !def.id || ir_op_at(m, def)->block.id == b.id)
        return false;
      continue;
    }
    const struct cg_unit_load *x = cg_unit_load_of(l, cg_trace_operand(m, v).load);
    const struct cg_feed *f = &l->roles->feeds.at[x->feed];
    if (f->block.id == b.id && ir_op_at(m, f->last)->opcode != IR_DOT)
      return false;
  }
  return true;
}

bool cg_is_deferred(struct lower *l, struct ir_op dot) {
  const struct ir_module *m = l->m;
  struct ir_val acc = ir_op_at(m, dot)->in[2], out = ir_op_at(m, dot)->out[0];
  struct ir_block b = ir_op_at(m, dot)->block;
  struct ir_op loop = ir_block_at(m, b)->parent;
  if (!l->roles || !loop.id || ir_op_at(m, loop)->opcode != IR_FOR ||
      ir_attr_int(m, loop, IR_ATTR_slots, 1) < 2)
    return false;
  const struct ir_value *v = ir_value_at(m, acc);
  const struct ir_opnode *yield = ir_op_at(m, ir_block_at(m, b)->last);
  if (v->block.id != b.id || v->index == 0 || l->uses.count[acc.id] != 1 ||
      l->uses.count[out.id] != 1)
    return false;
  return yield->in[v->index - 1].id == out.id && !cg_wgmma_promotes(m, dot) &&
         keeps_operands(l, dot);
}

void cg_settle_dots(struct lower *l, struct ir_block body, struct ir_val ran) {
  bool any = false;
  IR_EACH_OP (l->m, body, o) {
    if (ir_op_at(l->m, o)->opcode != IR_DOT || !cg_is_deferred(l, o))
      continue;
    if (!any)
      cg_set_int(l->m, ir_build(&l->b, IR_WGMMA_WAIT, 0, NULL, 0, NULL), IR_ATTR_pending, 0);
    any = true;
    cg_release_feeds(l, o, true, ran);
  }
}

/* ---- the producer ---- */

static bool holds_loads(struct lower *l, struct ir_block b) {
  IR_EACH_OP (l->m, b, o) {
    const struct ir_opnode *n = ir_op_at(l->m, o);
    if (cg_unit_load_of(l, o))
      return true;
    for (uint32_t i = 0; i < n->n_blocks; i++)
      if (holds_loads(l, n->blocks[i]))
        return true;
  }
  return false;
}

static void produce_load(struct lower *l, const struct cg_unit_load *x) {
  struct cg_feed *f = &l->roles->feeds.at[x->feed];
  if (f->n_seen++ == 0) {
    res_op1(l, IR_SLOT_ACQUIRE, f->cursor[0]);
    res_op1(l, IR_SLOT_EXPECT, f->cursor[0]);
  }
  if (x->store.id)
    cg_load_landing(l, x);
  else
    cg_load_boxes(l, x);
  if (f->n_seen == f->n_loads) {
    res_op1(l, IR_SLOT_NEXT, f->cursor[0]);
    f->n_seen = 0;
  }
}

/* Does what scalars and views are made of stand in the producer too? */
static bool is_known(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->n_out != 1 || ir_type_of(m, n->out[0]).kind == IR_TILE ||
      !(ir_info(n->opcode)->traits & IR_PURE))
    return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const struct cg_lval *x = &l->val[n->in[i].id];
    bool entry = ir_value_at(m, n->in[i])->block.id && ir_type_of(m, n->in[i]).kind == IR_VIEW;
    if (x->kind != CG_LV_SCALAR && !x->view && !entry)
      return false;
  }
  return true;
}

/* Only the loops around loads, and at each load what `at_load` does. */
static void walk_loads(struct lower *l, struct ir_block b,
                       void (*at_load)(struct lower *, const struct cg_unit_load *)) {
  struct ir_module *m = l->m;
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode n = *ir_op_at(m, o);
    const struct cg_unit_load *x = cg_unit_load_of(l, o);
    l->b.loc = n.loc;
    if (x) {
      at_load(l, x);
    } else if (n.opcode == IR_FOR && holds_loads(l, n.blocks[0])) {
      struct ir_val bounds[3], index;
      for (uint32_t i = 0; i < 3; i++)
        bounds[i] = cg_scalar(l, n.in[i]);
      cg_cut_bounds(l, o, bounds);
      struct ir_op loop = cg_open_for(l, bounds, 0, NULL, &index, NULL);
      struct ir_builder saved = cg_enter_block(l, ir_op_at(m, loop)->blocks[0]);
      cg_set_scalar(l, ir_block_at(m, n.blocks[0])->args.at[0], index);
      walk_loads(l, n.blocks[0], at_load);
      cg_leave_block(l, saved, IR_YIELD, 0, NULL);
    } else if (is_known(l, o)) {
      cg_lower_op(l, o);
    }
  }
}

static void produce_block(struct lower *l, struct ir_block b) {
  walk_loads(l, b, produce_load);
}

/* By all of its threads, as all meet where the consumers add up. */
static void produce_part(struct lower *l, struct ir_block b) {
  struct ir_builder saved = cg_enter_if(l, l->roles->leads);
  produce_block(l, b);
  cg_leave_if(l, saved);
  cg_meet_parts(l);
}

/* ---- consumers of a block without a tile ---- */

/* What is loaded is shared with blocks that have one: it must come and go. A warpgroup's warps go
 * through it together, as no more than one use of a slot is told from the next. */
static void drain_load(struct lower *l, const struct cg_unit_load *x) {
  struct cg_feed *f = &l->roles->feeds.at[x->feed];
  if (f->n_seen++ == 0)
    res_op1(l, IR_SLOT_WAIT, f->cursor[1]);
  if (f->n_seen < f->n_loads)
    return;
  f->n_seen = 0;
  cg_res_op(l, IR_BAR_SYNC, 1, &l->roles->group_bar, 1, &l->roles->group);
  struct ir_builder saved = cg_enter_if(l, releases(l, f->shared));
  release(l, f, false);
  cg_leave_if(l, saved);
  res_op1(l, IR_SLOT_NEXT, f->cursor[1]);
}

/* What follows the loop that blocks share is the first one's. */
static void consume_part(struct lower *l, struct ir_block b) {
  struct ir_builder saved = l->b;
  IR_EACH_OP (l->m, b, o) {
    if (ir_info(ir_op_at(l->m, o)->opcode)->traits & IR_TERM)
      continue;
    cg_lower_op(l, o);
    if (o.id == l->roles->parted.id)
      saved = cg_join_parts(l, o);
  }
  cg_leave_if(l, saved);
}

static void consume_block(struct lower *l, struct ir_block b) {
  struct ir_val has_tile = l->roles->has_tile;
  if (l->roles->parted.id) {
    consume_part(l, b);
    return;
  }
  if (!has_tile.id) {
    cg_lower_block(l, b);
    return;
  }
  struct cg_lval *bound = ARENA_ARRAY(l->a, struct cg_lval, l->n_val);
  memcpy(bound, l->val, l->n_val * sizeof *bound);
  struct ir_op branch = ir_build(&l->b, IR_IF, 1, &has_tile, 0, NULL);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(l->m, branch)->blocks[0]);
  cg_lower_block(l, b);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
  memcpy(l->val, bound, l->n_val * sizeof *bound);
  saved = cg_enter_block(l, ir_op_at(l->m, branch)->blocks[1]);
  walk_loads(l, b, drain_load);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
}

/* ---- the kernel ---- */

static void each_tile(struct lower *l, struct ir_block body,
                      void (*lower)(struct lower *, struct ir_block)) {
  struct ir_type s32 = ir_scalar(DT_S32);
  struct ir_val bounds[3], tiles = cg_s32(l, 1), id;
  for (uint32_t i = 0; i < l->m->n_grid; i++)
    tiles = cg_mul(l, tiles, cg_launch_s32(l, cg_grid_size(l, i)));
  bounds[0] = ir_build1(&l->b, IR_BLOCK_ID, s32, 0, NULL);
  bounds[1] = tiles;
  bounds[2] = ir_build1(&l->b, IR_GRID_SIZE, s32, 0, NULL);
  for (uint32_t i = 0; i < 3 && l->roles->blocks > 1; i += 2)
    bounds[i] = cg_quotient(l, bounds[i], cg_s32(l, l->roles->blocks));
  struct ir_op loop = cg_open_for(l, bounds, 0, NULL, &id, NULL);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(l->m, loop)->blocks[0]);
  if (l->roles->parted.id) {
    struct ir_val passed = cg_op2(l, IR_SUB, id, bounds[0]);
    l->roles->turn = cg_op2(l, IR_AND, cg_quotient(l, passed, bounds[2]), cg_s32(l, 1));
  }
  memset(l->val, 0, l->n_val * sizeof *l->val);
  cg_bind_entry(l, body, id);
  lower(l, body);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
}

static void set_regs(struct lower *l, uint32_t role, bool up) {
  uint32_t regs = l->m->roles.at[role].regs;
  if (!regs)
    return;
  struct ir_op o = ir_build(&l->b, IR_SET_REGS, 0, NULL, 0, NULL);
  cg_set_int(l->m, o, IR_ATTR_count, regs);
  cg_set_int(l->m, o, IR_ATTR_up, up);
}

static void count_store(void *user, struct ir_module *m, struct ir_op o) {
  struct cg_roles *r = ((struct lower *)user)->roles;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode != IR_STORE || !str_eq(cg_attr_word(m, o, IR_ATTR_path), "tma"))
    return;
  bool once = !ir_block_at(m, n->block)->parent.id && (r->store_groups || !r->stores);
  r->store_groups = once ? r->store_groups + cg_store_box_count(user, o) : 0;
  r->stores = true;
}

static struct cg_roles *open_roles(struct lower *l, struct ir_block body) {
  struct ir_module *m = l->m;
  struct cg_roles *r = ARENA_NEW(l->a, struct cg_roles);
  struct ir_type s32 = ir_scalar(DT_S32);
  l->roles = r;
  r->groups = (uint32_t)cg_knob_get(m, CG_KNOB_WARPGROUPS);
  r->blocks = cg_cluster_blocks(m);
  r->axis = cg_cluster_axis(m);
  IR_EACH_OP (m, body, o)
    if (cg_loop_parts(m, o) > 1) {
      r->parted = o;
      r->blocks = cg_loop_parts(m, o);
      r->axis = IR_MAX_GRID; /* all at one tile */
    }
  l->all_threads = l->threads + 32 * m->roles.at[1].warps;
  r->order = ARENA_ARRAY(l->a, uint32_t, l->n_ops);
  ir_walk(m, body, number, l);
  open_feeds(l, body);
  ir_walk(m, body, count_store, l);
  bool reads = false;
  for (uint32_t i = 0; i < r->loads.n; i++)
    reads = reads || r->loads.at[i].to_regs;
  if (r->stores || reads || r->blocks > 1)
    r->group_bar = new_bar(l, "group", 1, r->groups, 128);
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val id = ir_build1(&l->b, IR_THREAD_ID, s32, 0, NULL);
  /* The prologue is everyone's: the producer's warps stand in for the last consumer's there. */
  l->warp = cg_op2(l, IR_MIN, l->warp, cg_s32(l, l->warps - 1));
  r->group = ir_build1(&l->b, IR_WARPGROUP_ID, s32, 0, NULL);
  r->group = cg_op2(l, IR_MIN, r->group, cg_s32(l, r->groups - 1));
  r->thread = id;
  r->in_group = cg_op2(l, IR_AND, id, cg_s32(l, 127));
  r->one = cg_cmp(l, IR_EQ, r->in_group, cg_s32(l, 0));
  if (r->blocks > 1) /* as cluster_rank, which compilers do not know to be the block's */
    r->rank = ir_build1(
        &l->b, IR_MOD, s32, 2,
        (struct ir_val[]){ir_build1(&l->b, IR_BLOCK_ID, s32, 0, NULL), cg_s32(l, r->blocks)});
  r->leads = cg_cmp(l, IR_EQ, id, cg_s32(l, l->threads));
  r->first = cg_cmp(l, IR_EQ, id, cg_s32(l, 0));
  cg_leave_top(l, saved);
  return r;
}

/* Threads of the cluster meet; their memory is ordered by others. */
static void meet_cluster(struct lower *l) {
  struct ir_op o = ir_build(&l->b, IR_CLUSTER_ARRIVE, 0, NULL, 0, NULL);
  cg_set_word(l->m, o, IR_ATTR_sem, "relaxed");
  ir_build(&l->b, IR_CLUSTER_WAIT, 0, NULL, 0, NULL);
}

void cg_lower_roles(struct lower *l, struct ir_block body) {
  struct ir_module *m = l->m;
  struct cg_roles *r = open_roles(l, body);
  bool alone = r->blocks == 1;
  uint32_t start = alone ? new_bar(l, "start", START_BAR, 1, l->all_threads) : 0;
  struct ir_builder saved = cg_enter_if(l, r->first), in;
  for (uint32_t i = 0; i < r->loads.n; i++)
    res_op1(l, IR_TMAP_PREFETCH, r->loads.at[i].tmap);
  cg_leave_if(l, saved);
  saved = cg_enter_if(l, r->leads);
  for (uint32_t i = 0; i < r->feeds.n; i++)
    res_op1(l, IR_PIPE_INIT, r->feeds.at[i].pipe);
  ir_build(&l->b, IR_FENCE_INIT, 0, NULL, 0, NULL);
  cg_leave_if(l, saved);
  if (!alone)
    meet_cluster(l);

  struct ir_type t = ir_scalar(DT_BOOL);
  struct ir_op in_role = ir_build(&l->b, IR_IN_ROLE, 0, NULL, 1, &t);
  cg_set_word(m, in_role, IR_ATTR_role, ir_sym(m, m->roles.at[0].name));
  struct ir_op branch = ir_build(&l->b, IR_IF, 1, &ir_op_at(m, in_role)->out[0], 0, NULL);
  saved = cg_enter_block(l, ir_op_at(m, branch)->blocks[0]);
  if (alone)
    res_op1(l, IR_BAR_SYNC, start);
  set_regs(l, 0, true);
  each_tile(l, body, consume_block);
  if (r->stores) {
    in = cg_enter_if(l, r->one);
    struct ir_op o = ir_build(&l->b, IR_BULK_WAIT, 0, NULL, 0, NULL);
    cg_set_int(m, o, IR_ATTR_pending, 0);
    cg_set_int(m, o, IR_ATTR_read, 1);
    cg_leave_if(l, in);
  }
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);

  saved = cg_enter_block(l, ir_op_at(m, branch)->blocks[1]);
  if (alone)
    res_op1(l, IR_BAR_ARRIVE, start);
  set_regs(l, 1, false);
  if (r->parted.id) {
    each_tile(l, body, produce_part);
  } else {
    in = cg_enter_if(l, r->leads);
    each_tile(l, body, produce_block);
    cg_leave_if(l, in);
  }
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
  /* Nobody leaves while others still load into its memory, or arrive there. */
  if (!alone && !r->parted.id)
    meet_cluster(l);
}
