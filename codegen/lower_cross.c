/* Tiles whose elements change their threads, through shared memory: converts between layouts,
 * reshapes that move elements, parts of tiles and tiles of parts.
 *
 * One tile lies in the buffer; it is written in boxes, each from the layout of its own, and read in
 * one box. Barriers come later, as between all that meets in shared memory. */
#include "base/check.h"
#include "codegen/lower.h"

#define CHUNK 16

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/* A tile in shared memory: row-major, rows of its last dim `row` elements apart: packed, where a
 * reshape reads it as another shape, else 16 bytes further around the banks each time. */
struct crossing {
  struct cg_smem *s;
  int64_t row;
};

static struct crossing open_crossing(struct lower *l, struct ir_type t, bool packed) {
  enum dtype dt = (enum dtype)t.dtype;
  int64_t bytes = dtype_bytes(dt, 1), chunk = CHUNK / bytes, last = t.dim[t.rank - 1];
  struct crossing x = {.row = packed ? last : round_up(last, chunk) + chunk};
  x.s = ARENA_NEW(l->a, struct cg_smem);
  x.s->dtype = dt;
  x.s->buf = cg_new_buf(l, "cross", t, round_up(ir_elems(t) / last * x.row * bytes, CHUNK), CHUNK);
  return x;
}

/* Byte of register r of a box of the tile; t: the tile, at: where the box starts in it. */
static struct ir_val address(struct lower *l, const struct crossing *x, struct ir_type t,
                             const int64_t *at, uint32_t layout, struct ir_val r) {
  struct ir_val row = cg_s32(l, 0);
  for (uint32_t d = 0; d + 1 < t.rank; d++) {
    struct ir_val coord = cg_addi(l, cg_coord(l, layout, d, r), at[d]);
    row = cg_add(l, cg_muli(l, row, t.dim[d]), coord);
  }
  struct ir_val last = cg_addi(l, cg_coord(l, layout, t.rank - 1, r), at[t.rank - 1]);
  return cg_muli(l, cg_add(l, cg_muli(l, row, x->row), last), dtype_bytes((enum dtype)t.dtype, 1));
}

/* Elements of one access to a box whose last dim is `last` elements long. */
static uint32_t width(const struct lower *l, struct ir_type box, const int64_t *at,
                      uint32_t layout) {
  int64_t chunk = CHUNK / dtype_bytes((enum dtype)box.dtype, 1), last = box.dim[box.rank - 1];
  uint32_t w = cg_aligned_run(cg_layout_at(l, layout), box.rank - 1u, (uint32_t)chunk);
  while (w > 1 && (last % w || at[box.rank - 1] % w))
    w /= 2;
  return w;
}

static void write_box(struct lower *l, const struct crossing *x, struct ir_type t,
                      const int64_t *at, struct ir_val v, bool packed) {
  struct ir_type box = ir_type_of(l->m, v);
  uint32_t from = cg_layout_of(l, v), n = layout_extent(cg_layout_at(l, from), LAYOUT_REG);
  uint32_t w = packed ? 1 : width(l, box, at, from);
  struct ir_val out[16];
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w);
  struct ir_val inside = cg_inside_tile(l, box, from, r);
  struct ir_val mask = cg_op2(l, IR_AND, cg_is_writer(l, from), inside);
  cg_eval_run(l, v, r, from, w, out);
  cg_sstore(l, x->s, address(l, x, t, at, from, r), mask, w, out);
  cg_end_each(l, saved);
}

static void read_box(struct lower *l, const struct crossing *x, struct ir_type t, const int64_t *at,
                     struct ir_val to, bool packed) {
  struct ir_type box = ir_type_of(l->m, to);
  uint32_t into = cg_layout_of(l, to), frag = cg_new_frag(l, "t", box, into);
  uint32_t n = cg_frag_elems(l, frag), w = packed ? 1 : width(l, box, at, into);
  uint32_t put = cg_put_width(l, frag), step = w > put ? w : put;
  struct ir_val out[16];
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / step, &saved), step);
  for (uint32_t i = 0; i < step; i += w) {
    struct ir_val reg = cg_addi(l, r, i);
    struct ir_val in = cg_inside_tile(l, box, into, reg);
    struct ir_val addr = address(l, x, t, at, into, reg);
    cg_sload(l, x->s, cg_select(l, in, addr, cg_s32(l, 0)), w, out + i);
  }
  cg_fput(l, frag, r, step, out);
  cg_end_each(l, saved);
  l->val[to.id].kind = CG_LV_FRAG;
  l->val[to.id].frag = frag;
}

static const int64_t origin[IR_MAX_RANK] = {0};

void cg_lower_convert(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[0], to = ir_op_at(l->m, o)->out[0];
  struct ir_type tv = ir_type_of(l->m, v), tt = ir_type_of(l->m, to);
  bool packed = ir_op_at(l->m, o)->opcode == IR_RESHAPE;
  struct crossing x = open_crossing(l, tv, packed);
  write_box(l, &x, tv, origin, v, packed);
  x.row = packed ? tt.dim[tt.rank - 1] : x.row;
  read_box(l, &x, tt, origin, to, packed);
}

const struct cg_smem *cg_spill_tile(struct lower *l, struct ir_val v) {
  struct ir_type t = ir_type_of(l->m, v);
  struct crossing x = open_crossing(l, t, true);
  write_box(l, &x, t, origin, v, true);
  return x.s;
}

void cg_lower_extract(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->in[0], to = ir_op_at(l->m, o)->out[0];
  struct ir_type t = ir_type_of(l->m, v);
  const int64_t *at = ir_get_attr(l->m, o, IR_ATTR_offsets)->ints;
  struct crossing x = open_crossing(l, t, false);
  write_box(l, &x, t, origin, v, false);
  read_box(l, &x, t, at, to, false);
}

void cg_lower_concat(struct lower *l, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(l->m, o);
  struct ir_type t = ir_type_of(l->m, n.out[0]);
  int64_t axis = ir_attr_int(l->m, o, IR_ATTR_axis, 0), at[IR_MAX_RANK] = {0};
  struct crossing x = open_crossing(l, t, false);
  for (uint32_t i = 0; i < n.n_in; i++) {
    write_box(l, &x, t, at, n.in[i], false);
    at[axis] += ir_type_of(l->m, n.in[i]).dim[axis];
  }
  read_box(l, &x, t, origin, n.out[0], false);
}
