/* Row and column reductions: registers, then lanes, then warps.
 *
 * Each thread folds its registers along the axis into one fragment in the sliced layout; lanes that
 * differ along the axis exchange by butterfly shuffles, so that all of them hold the result; warps
 * that differ along it meet in shared memory. Narrow types fold in f32 (s32) and round once. */
#include "base/check.h"
#include "codegen/lower.h"

#include <math.h>

struct reduce {
  struct ir_op op;
  enum ir_opcode fold; /* ADD, MAX or MIN */
  enum dtype type;     /* of the accumulator */
  struct ir_type out;
  uint32_t axis, in_layout, out_layout;
  uint32_t acc; /* fragment */
  uint32_t n;   /* its elements */
};

static enum dtype fold_type(enum dtype t) {
  if (dtype_is_float(t))
    return dtype_bits(t) < 32 ? DT_F32 : t;
  return dtype_bits(t) < 32 ? DT_S32 : t;
}

static struct ir_val identity(struct lower *l, const struct reduce *x) {
  bool is_max = x->fold == IR_MAX;
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val v;
  if (x->fold == IR_ADD)
    v = cg_zero_of(l, x->type);
  else if (dtype_is_float(x->type))
    v = ir_const_num(&l->b, x->type, is_max ? -(double)INFINITY : (double)INFINITY);
  else if (dtype_bits(x->type) == 32)
    v = ir_const_int(&l->b, x->type, is_max ? INT32_MIN : INT32_MAX);
  else
    v = ir_const_int(&l->b, x->type, is_max ? INT64_MIN : INT64_MAX);
  cg_leave_top(l, saved);
  return v;
}

static struct ir_val fold(struct lower *l, const struct reduce *x, struct ir_val a,
                          struct ir_val b) {
  return ir_build1(&l->b, x->fold, ir_scalar(x->type), 2, (struct ir_val[]){a, b});
}

/* acc[r] = fold(acc[r], v) */
static void fold_into(struct lower *l, const struct reduce *x, struct ir_val r, struct ir_val v) {
  struct ir_val y = fold(l, x, cg_fget(l, x->acc, r), v);
  cg_fput(l, x->acc, r, 1, &y);
}

static void fold_registers(struct lower *l, const struct reduce *x, struct ir_val v) {
  const struct layout *in = cg_layout_at(l, x->in_layout);
  int64_t map[128], next = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < in->modes.n && in->modes.at[i].hw == LAYOUT_REG; i++) {
    const struct layout_mode *m = &in->modes.at[i];
    bool kept = false;
    for (uint32_t d = 0; d < in->rank; d++)
      kept = kept || (d != x->axis && m->step[d]);
    map[n++] = m->extent;
    map[n++] = kept ? next : 0;
    next *= kept ? m->extent : 1;
  }
  struct ir_val none = identity(l, x);
  cg_ffill(l, x->acc, none);
  struct ir_builder saved;
  struct ir_val r = cg_each(l, layout_extent(in, LAYOUT_REG), &saved);
  cg_next_reg(l);
  struct ir_val e = cg_cast(l, cg_eval(l, v, r, x->in_layout), x->type);
  int64_t extent = in->shape[x->axis];
  if (cg_layout_cover(in, x->axis) > extent) {
    struct ir_val c = cg_coord(l, x->in_layout, x->axis, r);
    e = cg_select(l, cg_cmp(l, IR_LT, c, cg_s32(l, extent)), e, none);
  }
  fold_into(l, x, cg_digits(l, r, n, map), e);
  cg_end_each(l, saved);
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
      struct ir_val r = cg_each(l, x->n, &saved), v = cg_fget(l, x->acc, r);
      struct ir_val other = ir_build1(&l->b, IR_SHUFFLE, ir_scalar(x->type), 1, &v);
      cg_set_int(l->m, ir_value_at(l->m, other)->def, IR_ATTR_mask, stride * bit);
      struct ir_val y = fold(l, x, v, other);
      cg_fput(l, x->acc, r, 1, &y);
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
  int64_t rows = 1, bytes = dtype_bytes(x->type, 1);
  for (uint32_t d = 0; d < out->rank; d++)
    rows *= cg_layout_cover(out, d);
  struct cg_smem s = {.dtype = x->type};
  int64_t dims[2] = {rows, parts};
  s.buf = cg_new_buf(l, "partial", ir_tile(x->type, 2, dims), rows * parts * bytes, 16);
  struct ir_val writer = is_part_writer(l, x);
  for (int pass = 0; pass < 2; pass++) {
    struct ir_builder saved;
    struct ir_val r = cg_each(l, x->n, &saved), row = cg_s32(l, 0);
    for (uint32_t d = 0; d < out->rank; d++) {
      struct ir_val coord = cg_coord(l, x->out_layout, d, r);
      row = cg_add(l, cg_muli(l, row, cg_layout_cover(out, d)), coord);
    }
    struct ir_val at = cg_muli(l, row, parts * bytes);
    if (pass == 0) {
      struct ir_val v = cg_fget(l, x->acc, r);
      cg_sstore(l, &s, cg_add(l, at, cg_muli(l, digit, bytes)), writer, 1, &v);
    } else {
      struct ir_val sum = {0};
      for (uint32_t p = 0; p < parts; p++) {
        struct ir_val v;
        cg_sload(l, &s, cg_addi(l, at, p * bytes), 1, &v);
        sum = p ? fold(l, x, sum, v) : v;
      }
      cg_fput(l, x->acc, r, 1, &sum);
    }
    cg_end_each(l, saved);
  }
}

/* A sum in s32 modulo the narrow type: integers wrap, while a cast would saturate. */
static struct ir_val wrap(struct lower *l, const struct reduce *x, struct ir_val v, enum dtype t) {
  if (x->fold != IR_ADD)
    return v;
  int64_t span = (int64_t)1 << dtype_bits(t), half = dtype_kind(t) == DTK_INT ? span / 2 : 0;
  struct ir_val bits = cg_s32(l, span - 1);
  v = cg_op2(l, IR_AND, cg_addi(l, v, half), bits);
  return cg_addi(l, v, -half);
}

void cg_lower_reduce(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[0], to = ir_op_at(m, o)->out[0];
  enum ir_opcode c = ir_op_at(m, o)->opcode;
  enum dtype t = (enum dtype)ir_type_of(m, v).dtype;
  struct reduce x = {.op = o, .axis = (uint32_t)ir_attr_int(m, o, IR_ATTR_axis, 0)};
  x.fold = c == IR_REDUCE_SUM ? IR_ADD : c == IR_REDUCE_MAX ? IR_MAX : IR_MIN;
  x.type = fold_type(t);
  x.out = ir_type_of(m, to);
  x.in_layout = cg_layout_of(l, v);
  x.out_layout = cg_layout_of(l, to);
  struct ir_type at = x.out;
  at.dtype = (uint8_t)x.type;
  x.acc = cg_new_frag(l, "r", at, x.out_layout);
  x.n = cg_frag_elems(l, x.acc);
  KILN_ASSERT(layout_eq(cg_layout_at(l, x.out_layout),
                        cg_layout_slice(l->a, cg_layout_at(l, x.in_layout), 1u << x.axis)));
  fold_registers(l, &x, v);
  fold_lanes(l, &x);
  fold_warps(l, &x);
  uint32_t frag = x.acc;
  if (x.type != t) {
    frag = cg_new_frag(l, "r", x.out, x.out_layout);
    uint32_t w = cg_put_width(l, frag);
    struct ir_builder saved;
    struct ir_val r = cg_muli(l, cg_each(l, x.n / w, &saved), w), out[4];
    for (uint32_t i = 0; i < w; i++) {
      out[i] = cg_fget(l, x.acc, cg_addi(l, r, i));
      if (!dtype_is_float(t))
        out[i] = cg_cast(l, wrap(l, &x, out[i], t), t);
    }
    cg_fput(l, frag, r, w, out);
    cg_end_each(l, saved);
  }
  l->val[to.id].kind = CG_LV_FRAG;
  l->val[to.id].frag = frag;
}
