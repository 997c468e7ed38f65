/* Dots on the matrix unit: ldmatrix from shared memory, mma.m16n8k16.
 *
 * One k16 step of a warp: m16 blocks of a (ldmatrix.x4 each), n8 blocks of b (one x4 for two), m16
 * * n8 instructions. Fragments hold two steps, so that the next step's loads are issued before this
 * step's multiplications. Which lane gives which row address (PTX ISA, ldmatrix):
 *
 *   matrix          0          1          2          3         outer   chunk
 *   a, k inner    m0 k0      m8 k0      m0 k8      m8 k8         m       k / 8
 *   a, m inner    m0 k0      m8 k0      m0 k8      m8 k8         k       m / 8    (trans)
 *   b, k inner    n0 k0      n0 k8      n8 k0      n8 k8         n       k / 8
 *   b, n inner    n0 k0      n0 k8      n8 k0      n8 k8         k       n / 8    (trans)
 *
 * Lane l addresses row l % 8 of matrix l / 8. */
#include "base/check.h"
#include "codegen/lower.h"

uint32_t cg_mma_steps(const struct cg_dot *d) {
  return (uint32_t)((d->k + 15) / 16);
}

static struct cg_mma_cut cut_of(const struct cg_dot *d) {
  return cg_mma_cut(d->m, d->n, d->w);
}

/* Where lane and warp put operand i: outer coordinate and 16-byte chunk of block 0, step 0. */
static void thread_place(struct lower *l, const struct cg_dot *d, int i, struct ir_val *outer,
                         struct ir_val *chunk) {
  static const int64_t low16[6] = {8, 1, 2, 8, 2, 0}, quad8[6] = {8, 1, 2, 0, 2, 8};
  static const int64_t bit3[6] = {8, 0, 2, 1, 2, 0}, bit4[6] = {8, 0, 2, 0, 2, 1};
  struct cg_mma_cut c = cut_of(d);
  int64_t warp_map[4] = {d->w.cols, i ? 1 : 0, d->w.rows, i ? 0 : 1};
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val warp = cg_digits(l, l->warp, 4, warp_map);
  /* a, k inner and b, n inner: matrices 0, 1 lie along outer; the other two along chunks. */
  bool outer_first = (i == 0) == d->k_inner[i];
  *outer = cg_digits(l, l->lane, 6, outer_first ? low16 : quad8);
  *chunk = cg_digits(l, l->lane, 6, outer_first ? bit4 : bit3);
  int64_t per_warp = i == 0 ? 16 * (int64_t)c.m16 : 8 * (int64_t)c.n8;
  if (d->k_inner[i])
    *outer = cg_add(l, *outer, cg_muli(l, warp, per_warp));
  else
    *chunk = cg_add(l, *chunk, cg_muli(l, warp, per_warp / 8));
  cg_leave_top(l, saved);
}

/* Are block offsets along chunks xor-able: warps start at multiples of a power of two that covers
 * their blocks? */
static bool blocks_are_bits(const struct cg_dot *d, int i) {
  struct cg_mma_cut c = cut_of(d);
  uint32_t chunks = i == 0 ? 2 * c.m16 : c.n8, warps = i == 0 ? d->w.rows : d->w.cols;
  return warps == 1 || (chunks & (chunks - 1)) == 0;
}

/* Byte offset for block b (of 16 along m or n) at a k16 step. */
static struct ir_val block_addr(struct lower *l, const struct cg_dot *d, int i, struct ir_val b,
                                struct ir_val step) {
  const struct cg_smem *s = d->x[i];
  /* 16 rows further the swizzle repeats; two chunks further it is two chunks xor'ed. */
  struct ir_val rows = d->k_inner[i] ? b : step, chunks = d->k_inner[i] ? step : b;
  struct ir_val at = d->thread_offset[i], by = cg_muli(l, chunks, 32);
  if (s->mask == 0) {
    at = cg_add(l, at, by);
  } else if (d->k_inner[i] || blocks_are_bits(d, i)) {
    at = cg_op2(l, IR_XOR, at, by);
  } else {
    struct ir_val outer, chunk;
    thread_place(l, d, i, &outer, &chunk);
    chunk = cg_add(l, chunk, cg_muli(l, chunks, 2));
    at = cg_smem_addr(l, s, outer, cg_muli(l, chunk, 8));
  }
  at = cg_add(l, at, cg_muli(l, rows, 16 * s->pitch));
  return cg_add(l, at, d->slot[i]);
}

static void ldmatrix(struct lower *l, const struct cg_dot *d, int i, uint32_t num, struct ir_val at,
                     struct ir_val index) {
  struct ir_op o = ir_build(&l->b, IR_LDMATRIX, 2, (struct ir_val[]){at, index}, 0, NULL);
  ir_set_res(l->m, o, 2, (uint32_t[]){d->frag[i], d->x[i]->buf});
  cg_set_int(l->m, o, IR_ATTR_num, num);
  cg_set_int(l->m, o, IR_ATTR_trans, !d->k_inner[i]);
}

void cg_mma_open(struct lower *l, struct cg_dot *d) {
  uint32_t steps = cg_mma_steps(d) > 1 ? 2 : 1;
  const struct layout *a = cg_layout_mma_a(l->a, d->m, d->n, steps, d->w);
  const struct layout *b = cg_layout_mma_b(l->a, d->m, d->n, steps, d->w);
  d->frag[0] = cg_new_frag(l, "a", ir_tile(d->x[0]->dtype, 2, a->shape), ir_add_layout(l->m, a));
  d->frag[1] = cg_new_frag(l, "b", ir_tile(d->x[1]->dtype, 2, b->shape), ir_add_layout(l->m, b));
  for (int i = 0; i < 2; i++) {
    struct ir_val outer, chunk;
    thread_place(l, d, i, &outer, &chunk);
    struct ir_builder saved = cg_enter_top(l);
    d->thread_offset[i] = cg_smem_addr(l, d->x[i], outer, cg_muli(l, chunk, 8));
    cg_leave_top(l, saved);
  }
}

/* Elements of one step in the fragment of a step's parity. */
static struct ir_val step_base(struct lower *l, const struct cg_dot *d, struct ir_val step,
                               uint32_t elems) {
  if (cg_mma_steps(d) == 1)
    return cg_s32(l, 0);
  return cg_muli(l, cg_op2(l, IR_AND, step, cg_s32(l, 1)), elems);
}

/* Loads of one step: m16 blocks of a, pairs of n8 blocks of b, and the last n8 block if it is
 * single. */
struct step_loads {
  struct ir_val step, a0, b0; /* a0, b0: where the step's fragments start */
};

static struct step_loads loads_of(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct cg_mma_cut c = cut_of(d);
  struct ir_val a0 = step_base(l, d, step, 8 * c.m16), b0 = step_base(l, d, step, 4 * c.n8);
  return (struct step_loads){step, a0, b0};
}

static void load_a(struct lower *l, const struct cg_dot *d, const struct step_loads *x,
                   struct ir_val b) {
  struct ir_val index = cg_add(l, x->a0, cg_muli(l, b, 8));
  ldmatrix(l, d, 0, 4, block_addr(l, d, 0, b, x->step), index);
}

static void load_b(struct lower *l, const struct cg_dot *d, const struct step_loads *x,
                   struct ir_val b) {
  struct ir_val index = cg_add(l, x->b0, cg_muli(l, b, 8));
  ldmatrix(l, d, 1, 4, block_addr(l, d, 1, b, x->step), index);
}

static void load_last_b(struct lower *l, const struct cg_dot *d, const struct step_loads *x) {
  struct cg_mma_cut c = cut_of(d);
  if (c.n8 % 2) {
    struct ir_val index = cg_addi(l, x->b0, 4 * (int64_t)(c.n8 - 1));
    ldmatrix(l, d, 1, 2, block_addr(l, d, 1, cg_s32(l, c.n8 / 2), x->step), index);
  }
}

void cg_mma_load(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct cg_mma_cut c = cut_of(d);
  struct step_loads x = loads_of(l, d, step);
  struct ir_builder saved;
  load_a(l, d, &x, cg_each(l, c.m16, &saved));
  cg_end_each(l, saved);
  if (c.n8 > 1) {
    load_b(l, d, &x, cg_each(l, c.n8 / 2, &saved));
    cg_end_each(l, saved);
  }
  load_last_b(l, d, &x);
}

/* One row of blocks: block i of a with all blocks of b, of the step whose fragments start at x. */
static void issue_row(struct lower *l, const struct cg_dot *d, const struct step_loads *x,
                      struct ir_val i) {
  struct cg_mma_cut c = cut_of(d);
  struct ir_builder saved;
  struct ir_val j = cg_each(l, c.n8, &saved);
  struct ir_val acc = cg_muli(l, cg_add(l, cg_muli(l, i, c.n8), j), 4);
  struct ir_val in[3] = {acc, cg_add(l, x->a0, cg_muli(l, i, 8)),
                         cg_add(l, x->b0, cg_muli(l, j, 4))};
  struct ir_op o = ir_build(&l->b, IR_MMA, 3, in, 0, NULL);
  ir_set_res(l->m, o, 3, (uint32_t[]){d->acc, d->frag[0], d->frag[1]});
  cg_set_word(l->m, o, IR_ATTR_shape, "m16n8k16");
  cg_end_each(l, saved);
}

void cg_mma_issue(struct lower *l, const struct cg_dot *d, struct ir_val step) {
  struct step_loads x = loads_of(l, d, step);
  struct ir_builder saved;
  issue_row(l, d, &x, cg_each(l, cut_of(d).m16, &saved));
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
  uint32_t pairs = c.n8 / 2, groups = pairs ? gcd(c.m16, pairs) : 1;
  uint32_t per_a = c.m16 / groups, per_b = pairs / groups;
  struct ir_builder outer, inner;
  /* Asynchronous copies go with rows of blocks; staged ones would take registers there. */
  uint32_t copies = o && o->c ? o->c->n : 0;
  uint32_t per_row = copies && o->c->async && copies % c.m16 == 0 ? copies / c.m16 : 0;
  if (copies && !per_row)
    cg_copy_all(l, o->c, o->slot, o->mask);
  struct ir_val g = cg_each(l, groups, &outer);
  struct ir_val in_group = cg_each(l, per_a, &inner);
  struct ir_val i = cg_add(l, cg_muli(l, g, per_a), in_group);
  load_a(l, d, &then, i);
  for (uint32_t k = 0; k < per_row; k++)
    cg_copy_chunk(l, o->c, o->slot, o->mask, cg_addi(l, cg_muli(l, i, per_row), k));
  issue_row(l, d, &now, i);
  cg_end_each(l, inner);
  if (per_b) {
    in_group = cg_each(l, per_b, &inner);
    load_b(l, d, &then, cg_add(l, cg_muli(l, g, per_b), in_group));
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
