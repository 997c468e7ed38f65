/* Tiles whose elements change their threads, through shared memory: converts between layouts,
 * reshapes that move elements, parts of tiles and tiles of parts.
 *
 * One tile lies in the buffer; it is written in boxes, each from the layout of its own, and read in
 * one box. How it lies there is crossing.h's choice. Barriers come later, as between all that meets
 * in shared memory. */
#include "base/check.h"
#include "codegen/crossing.h"
#include "codegen/lower.h"

#define ALIGN 16

/* A tile in shared memory. */
struct buffer {
  struct cg_crossing x;
  struct cg_smem *s;
};

static struct cg_crossing tile_of(struct ir_type t) {
  struct cg_crossing x = {.rank = t.rank, .size = (uint32_t)dtype_bytes((enum dtype)t.dtype, 1)};
  for (uint32_t d = 0; d < t.rank; d++)
    x.dim[d] = t.dim[d];
  return x;
}

static struct buffer open_buffer(struct lower *l, struct ir_type t, struct cg_crossing x) {
  struct buffer b = {.x = x, .s = ARENA_NEW(l->a, struct cg_smem)};
  b.s->dtype = (enum dtype)t.dtype;
  b.s->buf = cg_new_buf(l, "cross", t, x.bytes, ALIGN);
  return b;
}

static const int64_t origin[IR_MAX_RANK] = {0};

/* Value v, whose box starts at `at` in the tile; put: registers that are written together. */
static struct cg_cross_side side(struct lower *l, struct ir_val v, const int64_t *at,
                                 uint32_t put) {
  struct cg_cross_side s = {.layout = cg_layout_at(l, cg_layout_of(l, v)), .put = put};
  for (uint32_t d = 0; d < s.layout->rank; d++)
    s.at[d] = at[d];
  return s;
}

/* The fragment that v is read into. */
static uint32_t new_result(struct lower *l, struct ir_val v) {
  return cg_new_frag(l, "t", ir_type_of(l->m, v), cg_layout_of(l, v));
}

/* A place in the tile: of a thread, or what a register adds to it. */
struct place {
  struct ir_val row, col;
};

static void add_coord(struct lower *l, const struct cg_crossing *x, struct place *p, uint32_t d,
                      struct ir_val coord) {
  if (d == x->inner)
    p->col = coord;
  else
    p->row = cg_add(l, cg_muli(l, p->row, x->dim[d]), coord);
}

static struct ir_val byte_of(struct lower *l, const struct cg_crossing *x, struct place p) {
  struct ir_val byte = cg_add(l, cg_muli(l, p.row, x->pitch), cg_muli(l, p.col, x->size));
  struct ir_val steps = cg_op2(l, IR_SHR, p.row, cg_s32(l, x->shift));
  return x->step ? cg_add(l, byte, cg_muli(l, steps, x->step)) : byte;
}

/* Byte of register r of a side. Where nothing carries from the row of the thread to that of the
 * register, each has its own share: that of the register is a number. */
static struct ir_val address(struct lower *l, const struct cg_crossing *x,
                             const struct cg_cross_side *s, uint32_t layout, struct ir_val r) {
  struct place thread = {cg_s32(l, 0), cg_s32(l, 0)}, reg = thread, both = thread;
  for (uint32_t d = 0; d < x->rank; d++) {
    struct ir_val at = cg_addi(l, cg_reg_coord(l, layout, d, r), s->at[d]);
    add_coord(l, x, &thread, d, cg_thread_coord(l, layout, d));
    add_coord(l, x, &reg, d, at);
    add_coord(l, x, &both, d, cg_add(l, cg_thread_coord(l, layout, d), at));
  }
  if (!cg_rows_split(x, s))
    return byte_of(l, x, both);
  return cg_add(l, byte_of(l, x, thread), byte_of(l, x, reg));
}

static void write_box(struct lower *l, const struct buffer *b, const struct cg_cross_side *s,
                      struct ir_val v) {
  uint32_t from = cg_layout_of(l, v), regs[CG_CROSS_MOST] = {0};
  struct ir_val out[CG_CROSS_MOST];
  struct ir_builder saved;
  struct ir_val r = cg_digits(l, cg_each(l, s->n, &saved), s->n_map, s->map);
  struct ir_val inside = cg_inside_tile(l, ir_type_of(l->m, v), from, r);
  struct ir_val mask = cg_op2(l, IR_AND, cg_is_writer(l, from), inside);
  for (uint32_t i = 0; i < s->width; i++)
    regs[i] = i * s->stride;
  cg_eval_regs(l, v, r, from, s->width, regs, out);
  cg_sstore(l, b->s, address(l, &b->x, s, from, r), mask, s->width, out);
  cg_end_each(l, saved);
}

static void read_box(struct lower *l, const struct buffer *b, const struct cg_cross_side *s,
                     struct ir_val to, uint32_t frag) {
  struct ir_type box = ir_type_of(l->m, to);
  uint32_t into = cg_layout_of(l, to), w = s->width;
  struct ir_val out[CG_CROSS_MOST * 4], part[4];
  struct ir_builder saved;
  struct ir_val r = cg_digits(l, cg_each(l, s->n, &saved), s->n_map, s->map);
  KILN_ASSERT(s->group <= 4);
  for (uint32_t g = 0; g < s->group; g++) {
    struct ir_val reg = cg_addi(l, r, (int64_t)g * (s->stride == 1 ? w : 1));
    struct ir_val in = cg_inside_tile(l, box, into, reg);
    struct ir_val addr = address(l, &b->x, s, into, reg);
    cg_sload(l, b->s, cg_select(l, in, addr, cg_s32(l, 0)), w, out + g * w);
  }
  if (s->stride == 1) {
    cg_fput(l, frag, r, s->group * w, out);
  } else {
    for (uint32_t i = 0; i < w; i++) {
      for (uint32_t g = 0; g < s->group; g++)
        part[g] = out[g * w + i];
      cg_fput(l, frag, cg_addi(l, r, (int64_t)i * s->stride), s->group, part);
    }
  }
  cg_end_each(l, saved);
  l->val[to.id].kind = CG_LV_FRAG;
  l->val[to.id].frag = frag;
}

void cg_lower_convert(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[0], to = ir_op_at(l->m, o)->out[0];
  struct ir_type tv = ir_type_of(l->m, v), tt = ir_type_of(l->m, to);
  uint32_t frag = new_result(l, to);
  struct cg_cross_side sides[2] = {side(l, v, origin, 1),
                                   side(l, to, origin, cg_put_width(l, frag))};
  struct cg_crossing x = tile_of(tv), y = tile_of(tt);
  bool reshapes = ir_op_at(l->m, o)->opcode == IR_RESHAPE;
  if (reshapes) {
    cg_plan_packed(&x, &sides[0], 1);
    cg_plan_packed(&y, &sides[1], 1);
  } else {
    cg_plan_crossing(l->a, &x, sides, 2);
  }
  struct buffer b = open_buffer(l, tv, x);
  write_box(l, &b, &sides[0], v);
  b.x = reshapes ? y : x;
  read_box(l, &b, &sides[1], to, frag);
}

const struct cg_smem *cg_spill_tile(struct lower *l, struct ir_val v) {
  struct cg_cross_side s = side(l, v, origin, 1);
  struct cg_crossing x = tile_of(ir_type_of(l->m, v));
  cg_plan_packed(&x, &s, 1);
  struct buffer b = open_buffer(l, ir_type_of(l->m, v), x);
  write_box(l, &b, &s, v);
  return b.s;
}

void cg_lower_extract(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[0], to = ir_op_at(l->m, o)->out[0];
  uint32_t frag = new_result(l, to);
  const int64_t *at = ir_get_attr(l->m, o, IR_ATTR_offsets)->ints;
  struct cg_cross_side sides[2] = {side(l, v, origin, 1), side(l, to, at, cg_put_width(l, frag))};
  struct cg_crossing x = tile_of(ir_type_of(l->m, v));
  cg_plan_crossing(l->a, &x, sides, 2);
  struct buffer b = open_buffer(l, ir_type_of(l->m, v), x);
  write_box(l, &b, &sides[0], v);
  read_box(l, &b, &sides[1], to, frag);
}

void cg_lower_concat(struct lower *l, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(l->m, o);
  struct ir_type t = ir_type_of(l->m, n.out[0]);
  int64_t axis = ir_attr_int(l->m, o, IR_ATTR_axis, 0), at[IR_MAX_RANK] = {0};
  struct cg_cross_side *sides = ARENA_ARRAY(l->a, struct cg_cross_side, n.n_in + 1u);
  uint32_t frag = new_result(l, n.out[0]);
  for (uint32_t i = 0; i < n.n_in; i++) {
    sides[i] = side(l, n.in[i], at, 1);
    at[axis] += ir_type_of(l->m, n.in[i]).dim[axis];
  }
  sides[n.n_in] = side(l, n.out[0], origin, cg_put_width(l, frag));
  struct cg_crossing x = tile_of(t);
  cg_plan_crossing(l->a, &x, sides, n.n_in + 1u);
  struct buffer b = open_buffer(l, t, x);
  for (uint32_t i = 0; i < n.n_in; i++)
    write_box(l, &b, &sides[i], n.in[i]);
  read_box(l, &b, &sides[n.n_in], n.out[0], frag);
}
