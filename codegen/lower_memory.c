/* Loads into fragments and stores from them.
 *
 * Addresses are 64-bit. A tile's start is computed where the access is, from its offsets; a
 * thread's place in the tile once, in the prologue; within the loop over registers only multiples
 * of strides by constants remain. Edges: where a tile may cross its view's edge, `high` (and `low`)
 * say how much of it lies inside, as 32-bit coordinates. */
#include "base/check.h"
#include "codegen/lower.h"
#include "codegen/schedule.h"
#include "ir/range.h"

enum { SCATTER_LEAST = 32 };

struct cg_access cg_access_shape(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct cg_access x = {.op = o};
  bool known = ir_view_arg(m, n->in[0], &x.arg);
  KILN_ASSERT(known);
  (void)known;
  x.rank = ir_type_of(m, n->in[0]).rank;
  x.tile = ir_type_of(m, n->opcode == IR_LOAD ? n->out[0] : n->in[1 + x.rank]);
  x.vdim = (uint32_t)ir_attr_int(m, o, IR_ATTR_vdim, 0);
  x.vec = (uint32_t)ir_attr_int(m, o, IR_ATTR_vec, 1);
  x.align = (uint32_t)ir_attr_int(m, o, IR_ATTR_align, 1);
  const struct ir_attr *masks = ir_get_attr(m, o, IR_ATTR_masks);
  for (uint32_t d = 0; d < x.rank; d++)
    x.masks[d] = masks->ints[d];
  return x;
}

struct cg_access cg_open_access(struct lower *l, struct ir_op o) {
  struct cg_access x = cg_access_shape(l, o);
  x.view = cg_view_at(l, ir_op_at(l->m, o)->in[0]);
  for (uint32_t d = 0; d < x.rank; d++)
    x.offset[d] = cg_scalar(l, ir_op_at(l->m, o)->in[1 + d]);
  return x;
}

/* min(max(v, 0), most) as s32 */
static struct ir_val clamp(struct lower *l, struct ir_val v, int64_t most) {
  v = cg_op2(l, IR_MAX, v, cg_index(l, 0));
  return cg_cast(l, cg_op2(l, IR_MIN, v, cg_index(l, most)), DT_S32);
}

void cg_bind_edges(struct lower *l, struct cg_access *x, uint32_t d) {
  const struct cg_view_dim *v = &x->view->dim[d];
  if (x->masks[d] & IR_MASK_END) {
    x->high[d] = clamp(l, cg_op2(l, IR_SUB, cg_view_end(l, v), x->offset[d]), x->tile.dim[d]);
    if (d == 0) /* nothing is in range: said along the first dim */
      x->high[d] = cg_select(l, x->view->inside, x->high[d], cg_s32(l, 0));
  }
  if (x->masks[d] & IR_MASK_START)
    x->low[d] = clamp(l, cg_op2(l, IR_SUB, v->start, x->offset[d]), x->tile.dim[d]);
}

/* Where the tile starts along d, in elements of its argument. In a dim that repeats elements, the
 * tile may start at any of the repeats. */
static struct ir_val start_of(struct lower *l, struct cg_access *x, uint32_t d) {
  const struct cg_view_dim *v = &x->view->dim[d];
  if (v->div == 1)
    return cg_mul(l, x->offset[d], v->stride);
  struct ir_val at = cg_add(l, x->offset[d], v->phase), count = cg_index(l, v->div), zero;
  struct ir_val whole =
      ir_build1(&l->b, IR_FLOORDIV, ir_scalar(DT_INDEX), 2, (struct ir_val[]){at, count});
  int64_t c;
  zero = cg_index(l, 0);
  bool even = cg_is_const(l, v->phase, &c) && c == 0 &&
              ir_val_divisor(l->m, ir_op_at(l->m, x->op)->in[1 + d]) % v->div == 0;
  x->rest[d] = even ? zero : cg_op2(l, IR_SUB, at, cg_muli(l, whole, v->div));
  return cg_mul(l, whole, v->stride);
}

void cg_bind_access(struct lower *l, struct cg_access *x) {
  struct ir_val at = x->view->base;
  cg_check_view(l, x->view);
  for (uint32_t d = 0; d < x->rank; d++) {
    at = cg_add(l, at, start_of(l, x, d));
    cg_bind_edges(l, x, d);
  }
  struct ir_val in[2] = {l->arg_ptr[x->arg], at};
  x->base = ir_build1(&l->b, IR_PTR_ADD, ir_type_of(l->m, in[0]), 2, in);
}

/* Does the dim of a place that is dim d of its tile have a stride? */
static bool is_strided(const struct cg_access *x, int d) {
  return d >= 0 && x->view->dim[d].div == 1;
}

/* Sum of coordinate * stride over the dims of a place. */
static struct ir_val distance(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                              const struct ir_val *coord) {
  struct ir_val at = cg_index(l, 0);
  for (uint32_t j = 0; j < p->rank; j++)
    if (is_strided(x, p->dims[j])) {
      struct ir_val c = cg_cast(l, coord[j], DT_INDEX);
      at = cg_add(l, at, cg_mul(l, c, x->view->dim[p->dims[j]].stride));
    }
  return at;
}

/* Elements from the tile's start to coordinate c, s32, in a dim that repeats each `div` times. */
static struct ir_val repeated(struct lower *l, const struct cg_access *x, uint32_t d,
                              struct ir_val c, int64_t cover) {
  const struct cg_view_dim *v = &x->view->dim[d];
  struct ir_val whole;
  if (v->div <= INT32_MAX / 2) {
    int64_t map[4] = {v->div, 0, (cover + v->div - 1) / v->div + 1, 1};
    struct ir_val rest = cg_cast(l, x->rest[d], DT_S32);
    whole = cg_cast(l, cg_digits(l, cg_add(l, c, rest), 4, map), DT_INDEX);
  } else {
    struct ir_val in[2] = {cg_add(l, cg_cast(l, c, DT_INDEX), x->rest[d]), cg_index(l, v->div)};
    whole = ir_build1(&l->b, IR_FLOORDIV, ir_scalar(DT_INDEX), 2, in);
  }
  return cg_mul(l, whole, v->stride);
}

static struct ir_val ptr_add(struct lower *l, struct ir_val ptr, struct ir_val at) {
  int64_t c;
  if (cg_is_const(l, at, &c) && c == 0)
    return ptr;
  return ir_build1(&l->b, IR_PTR_ADD, ir_type_of(l->m, ptr), 2, (struct ir_val[]){ptr, at});
}

/* Are the strides of a place known in the prologue: parameters and constants? */
static bool is_early(const struct lower *l, const struct cg_access *x, const struct cg_place *p) {
  int64_t c;
  for (uint32_t j = 0; j < p->rank; j++) {
    if (!is_strided(x, p->dims[j]))
      continue;
    struct ir_val stride = x->view->dim[p->dims[j]].stride;
    if (ir_value_at(l->m, stride)->block.id != l->top.block.id && !cg_is_const(l, stride, &c))
      return false;
  }
  return true;
}

struct cg_place cg_open_place(struct lower *l, const struct cg_access *x, uint32_t layout,
                              uint32_t rank, const int *dims) {
  struct cg_place p = {.layout = layout, .rank = rank};
  struct ir_val coord[IR_MAX_RANK] = {{0}};
  for (uint32_t j = 0; j < rank; j++)
    p.dims[j] = dims ? dims[j] : (int)j;
  bool early = is_early(l, x, &p);
  struct ir_builder saved = l->b;
  if (early)
    saved = cg_enter_top(l);
  for (uint32_t j = 0; j < rank; j++)
    coord[j] = cg_thread_coord(l, layout, j);
  struct ir_val at = distance(l, x, &p, coord);
  if (early)
    cg_leave_top(l, saved);
  p.ptr = ptr_add(l, x->base, at);
  return p;
}

struct ir_val cg_place_ptr(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                           struct ir_val r) {
  struct ir_val coord[IR_MAX_RANK];
  for (uint32_t j = 0; j < p->rank; j++)
    coord[j] = cg_reg_coord(l, p->layout, j, r);
  struct ir_val at = distance(l, x, p, coord);
  for (uint32_t j = 0; j < p->rank; j++)
    if (p->dims[j] >= 0 && !is_strided(x, p->dims[j])) {
      int64_t cover = cg_layout_cover(cg_layout_at(l, p->layout), j);
      struct ir_val c = cg_coord(l, p->layout, j, r);
      at = cg_add(l, at, repeated(l, x, (uint32_t)p->dims[j], c, cover));
    }
  return ptr_add(l, p->ptr, at);
}

struct ir_val cg_place_mask(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                            struct ir_val r) {
  struct ir_val mask = cg_bool(l, true);
  for (uint32_t j = 0; j < p->rank; j++) {
    int d = p->dims[j];
    int64_t extent = d < 0 ? 1 : x->tile.dim[d], bits = d < 0 ? 0 : x->masks[d];
    bool padded = cg_layout_cover(cg_layout_at(l, p->layout), j) > extent;
    if (!bits && !padded)
      continue;
    struct ir_val c = cg_coord(l, p->layout, j, r);
    struct ir_val high = bits & 1 ? x->high[d] : cg_s32(l, extent);
    if ((bits & 1) || padded)
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, c, high));
    if (bits & 2)
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_GE, c, x->low[d]));
  }
  /* Dims that the place leaves out have one element. */
  for (uint32_t d = 0; d < x->rank; d++) {
    bool named = false;
    for (uint32_t j = 0; j < p->rank; j++)
      named = named || p->dims[j] == (int)d;
    if (!named && (x->masks[d] & 1))
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, cg_s32(l, 0), x->high[d]));
    if (!named && (x->masks[d] & 2))
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_GE, cg_s32(l, 0), x->low[d]));
  }
  return mask;
}

void cg_gload(struct lower *l, struct ir_val ptr, struct ir_val mask, struct ir_val other,
              uint32_t n, struct ir_val *out) {
  struct ir_type t[16] = {{0}};
  KILN_ASSERT(n <= 16);
  for (uint32_t i = 0; i < n; i++)
    t[i] = ir_scalar((enum dtype)ir_type_of(l->m, ptr).dtype);
  struct ir_op o = ir_build(&l->b, IR_GLOAD, 3, (struct ir_val[]){ptr, mask, other}, n, t);
  for (uint32_t i = 0; i < n; i++)
    out[i] = ir_op_at(l->m, o)->out[i];
}

struct ir_val cg_pad_value(struct lower *l, struct ir_op load) {
  enum dtype t = (enum dtype)ir_type_of(l->m, ir_op_at(l->m, load)->out[0]).dtype;
  const struct ir_attr *pad = ir_get_attr(l->m, load, IR_ATTR_pad);
  if (!pad)
    return cg_zero_of(l, t);
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val v =
      dtype_is_float(t) ? ir_const_num(&l->b, t, pad->f) : ir_const_int(&l->b, t, pad->i);
  cg_leave_top(l, saved);
  return v;
}

/* Elements of one access through a layout. */
static uint32_t access_width(const struct lower *l, const struct cg_access *x, uint32_t layout) {
  return cg_aligned_run(cg_layout_at(l, layout), x->vdim, x->vec);
}

/* Does the op stand in a loop beside a dot? Registers are scarce there: addresses of elements must
 * not be held across iterations. */
static bool in_dot_loop(const struct lower *l, struct ir_op o) {
  struct ir_block b = ir_op_at(l->m, o)->block;
  if (!ir_block_at(l->m, b)->parent.id)
    return false;
  IR_EACH_OP (l->m, b, x)
    if (ir_op_at(l->m, x)->opcode == IR_DOT)
      return true;
  return false;
}

/* ---- loads whose elements are read where they are used ---- */

struct cg_reading {
  struct cg_access x;
  struct cg_place p;
  struct ir_val other;
  uint32_t width;
  uint32_t run; /* the run that `at` holds */
  struct ir_val at[16];
};

uint32_t cg_reading_width(const struct cg_reading *x) {
  return x->width;
}

static void read(struct lower *l, const struct cg_reading *x, struct ir_val r, uint32_t n,
                 struct ir_val *out) {
  struct ir_val mask = cg_place_mask(l, &x->x, &x->p, r);
  cg_gload(l, cg_place_ptr(l, &x->x, &x->p, r), mask, x->other, n, out);
}

struct ir_val cg_read_element(struct lower *l, struct cg_reading *x, struct ir_val r) {
  const struct cg_run *run = &l->run;
  if (!run->first.id || r.id != run->reg.id) {
    read(l, x, r, 1, &x->at[0]);
    x->run = 0;
    return x->at[0];
  }
  if (x->run != run->number) {
    /* Runs start at multiples of their length, which is a power of two. */
    uint32_t w = x->width < run->n ? x->width : run->n;
    for (uint32_t i = 0; i < run->n; i += w)
      read(l, x, cg_addi(l, run->first, i), w, x->at + i);
    x->run = run->number;
  }
  return x->at[run->at];
}

/* Fills frag with registers `from` .. of the tile. */
static void load_frag(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                      uint32_t frag, struct ir_val from) {
  uint32_t n = cg_frag_elems(l, frag), w = access_width(l, x, p->layout);
  uint32_t put = cg_put_width(l, frag), chunk = w > put ? w : put;
  struct ir_val other = cg_pad_value(l, x->op), out[16];
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / chunk, &saved), chunk);
  for (uint32_t i = 0; i < chunk; i += w) {
    struct ir_val at = cg_add(l, from, cg_addi(l, r, i));
    struct ir_val ptr = cg_place_ptr(l, x, p, at);
    if (w == 1 && in_dot_loop(l, x->op) && ptr.id != x->base.id)
      cg_set_int(l->m, ir_value_at(l->m, ptr)->def, IR_ATTR_late, 1);
    cg_gload(l, ptr, cg_place_mask(l, x, p, at), other, w, out + i);
  }
  cg_fput(l, frag, r, chunk, out);
  cg_end_each(l, saved);
}

/* May the load wait for its reader, a store that goes part by part and lies in the same layout? No
 * one writes what it reads in between. */
static bool can_wait(struct lower *l, struct ir_op o) {
  const struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->out[0];
  struct ir_op store = l->roles ? cg_only_writer(l, v) : (struct ir_op){0};
  if (!store.id || ir_op_at(m, store)->opcode != IR_STORE || cg_is_stored(m, o))
    return false;
  const struct ir_opnode *n = ir_op_at(m, store);
  return str_eq(cg_attr_word(m, store, IR_ATTR_path), "tma") &&
         n->block.id == ir_op_at(m, o)->block.id &&
         cg_layout_of(l, n->in[n->n_in - 1u]) == cg_layout_of(l, v);
}

/* Does who reads v, up to the ops that write, ask for each of its registers once? */
static bool is_read_once(const struct lower *l, struct ir_val v) {
  for (uint32_t i = l->uses.first[v.id]; i; i = l->uses.list.at[i].next) {
    struct ir_op user = l->uses.list.at[i].op;
    enum ir_opcode c = ir_op_at(l->m, user)->opcode;
    if (c == IR_STORE)
      continue;
    struct ir_val w = ir_op_at(l->m, user)->out[0];
    bool same =
        c == IR_BROADCAST && layout_extent(cg_layout_at(l, cg_layout_of(l, v)), LAYOUT_REG) ==
                                 layout_extent(cg_layout_at(l, cg_layout_of(l, w)), LAYOUT_REG);
    if (!(cg_is_elementwise(c) || c == IR_TRANSPOSE || c == IR_RESHAPE || same) ||
        !is_read_once(l, w))
      return false;
  }
  return true;
}

/* Is the load to be made where its one reader, a store, comes to its elements? So a long tile takes
 * no registers until then: with the knob `recompute`, which wants that. */
static bool is_read_there(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->out[0];
  if (cg_knob_get(l->m, CG_KNOB_RECOMPUTE) != 1 || l->uses.count[v.id] == 0 ||
      cg_is_stored(l->m, o))
    return false;
  struct ir_op writer = cg_only_writer(l, v);
  return writer.id && ir_op_at(l->m, writer)->opcode == IR_STORE &&
         ir_op_at(l->m, writer)->block.id == ir_op_at(l->m, o)->block.id && is_read_once(l, v);
}

void cg_lower_load(struct lower *l, struct ir_op o) {
  struct cg_lval *v = &l->val[ir_op_at(l->m, o)->out[0].id];
  uint32_t layout = cg_layout_of(l, ir_op_at(l->m, o)->out[0]);
  struct cg_access x = cg_open_access(l, o);
  cg_bind_access(l, &x);
  struct cg_place p = cg_open_place(l, &x, layout, x.rank, NULL);
  if (str_eq(cg_attr_word(l->m, o, IR_ATTR_path), "direct") || is_read_there(l, o)) {
    struct cg_reading *reading = ARENA_NEW(l->a, struct cg_reading);
    *reading = (struct cg_reading){x, p, cg_pad_value(l, o), access_width(l, &x, layout), 0, {{0}}};
    v->kind = CG_LV_INLINE;
    v->reading = reading;
    return;
  }
  if (can_wait(l, o)) {
    struct cg_delayed d = {x, p};
    v->kind = CG_LV_INLINE;
    v->delayed = arena_copy(l->a, &d, sizeof d);
    return;
  }
  v->frag = cg_new_frag(l, "x", x.tile, layout);
  v->kind = CG_LV_FRAG;
  load_frag(l, &x, &p, v->frag, cg_s32(l, 0));
}

void cg_load_part(struct lower *l, struct ir_val v, uint32_t part, struct ir_val from) {
  struct cg_lval *x = &l->val[v.id];
  if (x->kind != CG_LV_INLINE || x->from.id == from.id)
    return;
  x->from = from;
  if (x->landed) {
    x->part = cg_read_landed(l, x->landed, part);
    return;
  }
  if (!x->delayed) {
    const struct ir_opnode *n = ir_op_at(l->m, ir_value_at(l->m, v)->def);
    for (uint32_t i = 0; i < n->n_in; i++)
      cg_load_part(l, ir_op_at(l->m, ir_value_at(l->m, v)->def)->in[i], part, from);
    return;
  }
  const struct layout *lay = cg_layout_at(l, part);
  x->part = cg_new_frag(l, "x", ir_tile(x->delayed->x.tile.dtype, lay->rank, lay->shape), part);
  load_frag(l, &x->delayed->x, &x->delayed->p, x->part, from);
}

/* Whether each of `count` accesses of a thread has a 64-bit address of its own, so many that they
 * must not be held together. */
static bool is_scattered(struct lower *l, const struct cg_access *x, uint32_t count) {
  int64_t c;
  for (uint32_t d = 0; d < x->rank; d++)
    if (cg_is_const(l, x->view->dim[d].stride, &c) && c == 1)
      return false;
  return count >= SCATTER_LEAST;
}

/* ---- stores that write apart ---- */

/* The step of a loop if it is a number, else 0. */
static int64_t step_of(const struct ir_module *m, struct ir_op loop) {
  const struct ir_opnode *n = ir_op_at(m, loop);
  int64_t step;
  return n->opcode == IR_FOR && ir_val_const(m, n->in[2], &step) && step > 0 ? step : 0;
}

/* Is the view made outside of the loop? */
static bool is_outside(const struct ir_module *m, struct ir_val v, struct ir_op loop) {
  struct ir_op def = ir_value_at(m, v)->def;
  for (struct ir_op p = def; p.id; p = ir_block_at(m, ir_op_at(m, p)->block)->parent)
    if (p.id == loop.id)
      return false;
  return true;
}

/* Do stores a and b (or a twice) touch no element in common in different iterations of the loop?
 * Along some dim both count with its index, and both lie within what one iteration moves on. */
static bool iterations_apart(const struct ir_module *m, struct ir_op a, struct ir_op b,
                             struct ir_op loop) {
  const struct ir_opnode *x = ir_op_at(m, a), *y = ir_op_at(m, b);
  int64_t step = step_of(m, loop), by, pa, pb, sa, sb;
  struct ir_type ta = ir_type_of(m, x->in[x->n_in - 1u]), tb = ir_type_of(m, y->in[y->n_in - 1u]);
  if (!step || x->in[0].id != y->in[0].id || !is_outside(m, x->in[0], loop))
    return false;
  for (uint32_t d = 0; d < ta.rank; d++) {
    struct ir_val base, other;
    if (!ir_val_linear(m, x->in[1 + d], &base, &sa, &pa) ||
        !ir_val_linear(m, y->in[1 + d], &other, &sb, &pb) || base.id != other.id || sa != sb ||
        sa < 1 || !base.id || ir_loop_of_index(m, base).id != loop.id ||
        __builtin_mul_overflow(sa, step, &by))
      continue;
    int64_t first = pa < pb ? pa : pb;
    if (pa - first + ta.dim[d] <= by && pb - first + tb.dim[d] <= by)
      return true;
  }
  return false;
}

/* The same in one iteration of everything around both. */
static bool stores_apart(const struct ir_module *m, struct ir_op a, struct ir_op b) {
  const struct ir_opnode *x = ir_op_at(m, a), *y = ir_op_at(m, b);
  struct ir_type ta = ir_type_of(m, x->in[x->n_in - 1u]), tb = ir_type_of(m, y->in[y->n_in - 1u]);
  if (x->in[0].id != y->in[0].id || x->block.id != y->block.id)
    return false;
  for (uint32_t d = 0; d < ta.rank; d++) {
    struct ir_val base, other;
    int64_t pa, pb, sa, sb;
    if (ir_val_linear(m, x->in[1 + d], &base, &sa, &pa) &&
        ir_val_linear(m, y->in[1 + d], &other, &sb, &pb) && base.id == other.id && sa == sb &&
        (pa <= pb ? pb - pa >= ta.dim[d] : pa - pb >= tb.dim[d]))
      return true;
  }
  return false;
}

/* Does no store to its tensor write an element that this one writes, in the whole program? */
static bool is_apart(const struct lower *l, struct ir_op o) {
  const struct ir_module *m = l->m;
  uint32_t arg, other;
  if (!ir_view_arg(m, ir_op_at(m, o)->in[0], &arg))
    return false;
  for (uint32_t i = 1; i < l->n_ops; i++) {
    const struct ir_opnode *n = ir_op_at(m, (struct ir_op){i});
    bool writes = n->opcode == IR_STORE || n->opcode == IR_SCATTER || n->opcode == IR_ATOMIC;
    if (!n->block.id || !writes || !ir_view_arg(m, n->in[0], &other) || other != arg)
      continue;
    if (n->opcode != IR_STORE || (i != o.id && !stores_apart(m, o, (struct ir_op){i})))
      return false;
    struct ir_op p = ir_block_at(m, ir_op_at(m, o)->block)->parent;
    for (; p.id; p = ir_block_at(m, ir_op_at(m, p)->block)->parent)
      if (ir_op_at(m, p)->opcode != IR_IF && !iterations_apart(m, o, (struct ir_op){i}, p))
        return false;
  }
  return true;
}

void cg_lower_store(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[ir_op_at(l->m, o)->n_in - 1u];
  uint32_t layout = cg_layout_of(l, v);
  struct cg_access x = cg_open_access(l, o);
  cg_bind_access(l, &x);
  struct cg_place p = cg_open_place(l, &x, layout, x.rank, NULL);
  cg_begin_writer(l, v);
  struct ir_val writer = cg_is_writer(l, layout), in[2 + 16];
  uint32_t n = layout_extent(cg_layout_at(l, layout), LAYOUT_REG);
  uint32_t w = access_width(l, &x, layout);
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w);
  in[0] = cg_place_ptr(l, &x, &p, r);
  if (is_scattered(l, &x, n / w))
    cg_set_int(l->m, ir_value_at(l->m, in[0])->def, IR_ATTR_late, 1);
  in[1] = cg_op2(l, IR_AND, cg_place_mask(l, &x, &p, r), writer);
  cg_eval_run(l, v, r, layout, w, in + 2);
  struct ir_op store = ir_build(&l->b, IR_GSTORE, 2 + w, in, 0, NULL);
  if (is_apart(l, o))
    cg_set_int(l->m, store, IR_ATTR_apart, 1);
  cg_end_each(l, saved);
}
