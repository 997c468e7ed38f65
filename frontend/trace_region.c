/* Regions of the trace: blocks of device loops and branches, and the structured ops they end in.
 *
 * A region's ops go into a block of their own (SHORT and PROBE: into the block around). Regions
 * close in reverse order, so all that a region made lies at the end of the module's tables:
 * dropping it is cutting them. A kept block waits, with no owner, until build_* hands it to its
 * op. */
#include "base/check.h"
#include "frontend/dsl.h"

/* What open() remembers. */
struct mark {
  uint32_t values, ops, blocks, srcs, extents;
  struct ir_builder builder; /* of the block around */
  struct ir_op last;         /* last op of that block then */
  struct ir_block own[2];    /* while: condition, body */
  struct dsl_val *index;     /* the for's index */
  VEC(struct dsl_val *)
  args; /* carried slots, as the loop's (while: the condition's) block has them */
};

static struct mark *mark_of(const struct fe_region *r) {
  return r->user[0];
}

static bool has_block(const struct fe_region *r) {
  return r->kind == FE_REGION_LOOP || r->kind == FE_REGION_THEN || r->kind == FE_REGION_ELSE ||
         r->kind == FE_REGION_MERGE;
}

static const char *construct(const struct fe_region *r) {
  switch (r->kind) {
  case FE_REGION_LOOP: return "a device loop";
  case FE_REGION_MERGE: return "a merge function";
  case FE_REGION_THEN:
  case FE_REGION_ELSE: return "`if` on a device condition";
  case FE_REGION_PROBE: return "`while` on a device condition";
  case FE_REGION_ROOT:
  case FE_REGION_SHORT: break;
  }
  return "this";
}

static void open_region(void *user, struct fe_region *r) {
  struct fe_file *f = user;
  struct mark *m = r->user[0] ? r->user[0] : ARENA_NEW(fe_trace_arena(f->fe), struct mark);
  r->user[0] = m;
  *m = (struct mark){.builder = f->b};
  if (!f->m)
    return;
  if (f->mode == DSL_GRID && has_block(r))
    fe_error(f->fe, DIAG_STAGE_CONTROL,
             "%s is not available in grid: a launch computes expressions; use where, min or max",
             construct(r));
  m->values = f->m->values.n;
  m->ops = f->m->ops.n;
  m->blocks = f->m->blocks.n;
  m->srcs = f->srcs.n;
  m->extents = f->extents.n;
  m->last = ir_block_at(f->m, f->b.block)->last;
  if (has_block(r))
    f->b.block = m->own[0] = ir_new_block(f->m, (struct ir_op){0});
}

static void close_region(void *user, struct fe_region *r, bool keep) {
  struct fe_file *f = user;
  struct mark *m = mark_of(r);
  if (!m || !f->m)
    return;
  f->b = m->builder;
  if (keep || r->kind == FE_REGION_ROOT)
    return;
  /* Nothing outside refers to what is cut: uses of it are refused by fe_check_open. */
  struct ir_blocknode *b = ir_block_at(f->m, f->b.block);
  b->last = m->last;
  if (m->last.id)
    ir_op_at(f->m, m->last)->next = (struct ir_op){0};
  else
    b->first = (struct ir_op){0};
  f->m->values.n = m->values;
  f->m->ops.n = m->ops;
  f->m->blocks.n = m->blocks;
  f->srcs.n = m->srcs;
  f->extents.n = m->extents;
}

static const char *effect(void *user, struct fe_region *r) {
  struct fe_file *f = user;
  if (!f->m)
    return NULL;
  for (uint32_t i = mark_of(r)->ops; i < f->m->ops.n; i++)
    if (ir_info(f->m->ops.at[i].opcode)->traits & IR_EFFECT)
      return ir_info(f->m->ops.at[i].opcode)->name;
  return NULL;
}

/* ---- values at the borders ---- */

/* The value at a stack index as `type`: plain ones become constants in the present block. Never
 * NULL: what an earlier error left unknown becomes 0, the module is discarded anyway. */
static struct dsl_val *slot_val(struct fe_file *f, int idx, struct ir_type type) {
  lua_State *L = fe_lua(f->fe);
  struct fe_dev *h = fe_to_dev(L, idx);
  struct dsl_val *v = NULL;
  if (h && !fe_is_unknown(h) && h->kind == FE_DEV_VALUE) {
    v = (struct dsl_val *)h;
    if (ir_type_eq(v->t, type))
      return v;
    v = NULL;
  } else if (!h) {
    struct dsl_opnd o;
    if (dsl_opnd_at(f, idx, "a constant", &o) && type.kind == IR_SCALAR)
      v = dsl_const(f, (enum dtype)type.dtype, &o);
  }
  if (v)
    return v;
  struct dsl_opnd zero = {.kind = type.dtype == DT_BOOL ? DSL_BOOL : DSL_INT};
  v = dsl_const(f, (enum dtype)type.dtype, &zero);
  return dsl_grow(f, v, type);
}

static void name_value(struct fe_file *f, struct ir_val v, const char *name) {
  if (name && *name)
    ir_value_at(f->m, v)->name = symtab_get(f->m->syms, name);
}

/* ---- for ---- */

static struct dsl_range *range_at(struct fe_file *f, int idx) {
  struct fe_dev *h = fe_to_dev(fe_lua(f->fe), idx);
  KILN_ASSERT(h && h->kind == FE_DEV_RANGE);
  return (struct dsl_range *)h;
}

static void loop_index(void *user, struct fe_region *r, int range) {
  struct fe_file *f = user;
  struct ir_type t = ir_scalar(DT_INDEX);
  struct dsl_val *v = dsl_new_val(f, t, ir_add_arg(f->m, f->b.block, t));
  const struct dsl_range *g = range_at(f, range);
  fe_check_open(f->fe, &g->h, g->made);
  int64_t lo = g->lo.i, hi = g->hi.i;
  bool known = g->lo.kind == DSL_INT && g->hi.kind == DSL_INT;
  if (known && hi > lo) {
    /* The last index that the loop reaches. */
    uint64_t trips = ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)g->step;
    v->has_range = true;
    v->lo = lo;
    v->hi = (int64_t)((uint64_t)lo + trips * (uint64_t)g->step);
  }
  mark_of(r)->index = v;
  dsl_push(f, v);
}

static void loop_arg(void *user, struct fe_region *r, const struct fe_slot *slot) {
  struct fe_file *f = user;
  struct ir_type t = dsl_type(f, slot->type);
  struct dsl_val *v = dsl_new_val(f, t, ir_add_arg(f->m, f->b.block, t));
  name_value(f, v->v, slot->name);
  struct fe_dev *h = fe_to_dev(fe_lua(f->fe), slot->first);
  if (h && h->kind == FE_DEV_VALUE && !fe_is_unknown(h)) {
    /* What is in padding at first; build_for compares it with what an iteration leaves there. */
    const struct dsl_val *init = (const struct dsl_val *)h;
    if (init->is_const && t.kind == IR_TILE) {
      struct dsl_pad p[IR_MAX_RANK];
      for (uint32_t d = 0; d < t.rank; d++)
        p[d] = dsl_pad_of(init, d);
      v->pads = arena_copy(fe_trace_arena(f->fe), p, t.rank * sizeof *p);
    } else {
      v->pads = init->pads;
    }
  }
  VEC_PUSH(fe_trace_arena(f->fe), &mark_of(r)->args, v);
  dsl_push(f, v);
}

/* Hands a waiting block to an op in place of the empty one that came with it. */
static void adopt_block(struct fe_file *f, struct ir_op o, uint32_t i, struct ir_block b) {
  ir_op_at(f->m, o)->blocks[i] = b;
  ir_block_at(f->m, b)->parent = o;
}

/* Builds the op and drops the empty blocks that ir_build made for it: they are the newest. */
static struct ir_op build_owner(struct fe_file *f, enum ir_opcode op, uint32_t n_in,
                                const struct ir_val *in, uint32_t n_out,
                                const struct ir_type *out) {
  struct ir_op o = dsl_build(f, op, n_in, in, n_out, out);
  f->m->blocks.n -= ir_info(op)->n_blocks;
  return o;
}

/* Ends a block with a yield of the values on one side of the slots. */
static void end_block(struct fe_file *f, struct ir_block b, uint32_t n, const struct fe_slot *slots,
                      bool second, struct dsl_val **vals) {
  struct ir_block around = f->b.block;
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n + 1);
  f->b.block = b;
  for (uint32_t i = 0; i < n; i++) {
    vals[i] = slot_val(f, second ? slots[i].second : slots[i].first, dsl_type(f, slots[i].type));
    in[i] = vals[i]->v;
  }
  dsl_build(f, IR_YIELD, n, in, 0, NULL);
  f->b.block = around;
}

static void push_results(struct fe_file *f, struct ir_op o, uint32_t n, const struct fe_slot *slots,
                         struct dsl_val *const *a, struct dsl_val *const *b) {
  for (uint32_t i = 0; i < n; i++) {
    struct ir_val v = ir_op_at(f->m, o)->out[i];
    struct ir_type t = ir_type_of(f->m, v);
    name_value(f, v, slots[i].name);
    struct dsl_val *d = dsl_new_val(f, t, v);
    if (a)
      d->pads = dsl_pad_join(f, a[i], b[i], t);
    dsl_push(f, d);
  }
}

static struct ir_type *result_types(struct fe_file *f, uint32_t n, const struct fe_slot *slots) {
  struct ir_type *t = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_type, n + 1);
  for (uint32_t i = 0; i < n; i++)
    t[i] = dsl_type(f, slots[i].type);
  return t;
}

static struct dsl_val **val_array(struct fe_file *f, uint32_t n) {
  return ARENA_ARRAY(fe_trace_arena(f->fe), struct dsl_val *, n + 1);
}

static struct ir_val bound(struct fe_file *f, const struct dsl_opnd *o) {
  return o->kind == DSL_DEV ? o->dev->v : dsl_const(f, DT_INDEX, o)->v;
}

static void build_for(void *user, struct fe_region *r, int range, uint32_t n,
                      const struct fe_slot *slots) {
  struct fe_file *f = user;
  struct mark *m = mark_of(r);
  const struct dsl_range *g = range_at(f, range);
  struct dsl_val **inits = val_array(f, n), **nexts = val_array(f, n);
  end_block(f, m->own[0], n, slots, true, nexts);
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n + 3);
  in[0] = bound(f, &g->lo);
  in[1] = bound(f, &g->hi);
  in[2] = dsl_const_int(f, DT_INDEX, g->step)->v;
  for (uint32_t i = 0; i < n; i++) {
    inits[i] = slot_val(f, slots[i].first, dsl_type(f, slots[i].type));
    in[i + 3] = inits[i]->v;
  }
  struct ir_op o = build_owner(f, IR_FOR, n + 3, in, n, result_types(f, n, slots));
  adopt_block(f, o, 0, m->own[0]);
  push_results(f, o, n, slots, inits, nexts);
}

/* ---- merge ---- */

static bool merge_fn(void *user, int range) {
  struct fe_file *f = user;
  const struct dsl_range *g = range_at(f, range);
  if (!g->has_merge)
    return false;
  lua_rawgetp(fe_lua(f->fe), LUA_REGISTRYINDEX, g);
  return true;
}

static const struct dsl_val *val_at(struct fe_file *f, int idx) {
  struct fe_dev *h = fe_to_dev(fe_lua(f->fe), idx);
  KILN_ASSERT(h && h->kind == FE_DEV_VALUE);
  return (const struct dsl_val *)h;
}

static void merge_args(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots) {
  struct fe_file *f = user;
  lua_State *L = fe_lua(f->fe);
  (void)r;
  for (int part = 0; part < 2; part++) {
    lua_createtable(L, 0, (int)n);
    for (uint32_t i = 0; i < n; i++) {
      struct ir_type t = dsl_type(f, slots[i].type);
      struct dsl_val *v = dsl_new_val(f, t, ir_add_arg(f->m, f->b.block, t));
      name_value(f, v->v, slots[i].name);
      v->pads = val_at(f, slots[i].first)->pads;
      lua_pushstring(L, slots[i].name);
      dsl_push(f, v);
      lua_rawset(L, -3);
    }
  }
}

/* The first op of the block that a merge may not have. */
static void check_merge_ops(struct fe_file *f, struct ir_block b) {
  for (struct ir_op o = ir_block_at(f->m, b)->first; o.id; o = ir_op_at(f->m, o)->next) {
    const struct ir_opnode *n = ir_op_at(f->m, o);
    if (!n->n_blocks && (ir_info(n->opcode)->traits & (IR_PURE | IR_TERM)))
      continue;
    fe_soft_error_at(f->fe, DIAG_STAGE_CONTROL, f->m->locs.at[n->loc].at,
                     "`%s` in a merge function: it computes from its two arguments, with no loop, "
                     "branch or memory",
                     ir_info(n->opcode)->name);
    return;
  }
}

static void build_merge(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots) {
  struct fe_file *f = user;
  struct mark *m = mark_of(r);
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n + 1);
  struct dsl_val **whole = val_array(f, n), **merged = val_array(f, n);
  end_block(f, m->own[0], n, slots, true, merged);
  check_merge_ops(f, m->own[0]);
  for (uint32_t i = 0; i < n; i++) {
    whole[i] = slot_val(f, slots[i].first, dsl_type(f, slots[i].type));
    in[i] = whole[i]->v;
  }
  struct ir_op o = build_owner(f, IR_MERGE, n, in, n, result_types(f, n, slots));
  adopt_block(f, o, 0, m->own[0]);
  push_results(f, o, n, slots, whole, merged);
}

/* ---- while ---- */

/* The condition changes no slot, so its block passes on what it was given. */
static void while_cond(void *user, struct fe_region *r, int mask, uint32_t n,
                       const struct fe_slot *slots) {
  struct fe_file *f = user;
  struct mark *m = mark_of(r);
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n + 1);
  KILN_ASSERT(m->args.n == n);
  in[0] = slot_val(f, mask, ir_scalar(DT_BOOL))->v;
  for (uint32_t i = 0; i < n; i++)
    in[i + 1] = m->args.at[i]->v;
  dsl_build(f, IR_CONDITION, n + 1, in, 0, NULL);
  f->b.block = m->own[1] = ir_new_block(f->m, (struct ir_op){0});
  for (uint32_t i = 0; i < n; i++) {
    struct ir_type t = m->args.at[i]->t;
    struct dsl_val *v = dsl_new_val(f, t, ir_add_arg(f->m, f->b.block, t));
    name_value(f, v->v, slots[i].name);
    v->pads = m->args.at[i]->pads;
    dsl_push(f, v);
  }
}

static void build_while(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots) {
  struct fe_file *f = user;
  struct mark *m = mark_of(r);
  struct dsl_val **inits = val_array(f, n), **nexts = val_array(f, n);
  end_block(f, m->own[1], n, slots, true, nexts);
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    inits[i] = slot_val(f, slots[i].first, dsl_type(f, slots[i].type));
    in[i] = inits[i]->v;
  }
  struct ir_op o = build_owner(f, IR_WHILE, n, in, n, result_types(f, n, slots));
  adopt_block(f, o, 0, m->own[0]);
  adopt_block(f, o, 1, m->own[1]);
  push_results(f, o, n, slots, inits, nexts);
}

/* ---- if ---- */

static void build_if(void *user, struct fe_region *then_side, struct fe_region *else_side, int cond,
                     uint32_t n, const struct fe_slot *slots) {
  struct fe_file *f = user;
  struct dsl_val **a = val_array(f, n), **b = val_array(f, n);
  end_block(f, mark_of(then_side)->own[0], n, slots, false, a);
  end_block(f, mark_of(else_side)->own[0], n, slots, true, b);
  struct ir_val c = slot_val(f, cond, ir_scalar(DT_BOOL))->v;
  struct ir_op o = build_owner(f, IR_IF, 1, &c, n, result_types(f, n, slots));
  adopt_block(f, o, 0, mark_of(then_side)->own[0]);
  adopt_block(f, o, 1, mark_of(else_side)->own[0]);
  push_results(f, o, n, slots, a, b);
}

void dsl_fill_region_hooks(struct fe_tracer *t) {
  t->open = open_region;
  t->close = close_region;
  t->effect = effect;
  t->loop_index = loop_index;
  t->loop_arg = loop_arg;
  t->while_cond = while_cond;
  t->build_if = build_if;
  t->build_for = build_for;
  t->build_while = build_while;
  t->merge_fn = merge_fn;
  t->merge_args = merge_args;
  t->build_merge = build_merge;
}
