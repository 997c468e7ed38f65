/* Structured control: blocks, for, if, while; what they carry.
 *
 * A carried tile has one fragment that initial value, block argument, next value and result share.
 * At the end of an iteration the next values are computed before any of the fragments they are read
 * from changes: those that read another carried tile go through a fragment of their own. */
#include "base/check.h"
#include "codegen/lower.h"

static bool is_tile(const struct lower *l, struct ir_val v) {
  return ir_type_of(l->m, v).kind == IR_TILE;
}

static void set_frag(struct lower *l, struct ir_val v, uint32_t frag) {
  l->val[v.id].kind = CG_LV_FRAG;
  l->val[v.id].frag = frag;
}

/* The fragment in which a value starts to be carried by op `user`: its own if no one else reads
 * it. */
static uint32_t carried_frag(struct lower *l, struct ir_op user, struct ir_val init,
                             struct ir_val result) {
  struct ir_module *m = l->m;
  const struct ir_value *x = ir_value_at(m, init);
  struct ir_block home = x->def.id ? ir_op_at(m, x->def)->block : x->block;
  uint32_t layout = cg_layout_of(l, result);
  if (l->val[init.id].kind == CG_LV_FRAG && l->uses.count[init.id] == 1 &&
      home.id == ir_op_at(m, user)->block.id && cg_layout_of(l, init) == layout)
    return l->val[init.id].frag;
  uint32_t frag = cg_new_frag(l, "c", ir_type_of(m, result), layout);
  cg_fill_frag(l, frag, init, layout);
  return frag;
}

/* Is it zeros that the first iteration's dot of warpgroups accumulates to, and nothing else reads?
 * Then that dot makes the fragment, and no one fills it before. */
static bool is_first_made(const struct lower *l, const struct cg_carried *c, uint32_t i) {
  if (!l->roles || !c->frag[i] || !cg_is_zero_tile(l, c->inits[i]) ||
      l->uses.count[c->args[i].id] != 1)
    return false;
  struct cg_use use = l->uses.list.at[l->uses.first[c->args[i].id]];
  return ir_op_at(l->m, use.op)->opcode == IR_DOT && use.operand == 2 &&
         cg_is_wgmma(l->m, use.op) && !cg_wgmma_promotes(l->m, use.op) &&
         ir_op_at(l->m, use.op)->block.id == ir_value_at(l->m, c->args[i])->block.id;
}

void cg_open_carried(struct lower *l, struct ir_op user, struct cg_carried *c) {
  c->frag = ARENA_ARRAY(l->a, uint32_t, c->n + 1);
  c->scalars = ARENA_ARRAY(l->a, struct ir_val, c->n + 1);
  c->n_scalars = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    if (is_tile(l, c->args[i])) {
      c->frag[i] = UINT32_MAX; /* for is_first_made: it has one */
      c->frag[i] = is_first_made(l, c, i) ? cg_new_frag(l, "acc", ir_type_of(l->m, c->args[i]),
                                                        cg_layout_of(l, c->args[i]))
                                          : carried_frag(l, user, c->inits[i], c->args[i]);
    } else
      c->scalars[c->n_scalars++] = cg_scalar(l, c->inits[i]);
  }
}

void cg_bind(struct lower *l, const struct cg_carried *c, const struct ir_val *values,
             const struct ir_val *scalars) {
  for (uint32_t i = 0, s = 0; i < c->n; i++) {
    if (c->frag[i])
      set_frag(l, values[i], c->frag[i]);
    else
      cg_set_scalar(l, values[i], scalars[s++]);
  }
}

/* Does computing v read a fragment of frag[0..n) other than `own`? */
static bool reads_other(const struct lower *l, struct ir_val v, uint32_t n, const uint32_t *frag,
                        uint32_t own) {
  const struct cg_lval *x = &l->val[v.id];
  if (x->kind == CG_LV_FRAG) {
    for (uint32_t i = 0; i < n; i++)
      if (frag[i] && frag[i] == x->frag && x->frag != own)
        return true;
    return false;
  }
  if (x->kind != CG_LV_INLINE)
    return false;
  struct ir_op def = ir_value_at(l->m, v)->def;
  for (uint32_t i = 0; i < ir_op_at(l->m, def)->n_in; i++)
    if (reads_other(l, ir_op_at(l->m, def)->in[i], n, frag, own))
      return true;
  return false;
}

uint32_t cg_put_yields(struct lower *l, uint32_t n, const struct ir_val *yields,
                       const uint32_t *frag, struct ir_val *out) {
  uint32_t *copy = ARENA_ARRAY(l->a, uint32_t, n + 1), n_out = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!frag[i]) {
      out[n_out++] = cg_scalar(l, yields[i]);
    } else if (reads_other(l, yields[i], n, frag, frag[i])) {
      struct ir_res *r = &l->m->res.at[frag[i]];
      uint32_t layout = r->layout;
      copy[i] = cg_new_frag(l, "y", r->type, layout);
      cg_fill_frag(l, copy[i], yields[i], layout);
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!frag[i] || copy[i])
      continue;
    const struct cg_lval *x = &l->val[yields[i].id];
    if (x->kind != CG_LV_FRAG || x->frag != frag[i])
      cg_fill_frag(l, frag[i], yields[i], l->m->res.at[frag[i]].layout);
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!copy[i])
      continue;
    uint32_t elems = cg_frag_elems(l, frag[i]), w = cg_put_width(l, frag[i]);
    struct ir_builder saved;
    struct ir_val r = cg_muli(l, cg_each(l, elems / w, &saved), w), v[4];
    for (uint32_t k = 0; k < w; k++)
      v[k] = cg_fget(l, copy[i], cg_addi(l, r, k));
    cg_fput(l, frag[i], r, w, v);
    cg_end_each(l, saved);
  }
  return n_out;
}

struct ir_builder cg_enter_block(struct lower *l, struct ir_block b) {
  struct ir_builder saved = l->b;
  l->b.block = b;
  l->b.before = (struct ir_op){0};
  cg_next_reg(l);
  return saved;
}

void cg_leave_block(struct lower *l, struct ir_builder saved, enum ir_opcode end, uint32_t n,
                    const struct ir_val *v) {
  ir_build(&l->b, end, n, v, 0, NULL);
  l->b = saved;
  cg_next_reg(l);
}

static struct ir_type *scalar_types(struct lower *l, uint32_t n, const struct ir_val *v) {
  struct ir_type *t = ARENA_ARRAY(l->a, struct ir_type, n + 1);
  for (uint32_t i = 0; i < n; i++)
    t[i] = ir_type_of(l->m, v[i]);
  return t;
}

struct ir_op cg_open_for(struct lower *l, const struct ir_val bounds[3], uint32_t n,
                         const struct ir_val *inits, struct ir_val *index, struct ir_val *args) {
  struct ir_val *in = ARENA_ARRAY(l->a, struct ir_val, n + 3);
  for (uint32_t i = 0; i < 3; i++)
    in[i] = bounds[i];
  for (uint32_t i = 0; i < n; i++)
    in[3 + i] = inits[i];
  struct ir_op o = ir_build(&l->b, IR_FOR, 3 + n, in, n, scalar_types(l, n, inits));
  struct ir_block body = ir_op_at(l->m, o)->blocks[0];
  *index = ir_add_arg(l->m, body, ir_type_of(l->m, bounds[0]));
  for (uint32_t i = 0; i < n; i++)
    args[i] = ir_add_arg(l->m, body, ir_type_of(l->m, inits[i]));
  return o;
}

struct cg_carried cg_carried_of_for(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  const struct ir_blocknode *b = ir_block_at(m, n->blocks[0]);
  struct cg_carried c = {.n = n->n_out, .inits = n->in + 3, .args = b->args.at + 1};
  c.results = n->out;
  c.yields = ir_op_at(m, b->last)->in;
  return c;
}

void cg_lower_for(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  if (!l->roles && cg_lower_pipelined_for(l, o))
    return;
  struct cg_carried c = cg_carried_of_for(l, o);
  struct ir_block body = ir_op_at(m, o)->blocks[0];
  struct ir_val bounds[3], index;
  for (uint32_t i = 0; i < 3; i++)
    bounds[i] = cg_scalar(l, ir_op_at(m, o)->in[i]);
  cg_cut_bounds(l, o, bounds);
  if (l->roles && l->roles->parted.id == o.id)
    l->roles->part_start = bounds[0];
  cg_open_carried(l, o, &c);
  struct ir_val *args = ARENA_ARRAY(l->a, struct ir_val, c.n + 1);
  struct ir_op loop = cg_open_for(l, bounds, c.n_scalars, c.scalars, &index, args);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(m, loop)->blocks[0]);
  cg_set_scalar(l, ir_block_at(m, body)->args.at[0], index);
  cg_bind(l, &c, c.args, args);
  for (uint32_t i = 0; i < c.n; i++)
    if (is_first_made(l, &c, i))
      l->val[c.args[i].id].filled = cg_cmp(l, IR_GT, index, bounds[0]);
  cg_lower_block(l, body);
  struct ir_val *next = ARENA_ARRAY(l->a, struct ir_val, c.n + 1);
  uint32_t n = cg_put_yields(l, c.n, c.yields, c.frag, next);
  cg_leave_block(l, saved, IR_YIELD, n, next);
  cg_bind(l, &c, c.results, ir_op_at(m, loop)->out);
  if (!l->roles)
    return;
  cg_settle_dots(l, body, cg_cmp(l, IR_LT, bounds[0], bounds[1]));
  for (uint32_t i = 0; i < c.n; i++)
    if (is_first_made(l, &c, i) && cg_loop_parts(m, o) > 1) {
      l->val[c.results[i].id].filled = cg_cmp(l, IR_LT, bounds[0], bounds[1]);
    } else if (is_first_made(l, &c, i)) {
      struct ir_builder none = cg_enter_if(l, cg_cmp(l, IR_GE, bounds[0], bounds[1]));
      cg_ffill(l, c.frag[i], cg_zero_of(l, (enum dtype)ir_type_of(m, c.args[i]).dtype));
      cg_leave_if(l, none);
    }
}

/* Is every use of v in the branches of op o, directly in their blocks? */
static bool is_used_in(const struct lower *l, struct ir_val v, const struct ir_opnode *o) {
  for (uint32_t i = l->uses.first[v.id]; i; i = l->uses.list.at[i].next) {
    struct ir_block b = ir_op_at(l->m, l->uses.list.at[i].op)->block;
    if (b.id != o->blocks[0].id && b.id != o->blocks[1].id)
      return false;
  }
  return true;
}

/* The fragment of the branches' result i. Where one side yields a tile that nothing else reads, and
 * the other what is computed from it element by element, that tile's own: one side then leaves it
 * as it is. */
static uint32_t branch_frag(struct lower *l, struct ir_op o, uint32_t i) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_val out = n->out[i];
  for (int side = 0; side < 2 && n->n_out == 1; side++) {
    struct ir_val kept = ir_op_at(m, ir_block_at(m, n->blocks[side])->last)->in[i];
    struct ir_val other = ir_op_at(m, ir_block_at(m, n->blocks[1 - side])->last)->in[i];
    const struct ir_value *x = ir_value_at(m, kept);
    struct ir_op def = ir_value_at(m, other)->def;
    if (l->val[kept.id].kind == CG_LV_FRAG && x->def.id &&
        ir_op_at(m, x->def)->block.id == n->block.id && is_used_in(l, kept, n) &&
        cg_layout_of(l, kept) == cg_layout_of(l, out) && def.id &&
        ir_op_at(m, def)->block.id == n->blocks[1 - side].id && ir_op_at(m, def)->prev.id == 0 &&
        cg_is_elementwise(ir_op_at(m, def)->opcode))
      return l->val[kept.id].frag;
  }
  return cg_new_frag(l, "i", ir_type_of(m, out), cg_layout_of(l, out));
}

void cg_lower_if(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  struct cg_carried c = {.n = n.n_out, .results = n.out};
  c.frag = ARENA_ARRAY(l->a, uint32_t, c.n + 1);
  struct ir_val *out = ARENA_ARRAY(l->a, struct ir_val, c.n + 1), cond = cg_scalar(l, n.in[0]);
  uint32_t n_scalars = 0;
  for (uint32_t i = 0; i < c.n; i++) {
    if (is_tile(l, n.out[i]))
      c.frag[i] = branch_frag(l, o, i);
    else
      out[n_scalars++] = n.out[i];
  }
  struct ir_op branch =
      ir_build(&l->b, IR_IF, 1, &cond, n_scalars, scalar_types(l, n_scalars, out));
  for (int i = 0; i < 2; i++) {
    struct ir_builder saved = cg_enter_block(l, ir_op_at(m, branch)->blocks[i]);
    cg_lower_block(l, n.blocks[i]);
    const struct ir_opnode *last = ir_op_at(m, ir_block_at(m, n.blocks[i])->last);
    uint32_t k = cg_put_yields(l, c.n, last->in, c.frag, out);
    cg_leave_block(l, saved, IR_YIELD, k, out);
  }
  cg_bind(l, &c, c.results, ir_op_at(m, branch)->out);
}

/* while: block 0 computes the condition from the carried values and passes values to block 1 and to
 * the results; block 1 yields the next carried ones. */
void cg_lower_while(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  struct cg_carried head = {.n = n.n_in, .inits = n.in};
  struct cg_carried body = {.n = n.n_out, .results = n.out};
  head.args = ir_block_at(m, n.blocks[0])->args.at;
  body.args = ir_block_at(m, n.blocks[1])->args.at;
  cg_open_carried(l, o, &head);
  body.frag = ARENA_ARRAY(l->a, uint32_t, body.n + 1);
  struct ir_val *results = ARENA_ARRAY(l->a, struct ir_val, body.n + 1);
  for (uint32_t i = 0; i < body.n; i++) {
    if (is_tile(l, n.out[i]))
      body.frag[i] = cg_new_frag(l, "w", ir_type_of(m, n.out[i]), cg_layout_of(l, n.out[i]));
    else
      results[body.n_scalars++] = n.out[i];
  }
  struct ir_op loop = ir_build(&l->b, IR_WHILE, head.n_scalars, head.scalars, body.n_scalars,
                               scalar_types(l, body.n_scalars, results));
  struct ir_val *args = ARENA_ARRAY(l->a, struct ir_val, head.n + body.n + 2);
  struct ir_block b = ir_op_at(m, loop)->blocks[0];
  for (uint32_t i = 0; i < head.n_scalars; i++)
    args[i] = ir_add_arg(m, b, ir_type_of(m, head.scalars[i]));
  struct ir_builder saved = cg_enter_block(l, b);
  cg_bind(l, &head, head.args, args);
  cg_lower_block(l, n.blocks[0]);
  const struct ir_opnode *last = ir_op_at(m, ir_block_at(m, n.blocks[0])->last);
  struct ir_val *out = ARENA_ARRAY(l->a, struct ir_val, head.n + body.n + 2);
  out[0] = cg_scalar(l, last->in[0]);
  uint32_t k = cg_put_yields(l, body.n, last->in + 1, body.frag, out + 1);
  cg_leave_block(l, saved, IR_CONDITION, k + 1, out);

  b = ir_op_at(m, loop)->blocks[1];
  for (uint32_t i = 0; i < body.n_scalars; i++)
    args[i] = ir_add_arg(m, b, ir_type_of(m, results[i]));
  saved = cg_enter_block(l, b);
  cg_bind(l, &body, body.args, args);
  cg_lower_block(l, n.blocks[1]);
  last = ir_op_at(m, ir_block_at(m, n.blocks[1])->last);
  k = cg_put_yields(l, head.n, last->in, head.frag, out);
  cg_leave_block(l, saved, IR_YIELD, k, out);
  cg_bind(l, &body, body.results, ir_op_at(m, loop)->out);
}

/* ---- ops ---- */

static void lower_scalar(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_val v = n->out[0], in[3];
  if (n->opcode == IR_CONST) {
    enum dtype t = (enum dtype)ir_type_of(m, v).dtype;
    const struct ir_attr *a = ir_get_attr(m, o, IR_ATTR_value);
    struct ir_attr value = *a;
    struct ir_builder saved = cg_enter_top(l);
    struct ir_val x = dtype_is_float(t) ? ir_const_num(&l->b, t, value.f)
                      : t == DT_INDEX   ? cg_index(l, value.i)
                                        : ir_const_int(&l->b, t, value.i);
    cg_leave_top(l, saved);
    cg_set_scalar(l, v, x);
    return;
  }
  if (n->opcode == IR_ITEM) {
    uint32_t frag = cg_materialize(l, n->in[0], "s");
    cg_set_scalar(l, v, cg_fget(l, frag, cg_s32(l, 0)));
    return;
  }
  if (n->opcode == IR_BITCAST) {
    cg_set_scalar(l, v, cg_bitcast(l, cg_scalar(l, n->in[0]), (enum dtype)ir_type_of(m, v).dtype));
    return;
  }
  KILN_ASSERT(cg_is_elementwise(n->opcode));
  for (uint32_t i = 0; i < n->n_in; i++)
    in[i] = cg_scalar(l, n->in[i]);
  cg_set_scalar(l, v, cg_scalar_op(l, o, in));
}

static void lower_dim(struct lower *l, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(l->m, o);
  int64_t axis = ir_attr_int(l->m, o, IR_ATTR_axis, 0);
  struct ir_val v = n->out[0];
  cg_set_scalar(l, v, cg_view_size(l, &cg_view_at(l, n->in[0])->dim[axis]));
}

static void lower_assert(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[0];
  const struct ir_attr *message = ir_get_attr(m, o, IR_ATTR_message);
  struct ir_attr text = message ? *message : (struct ir_attr){0};
  struct ir_builder saved = l->b;
  struct ir_val ok;
  if (is_tile(l, v)) {
    uint32_t layout = cg_layout_of(l, v);
    const struct layout *x = cg_layout_at(l, layout);
    struct ir_val r = cg_each(l, layout_extent(x, LAYOUT_REG), &saved);
    cg_next_reg(l);
    ok = cg_eval(l, v, r, layout);
    for (uint32_t d = 0; d < x->rank; d++)
      if (cg_layout_cover(x, d) > x->shape[d]) {
        struct ir_val end = cg_s32(l, x->shape[d]);
        ok = cg_op2(l, IR_OR, ok, cg_cmp(l, IR_GE, cg_coord(l, layout, d, r), end));
      }
  } else {
    ok = cg_scalar(l, v);
  }
  struct ir_op check = ir_build(&l->b, IR_CHECK, 1, &ok, 0, NULL);
  if (message)
    ir_set_attr(m, check, text);
  cg_end_each(l, saved);
}

/* Does a reshape change more than unit dims, so that elements change places? */
static bool reshuffles(struct lower *l, struct ir_op o) {
  struct ir_val in = ir_op_at(l->m, o)->in[0], out = ir_op_at(l->m, o)->out[0];
  struct ir_type t = ir_type_of(l->m, out);
  const struct layout *x =
      cg_layout_reshape(l->a, cg_layout_at(l, cg_layout_of(l, in)), t.rank, t.dim);
  return !x || !layout_eq(x, cg_layout_at(l, cg_layout_of(l, out)));
}

void cg_lower_op(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  enum ir_opcode c = n->opcode;
  l->b.loc = n->loc;
  if (c == IR_FOR)
    cg_lower_for(l, o);
  else if (c == IR_IF)
    cg_lower_if(l, o);
  else if (c == IR_WHILE)
    cg_lower_while(l, o);
  else if (c == IR_LOAD && cg_unit_load_of(l, o))
    cg_consume_load(l, o);
  else if (c == IR_LOAD && !cg_goes_to_registers(m, o))
    cg_lower_smem_load(l, o);
  else if (c == IR_LOAD)
    cg_lower_load(l, o);
  else if (c == IR_STORE && str_eq(cg_attr_word(m, o, IR_ATTR_path), "tma"))
    cg_store_boxes(l, o);
  else if (c == IR_STORE)
    cg_lower_store(l, o);
  else if (c == IR_DOT)
    cg_lower_dot(l, o);
  else if (cg_is_reduce(c))
    cg_lower_reduce(l, o);
  else if (c == IR_SCAN_SUM)
    cg_lower_scan(l, o);
  else if (c == IR_GATHER)
    cg_lower_gather(l, o);
  else if (c == IR_SCATTER)
    cg_lower_scatter(l, o);
  else if (c == IR_ATOMIC)
    cg_lower_atomic(l, o);
  else if (c == IR_CONVERT)
    cg_lower_convert(l, o);
  else if (c == IR_EXTRACT)
    cg_lower_extract(l, o);
  else if (c == IR_CONCAT)
    cg_lower_concat(l, o);
  else if (c == IR_PRINT)
    cg_lower_print(l, o);
  else if (c == IR_ASSERT)
    lower_assert(l, o);
  else if (ir_is_view_op(c))
    cg_lower_view(l, o);
  else if (c == IR_DIM)
    lower_dim(l, o);
  else if (n->n_out == 1 && ir_type_of(m, n->out[0]).kind == IR_SCALAR)
    lower_scalar(l, o);
  else if (c == IR_RESHAPE && !cg_is_smem_only(m, &l->uses, n->out[0]) && reshuffles(l, o))
    cg_lower_convert(l, o);
  else
    cg_lower_lazy(l, o);
  if (l->roles && (c == IR_FOR || c == IR_IF || c == IR_WHILE)) {
    cg_release_feeds(l, o, false, cg_bool(l, true));
    cg_advance_feeds(l, o);
  }
}

void cg_lower_block(struct lower *l, struct ir_block b) {
  IR_EACH_OP (l->m, b, o) {
    if (!(ir_info(ir_op_at(l->m, o)->opcode)->traits & IR_TERM))
      cg_lower_op(l, o);
  }
}
