/* Interpreter: reductions of masks, positions of extremes, running sums.
 *
 * All work on lines: the elements along one axis, `step` cells apart. Running sums accumulate in
 * double (integers modulo 2^64) and round each prefix once, as reduce_sum does its whole. */
#include "ir/interp_impl.h"

#include "base/num.h"

#include <math.h>

/* The operand as `outer` x `n` x `step`: line (i, j) starts at i * n * step + j. */
struct lines {
  size_t outer, n, step;
};

static struct lines lines_of(const struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *x = &ir_value_at(in->m, op->in[0])->type;
  uint32_t axis = (uint32_t)interp_attr(op, IR_ATTR_axis)->i;
  struct lines l = {1, (size_t)x->dim[axis], 1};
  for (uint32_t k = 0; k < axis; k++)
    l.outer *= (size_t)x->dim[k];
  for (uint32_t k = axis + 1; k < x->rank; k++)
    l.step *= (size_t)x->dim[k];
  return l;
}

void interp_mask_reduce(struct interp *in, const struct ir_opnode *op) {
  struct lines l = lines_of(in, op);
  const uint8_t *x = val_buf(in, op->in[0]);
  uint8_t *o = val_buf(in, op->out[0]);
  bool any = op->opcode == IR_REDUCE_ANY;
  for (size_t i = 0; i < l.outer; i++)
    for (size_t j = 0; j < l.step; j++) {
      const uint8_t *p = x + i * l.n * l.step + j;
      bool found = false; /* what decides: a true for any, a false for all */
      for (size_t k = 0; k < l.n && !found; k++)
        found = (p[k * l.step] != 0) == any;
      o[i * l.step + j] = found == any;
    }
}

/* Is b, further on, to be preferred to the best so far, a? The first NaN beats all. */
static inline bool beats(bool max, double a, double b) {
  if (isnan(a))
    return false;
  return isnan(b) || (max ? b > a : b < a);
}
static inline bool beats_payload(bool max, int64_t a, int64_t b) {
  if (a == INTERP_NAN)
    return false;
  return b == INTERP_NAN || (max ? b > a : b < a);
}
static inline bool beats_int(bool max, int64_t a, int64_t b) {
  return max ? b > a : b < a;
}

#define FIRST(T, better)                                                                           \
  do {                                                                                             \
    const T *p = (const T *)x + first;                                                             \
    for (size_t k = 1; k < l.n; k++)                                                               \
      if (better(max, p[best * l.step], p[k * l.step]))                                            \
        best = k;                                                                                  \
  } while (0)

void interp_arg_reduce(struct interp *in, const struct ir_opnode *op) {
  struct lines l = lines_of(in, op);
  const void *x = val_buf(in, op->in[0]);
  int64_t *o = val_buf(in, op->out[0]);
  enum cell c = val_cell(in, op->in[0]);
  bool max = op->opcode == IR_ARGMAX;
  for (size_t i = 0; i < l.outer; i++)
    for (size_t j = 0; j < l.step; j++) {
      size_t first = i * l.n * l.step + j, best = 0;
      if (c == CELL_FLOAT)
        FIRST(float, beats);
      else if (c == CELL_DOUBLE)
        FIRST(double, beats);
      else if (c == CELL_PAYLOAD)
        FIRST(int64_t, beats_payload);
      else
        FIRST(int64_t, beats_int);
      o[i * l.step + j] = (int64_t)best;
    }
}

/* ---- running sums ---- */

static void scan_line(enum dtype t, enum cell c, size_t n, size_t step, const void *x, void *o) {
  double sum = 0;
  uint64_t total = 0;
  for (size_t k = 0; k < n * step; k += step)
    switch (c) {
    case CELL_FLOAT:
      sum += (double)((const float *)x)[k];
      ((float *)o)[k] = (float)num_round(t, sum);
      break;
    case CELL_DOUBLE:
      sum += ((const double *)x)[k];
      ((double *)o)[k] = sum;
      break;
    case CELL_INT:
    case CELL_BOOL:
      total += ((const uint64_t *)x)[k];
      ((uint64_t *)o)[k] = total;
      break;
    case CELL_PAYLOAD: interp_algebra_scan(n, step, x, o); return;
    }
}

void interp_scan(struct interp *in, const struct ir_opnode *op) {
  struct lines l = lines_of(in, op);
  enum dtype t = val_dtype(in, op->out[0]);
  enum cell c = cell_of(in, t);
  const char *x = val_buf(in, op->in[0]);
  char *o = val_buf(in, op->out[0]);
  for (size_t i = 0; i < l.outer; i++)
    for (size_t j = 0; j < l.step; j++) {
      size_t first = (i * l.n * l.step + j) * cell_size(c);
      scan_line(t, c, l.n, l.step, x + first, o + first);
    }
  if (c == CELL_INT)
    interp_wrap_cells(t, val_elems(in, op->out[0]), (int64_t *)(void *)o);
}
