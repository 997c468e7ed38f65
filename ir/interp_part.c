/* Interpreter: parts of tiles, tiles made of parts, bits, random numbers. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

/* Copies the box of dims `dim` that starts at element x of a tile of dims dx to element o of a tile
 * of dims d_o. */
static void copy_box(size_t cell, uint32_t rank, const int64_t *dim, const int64_t *dx,
                     const char *x, const int64_t *d_o, char *o) {
  size_t size_x = cell, size_o = cell; /* of one step along dim 0 */
  if (rank == 1) {
    memcpy(o, x, (size_t)dim[0] * cell);
    return;
  }
  for (uint32_t k = 1; k < rank; k++) {
    size_x *= (size_t)dx[k];
    size_o *= (size_t)d_o[k];
  }
  for (int64_t i = 0; i < dim[0]; i++)
    copy_box(cell, rank - 1, dim + 1, dx + 1, x + (size_t)i * size_x, d_o + 1,
             o + (size_t)i * size_o);
}

/* The position of an element, row-major. */
static size_t position(const struct ir_type *t, const int64_t *at) {
  size_t n = 0;
  for (uint32_t k = 0; k < t->rank; k++)
    n = n * (size_t)t->dim[k] + (size_t)at[k];
  return n;
}

void interp_extract(struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *x = &ir_value_at(in->m, op->in[0])->type;
  const struct ir_type *o = &ir_value_at(in->m, op->out[0])->type;
  size_t cell = cell_size(val_cell(in, op->out[0]));
  size_t first = position(x, interp_attr(op, IR_ATTR_offsets)->ints);
  copy_box(cell, o->rank, o->dim, x->dim, (const char *)val_buf(in, op->in[0]) + first * cell,
           o->dim, val_buf(in, op->out[0]));
}

void interp_concat(struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *o = &ir_value_at(in->m, op->out[0])->type;
  size_t cell = cell_size(val_cell(in, op->out[0]));
  int64_t axis = interp_attr(op, IR_ATTR_axis)->i, at[IR_MAX_RANK] = {0};
  for (uint32_t k = 0; k < op->n_in; k++) {
    const struct ir_type *x = &ir_value_at(in->m, op->in[k])->type;
    char *to = (char *)val_buf(in, op->out[0]) + position(o, at) * cell;
    copy_box(cell, o->rank, x->dim, x->dim, val_buf(in, op->in[k]), o->dim, to);
    at[axis] += x->dim[axis];
  }
}

/* ---- bits ---- */

static uint64_t low_bits(unsigned n) {
  return n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Only e5m2's infinities need a word: a
 * store that rounds would clamp them. */
uint64_t cells_get_bits(enum dtype t, enum cell c, const void *x, size_t i) {
  uint64_t bits = 0;
  if (c == CELL_INT || c == CELL_PAYLOAD)
    return ((const uint64_t *)x)[i] & low_bits(dtype_bits(t));
  double v = c == CELL_FLOAT ? (double)((const float *)x)[i] : ((const double *)x)[i];
  if (t == DT_E5M2 && isinf(v))
    return v < 0 ? 0xfc : 0x7c;
  if (t == DT_F64 && isnan(v))
    return ~UINT64_C(0) >> 1; /* one NaN, as the narrower types have */
  num_store(t, &bits, 0, v);  /* little endian */
  return bits;
}

void cells_put_bits(enum dtype t, enum cell c, void *o, size_t i, uint64_t bits) {
  if (c == CELL_INT)
    ((int64_t *)o)[i] = num_load_int(t, &bits, 0);
  else if (c == CELL_PAYLOAD)
    ((int64_t *)o)[i] = (int64_t)(bits << (64 - dtype_bits(t))) >> (64 - dtype_bits(t));
  else if (c == CELL_FLOAT)
    ((float *)o)[i] = (float)num_load(t, &bits, 0);
  else
    ((double *)o)[i] = num_load(t, &bits, 0);
}

void interp_bitcast(struct interp *in, const struct ir_opnode *op) {
  enum dtype from = val_dtype(in, op->in[0]), to = val_dtype(in, op->out[0]);
  enum cell cf = cell_of(in, from), ct = cell_of(in, to);
  unsigned wf = dtype_bits(from), wt = dtype_bits(to), w = wf > wt ? wf : wt;
  const void *x = val_buf(in, op->in[0]);
  void *o = val_buf(in, op->out[0]);
  size_t words = val_elems(in, op->out[0]) * wt / w;
  KILN_ASSERT(cf != CELL_BOOL && ct != CELL_BOOL);
  for (size_t i = 0; i < words; i++) {
    uint64_t word = 0;
    for (unsigned k = 0; k < w / wf; k++)
      word |= cells_get_bits(from, cf, x, i * (w / wf) + k) << (k * wf);
    for (unsigned k = 0; k < w / wt; k++)
      cells_put_bits(to, ct, o, i * (w / wt) + k, word >> (k * wt) & low_bits(wt));
  }
}

/* ---- random numbers ---- */

void interp_random(struct interp *in, const struct ir_opnode *op) {
  uint64_t seed = (uint64_t)val_int(in, op->in[0]);
  unsigned word = (unsigned)interp_attr(op, IR_ATTR_word)->i;
  const int64_t *x = val_buf(in, op->in[1]);
  int64_t *o = val_buf(in, op->out[0]);
  size_t n = val_elems(in, op->out[0]);
  for (size_t i = 0; i < n; i++)
    o[i] = (int32_t)random_word(seed, (uint64_t)x[i], word);
}
