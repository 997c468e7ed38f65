/* Dots on the matrix unit: fragments from shared memory, mma.sync. The instructions are rows of
 * ir/mma.def; nothing here knows one of them by name.
 *
 * A k step of a warp: blocks of a (m rows each), blocks of b (8 columns each), and an instruction
 * for each pair. Fragments hold two steps, so that the next step's loads are issued before this
 * step's multiplications. How an operand is read:
 *
 *   rows        K-major, 8 to 32 bits: ldmatrix moves 16 bytes of k of a row, four to a lane
 *   columns     MN-major, 16 bits: ldmatrix, transposed
 *   pairs       MN-major, 8 bits: ldmatrix transposes units of two elements, adjacent along m or n;
 *               `unzip` takes them apart. So rows 2g and 2g + 1 of a, not g and g + 8, are a
 *               lane's, and two blocks of b are columns 2c and 2c + 1: the accumulator's layout
 *               says so (cg_layout_mma_acc)
 *   elements    MN-major of 32 bits, and 64 bits: plain loads
 *
 * Which lane gives ldmatrix which row address (PTX ISA); lane l addresses row l % 8 of matrix
 * l / 8; h: half of the k step (16 bytes; 8, 16 rows of 16, 8 bits):
 *
 *   matrix       0         1         2         3        outer                       chunk
 *   a, rows    m0 h0     m8 h0     m0 h1     m8 h1      m                           k
 *   a, columns m0 h0     m8 h0     m0 h1     m8 h1      k                           m
 *   b, rows    n0 h0     n0 h1     n8 h0     n8 h1      n                           k
 *   b, columns n0 h0     n0 h1     n8 h0     n8 h1      k                           n
 *   pairs      k0 of 4   k2 of 4   the same, h1         4 (l % 8 / 2) + l % 2 + ..  m, n
 *
 * f32 operands are rounded to tf32 where they are used; tf32x3 keeps what that cuts off in
 * fragments of their own and adds low . high and high . low. Where sums of the unit are short and
 * the kernel wants them promoted, an instruction sums into zeros and that is added by itself. */
#include "base/check.h"
#include "codegen/lower.h"

enum reading { ROWS, COLUMNS, PAIRS, ELEMENTS };

static enum reading reading_of(const struct cg_dot *d, int i) {
  uint32_t bits = dtype_bits(d->x[i]->dtype);
  if (bits == 64 || (bits == 32 && !d->k_inner[i]))
    return ELEMENTS;
  return d->k_inner[i] ? ROWS : bits == 8 ? PAIRS : COLUMNS;
}

uint32_t cg_mma_steps(const struct cg_dot *d) {
  return (uint32_t)((d->k + d->mma->k - 1) / d->mma->k);
}

static struct cg_mma_cut cut_of(const struct cg_dot *d) {
  return cg_mma_cut(d->m, d->n, d->w, &d->atom);
}

static uint32_t elem_bytes(const struct cg_dot *d, int i) {
  return dtype_bits(d->x[i]->dtype) / 8;
}

static uint32_t block_elems(const struct cg_dot *d, int i) {
  return ir_mma_elems(d->mma, i);
}

/* Rows or columns that one load of operand i covers. */
static uint32_t unit_of(const struct cg_dot *d, int i) {
  return reading_of(d, i) != ELEMENTS ? 16 : i == 0 ? d->mma->m : 8;
}

/* Of an operand read by elements: how many a lane reads for a block. */
static uint32_t n_places(const struct cg_dot *d, int i) {
  return reading_of(d, i) == ELEMENTS ? block_elems(d, i) : 1;
}

/* Where lane and warp find operand i: coordinates along the matrix's outer and inner dim, of block
 * 0, step 0; of element e where it is read by elements. */
static void thread_place(struct lower *l, const struct cg_dot *d, int i, uint32_t e,
                         struct ir_val *outer, struct ir_val *inner) {
  static const int64_t low16[6] = {8, 1, 2, 8, 2, 0}, quad8[6] = {8, 1, 2, 0, 2, 8};
  static const int64_t bit3[6] = {8, 0, 2, 1, 2, 0}, bit4[6] = {8, 0, 2, 0, 2, 1};
  static const int64_t zip[8] = {2, 1, 4, 4, 2, 2, 2, 16};
  static const int64_t group[4] = {4, 0, 8, 1}, in_group[4] = {4, 1, 8, 0};
  struct cg_mma_cut c = cut_of(d);
  int64_t warp_map[4] = {d->w.cols, i ? 1 : 0, d->w.rows, i ? 0 : 1};
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val warp = cg_digits(l, l->warp, 4, warp_map);
  warp = cg_muli(l, warp, i == 0 ? (int64_t)d->mma->m * c.blocks : 8 * (int64_t)c.n8);
  enum reading how = reading_of(d, i);
  if (how == ELEMENTS) {
    /* a: e counts rows first, then halves of k; b: halves of k. */
    bool tall = i == 0 && d->mma->m == 16;
    uint32_t row = tall ? e % 2 * 8 : 0, half = tall ? e / 2 : e;
    struct ir_val mn = cg_addi(l, cg_add(l, cg_digits(l, l->lane, 4, group), warp), row);
    struct ir_val k = cg_addi(l, cg_digits(l, l->lane, 4, in_group), 4 * (int64_t)half);
    *outer = d->k_inner[i] ? mn : k;
    *inner = d->k_inner[i] ? k : mn;
  } else if (how == PAIRS) {
    *outer = cg_digits(l, l->lane, 8, zip);
    *inner = warp;
  } else {
    /* a by rows and b by columns: matrices 0, 1 lie along outer; the other two along chunks. */
    bool outer_first = (i == 0) == d->k_inner[i];
    *outer = cg_digits(l, l->lane, 6, outer_first ? low16 : quad8);
    *inner = cg_muli(l, cg_digits(l, l->lane, 6, outer_first ? bit4 : bit3), 16 / elem_bytes(d, i));
    if (d->k_inner[i])
      *outer = cg_add(l, *outer, warp);
    else
      *inner = cg_add(l, *inner, warp);
  }
  cg_leave_top(l, saved);
}

/* Are block offsets along the inner dim xor-able: warps start at multiples of a power of two that
 * covers their blocks? */
static bool blocks_are_bits(const struct cg_dot *d, int i) {
  struct cg_mma_cut c = cut_of(d);
  uint32_t blocks = i == 0 ? c.blocks : c.n8, warps = i == 0 ? d->w.rows : d->w.cols;
  return warps == 1 || (blocks & (blocks - 1)) == 0;
}

/* Byte offset for block b (units along m or n) at a k step, of element e. */
static struct ir_val block_addr(struct lower *l, const struct cg_dot *d, int i, uint32_t e,
                                struct ir_val b, struct ir_val step) {
  const struct cg_smem *s = d->x[i];
  bool k_inner = d->k_inner[i];
  int64_t unit = unit_of(d, i), k = d->mma->k;
  struct ir_val rows = cg_muli(l, k_inner ? b : step, k_inner ? unit : k);
  struct ir_val at = d->thread_offset[i][e];
  struct ir_val by = cg_muli(l, k_inner ? step : b, (k_inner ? k : unit) * elem_bytes(d, i));
  if (s->mask == 0) {
    at = cg_add(l, at, by);
  } else if (k_inner || blocks_are_bits(d, i)) {
    /* Eight rows further the swizzle repeats; four rows further (a step of 64-bit elements) its
     * bits are those of the rows' number, xor'ed: the lane's own row is below four. */
    if ((k_inner ? unit : k) % 8) {
      struct ir_val turn = cg_op2(l, IR_SHR, rows, cg_s32(l, s->shift));
      turn = cg_op2(l, IR_AND, turn, cg_s32(l, s->mask));
      by = cg_op2(l, IR_XOR, by, cg_op2(l, IR_SHL, turn, cg_s32(l, 4)));
    }
    at = cg_op2(l, IR_XOR, at, by);
  } else {
    struct ir_val outer, inner;
    thread_place(l, d, i, e, &outer, &inner);
    outer = cg_add(l, outer, rows);
    inner = cg_add(l, inner, cg_muli(l, b, unit));
    return cg_add(l, cg_smem_addr(l, s, outer, inner), d->slot[i]);
  }
  at = cg_add(l, at, cg_muli(l, rows, s->pitch));
  return cg_add(l, at, d->slot[i]);
}

static void ldmatrix(struct lower *l, const struct cg_dot *d, int i, uint32_t num, struct ir_val at,
                     struct ir_val index) {
  struct ir_op o = ir_build(&l->b, IR_LDMATRIX, 2, (struct ir_val[]){at, index}, 0, NULL);
  ir_set_res(l->m, o, 2, (uint32_t[]){d->frag[i], d->x[i]->buf});
  cg_set_int(l->m, o, IR_ATTR_num, num);
  cg_set_int(l->m, o, IR_ATTR_trans, !d->k_inner[i]);
}

static void unzip(struct lower *l, uint32_t frag, struct ir_val index, int64_t count) {
  struct ir_op o = ir_build(&l->b, IR_UNZIP, 1, &index, 0, NULL);
  ir_set_res(l->m, o, 1, &frag);
  cg_set_int(l->m, o, IR_ATTR_count, count);
}

/* A block of the accumulator for each warp: which of its elements lies where does not matter. */
static uint32_t new_part(struct lower *l, const struct cg_dot *d) {
  const struct cg_mma_atom atom = {.m = d->mma->m, .k = d->mma->k, .per = d->atom.per};
  int64_t dims[2] = {d->mma->m * (int64_t)d->w.rows, 8 * (int64_t)d->w.cols};
  const struct layout *x = cg_layout_mma_acc(l->a, dims[0], dims[1], d->w, &atom);
  return cg_new_frag(l, "part", ir_tile(d->mma->acc, 2, dims), ir_add_layout(l->m, x));
}

void cg_mma_open(struct lower *l, struct cg_dot *d) {
  uint32_t steps = cg_mma_steps(d) > 1 ? 2 : 1;
  if (d->promotes)
    d->part = new_part(l, d);
  for (int i = 0; i < 2; i++) {
    for (uint32_t low = 0; low < (d->splits ? 2u : 1u); low++) {
      uint32_t n = low ? 1 : steps;
      const struct layout *x = i == 0 ? cg_layout_mma_a(l->a, d->m, d->n, n, d->w, &d->atom)
                                      : cg_layout_mma_b(l->a, d->m, d->n, n, d->w, &d->atom);
      uint32_t frag = cg_new_frag(l, i ? "b" : "a", ir_tile(d->x[i]->dtype, 2, x->shape),
                                  ir_add_layout(l->m, x));
      *(low ? &d->low[i] : &d->frag[i]) = frag;
    }
    for (uint32_t e = 0; e < n_places(d, i); e++) {
      struct ir_val outer, inner;
      thread_place(l, d, i, e, &outer, &inner);
      struct ir_builder saved = cg_enter_top(l);
      d->thread_offset[i][e] = cg_smem_addr(l, d->x[i], outer, inner);
      cg_leave_top(l, saved);
    }
  }
}

/* Elements of one step in the fragment of a step's parity. */
static struct ir_val step_base(struct lower *l, const struct cg_dot *d, struct ir_val step,
                               uint32_t elems) {
  if (cg_mma_steps(d) == 1)
    return cg_s32(l, 0);
  return cg_muli(l, cg_op2(l, IR_AND, step, cg_s32(l, 1)), elems);
}

/* Where one step's fragments start. */
struct step_loads {
  struct ir_val step, base[2];
};

static uint32_t step_elems(const struct cg_dot *d, int i) {
  struct cg_mma_cut c = cut_of(d);
  return block_elems(d, i) * (i == 0 ? c.blocks : c.n8);
}

static struct step_loads loads_of(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct step_loads x = {.step = step};
  for (int i = 0; i < 2; i++)
    x.base[i] = step_base(l, d, step, step_elems(d, i));
  return x;
}

/* Loads of a step. By ldmatrix, blocks of a, pairs of blocks of b, and the last block of b if it is
 * single. */
static void load(struct lower *l, const struct cg_dot *d, int i, const struct step_loads *x,
                 struct ir_val b) {
  uint32_t per = block_elems(d, i) * (i == 1 && reading_of(d, 1) != ELEMENTS ? 2 : 1);
  struct ir_val index = cg_add(l, x->base[i], cg_muli(l, b, per));
  if (reading_of(d, i) != ELEMENTS) {
    ldmatrix(l, d, i, 4, block_addr(l, d, i, 0, b, x->step), index);
    if (reading_of(d, i) == PAIRS && i == 1)
      unzip(l, d->frag[1], index, 16);
    for (uint32_t half = 0; reading_of(d, i) == PAIRS && i == 0 && half < 2; half++)
      unzip(l, d->frag[0], cg_addi(l, index, 8 * half), 8);
    return;
  }
  for (uint32_t e = 0; e < per; e++) {
    struct ir_val v;
    cg_sload(l, d->x[i], block_addr(l, d, i, e, b, x->step), 1, &v);
    cg_fput(l, d->frag[i], cg_addi(l, index, e), 1, &v);
  }
}

/* How many such loads of b, and whether one of a single block comes after them. */
static uint32_t loads_of_b(const struct cg_dot *d, bool *single) {
  uint32_t n8 = cut_of(d).n8;
  bool each = reading_of(d, 1) == ELEMENTS;
  *single = !each && n8 % 2;
  return each ? n8 : n8 / 2;
}

static void load_last_b(struct lower *l, const struct cg_dot *d, const struct step_loads *x) {
  bool single;
  uint32_t pairs = loads_of_b(d, &single);
  if (!single)
    return;
  KILN_ASSERT(reading_of(d, 1) != PAIRS);
  struct ir_val index = cg_addi(l, x->base[1], 2 * (int64_t)pairs * block_elems(d, 1));
  ldmatrix(l, d, 1, 2, block_addr(l, d, 1, 0, cg_s32(l, pairs), x->step), index);
}

void cg_mma_load(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct step_loads x = loads_of(l, d, step);
  struct ir_builder saved;
  bool single;
  load(l, d, 0, &x, cg_each(l, cut_of(d).blocks, &saved));
  cg_end_each(l, saved);
  uint32_t n = loads_of_b(d, &single);
  if (n) {
    load(l, d, 1, &x, cg_each(l, n, &saved));
    cg_end_each(l, saved);
  }
  load_last_b(l, d, &x);
}

/* Rounds the operands of a step to tf32; keeps what that cuts off where it is asked for. */
static void round_operands(struct lower *l, const struct cg_dot *d, const struct step_loads *x) {
  struct ir_type t = ir_scalar(DT_F32);
  for (int i = 0; d->mma->a == DT_F32 && i < 2; i++) {
    struct ir_builder saved;
    struct ir_val e = cg_each(l, step_elems(d, i), &saved), at = cg_add(l, x->base[i], e);
    struct ir_val v = cg_fget(l, d->frag[i], at), high = ir_build1(&l->b, IR_TF32, t, 1, &v);
    cg_fput(l, d->frag[i], at, 1, &high);
    if (d->splits) {
      struct ir_val rest = ir_build1(&l->b, IR_SUB, t, 2, (struct ir_val[]){v, high});
      struct ir_val low = ir_build1(&l->b, IR_TF32, t, 1, &rest);
      cg_fput(l, d->low[i], e, 1, &low);
    }
    cg_end_each(l, saved);
  }
}

/* One row of blocks: block i of a with all blocks of b, of the step whose fragments start at x.
 * Split operands: the small products first. */
static void issue_row(struct lower *l, const struct cg_dot *d, const struct step_loads *x,
                      struct ir_val i) {
  struct cg_mma_cut c = cut_of(d);
  struct ir_val zero = cg_s32(l, 0);
  for (int term = d->splits ? 0 : 2; term < 3; term++) {
    struct ir_builder saved;
    struct ir_val j = cg_each(l, c.n8, &saved), in[3];
    uint32_t res[3] = {d->acc, term == 0 ? d->low[0] : d->frag[0],
                       term == 1 ? d->low[1] : d->frag[1]};
    in[0] = cg_muli(l, cg_add(l, cg_muli(l, i, c.n8), j), block_elems(d, 2));
    in[1] = cg_add(l, term == 0 ? zero : x->base[0], cg_muli(l, i, block_elems(d, 0)));
    in[2] = cg_add(l, term == 1 ? zero : x->base[1], cg_muli(l, j, block_elems(d, 1)));
    struct ir_val to = in[0];
    if (d->promotes) {
      cg_ffill(l, d->part, cg_zero_of(l, d->mma->acc));
      in[0] = zero;
      res[0] = d->part;
    }
    struct ir_op o = ir_build(&l->b, IR_MMA, 3, in, 0, NULL);
    ir_set_res(l->m, o, 3, res);
    cg_set_word(l->m, o, IR_ATTR_shape, d->mma->shape);
    for (uint32_t e = 0; d->promotes && e < block_elems(d, 2); e++) {
      struct ir_val at = cg_addi(l, to, e), terms[2];
      terms[0] = cg_fget(l, d->acc, at);
      terms[1] = cg_fget(l, d->part, cg_s32(l, e));
      struct ir_val sum = ir_build1(&l->b, IR_ADD, ir_scalar(d->mma->acc), 2, terms);
      cg_fput(l, d->acc, at, 1, &sum);
    }
    cg_end_each(l, saved);
  }
}

void cg_mma_issue(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct step_loads x = loads_of(l, d, step);
  struct ir_builder saved;
  round_operands(l, d, &x);
  issue_row(l, d, &x, cg_each(l, cut_of(d).blocks, &saved));
  cg_end_each(l, saved);
}

static uint32_t gcd(uint32_t a, uint32_t b) {
  return b ? gcd(b, a % b) : a;
}

/* Groups: some loads of the next step and some of the copies, then as large a part of this step's
 * multiplications, so that the matrix unit never waits for a run of loads or addresses. */
void cg_mma_overlap(struct lower *l, const struct cg_dot *d, struct ir_val step, struct ir_val next,
                    const struct cg_overlap *o) {
  struct cg_mma_cut c = cut_of(d);
  struct step_loads now = loads_of(l, d, step), then = loads_of(l, d, next);
  bool single;
  uint32_t pairs = loads_of_b(d, &single), groups = pairs ? gcd(c.blocks, pairs) : 1;
  uint32_t per_a = c.blocks / groups, per_b = pairs / groups;
  struct ir_builder outer, inner;
  /* Asynchronous copies go with rows of blocks; staged ones and long ones would take registers
   * there. */
  uint32_t copies = o && o->c ? o->c->n : 0;
  bool spread = copies && o->c->async && !cg_is_long_copy(o->c) && copies % c.blocks == 0;
  uint32_t per_row = spread ? copies / c.blocks : 0;
  if (copies && !per_row)
    cg_copy_all(l, o->c, o->slot, o->mask);
  round_operands(l, d, &now);
  struct ir_val g = cg_each(l, groups, &outer);
  struct ir_val in_group = cg_each(l, per_a, &inner);
  struct ir_val i = cg_add(l, cg_muli(l, g, per_a), in_group);
  load(l, d, 0, &then, i);
  for (uint32_t k = 0; k < per_row; k++)
    cg_copy_chunk(l, o->c, o->slot, o->mask, cg_addi(l, cg_muli(l, i, per_row), k));
  issue_row(l, d, &now, i);
  cg_end_each(l, inner);
  if (per_b) {
    in_group = cg_each(l, per_b, &inner);
    load(l, d, 1, &then, cg_add(l, cg_muli(l, g, per_b), in_group));
    cg_end_each(l, inner);
  }
  cg_end_each(l, outer);
  load_last_b(l, d, &then);
}

void cg_dot_mma(struct lower *l, struct cg_dot *d) {
  uint32_t steps = cg_mma_steps(d);
  struct ir_builder saved;
  cg_mma_open(l, d);
  cg_mma_load(l, d, cg_s32(l, 0));
  if (steps > 1) {
    struct ir_val s = cg_each(l, steps - 1, &saved);
    cg_mma_overlap(l, d, s, cg_addi(l, s, 1), NULL);
    cg_end_each(l, saved);
  }
  cg_mma_issue(l, d, cg_s32(l, steps - 1));
}
