/* Dots by multiply-adds, for types the matrix unit does not compute exactly: true f32, f64,
 * integers.
 *
 * Per group of kv elements of k (16 bytes), a thread reads its rows of a and its columns of b from
 * shared memory, 16 bytes a read where the operand is contiguous along k (kv elements of one row)
 * or along m or n (adjacent rows), and multiplies all pairs. acc[i * columns + j], as
 * cg_layout_fma_acc orders its registers. */
#include "base/check.h"
#include "codegen/lower.h"

/* Registers of a thread along dim 0 (rows) or 1 (columns) of the accumulator. */
struct side {
  uint32_t layout; /* of the accumulator, sliced: registers along this side alone */
  uint32_t n;
  uint32_t run; /* adjacent elements a read fetches, along m or n */
};

static struct side side_of(struct lower *l, const struct cg_dot *d, int i) {
  const struct layout *acc = cg_layout_at(l, d->acc_layout);
  const struct layout *x = cg_layout_slice(l->a, acc, i == 0 ? 2u : 1u);
  struct side s = {.layout = ir_add_layout(l->m, x), .n = layout_extent(x, LAYOUT_REG)};
  uint32_t chunk = (uint32_t)(16 / dtype_bytes(d->x[i]->dtype, 1));
  s.run = d->k_inner[i] ? 1 : cg_aligned_run(x, (uint32_t)i, chunk);
  return s;
}

/* A fragment of n x kv elements: element (i, q) at i * kv + q where k is inner, else q * n + i. */
static uint32_t operand_frag(struct lower *l, const struct cg_dot *d, int i, uint32_t n,
                             uint32_t kv) {
  struct layout *x = layout_new(l->a, 2, (int64_t[]){n, kv});
  int64_t along_n[2] = {1, 0}, along_k[2] = {0, 1};
  for (int pass = 0; pass < 2; pass++) {
    bool k_now = d->k_inner[i] == (pass == 0);
    if (k_now && kv > 1)
      layout_add(l->a, x, LAYOUT_REG, kv, along_k);
    if (!k_now && n > 1)
      layout_add(l->a, x, LAYOUT_REG, n, along_n);
  }
  return cg_new_frag(l, i ? "b" : "a", ir_tile(d->x[i]->dtype, 2, x->shape),
                     ir_add_layout(l->m, x));
}

static struct ir_val operand_index(struct lower *l, const struct cg_dot *d, int i, uint32_t n,
                                   uint32_t kv, struct ir_val at, struct ir_val q) {
  return d->k_inner[i] ? cg_add(l, cg_muli(l, at, kv), q) : cg_add(l, cg_muli(l, q, n), at);
}

static void read_side(struct lower *l, const struct cg_dot *d, int i, const struct side *s,
                      uint32_t frag, uint32_t kv, struct ir_val k0) {
  struct ir_builder outer, inner;
  struct ir_val v[16];
  uint32_t dim = (uint32_t)i;
  if (d->k_inner[i]) {
    struct ir_val r = cg_each(l, s->n, &outer);
    struct ir_val at = cg_smem_addr(l, d->x[i], cg_coord(l, s->layout, dim, r), k0);
    cg_sload(l, d->x[i], cg_add(l, at, d->slot[i]), kv, v);
    cg_fput(l, frag, cg_muli(l, r, kv), kv, v);
    cg_end_each(l, outer);
    return;
  }
  struct ir_val q = cg_each(l, kv, &outer);
  struct ir_val r = cg_muli(l, cg_each(l, s->n / s->run, &inner), s->run);
  struct ir_val inner_at = cg_coord(l, s->layout, dim, r);
  struct ir_val at = cg_smem_addr(l, d->x[i], cg_add(l, k0, q), inner_at);
  cg_sload(l, d->x[i], cg_add(l, at, d->slot[i]), s->run, v);
  cg_fput(l, frag, cg_add(l, cg_muli(l, q, s->n), r), s->run, v);
  cg_end_each(l, inner);
  cg_end_each(l, outer);
}

void cg_dot_fma(struct lower *l, struct cg_dot *d) {
  enum dtype t = d->x[0]->dtype;
  uint32_t kv = (uint32_t)(16 / dtype_bytes(t, 1));
  uint32_t groups = (uint32_t)(cg_dot_k_pad(l->m, d->op, d->k) / kv);
  struct side rows = side_of(l, d, 0), cols = side_of(l, d, 1);
  uint32_t a = operand_frag(l, d, 0, rows.n, kv), b = operand_frag(l, d, 1, cols.n, kv);
  struct ir_builder group, each_q, each_i, each_j;
  KILN_ASSERT(rows.n * cols.n == cg_frag_elems(l, d->acc));
  struct ir_val k0 = cg_muli(l, cg_each_rolled(l, groups, &group), kv);
  read_side(l, d, 0, &rows, a, kv, k0);
  read_side(l, d, 1, &cols, b, kv, k0);
  struct ir_val q = cg_each(l, kv, &each_q);
  struct ir_val i = cg_each(l, rows.n, &each_i);
  struct ir_val x = cg_fget(l, a, operand_index(l, d, 0, rows.n, kv, i, q));
  struct ir_val j = cg_each(l, cols.n, &each_j);
  struct ir_val y = cg_fget(l, b, operand_index(l, d, 1, cols.n, kv, j, q));
  struct ir_val at = cg_add(l, cg_muli(l, i, cols.n), j);
  struct ir_val acc = cg_fget(l, d->acc, at), sum;
  if (dtype_is_float(t))
    sum = ir_build1(&l->b, IR_FMA, ir_scalar(t), 3, (struct ir_val[]){x, y, acc});
  else
    sum = ir_build1(
        &l->b, IR_ADD, ir_scalar(t), 2,
        (struct ir_val[]){acc, ir_build1(&l->b, IR_MUL, ir_scalar(t), 2, (struct ir_val[]){x, y})});
  cg_fput(l, d->acc, at, 1, &sum);
  cg_end_each(l, each_j);
  cg_end_each(l, each_i);
  cg_end_each(l, each_q);
  cg_end_each(l, group);
}
