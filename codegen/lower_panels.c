/* Tiles in panels as the tensor memory unit lays them out (lower_box.c): read into registers where
 * the unit left them, and written for the matrix unit.
 *
 * A tile of 16-bit elements in the layout of an operand of warpgroups comes by ldmatrix, 16 x 16
 * elements a warp at a time, transposed where its rows are adjacent; which lane gives the address
 * of which row is in lower_dot_mma.c. Any other layout is read as many elements at a time as lie
 * side by side in a thread. */
#include "base/check.h"
#include "codegen/lower.h"

#define CHUNK      16 /* bytes that the unit's swizzle keeps together */
#define MOST_BYTES 16 /* of an access */
#define SWIZZLE    128

/* Byte offset of element (outer, inner), s32, from the slot's start. */
static struct ir_val address(struct lower *l, const struct cg_smem *s, struct ir_val outer,
                             struct ir_val inner) {
  int64_t size = dtype_bytes(s->dtype, 1), swizzle = s->panel_swizzle, per = CHUNK / size;
  uint32_t shift = swizzle == 128 ? 0 : swizzle == 64 ? 1 : 2;
  struct ir_val turn = cg_op2(l, IR_SHR, outer, cg_s32(l, shift));
  turn = cg_op2(l, IR_AND, turn, cg_s32(l, swizzle / CHUNK - 1));
  int64_t panels = s->inner / s->panel;
  int64_t in_chunk[4] = {per, 1, s->inner / per, 0}, of_panel[4] = {s->panel, 0, panels, 1};
  int64_t of_chunk[6] = {per, 0, swizzle / CHUNK, 1, panels, 0};
  struct ir_val chunk = cg_op2(l, IR_XOR, cg_digits(l, inner, 6, of_chunk), turn);
  struct ir_val at = cg_muli(l, outer, s->pitch);
  at = cg_add(l, at, cg_muli(l, chunk, CHUNK));
  at = cg_add(l, at, cg_muli(l, cg_digits(l, inner, 4, in_chunk), size));
  return cg_add(l, at, cg_muli(l, cg_digits(l, inner, 4, of_panel), s->outer * s->pitch));
}

/* The tile's dims that are outer and inner in memory; of more than two dims the others are 1. */
struct dims {
  int outer, inner;
};

static struct dims dims_of(const struct cg_smem *s, struct ir_type t) {
  struct dims d = {-1, s->inner_dim};
  for (uint32_t i = 0; i < t.rank; i++)
    if ((int)i != s->inner_dim && (d.outer < 0 || t.dim[i] != 1))
      d.outer = (int)i;
  return d;
}

static void read_elements(struct lower *l, const struct cg_smem *s, struct ir_val slot,
                          struct ir_type t, uint32_t layout, uint32_t frag) {
  struct dims d = dims_of(s, t);
  const struct layout *x = cg_layout_at(l, layout);
  uint32_t n = cg_frag_elems(l, frag), most = MOST_BYTES / (uint32_t)dtype_bytes(s->dtype, 1);
  uint32_t put = cg_put_width(l, frag), w = cg_aligned_run(x, (uint32_t)d.inner, most);
  while (w > 1 && s->inner % w)
    w /= 2;
  put = put > w ? put : w;
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / put, &saved), put), v[16], zero = cg_s32(l, 0);
  for (uint32_t e = 0; e < put; e += w) {
    struct ir_val at = cg_addi(l, r, e), in = cg_inside_tile(l, t, layout, at);
    struct ir_val outer = d.outer < 0 ? zero : cg_coord(l, layout, (uint32_t)d.outer, at);
    struct ir_val inner = cg_coord(l, layout, (uint32_t)d.inner, at);
    struct ir_val from = cg_select(l, in, address(l, s, outer, inner), zero);
    cg_sload(l, s, cg_add(l, slot, from), w, v + e);
  }
  cg_fput(l, frag, r, put, v);
  cg_end_each(l, saved);
}

/* The tile's dim that is rows, if 8 registers of a thread in a row are its share of 16 x 16
 * elements of an operand: as it is, or (1) transposed; else -1. */
static int rows_of_operand(const struct layout *x) {
  static const struct {
    enum layout_hw hw;
    uint32_t extent;
    int64_t row, col;
  } want[] = {
      {LAYOUT_REG, 2, 0, 1}, {LAYOUT_REG, 2, 8, 0}, {LAYOUT_LANE, 4, 0, 2}, {LAYOUT_LANE, 8, 1, 0}};
  if (x->rank != 2 || x->shape[0] % 16 || x->shape[1] % 16 || x->modes.n < 5)
    return -1;
  for (int rows = 0; rows < 2; rows++) {
    const struct layout_mode *third = &x->modes.at[2];
    bool ok = third->hw == LAYOUT_REG && third->extent % 2 == 0 && third->step[1 - rows] == 8;
    for (uint32_t k = 0, i = 0; k < 4 && ok; k++, i++) {
      while (k == 2 && i < x->modes.n && x->modes.at[i].hw == LAYOUT_REG)
        i++;
      const struct layout_mode *m = &x->modes.at[i < x->modes.n ? i : 0];
      ok = m->hw == want[k].hw && m->extent == want[k].extent && m->step[rows] == want[k].row &&
           m->step[1 - rows] == want[k].col;
    }
    if (ok)
      return rows;
  }
  return -1;
}

static void read_matrices(struct lower *l, const struct cg_smem *s, struct ir_val slot,
                          uint32_t layout, int rows, uint32_t frag) {
  static const int64_t low16[6] = {8, 1, 2, 8, 2, 0}, quad8[6] = {8, 1, 2, 0, 2, 8};
  static const int64_t bit3[6] = {8, 0, 2, 8, 2, 0}, bit4[6] = {8, 0, 2, 0, 2, 8};
  const struct layout *x = cg_layout_at(l, layout);
  bool turned = s->inner_dim == rows;
  struct ir_val at[2];
  struct ir_builder saved = cg_enter_top(l);
  /* Matrices: rows first, then columns (of the operand). */
  struct ir_val down = cg_digits(l, l->lane, 6, turned ? bit3 : low16);
  struct ir_val along = cg_digits(l, l->lane, 6, turned ? quad8 : bit4);
  for (int d = 0; d < 2; d++) {
    int64_t map[128];
    uint32_t n = cg_mode_map(x, LAYOUT_WARP, (uint32_t)d, map);
    at[d] = cg_add(l, d == rows ? down : along, cg_digits(l, l->warp, n, map));
  }
  cg_leave_top(l, saved);
  struct ir_val r = cg_muli(l, cg_each(l, cg_frag_elems(l, frag) / 8, &saved), 8);
  for (uint32_t d = 0; d < 2; d++)
    at[d] = cg_add(l, at[d], cg_reg_coord(l, layout, d, r));
  struct ir_val from = address(l, s, at[1 - s->inner_dim], at[s->inner_dim]);
  struct ir_op o =
      ir_build(&l->b, IR_LDMATRIX, 2, (struct ir_val[]){cg_add(l, slot, from), r}, 0, NULL);
  ir_set_res(l->m, o, 2, (uint32_t[]){frag, s->buf});
  cg_set_int(l->m, o, IR_ATTR_num, 4);
  cg_set_int(l->m, o, IR_ATTR_trans, turned);
  cg_end_each(l, saved);
}

uint32_t cg_read_panels(struct lower *l, const struct cg_smem *s, struct ir_val slot,
                        struct ir_type t, uint32_t layout) {
  uint32_t frag = cg_new_frag(l, "x", t, layout);
  int rows = rows_of_operand(cg_layout_at(l, layout));
  if (dtype_bits(s->dtype) == 16 && rows >= 0)
    read_matrices(l, s, slot, layout, rows, frag);
  else
    read_elements(l, s, slot, t, layout, frag);
  return frag;
}

struct cg_smem *cg_write_panels(struct lower *l, struct ir_val v, const char *name) {
  struct ir_type t = ir_type_of(l->m, v);
  uint32_t layout = cg_layout_of(l, v), most = MOST_BYTES / (uint32_t)dtype_bytes(t.dtype, 1);
  struct cg_smem *s = cg_new_panels(l, name, (enum dtype)t.dtype, t.dim[0], t.dim[1], SWIZZLE, 1);
  uint32_t w = cg_aligned_run(cg_layout_at(l, layout), 1, most);
  s->inner_dim = 1;
  while (w > 1 && t.dim[1] % w)
    w /= 2;
  /* Everyone's products of what lies there are done; then everyone has written. */
  cg_put_barrier(&l->b);
  struct ir_builder saved;
  uint32_t n = layout_extent(cg_layout_at(l, layout), LAYOUT_REG);
  struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w), out[16];
  struct ir_val mask = cg_op2(l, IR_AND, cg_is_writer(l, layout), cg_inside_tile(l, t, layout, r));
  cg_eval_run(l, v, r, layout, w, out);
  struct ir_val at = address(l, s, cg_coord(l, layout, 0, r), cg_coord(l, layout, 1, r));
  cg_sstore(l, s, at, mask, w, out);
  cg_end_each(l, saved);
  ir_build(&l->b, IR_FENCE_ASYNC, 0, NULL, 0, NULL);
  cg_put_barrier(&l->b);
  return s;
}
