/* Reductions along an axis: registers, then lanes, then warps.
 *
 * Each thread folds its registers along the axis into fragments in the sliced layout, four folds at
 * a time that do not wait for each other where it has as many; lanes that differ along the axis
 * exchange by butterfly shuffles, so that all of them hold the result; warps that differ along it
 * meet in shared memory. Narrow types fold in f32 (s32) and round once.
 *
 * The state that is folded is one value, or for argmax and argmin two: the best value and where it
 * is. Of equal ones the first wins whatever the order of folding, because the places are compared
 * too. */
#include "base/check.h"
#include "codegen/lower.h"

#include <math.h>

enum { MOST_STATE = 2 };

#define AT_ONCE 4 /* folds on their way: one takes 4 to 6 cycles, and half a warp issues in one */

struct state {
  struct ir_val v[MOST_STATE];
};

struct reduce {
  struct ir_op op;
  enum ir_opcode fold; /* ADD, MAX, MIN, AND or OR; of argmax and argmin: MAX, MIN */
  uint32_t n_state;    /* 2: the second is the place along the axis, s32 */
  enum dtype type[MOST_STATE];
  struct ir_type out;
  uint32_t axis, in_layout, out_layout;
  uint32_t acc[MOST_STATE]; /* fragments */
  uint32_t n;               /* elements of each */
};

enum dtype cg_fold_type(enum dtype t) {
  if (t == DT_BOOL)
    return t;
  if (dtype_is_float(t))
    return dtype_bits(t) < 32 ? DT_F32 : t;
  return dtype_bits(t) < 32 ? DT_S32 : t;
}

/* What leaves any other state as it is. */
static struct state identity(struct lower *l, const struct reduce *x) {
  bool is_max = x->fold == IR_MAX;
  enum dtype t = x->type[0];
  struct ir_builder saved = cg_enter_top(l);
  struct state s;
  if (x->fold == IR_ADD || t == DT_BOOL)
    s.v[0] = x->fold == IR_AND ? cg_bool(l, true) : cg_zero_of(l, t);
  else if (dtype_is_float(t))
    s.v[0] = ir_const_num(&l->b, t, is_max ? -(double)INFINITY : (double)INFINITY);
  else if (dtype_bits(t) == 32)
    s.v[0] = ir_const_int(&l->b, t, is_max ? INT32_MIN : INT32_MAX);
  else
    s.v[0] = ir_const_int(&l->b, t, is_max ? INT64_MIN : INT64_MAX);
  s.v[1] = cg_s32(l, INT32_MAX);
  cg_leave_top(l, saved);
  return s;
}

/* Is b to be preferred to a? NaN beats all numbers; of equals the first in place. */
static struct ir_val is_better(struct lower *l, const struct reduce *x, const struct state *a,
                               const struct state *b) {
  struct ir_val before = cg_cmp(l, IR_LT, b->v[1], a->v[1]);
  struct ir_val equal = cg_cmp(l, IR_EQ, b->v[0], a->v[0]);
  struct ir_val beyond = cg_cmp(l, x->fold == IR_MAX ? IR_GT : IR_LT, b->v[0], a->v[0]);
  struct ir_val take = cg_op2(l, IR_OR, beyond, cg_op2(l, IR_AND, equal, before));
  if (!dtype_is_float(x->type[0]))
    return take;
  struct ir_val a_nan = cg_cmp(l, IR_NE, a->v[0], a->v[0]);
  struct ir_val b_nan = cg_cmp(l, IR_NE, b->v[0], b->v[0]);
  struct ir_val first = cg_op2(l, IR_AND, b_nan, before);
  return cg_select(l, a_nan, first, cg_op2(l, IR_OR, b_nan, take));
}

static struct state fold(struct lower *l, const struct reduce *x, struct state a, struct state b) {
  if (x->n_state == 1) {
    a.v[0] = ir_build1(&l->b, x->fold, ir_scalar(x->type[0]), 2, (struct ir_val[]){a.v[0], b.v[0]});
    return a;
  }
  struct ir_val better = is_better(l, x, &a, &b);
  for (uint32_t k = 0; k < x->n_state; k++)
    a.v[k] = cg_select(l, better, b.v[k], a.v[k]);
  return a;
}

static struct state get(struct lower *l, const struct reduce *x, struct ir_val r) {
  struct state s = {{{0}}};
  for (uint32_t k = 0; k < x->n_state; k++)
    s.v[k] = cg_fget(l, x->acc[k], r);
  return s;
}

static void put(struct lower *l, const struct reduce *x, struct ir_val r, const struct state *s) {
  for (uint32_t k = 0; k < x->n_state; k++)
    cg_fput(l, x->acc[k], r, 1, &s->v[k]);
}

/* Where a register's value is folded to: a map of digits (cg_digits) from its number. */
struct folded {
  int64_t map[128];
  uint32_t n, chains;
};

/* Registers along the axis take turns between chains; chain c of result r is r + results * c. */
static struct folded place_registers(struct lower *l, const struct reduce *x) {
  const struct layout *in = cg_layout_at(l, x->in_layout);
  struct folded f = {.chains = 1};
  int64_t next = 1;
  for (uint32_t i = 0; i < in->modes.n && in->modes.at[i].hw == LAYOUT_REG; i++) {
    const struct layout_mode *m = &in->modes.at[i];
    bool kept = false;
    for (uint32_t d = 0; d < in->rank; d++)
      kept = kept || (d != x->axis && m->step[d]);
    uint32_t turns = 1;
    while (!kept && x->n_state == 1 && m->step[x->axis] && m->extent % (2 * turns) == 0 &&
           f.chains * turns * x->n < AT_ONCE)
      turns *= 2;
    if (turns > 1) {
      f.map[f.n++] = turns;
      f.map[f.n++] = (int64_t)x->n * f.chains;
      f.chains *= turns;
    }
    f.map[f.n++] = m->extent / turns;
    f.map[f.n++] = kept ? next : 0;
    next *= kept ? m->extent : 1;
  }
  return f;
}

/* A fragment for all chains, beside each other along the axis. */
static uint32_t new_chains(struct lower *l, const struct reduce *x, uint32_t chains) {
  const struct layout *out = cg_layout_at(l, x->out_layout);
  int64_t shape[LAYOUT_MAX_RANK], step[LAYOUT_MAX_RANK] = {0};
  for (uint32_t d = 0; d < out->rank; d++)
    shape[d] = out->shape[d];
  shape[x->axis] = chains;
  step[x->axis] = 1;
  struct layout *y = layout_new(l->a, out->rank, shape);
  for (uint32_t i = 0; i < out->modes.n; i++)
    layout_add(l->a, y, out->modes.at[i].hw, out->modes.at[i].extent, out->modes.at[i].step);
  layout_add(l->a, y, LAYOUT_REG, chains, step);
  return cg_new_frag(l, "r", ir_tile(x->type[0], out->rank, shape), ir_add_layout(l->m, y));
}

/* The chains of each result, into the first. */
static void join_chains(struct lower *l, const struct reduce *x, uint32_t frag, uint32_t chains) {
  struct ir_builder saved;
  struct ir_val r = cg_each(l, x->n, &saved);
  struct state s = {{cg_fget(l, frag, r)}};
  for (uint32_t c = 1; c < chains; c++) {
    struct state e = {{cg_fget(l, frag, cg_addi(l, r, (int64_t)x->n * c))}};
    s = fold(l, x, s, e);
  }
  put(l, x, r, &s);
  cg_end_each(l, saved);
}

static void fold_registers(struct lower *l, const struct reduce *x, struct ir_val v) {
  const struct layout *in = cg_layout_at(l, x->in_layout);
  struct folded f = place_registers(l, x);
  struct reduce y = *x; /* what is folded into */
  if (f.chains > 1)
    y.acc[0] = new_chains(l, x, f.chains);
  struct state none = identity(l, x);
  for (uint32_t k = 0; k < x->n_state; k++)
    cg_ffill(l, y.acc[k], none.v[k]);
  struct ir_builder saved;
  struct ir_val r = cg_each(l, layout_extent(in, LAYOUT_REG), &saved);
  cg_next_reg(l);
  struct state e = {{cg_cast(l, cg_eval(l, v, r, x->in_layout), x->type[0])}};
  int64_t extent = in->shape[x->axis];
  bool padded = cg_layout_cover(in, x->axis) > extent;
  if (padded || x->n_state > 1)
    e.v[1] = cg_coord(l, x->in_layout, x->axis, r);
  if (padded) {
    struct ir_val inside = cg_cmp(l, IR_LT, e.v[1], cg_s32(l, extent));
    for (uint32_t k = 0; k < x->n_state; k++)
      e.v[k] = cg_select(l, inside, e.v[k], none.v[k]);
  }
  struct ir_val at = cg_digits(l, r, f.n, f.map);
  struct state s = fold(l, x, get(l, &y, at), e);
  put(l, &y, at, &s);
  cg_end_each(l, saved);
  if (f.chains > 1)
    join_chains(l, x, y.acc[0], f.chains);
}

static void fold_lanes(struct lower *l, const struct reduce *x) {
  const struct layout *in = cg_layout_at(l, x->in_layout);
  uint32_t stride = 1;
  for (uint32_t i = 0; i < in->modes.n; i++) {
    const struct layout_mode *m = &in->modes.at[i];
    if (m->hw != LAYOUT_LANE)
      continue;
    for (uint32_t bit = 1; m->step[x->axis] && bit < m->extent; bit *= 2) {
      struct ir_builder saved;
      struct ir_val r = cg_each(l, x->n, &saved);
      struct state s = get(l, x, r), other = s;
      for (uint32_t k = 0; k < x->n_state; k++)
        other.v[k] = cg_shuffle(l, s.v[k], stride * bit);
      s = fold(l, x, s, other);
      put(l, x, r, &s);
      cg_end_each(l, saved);
    }
    stride *= m->extent;
  }
}

/* Warps that differ along the axis: which of them this is, and how many. */
static uint32_t warp_digit(struct lower *l, const struct reduce *x, struct ir_val *digit) {
  const struct layout *in = cg_layout_at(l, x->in_layout);
  int64_t map[128], parts = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < in->modes.n; i++) {
    const struct layout_mode *m = &in->modes.at[i];
    if (m->hw != LAYOUT_WARP)
      continue;
    map[n++] = m->extent;
    map[n++] = m->step[x->axis] ? parts : 0;
    parts *= m->step[x->axis] ? m->extent : 1;
  }
  struct ir_builder saved = cg_enter_top(l);
  *digit = cg_digits(l, l->warp, n, map);
  cg_leave_top(l, saved);
  return (uint32_t)parts;
}

/* Of the threads of a part that hold the same result, the one that writes it: the first lane, in
 * the first of the warps that are copies altogether. */
static struct ir_val is_part_writer(struct lower *l, const struct reduce *x) {
  const struct layout *out = cg_layout_at(l, x->out_layout);
  int64_t map[128], next = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < out->modes.n; i++) {
    const struct layout_mode *m = &out->modes.at[i];
    if (m->hw != LAYOUT_LANE)
      continue;
    bool copies = true;
    for (uint32_t d = 0; d < out->rank; d++)
      copies = copies && !m->step[d];
    map[n++] = m->extent;
    map[n++] = copies ? next : 0;
    next *= copies ? m->extent : 1;
  }
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val zero = cg_s32(l, 0);
  struct ir_val v = cg_cmp(l, IR_EQ, cg_digits(l, l->lane, n, map), zero);
  cg_leave_top(l, saved);
  return cg_op2(l, IR_AND, v, cg_is_writer(l, x->in_layout));
}

static void fold_warps(struct lower *l, const struct reduce *x) {
  const struct layout *out = cg_layout_at(l, x->out_layout);
  struct ir_val digit;
  uint32_t parts = warp_digit(l, x, &digit);
  if (parts == 1)
    return;
  /* partial[row][part]; rows counted over all that the layout covers, padding too. */
  int64_t rows = 1, bytes[MOST_STATE];
  for (uint32_t d = 0; d < out->rank; d++)
    rows *= cg_layout_cover(out, d);
  struct cg_smem buf[MOST_STATE] = {{0}};
  int64_t dims[2] = {rows, parts};
  for (uint32_t k = 0; k < x->n_state; k++) {
    bytes[k] = dtype_bytes(x->type[k], 1);
    buf[k].dtype = x->type[k];
    buf[k].buf =
        cg_new_buf(l, "partial", ir_tile(x->type[k], 2, dims), rows * parts * bytes[k], 16);
  }
  struct ir_val writer = is_part_writer(l, x);
  for (int pass = 0; pass < 2; pass++) {
    struct ir_builder saved;
    struct ir_val r = cg_each(l, x->n, &saved), row = cg_s32(l, 0);
    for (uint32_t d = 0; d < out->rank; d++) {
      struct ir_val coord = cg_coord(l, x->out_layout, d, r);
      row = cg_add(l, cg_muli(l, row, cg_layout_cover(out, d)), coord);
    }
    struct ir_val at[MOST_STATE];
    for (uint32_t k = 0; k < x->n_state; k++)
      at[k] = cg_muli(l, row, parts * bytes[k]);
    struct state s = pass == 0 ? get(l, x, r) : (struct state){{{0}}};
    for (uint32_t k = 0; pass == 0 && k < x->n_state; k++)
      cg_sstore(l, &buf[k], cg_add(l, at[k], cg_muli(l, digit, bytes[k])), writer, 1, &s.v[k]);
    for (uint32_t p = 0; pass == 1 && p < parts; p++) {
      struct state part;
      for (uint32_t k = 0; k < x->n_state; k++)
        cg_sload(l, &buf[k], cg_addi(l, at[k], p * bytes[k]), 1, &part.v[k]);
      s = p ? fold(l, x, s, part) : part;
    }
    if (pass == 1)
      put(l, x, r, &s);
    cg_end_each(l, saved);
  }
}

/* A sum in s32 modulo the narrow type: integers wrap, while a cast would saturate. */
static struct ir_val wrap(struct lower *l, struct ir_val v, enum dtype t) {
  int64_t span = (int64_t)1 << dtype_bits(t), half = dtype_kind(t) == DTK_INT ? span / 2 : 0;
  struct ir_val bits = cg_s32(l, span - 1);
  v = cg_op2(l, IR_AND, cg_addi(l, v, half), bits);
  return cg_addi(l, v, -half);
}

uint32_t cg_narrow_sums(struct lower *l, uint32_t from, struct ir_type t, bool wraps) {
  enum dtype have = (enum dtype)l->m->res.at[from].type.dtype, want = (enum dtype)t.dtype;
  if (have == want)
    return from;
  uint32_t frag = cg_new_frag(l, "r", t, l->m->res.at[from].layout);
  uint32_t w = cg_put_width(l, frag), n = cg_frag_elems(l, frag);
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w), out[4];
  for (uint32_t i = 0; i < w; i++) {
    out[i] = cg_fget(l, from, cg_addi(l, r, i));
    if (!dtype_is_float(want) && wraps && dtype_bits(want) < 32)
      out[i] = wrap(l, out[i], want);
    if (!dtype_is_float(want))
      out[i] = cg_cast(l, out[i], want);
  }
  cg_fput(l, frag, r, w, out);
  cg_end_each(l, saved);
  return frag;
}

static enum ir_opcode fold_of(enum ir_opcode c) {
  switch ((int)c) {
  case IR_REDUCE_SUM: return IR_ADD;
  case IR_REDUCE_MAX:
  case IR_ARGMAX: return IR_MAX;
  case IR_REDUCE_ANY: return IR_OR;
  case IR_REDUCE_ALL: return IR_AND;
  default: return IR_MIN;
  }
}

void cg_lower_reduce(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[0], to = ir_op_at(m, o)->out[0];
  enum ir_opcode c = ir_op_at(m, o)->opcode;
  bool place = c == IR_ARGMAX || c == IR_ARGMIN;
  struct reduce x = {.op = o, .axis = (uint32_t)ir_attr_int(m, o, IR_ATTR_axis, 0)};
  x.fold = fold_of(c);
  x.n_state = place ? 2 : 1;
  x.type[0] = cg_fold_type((enum dtype)ir_type_of(m, v).dtype);
  x.type[1] = DT_S32;
  x.out = ir_type_of(m, to);
  x.in_layout = cg_layout_of(l, v);
  x.out_layout = cg_layout_of(l, to);
  for (uint32_t k = 0; k < x.n_state; k++) {
    struct ir_type at = x.out;
    at.dtype = (uint8_t)x.type[k];
    x.acc[k] = cg_new_frag(l, "r", at, x.out_layout);
  }
  x.n = cg_frag_elems(l, x.acc[0]);
  KILN_ASSERT(layout_eq(cg_layout_at(l, x.out_layout),
                        cg_layout_slice(l->a, cg_layout_at(l, x.in_layout), 1u << x.axis)));
  cg_begin_writer(l, v);
  fold_registers(l, &x, v);
  fold_lanes(l, &x);
  fold_warps(l, &x);
  l->val[to.id].kind = CG_LV_FRAG;
  l->val[to.id].frag = cg_narrow_sums(l, x.acc[place], x.out, x.fold == IR_ADD);
}
