/* What each access may take for granted of its edges and its alignment.
 *
 * Before: tile IR with facts. After, on every load and store: masks (per dim, which edges of the
 * view the tile may cross), vdim (the dim along which elements are adjacent in memory), vec
 * (elements of one access that lie all inside or all outside, aligned as one) and, on loads, align
 * (the same by alignment alone: the copies of a tile's last chunk may then be partial). On gathers,
 * scatters and atomics masks say per dim of the view which end an index may pass; vec is more than
 * 1 where an index is a coordinate of the tile and what else enters stays the same. Where no fact
 * says that a stride is 1, vec is 1. Everything proved here rests on facts that the launch recipe
 * checks, and on views (view_facts.c). */
#include "codegen/pass.h"
#include "codegen/view.h"
#include "ir/range.h"

#define ACCESS 16 /* bytes of the widest access */

/* The dim with stride 1; of several, the one along which the tile is longest, then the last. */
static int unit_stride_dim(const struct ir_module *m, const struct ir_access *a,
                           const struct cg_view_fact *v) {
  int best = -1;
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t stride;
    if (v->dim[d].div == 1 && ir_expr_value(m, v->dim[d].stride, &stride) && stride == 1 &&
        (best < 0 || a->tile.dim[d] >= a->tile.dim[best]))
      best = (int)d;
  }
  return best;
}

/* The largest power of two of elements, at most 16 bytes, to which every row of the tile starts
 * aligned. */
static int64_t alignment(struct ir_module *m, const struct ir_access *a,
                         const struct cg_view_fact *f, uint32_t vdim) {
  int64_t bytes = dtype_bytes((enum dtype)a->tile.dtype, 1);
  int64_t addr = ir_arg_alignment(m, f->arg);
  int64_t v = ACCESS / bytes;
  while (v > 1 && addr % (v * bytes))
    v /= 2;
  v = ir_pow2_divisor(f->base_div, v);
  v = ir_pow2_divisor(ir_val_divisor(m, a->offset[vdim]), v);
  for (uint32_t d = 0; d < a->rank; d++) {
    if (d == vdim)
      continue;
    int64_t step = f->dim[d].stride_div;
    int64_t at = ir_val_divisor(m, a->offset[d]), product;
    /* Along a dim of one element only the offset moves the start. */
    if (a->tile.dim[d] == 1 && f->dim[d].div == 1)
      step = __builtin_mul_overflow(step, at, &product) ? step : product;
    v = ir_pow2_divisor(step, v);
  }
  return v;
}

static void bound(struct ir_module *m, const struct ir_intervals *r, struct ir_access a) {
  struct ir_op o = a.op;
  struct cg_view_fact f = cg_view_facts(m, r, a.view);
  int64_t masks[IR_MAX_RANK];
  for (uint32_t d = 0; d < a.rank; d++)
    masks[d] = (cg_fits(m, r, &f.dim[d], a.offset[d], a.tile.dim[d]) ? 0 : IR_MASK_END) |
               (cg_starts(m, r, &f.dim[d], a.offset[d]) ? 0 : IR_MASK_START);
  int unit = unit_stride_dim(m, &a, &f);
  uint32_t vdim = unit < 0 ? a.rank - 1 : (uint32_t)unit;
  int64_t align = 1, vec = 1;
  if (unit >= 0) {
    align = alignment(m, &a, &f, vdim);
    vec = ir_pow2_divisor(a.tile.dim[vdim], align);
    if (masks[vdim] & IR_MASK_END)
      vec = ir_pow2_divisor(f.dim[vdim].end_div, vec);
    if (masks[vdim] & IR_MASK_START)
      vec = ir_pow2_divisor(f.dim[vdim].start_div, vec);
  }
  /* A view of which nothing is in range says so along its first dim. */
  masks[0] |= f.inside ? 0 : IR_MASK_END;
  cg_set_ints(m, o, IR_ATTR_masks, a.rank, masks);
  cg_set_int(m, o, IR_ATTR_vdim, vdim);
  cg_set_int(m, o, IR_ATTR_vec, vec);
  if (ir_op_at(m, o)->opcode == IR_LOAD)
    cg_set_int(m, o, IR_ATTR_align, align);
}

/* ---- gathers, scatters, atomics ---- */

/* An index as a sum: scalar + plus + coordinate along axis. */
struct sum {
  struct ir_val scalar; /* 0: none */
  int64_t scalar_div, plus;
  int axis; /* -1: none */
};

static bool add_sums(const struct sum *a, const struct sum *b, struct sum *r) {
  if ((a->scalar.id && b->scalar.id) || (a->axis >= 0 && b->axis >= 0))
    return false;
  *r = a->axis >= 0 ? *a : *b;
  r->scalar = a->scalar.id ? a->scalar : b->scalar;
  r->scalar_div = a->scalar.id ? a->scalar_div : b->scalar_div;
  return !__builtin_add_overflow(a->plus, b->plus, &r->plus);
}

/* False: the index is nothing of the kind. */
static bool as_sum(struct ir_module *m, struct ir_val v, struct sum *s, int depth) {
  int64_t c;
  struct sum a, b;
  if (depth > 16)
    return false;
  *s = (struct sum){.axis = -1};
  if (ir_type_of(m, v).kind == IR_SCALAR) {
    if (ir_val_const(m, v, &c)) {
      s->plus = c;
    } else {
      s->scalar = v;
      s->scalar_div = ir_val_divisor(m, v);
    }
    return true;
  }
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id)
    return false;
  const struct ir_opnode *n = ir_op_at(m, def);
  switch ((int)n->opcode) {
  case IR_SPLAT:
  case IR_BROADCAST: return as_sum(m, n->in[0], s, depth + 1);
  case IR_IOTA: s->axis = (int)ir_attr_int(m, def, IR_ATTR_axis, 0); return true;
  case IR_ADD:
    return as_sum(m, n->in[0], &a, depth + 1) && as_sum(m, n->in[1], &b, depth + 1) &&
           add_sums(&a, &b, s);
  default: return false;
  }
}

/* What is known of an index of a view's dim; extent: of the tile along the sum's axis. */
static int64_t index_masks(struct ir_module *m, const struct ir_intervals *r,
                           const struct cg_dim_fact *d, struct ir_val v, const struct sum *s,
                           int64_t extent) {
  struct ir_interval x = ir_interval_of(r, v);
  bool fits = x.hi < d->end_least, starts = d->from_zero && x.lo >= 0;
  int64_t most;
  if (s && s->scalar.id && s->plus >= 0 && !__builtin_add_overflow(s->plus, extent, &most)) {
    fits = fits || cg_fits(m, r, d, s->scalar, most);
    starts = starts || cg_starts(m, r, d, s->scalar);
  }
  return (fits ? 0 : IR_MASK_END) | (starts ? 0 : IR_MASK_START);
}

/* How many elements along the tile's axis t go in one access: index u of the unit-stride dim counts
 * along it, the others stay as they are. */
static int64_t gather_vec(struct ir_module *m, struct ir_op o, const struct cg_view_fact *f,
                          uint32_t u, const struct sum *s, bool masked) {
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_type t = ir_type_of(m, cg_selected(m, o));
  int64_t bytes = dtype_bytes((enum dtype)t.dtype, 1), v = ACCESS / bytes;
  uint32_t axis = (uint32_t)s->axis;
  int64_t addr = ir_arg_alignment(m, f->arg);
  while (v > 1 && addr % (v * bytes))
    v /= 2;
  v = ir_pow2_divisor(f->base_div, v);
  v = ir_pow2_divisor(s->plus, ir_pow2_divisor(s->scalar.id ? s->scalar_div : 0, v));
  v = ir_pow2_divisor(t.dim[axis], v);
  if (masked) {
    v = ir_pow2_divisor(f->dim[u].end_div, v);
    v = ir_pow2_divisor(f->dim[u].start_div, v);
  }
  for (uint32_t k = 0; k < f->rank; k++) {
    struct ir_type x = ir_type_of(m, n->in[1 + k]);
    struct sum other;
    if (k == u)
      continue;
    bool varies = x.kind == IR_TILE && x.dim[axis] != 1 &&
                  !(as_sum(m, n->in[1 + k], &other, 0) && other.axis != s->axis);
    v = varies ? 1 : ir_pow2_divisor(f->dim[k].stride_div, v);
  }
  return v;
}

/* Where nothing is adjacent: the axis along which indices vary that are no coordinates. Threads lie
 * along it, so that each holds few of them. */
static int64_t varying_axis(struct ir_module *m, struct ir_op o, struct ir_type t) {
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t d = t.rank; d-- > 0;)
    for (uint32_t k = 0; k < ir_type_of(m, n->in[0]).rank; k++) {
      struct ir_type x = ir_type_of(m, n->in[1 + k]);
      if (x.kind == IR_TILE && x.dim[d] > 1 && !cg_is_free(m, n->in[1 + k]))
        return d;
    }
  return t.rank ? t.rank - 1 : 0;
}

static void bound_indices(struct ir_module *m, const struct ir_intervals *r, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(m, o);
  struct cg_view_fact f = cg_view_facts(m, r, n.in[0]);
  struct ir_type t = ir_type_of(m, cg_selected(m, o));
  int64_t masks[IR_MAX_RANK] = {0}, vdim = varying_axis(m, o, t), vec = 1;
  for (uint32_t k = 0; k < f.rank; k++) {
    struct sum s;
    int64_t stride;
    bool sum = as_sum(m, n.in[1 + k], &s, 0);
    int64_t extent = sum && s.axis >= 0 ? ir_type_of(m, n.in[1 + k]).dim[s.axis] : 1;
    if (sum && extent == 1)
      s.axis = -1;
    masks[k] = index_masks(m, r, &f.dim[k], n.in[1 + k], sum ? &s : NULL, extent);
    bool unit = f.dim[k].div == 1 && ir_expr_value(m, f.dim[k].stride, &stride) && stride == 1;
    if (!sum || s.axis < 0 || !unit || n.opcode == IR_ATOMIC)
      continue;
    int64_t v = gather_vec(m, o, &f, k, &s, masks[k]);
    if (v > vec) {
      vec = v;
      vdim = s.axis;
    }
  }
  cg_set_ints(m, o, IR_ATTR_masks, f.rank, masks);
  cg_set_int(m, o, IR_ATTR_vdim, vdim);
  cg_set_int(m, o, IR_ATTR_vec, vec);
}

static void visit(void *user, struct ir_module *m, struct ir_op o) {
  struct ir_access a;
  if (ir_access_of(m, o, &a))
    bound(m, user, a);
  else if (cg_takes_indices(ir_op_at(m, o)->opcode))
    bound_indices(m, user, o);
}

bool cg_pass_bound_accesses(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  ir_walk(m, m->body, visit, ir_find_intervals(m, ctx->scratch));
  *changed = true;
  return true;
}
