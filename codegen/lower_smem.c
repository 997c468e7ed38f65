/* Matrices in shared memory: buffers, copies from global memory, tiles written for dots.
 *
 * A row of a power of two of 16-byte chunks is swizzled: chunk c of row o lies at c ^ ((o >> shift)
 * & mask), chosen so that eight consecutive rows put one chunk column into eight different 16-byte
 * bank groups, which is what ldmatrix reads and what a copy of a column writes; the row starts stay
 * aligned and nothing is wasted. Other rows are padded to an odd number of chunks, with the same
 * effect.
 *
 *   chunks a row   1      2      4      8 and more
 *   shift, mask    -      2, 1   1, 3   0, 7          (rows of 16 B: eight rows are 128 B as they
 *   are) */
#include "base/check.h"
#include "codegen/lower.h"

#define CHUNK      16
#define SLOT_ALIGN 128

enum { UNROLLED_MOST = 8 }; /* asynchronous copies in a row */

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

static void set_int(struct ir_attr *a, enum ir_attr_key key, int64_t i) {
  *a = (struct ir_attr){.key = key, .i = i};
}

struct cg_smem *cg_new_smem(struct lower *l, const char *name, enum dtype t, int64_t outer,
                            int64_t inner, uint32_t slots, uint32_t pipe) {
  struct cg_smem *s = ARENA_NEW(l->a, struct cg_smem);
  int64_t chunks = cg_matrix_pitch(t, inner) / CHUNK;
  s->dtype = t;
  s->outer = outer;
  s->inner = inner;
  s->pipe = pipe;
  s->outer_dim = 0;
  s->inner_dim = 1;
  s->fill_outer = outer;
  s->fill_inner = inner;
  if ((chunks & (chunks - 1)) == 0) {
    s->mask = chunks >= 8 ? 7 : (uint32_t)chunks - 1;
    s->shift = chunks >= 8 ? 0 : chunks == 4 ? 1 : 2;
  }
  s->pitch = chunks * CHUNK;
  s->slot_bytes = cg_matrix_bytes(t, outer, inner);
  int64_t dims[2] = {outer, inner}, swizzle[2] = {s->shift, s->mask};
  s->buf = cg_new_buf(l, name, ir_tile(t, 2, dims), s->slot_bytes * slots, SLOT_ALIGN);
  struct ir_res *r = &l->m->res.at[s->buf];
  struct ir_attr attrs[5];
  uint32_t n = r->n_attrs;
  for (uint32_t i = 0; i < n; i++)
    attrs[i] = r->attrs[i];
  set_int(&attrs[n++], IR_ATTR_slots, slots);
  set_int(&attrs[n++], IR_ATTR_pitch, s->pitch);
  if (s->mask)
    attrs[n++] = (struct ir_attr){.key = IR_ATTR_swizzle, .ints = swizzle, .n_ints = 2};
  struct ir_res copy = *r;
  copy.attrs = attrs;
  copy.n_attrs = (uint16_t)n;
  l->m->res.n--;
  s->buf = ir_add_res(l->m, copy);
  return s;
}

struct ir_val cg_smem_addr(struct lower *l, const struct cg_smem *s, struct ir_val outer,
                           struct ir_val inner) {
  struct ir_val byte = cg_muli(l, inner, dtype_bytes(s->dtype, 1));
  if (s->mask) {
    struct ir_val by = cg_op2(l, IR_SHR, outer, cg_s32(l, s->shift));
    by = cg_op2(l, IR_AND, by, cg_s32(l, s->mask));
    /* The swizzle changes bits 4 and up of an offset inside a row: rows are a power of two long. */
    byte = cg_op2(l, IR_XOR, byte, cg_op2(l, IR_SHL, by, cg_s32(l, 4)));
  }
  return cg_add(l, cg_muli(l, outer, s->pitch), byte);
}

static struct ir_op buf_op(struct lower *l, enum ir_opcode o, const struct cg_smem *s,
                           uint32_t n_in, const struct ir_val *in, uint32_t n_out,
                           const struct ir_type *out) {
  struct ir_op op = ir_build(&l->b, o, n_in, in, n_out, out);
  ir_set_res(l->m, op, s->pipe ? 2 : 1, (uint32_t[]){s->buf, s->pipe});
  return op;
}

void cg_sstore(struct lower *l, const struct cg_smem *s, struct ir_val at, struct ir_val mask,
               uint32_t n, const struct ir_val *v) {
  struct ir_val in[2 + 16] = {at, mask};
  KILN_ASSERT(n <= 16);
  for (uint32_t i = 0; i < n; i++)
    in[2 + i] = v[i];
  buf_op(l, IR_SSTORE, s, 2 + n, in, 0, NULL);
}

void cg_sload(struct lower *l, const struct cg_smem *s, struct ir_val at, uint32_t n,
              struct ir_val *out) {
  struct ir_type t[16] = {{0}};
  KILN_ASSERT(n <= 16);
  for (uint32_t i = 0; i < n; i++)
    t[i] = ir_scalar(s->dtype);
  struct ir_op o = buf_op(l, IR_SLOAD, s, 1, &at, n, t);
  for (uint32_t i = 0; i < n; i++)
    out[i] = ir_op_at(l->m, o)->out[i];
}

/* ---- pipes ---- */

uint32_t cg_new_pipe(struct lower *l, uint32_t slots) {
  struct ir_attr attrs[2] = {
      {.key = IR_ATTR_kind, .s = symtab_get(l->m->syms, "cp_async")},
      {.key = IR_ATTR_slots, .i = slots},
  };
  const char *name = arena_printf(l->m->arena, "pipe%u", ++l->n_names);
  struct ir_res r = {
      .kind = IR_RES_PIPE, .name = symtab_get(l->m->syms, name), .attrs = attrs, .n_attrs = 2};
  return ir_add_res(l->m, r);
}

void cg_commit(struct lower *l, uint32_t pipe) {
  ir_set_res(l->m, ir_build(&l->b, IR_PIPE_COMMIT, 0, NULL, 0, NULL), 1, &pipe);
}

void cg_wait(struct lower *l, uint32_t pipe, uint32_t pending) {
  struct ir_op o = ir_build(&l->b, IR_PIPE_WAIT, 0, NULL, 0, NULL);
  ir_set_res(l->m, o, 1, &pipe);
  cg_set_int(l->m, o, IR_ATTR_pending, pending);
}

/* ---- copies from global memory ---- */

struct cg_smem *cg_smem_for_load(struct lower *l, struct ir_op load, uint32_t slots,
                                 uint32_t pipe) {
  struct ir_module *m = l->m;
  struct cg_use use = cg_dot_of_load(m, &l->uses, load);
  const struct layout *acc = cg_layout_at(l, cg_layout_of(l, ir_op_at(m, use.op)->out[0]));
  struct cg_matrix x = cg_matrix_of_load(m, load, use, acc);
  enum dtype t = (enum dtype)ir_type_of(m, ir_op_at(m, load)->out[0]).dtype;
  uint32_t arg = 0;
  ir_view_arg(m, ir_op_at(m, load)->in[0], &arg);
  const char *name = ir_sym(m, m->args.at[arg].name);
  struct cg_smem *s = cg_new_smem(l, name, t, x.outer, x.inner, slots, pipe);
  s->outer_dim = x.outer_dim;
  s->inner_dim = x.inner_dim;
  s->fill_outer = x.fill_outer;
  s->fill_inner = x.fill_inner;
  return s;
}

/* How many of the chunk's elements are read; the rest is zero. */
static struct ir_val valid_count(struct lower *l, const struct cg_copy *c, struct ir_val o,
                                 struct ir_val i) {
  const struct cg_access *x = &c->x;
  const struct cg_smem *s = c->s;
  int64_t im = s->inner_dim < 0 ? 0 : x->masks[s->inner_dim];
  int64_t om = s->outer_dim < 0 ? 0 : x->masks[s->outer_dim];
  struct ir_val width = cg_s32(l, c->width), zero = cg_s32(l, 0), n = width;
  KILN_ASSERT(!(im & 2)); /* such loads are staged */
  if ((im & 1) || s->fill_inner > c->inner || c->inner % c->width) {
    struct ir_val end = im & 1 ? x->high[s->inner_dim] : cg_s32(l, c->inner);
    bool whole = c->inner % c->width == 0 && (!(im & 1) || x->vec % c->width == 0);
    if (whole) {
      n = cg_select(l, cg_cmp(l, IR_LT, i, end), width, zero);
    } else {
      n = cg_op2(l, IR_MAX, cg_op2(l, IR_SUB, end, i), zero);
      n = cg_op2(l, IR_MIN, n, width);
    }
  }
  struct ir_val row = cg_bool(l, true);
  if ((om & 1) || s->fill_outer > c->outer)
    row = cg_cmp(l, IR_LT, o, om & 1 ? x->high[s->outer_dim] : cg_s32(l, c->outer));
  if (om & 2)
    row = cg_op2(l, IR_AND, row, cg_cmp(l, IR_GE, o, x->low[s->outer_dim]));
  for (uint32_t d = 0; d < x->rank; d++) {
    if ((int)d == s->outer_dim || (int)d == s->inner_dim)
      continue;
    if (x->masks[d] & 1)
      row = cg_op2(l, IR_AND, row, cg_cmp(l, IR_LT, zero, x->high[d]));
    if (x->masks[d] & 2)
      row = cg_op2(l, IR_AND, row, cg_cmp(l, IR_GE, zero, x->low[d]));
  }
  return cg_select(l, row, n, zero);
}

static void copy_async(struct lower *l, const struct cg_copy *c, struct ir_val r,
                       const struct ir_val at[3], struct ir_val mask) {
  struct ir_val in[4] = {cg_place_ptr(l, &c->x, &c->p, r), at[2], valid_count(l, c, at[0], at[1]),
                         mask};
  struct ir_op op = buf_op(l, IR_CP_ASYNC, c->s, 4, in, 0, NULL);
  cg_set_int(l->m, op, IR_ATTR_bytes, c->width * dtype_bytes(c->s->dtype, 1));
}

static void copy_staged(struct lower *l, const struct cg_copy *c, struct ir_val r,
                        const struct ir_val at[3], struct ir_val mask) {
  struct ir_val v[16], other = cg_pad_value(l, c->x.op);
  struct ir_val ptr = cg_place_ptr(l, &c->x, &c->p, r);
  struct ir_val read = cg_op2(l, IR_AND, cg_place_mask(l, &c->x, &c->p, r), mask);
  struct ir_val in_tile = cg_bool(l, true), zero = cg_zero_of(l, c->s->dtype);
  /* Beyond the tile, up to k's padding, lie zeros, whatever the pad value. */
  if (c->s->fill_outer > c->outer)
    in_tile = cg_cmp(l, IR_LT, at[0], cg_s32(l, c->outer));
  if (c->s->fill_inner > c->inner)
    in_tile = cg_op2(l, IR_AND, in_tile, cg_cmp(l, IR_LT, at[1], cg_s32(l, c->inner)));
  cg_gload(l, ptr, cg_op2(l, IR_AND, read, in_tile), other, c->width, v);
  for (uint32_t e = 0; e < c->width; e++)
    v[e] = cg_select(l, in_tile, v[e], zero);
  cg_sstore(l, c->s, at[2], mask, c->width, v);
}

struct cg_copy cg_open_copy(struct lower *l, const struct cg_access *x, const struct cg_smem *s) {
  struct cg_copy c = {.x = *x, .s = s};
  c.async = str_eq(cg_attr_word(l->m, x->op, IR_ATTR_path), "cp_async");
  c.outer = s->outer_dim < 0 ? 1 : x->tile.dim[s->outer_dim];
  c.inner = s->inner_dim < 0 ? 1 : x->tile.dim[s->inner_dim];
  c.width = s->inner_dim != (int)x->vdim ? 1 : c.async ? x->align : x->vec;
  int64_t region[2] = {s->fill_outer, s->fill_inner};
  uint32_t layout =
      ir_add_layout(l->m, cg_layout_blocked(l->a, 2, region, 1, c.width, l->warps, -1));
  c.p = cg_open_place(l, x, layout, 2, (int[]){s->outer_dim, s->inner_dim});
  c.n = layout_extent(cg_layout_at(l, layout), LAYOUT_REG) / c.width;
  return c;
}

void cg_copy_chunk(struct lower *l, const struct cg_copy *c, struct ir_val slot, struct ir_val mask,
                   struct ir_val chunk) {
  const struct layout *lay = cg_layout_at(l, c->p.layout);
  struct ir_val r = cg_muli(l, chunk, c->width), at[3];
  at[0] = cg_coord(l, c->p.layout, 0, r);
  at[1] = cg_coord(l, c->p.layout, 1, r);
  at[2] = cg_add(l, cg_smem_addr(l, c->s, at[0], at[1]), slot);
  /* Where the layout runs over the region, or holds copies, not everyone writes. */
  mask = cg_op2(l, IR_AND, mask, cg_is_writer(l, c->p.layout));
  if (cg_layout_cover(lay, 0) > c->s->fill_outer)
    mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, at[0], cg_s32(l, c->s->fill_outer)));
  if (cg_layout_cover(lay, 1) > round_up(c->s->fill_inner, c->width))
    mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, at[1], cg_s32(l, c->s->fill_inner)));
  if (c->async)
    copy_async(l, c, r, at, mask);
  else
    copy_staged(l, c, r, at, mask);
}

bool cg_is_long_copy(const struct cg_copy *c) {
  return c->n > UNROLLED_MOST;
}

/* How many of n steps are unrolled. Nothing here is held in fragments, so long copies are rolled
 * loops, and few of their addresses are there at once: each is a product with a stride, in 64 bits,
 * which the compiler moves out of all loops where it can. Of staged copies 4 loads are on their way
 * at once without taking the registers that a dot needs. */
static uint32_t part_of(const struct cg_copy *c) {
  uint32_t part = c->async && !cg_is_long_copy(c) ? UNROLLED_MOST : 4;
  while (c->n % part)
    part--;
  return part;
}

void cg_copy_all(struct lower *l, const struct cg_copy *c, struct ir_val slot, struct ir_val mask) {
  struct ir_builder saved, rolled;
  uint32_t part = part_of(c);
  struct ir_val i = cg_each_rolled(l, c->n / part, &rolled);
  struct ir_val in_part = cg_each(l, part, &saved);
  i = cg_add(l, cg_muli(l, i, part), in_part);
  cg_copy_chunk(l, c, slot, mask, i);
  cg_end_each(l, saved);
  cg_end_each(l, rolled);
}

/* Does another load into shared memory follow, with nothing between that could read this one? */
static bool next_joins(const struct lower *l, struct ir_op o) {
  const struct ir_module *m = l->m;
  for (o = ir_op_at(m, o)->next; o.id; o = ir_op_at(m, o)->next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (n->opcode == IR_LOAD)
      return !cg_goes_to_registers(m, o);
    bool scalar = n->n_out == 1 && ir_type_of(m, n->out[0]).kind == IR_SCALAR &&
                  (n->opcode == IR_CONST || cg_is_elementwise(n->opcode));
    if (!scalar && n->opcode != IR_TRANSPOSE && n->opcode != IR_RESHAPE && n->opcode != IR_SPLAT)
      return false;
  }
  return false;
}

void cg_lower_smem_load(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->out[0];
  uint32_t pipe = l->open_pipe ? l->open_pipe : cg_new_pipe(l, 1);
  struct cg_smem *s = cg_smem_for_load(l, o, 1, pipe);
  struct cg_access x = cg_open_access(l, o);
  cg_bind_access(l, &x);
  struct cg_copy c = cg_open_copy(l, &x, s);
  struct ir_val always = cg_bool(l, true);
  cg_copy_all(l, &c, cg_s32(l, 0), always);
  l->open_pipe = next_joins(l, o) ? pipe : 0;
  if (!l->open_pipe) {
    cg_commit(l, pipe);
    cg_wait(l, pipe, 0);
  }
  l->val[v.id].kind = CG_LV_SMEM;
  l->val[v.id].smem = s;
  l->val[v.id].scalar = cg_s32(l, 0);
}

/* ---- tiles in registers ---- */

/* Elements beyond the tile along k, up to the matrix's extent, must be zero. */
void cg_zero_padding(struct lower *l, const struct cg_smem *s, struct ir_type t, int k_dim) {
  int64_t extent = k_dim ? s->inner : s->outer;
  if (extent == t.dim[k_dim])
    return;
  int64_t region[2] = {k_dim ? t.dim[0] : extent - t.dim[0], k_dim ? extent - t.dim[1] : t.dim[1]};
  uint32_t layout = ir_add_layout(l->m, cg_layout_blocked(l->a, 2, region, 1, 1, l->warps, -1));
  const struct layout *lay = cg_layout_at(l, layout);
  struct ir_builder saved;
  struct ir_val zero = cg_zero_of(l, s->dtype);
  struct ir_val r = cg_each(l, layout_extent(lay, LAYOUT_REG), &saved), c[2];
  struct ir_val mask = cg_is_writer(l, layout);
  for (uint32_t d = 0; d < 2; d++) {
    c[d] = cg_coord(l, layout, d, r);
    if (cg_layout_cover(lay, d) > region[d])
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, c[d], cg_s32(l, region[d])));
  }
  c[k_dim] = cg_addi(l, c[k_dim], t.dim[k_dim]);
  cg_sstore(l, s, cg_smem_addr(l, s, c[0], c[1]), mask, 1, &zero);
  cg_end_each(l, saved);
}

/* Of n accesses of `step` elements each, how many are unrolled. */
static uint32_t part_of_reads(uint32_t n, uint32_t step) {
  uint32_t part = step >= 8 ? 2 : 4;
  while (n % part)
    part--;
  return part;
}

struct cg_smem *cg_write_operand(struct lower *l, struct ir_val v, const char *name, int64_t outer,
                                 int64_t inner, int k_dim) {
  struct ir_type t = ir_type_of(l->m, v);
  enum dtype dt = (enum dtype)t.dtype;
  int64_t chunk = CHUNK / dtype_bytes(dt, 1);
  struct cg_smem *s = cg_new_smem(l, name, dt, outer, round_up(inner, chunk), 1, 0);
  uint32_t layout = cg_layout_of(l, v);
  const struct layout *lay = cg_layout_at(l, layout);
  uint32_t w = cg_aligned_run(lay, 1, (uint32_t)chunk), step = 1;
  while (w > 1 && t.dim[1] % w)
    w /= 2;
  /* What is computed from memory alone needs no registers but those of a step: few at a time. */
  bool rolls = cg_reads_memory_alone(l, v, &step);
  step = step > w ? step : w;
  uint32_t n = layout_extent(lay, LAYOUT_REG) / step, part = rolls ? part_of_reads(n, step) : n;
  struct ir_builder saved, rolled;
  struct ir_val i = cg_each_rolled(l, n / part, &rolled), in_part = cg_each(l, part, &saved);
  struct ir_val r = cg_muli(l, cg_add(l, cg_muli(l, i, part), in_part), step), out[16];
  cg_eval_run(l, v, r, layout, step, out);
  for (uint32_t e = 0; e < step; e += w) {
    struct ir_val at = cg_addi(l, r, e), mask = cg_is_writer(l, layout), c[2];
    for (uint32_t d = 0; d < 2; d++) {
      c[d] = cg_coord(l, layout, d, at);
      if (cg_layout_cover(lay, d) > t.dim[d])
        mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, c[d], cg_s32(l, t.dim[d])));
    }
    cg_sstore(l, s, cg_smem_addr(l, s, c[0], c[1]), mask, w, out + e);
  }
  cg_end_each(l, saved);
  cg_end_each(l, rolled);
  cg_zero_padding(l, s, t, k_dim);
  return s;
}
