/* Elements at indices: gather, scatter, atomic. See ir/interp_gather.c for what they mean.
 *
 * A thread computes the address of each register's element from its indices, scalars of which are
 * added up before the loop over registers. Where adjacent elements of the result are adjacent in
 * memory for sure (pass_bound_accesses.c), several go in one access. An element changes atomically
 * once, by the thread that writes for all its copies; where these want the old value, it goes
 * through shared memory. */
#include "base/check.h"
#include "codegen/lower.h"

struct picker {
  struct ir_op op;
  struct ir_type t; /* of what is selected: a scalar or a tile */
  uint32_t rank;    /* of the view */
  uint32_t layout;  /* of the tile */
  uint32_t vec;
  const struct cg_view *view;
  const struct ir_attr *masks;
  struct ir_val base;   /* pointer: the view's base and the indices that are scalars */
  struct ir_val inside; /* bool: these are in range */
};

static bool is_tile(const struct lower *l, struct ir_val v) {
  return ir_type_of(l->m, v).kind == IR_TILE;
}

static struct ir_val and_of(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_AND, a, b);
}

/* Is index x of the view's dim k in range? */
static struct ir_val in_range(struct lower *l, const struct picker *p, uint32_t k,
                              struct ir_val x) {
  const struct cg_view_dim *d = &p->view->dim[k];
  struct ir_val ok = cg_bool(l, true);
  if (p->masks->ints[k] & IR_MASK_END)
    ok = cg_cmp(l, IR_LT, x, cg_view_end(l, d));
  if (p->masks->ints[k] & IR_MASK_START)
    ok = and_of(l, ok, cg_cmp(l, IR_GE, x, d->start));
  return ok;
}

static struct ir_val ptr_add(struct lower *l, struct ir_val ptr, struct ir_val at) {
  int64_t c;
  if (cg_is_const(l, at, &c) && c == 0)
    return ptr;
  return ir_build1(&l->b, IR_PTR_ADD, ir_type_of(l->m, ptr), 2, (struct ir_val[]){ptr, at});
}

/* value: what is selected, or what has its type. */
static struct picker open_picker(struct lower *l, struct ir_op o, struct ir_val value) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  struct picker p = {.op = o, .t = ir_type_of(m, value), .rank = ir_type_of(m, n.in[0]).rank};
  p.layout = is_tile(l, value) ? cg_layout_of(l, value) : 0;
  p.vec = (uint32_t)ir_attr_int(m, o, IR_ATTR_vec, 1);
  p.view = cg_view_at(l, n.in[0]);
  p.masks = ir_get_attr(m, o, IR_ATTR_masks);
  p.inside = p.view->inside;
  cg_check_view(l, p.view);
  struct ir_val at = p.view->base;
  for (uint32_t k = 0; k < p.rank; k++) {
    if (is_tile(l, n.in[1 + k]))
      continue;
    struct ir_val x = cg_scalar(l, n.in[1 + k]);
    p.inside = and_of(l, p.inside, in_range(l, &p, k, x));
    at = cg_add(l, at, cg_view_step(l, &p.view->dim[k], x));
  }
  p.base = ptr_add(l, l->arg_ptr[p.view->arg], at);
  return p;
}

/* The element of register r: its address, and whether it is there. */
static void pick(struct lower *l, const struct picker *p, struct ir_val r, struct ir_val *ptr,
                 struct ir_val *mask) {
  struct ir_val at = cg_index(l, 0);
  *mask = p->inside;
  cg_next_reg(l);
  for (uint32_t k = 0; k < p->rank; k++) {
    struct ir_val index = ir_op_at(l->m, p->op)->in[1 + k];
    if (!is_tile(l, index))
      continue;
    struct ir_val x = cg_eval_grown(l, index, p->t, r, p->layout);
    at = cg_add(l, at, cg_view_step(l, &p->view->dim[k], x));
    *mask = and_of(l, *mask, in_range(l, p, k, x));
  }
  *mask = and_of(l, *mask, cg_inside_tile(l, p->t, p->layout, r));
  *ptr = ptr_add(l, p->base, at);
}

/* A gather that dots alone read: from memory to the matrix in shared memory that they want. */
static void gather_to_smem(struct lower *l, const struct picker *p, struct ir_val v) {
  const struct cg_smem *s = cg_smem_for_load(l, p->op, 1, 0);
  const struct layout *x = cg_layout_at(l, p->layout);
  struct ir_val other = cg_pad_value(l, p->op), ptr, mask, out[16];
  int vdim = (int)ir_attr_int(l->m, p->op, IR_ATTR_vdim, 0);
  uint32_t w = s->inner_dim == vdim ? cg_aligned_run(x, (uint32_t)vdim, p->vec) : 1;
  struct ir_builder saved;
  struct ir_val writer = cg_is_writer(l, p->layout);
  struct ir_val r = cg_muli(l, cg_each(l, layout_extent(x, LAYOUT_REG) / w, &saved), w), at[2];
  pick(l, p, r, &ptr, &mask);
  cg_gload(l, ptr, mask, other, w, out);
  for (int i = 0; i < 2; i++) {
    int d = i ? s->inner_dim : s->outer_dim;
    at[i] = d < 0 ? cg_s32(l, 0) : cg_coord(l, p->layout, (uint32_t)d, r);
  }
  struct ir_val inside = cg_inside_tile(l, p->t, p->layout, r);
  cg_sstore(l, s, cg_smem_addr(l, s, at[0], at[1]), and_of(l, writer, inside), w, out);
  cg_end_each(l, saved);
  int64_t dims[2] = {s->outer_dim < 0 ? 1 : p->t.dim[s->outer_dim],
                     s->inner_dim < 0 ? 1 : p->t.dim[s->inner_dim]};
  struct ir_type tile = ir_tile(s->dtype, 2, dims);
  if (s->fill_outer > dims[0])
    cg_zero_padding(l, s, tile, 0);
  if (s->fill_inner > dims[1])
    cg_zero_padding(l, s, tile, 1);
  l->val[v.id].kind = CG_LV_SMEM;
  l->val[v.id].smem = (struct cg_smem *)s;
  l->val[v.id].scalar = cg_s32(l, 0);
}

void cg_lower_gather(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->out[0], ptr, mask, out[16];
  struct picker p = open_picker(l, o, v);
  struct ir_val other = cg_pad_value(l, o);
  if (str_eq(cg_attr_word(l->m, o, IR_ATTR_path), "staged")) {
    gather_to_smem(l, &p, v);
    return;
  }
  if (!p.layout) {
    cg_gload(l, p.base, p.inside, other, 1, out);
    cg_set_scalar(l, v, out[0]);
    return;
  }
  uint32_t vdim = (uint32_t)ir_attr_int(l->m, o, IR_ATTR_vdim, 0);
  uint32_t frag = cg_new_frag(l, "x", p.t, p.layout), n = cg_frag_elems(l, frag);
  uint32_t w = cg_aligned_run(cg_layout_at(l, p.layout), vdim, p.vec);
  uint32_t put = cg_put_width(l, frag), chunk = w > put ? w : put;
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / chunk, &saved), chunk);
  for (uint32_t i = 0; i < chunk; i += w) {
    pick(l, &p, cg_addi(l, r, i), &ptr, &mask);
    cg_gload(l, ptr, mask, other, w, out + i);
  }
  cg_fput(l, frag, r, chunk, out);
  cg_end_each(l, saved);
  l->val[v.id].kind = CG_LV_FRAG;
  l->val[v.id].frag = frag;
}

struct ir_val cg_is_first_thread(struct lower *l) {
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val zero = cg_s32(l, 0), lane = cg_cmp(l, IR_EQ, l->lane, zero);
  struct ir_val v = and_of(l, lane, cg_cmp(l, IR_EQ, l->warp, zero));
  cg_leave_top(l, saved);
  return v;
}

void cg_lower_scatter(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[ir_op_at(l->m, o)->n_in - 1u], in[2 + 16];
  struct picker p = open_picker(l, o, v);
  if (!p.layout) {
    in[0] = p.base;
    in[1] = and_of(l, p.inside, cg_is_first_thread(l));
    in[2] = cg_scalar(l, v);
    ir_build(&l->b, IR_GSTORE, 3, in, 0, NULL);
    return;
  }
  const struct layout *x = cg_layout_at(l, p.layout);
  uint32_t vdim = (uint32_t)ir_attr_int(l->m, o, IR_ATTR_vdim, 0);
  uint32_t w = cg_aligned_run(x, vdim, p.vec);
  struct ir_builder saved;
  struct ir_val writer = cg_is_writer(l, p.layout);
  struct ir_val r = cg_muli(l, cg_each(l, layout_extent(x, LAYOUT_REG) / w, &saved), w);
  pick(l, &p, r, &in[0], &in[1]);
  in[1] = and_of(l, in[1], writer);
  cg_eval_run(l, v, r, p.layout, w, in + 2);
  ir_build(&l->b, IR_GSTORE, 2 + w, in, 0, NULL);
  cg_end_each(l, saved);
}

/* ---- atomics ---- */

/* Changes *ptr; the old value if `old` is given. */
static void change(struct lower *l, const struct picker *p, struct ir_val ptr, struct ir_val mask,
                   struct ir_val value, struct ir_val *old) {
  struct ir_type t = ir_scalar((enum dtype)p->t.dtype);
  struct ir_attr kind = *ir_get_attr(l->m, p->op, IR_ATTR_kind);
  struct ir_op o =
      ir_build(&l->b, IR_GATOMIC, 3, (struct ir_val[]){ptr, mask, value}, old ? 1 : 0, &t);
  ir_set_attr(l->m, o, kind);
  if (ir_get_attr(l->m, p->op, IR_ATTR_sem))
    ir_set_attr(l->m, o, *ir_get_attr(l->m, p->op, IR_ATTR_sem));
  if (old)
    *old = ir_op_at(l->m, o)->out[0];
}

static struct cg_smem *new_cells(struct lower *l, struct ir_type t) {
  struct cg_smem *s = ARENA_NEW(l->a, struct cg_smem);
  int64_t elems = t.kind == IR_TILE ? ir_elems(t) : 1, dims[1] = {elems};
  enum dtype dt = (enum dtype)t.dtype;
  s->dtype = dt;
  s->buf =
      cg_new_buf(l, "old", ir_tile(dt, 1, dims), (elems * dtype_bytes(dt, 1) + 15) / 16 * 16, 16);
  return s;
}

/* Byte of register r's element, row-major. */
static struct ir_val cell_at(struct lower *l, const struct picker *p, struct ir_val r) {
  struct ir_val at = cg_s32(l, 0);
  for (uint32_t d = 0; d < p->t.rank; d++) {
    struct ir_val c = cg_coord(l, p->layout, d, r);
    at = cg_add(l, cg_muli(l, at, p->t.dim[d]), c);
  }
  return cg_muli(l, at, dtype_bytes((enum dtype)p->t.dtype, 1));
}

/* Where it orders programs (sem), one thread hands on what the block did, which a barrier before it
 * tells that thread, and a barrier behind it tells the block what came to it. */
static void atomic_scalar(struct lower *l, const struct picker *p, struct ir_val value,
                          struct ir_val out, bool wanted) {
  struct ir_val first = cg_is_first_thread(l), old;
  bool orders = ir_get_attr(l->m, p->op, IR_ATTR_sem) != NULL;
  if (orders)
    cg_put_barrier(&l->b);
  change(l, p, p->base, and_of(l, p->inside, first), value, wanted ? &old : NULL);
  if (orders && !wanted)
    cg_put_barrier(&l->b);
  if (!wanted)
    return;
  const struct cg_smem *s = new_cells(l, p->t);
  struct ir_val zero = cg_s32(l, 0);
  cg_sstore(l, s, zero, first, 1, &old);
  cg_sload(l, s, zero, 1, &old);
  cg_set_scalar(l, out, old);
}

/* The old values of a fragment that only some threads have, to all. */
static void share(struct lower *l, const struct picker *p, uint32_t frag) {
  uint32_t n = cg_frag_elems(l, frag), w = cg_put_width(l, frag);
  const struct cg_smem *s = new_cells(l, p->t);
  struct ir_val writer = cg_is_writer(l, p->layout), x[4];
  for (int pass = 0; pass < 2; pass++) {
    struct ir_builder saved;
    struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w);
    for (uint32_t i = 0; i < w; i++) {
      struct ir_val at = cg_addi(l, r, i), inside = cg_inside_tile(l, p->t, p->layout, at);
      struct ir_val cell = cell_at(l, p, at);
      if (pass == 0) {
        x[i] = cg_fget(l, frag, at);
        cg_sstore(l, s, cell, and_of(l, inside, writer), 1, &x[i]);
      } else {
        cg_sload(l, s, cg_select(l, inside, cell, cg_s32(l, 0)), 1, &x[i]);
      }
    }
    if (pass)
      cg_fput(l, frag, r, w, x);
    cg_end_each(l, saved);
  }
}

void cg_lower_atomic(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[ir_op_at(l->m, o)->n_in - 1u];
  struct ir_val out = ir_op_at(l->m, o)->out[0];
  struct picker p = open_picker(l, o, v);
  bool wanted = l->uses.count[out.id] > 0;
  if (!p.layout) {
    atomic_scalar(l, &p, cg_scalar(l, v), out, wanted);
    return;
  }
  const struct layout *x = cg_layout_at(l, p.layout);
  struct ir_val writer = cg_is_writer(l, p.layout), old[4], value, ptr, mask;
  uint32_t frag = wanted ? cg_new_frag(l, "old", p.t, p.layout) : 0;
  uint32_t w = wanted ? cg_put_width(l, frag) : 1;
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, layout_extent(x, LAYOUT_REG) / w, &saved), w);
  for (uint32_t i = 0; i < w; i++) {
    struct ir_val at = cg_addi(l, r, i);
    pick(l, &p, at, &ptr, &mask);
    value = cg_eval(l, v, at, p.layout);
    change(l, &p, ptr, and_of(l, mask, writer), value, wanted ? &old[i] : NULL);
  }
  if (wanted)
    cg_fput(l, frag, r, w, old);
  cg_end_each(l, saved);
  if (!wanted)
    return;
  int64_t always;
  if (!(cg_is_const(l, writer, &always) && always))
    share(l, &p, frag);
  l->val[out.id].kind = CG_LV_FRAG;
  l->val[out.id].frag = frag;
}
