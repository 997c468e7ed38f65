/* Interpreter: constants, ops that move elements, reductions and dot.
 *
 * Sums and dot accumulate in double (integers modulo 2^64) and round once, to the dtype of the
 * result: the order of summation is not part of a kernel's meaning, and where every partial sum is
 * exact, every order gives these very bits. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <string.h>

static enum cell out_cell(const struct interp *in, const struct ir_opnode *op) {
  return val_cell(in, op->out[0]);
}

void interp_const(struct interp *in, const struct ir_opnode *op) {
  const struct ir_attr *a = interp_attr(op, IR_ATTR_value);
  void *o = val_buf(in, op->out[0]);
  switch (out_cell(in, op)) {
  case CELL_FLOAT: *(float *)o = (float)a->f; break;
  case CELL_DOUBLE: *(double *)o = a->f; break;
  case CELL_INT: *(int64_t *)o = a->i; break;
  case CELL_BOOL: *(uint8_t *)o = a->i != 0; break;
  case CELL_PAYLOAD: *(int64_t *)o = interp_embed(a->f); break;
  }
}

void interp_splat(struct interp *in, const struct ir_opnode *op) {
  const void *x = val_buf(in, op->in[0]);
  void *o = val_buf(in, op->out[0]);
  size_t n = val_elems(in, op->out[0]);
  switch (out_cell(in, op)) {
  case CELL_FLOAT:
    for (size_t i = 0; i < n; i++)
      ((float *)o)[i] = *(const float *)x;
    break;
  case CELL_DOUBLE:
    for (size_t i = 0; i < n; i++)
      ((double *)o)[i] = *(const double *)x;
    break;
  case CELL_INT:
  case CELL_PAYLOAD:
    for (size_t i = 0; i < n; i++)
      ((int64_t *)o)[i] = *(const int64_t *)x;
    break;
  case CELL_BOOL: memset(o, *(const uint8_t *)x, n); break;
  }
}

void interp_iota(struct interp *in, const struct ir_opnode *op) {
  int64_t *o = val_buf(in, op->out[0]);
  size_t n = val_elems(in, op->out[0]);
  for (size_t i = 0; i < n; i++)
    o[i] = (int64_t)i;
}

void interp_reshape(struct interp *in, const struct ir_opnode *op) {
  memcpy(val_buf(in, op->out[0]), val_buf(in, op->in[0]),
         val_elems(in, op->out[0]) * cell_size(out_cell(in, op)));
}

/* Cells as bytes: memcpy of a constant size is one move, and never a wrong guess about types. */
#define COPY_ROW(size)                                                                             \
  do {                                                                                             \
    const char *p = (const char *)x + from * (size);                                               \
    char *r = (char *)o + done * (size);                                                           \
    if (step == 1)                                                                                 \
      memcpy(r, p, (size_t)(n * (size)));                                                          \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++)                                                              \
        memcpy(r + i * (size), p + i * step * (size), (size));                                     \
  } while (0)

/* Writes the output row-major; axis k of it steps through x by stride[k] cells. */
static void gather(size_t size, const void *x, void *o, uint32_t rank, const int64_t *dim,
                   const int64_t *stride) {
  int64_t at[IR_MAX_RANK] = {0};
  int64_t from = 0, done = 0;
  int64_t n = rank ? dim[rank - 1] : 1, step = rank ? stride[rank - 1] : 1;
  for (;;) {
    if (size == 8)
      COPY_ROW(8);
    else if (size == 4)
      COPY_ROW(4);
    else
      COPY_ROW(1);
    done += n;
    uint32_t k = rank ? rank - 1 : 0;
    while (k-- > 0) {
      from += stride[k];
      if (++at[k] < dim[k])
        break;
      from -= at[k] * stride[k];
      at[k] = 0;
    }
    if (k == UINT32_MAX)
      return;
  }
}

static void dense_strides(const struct ir_type *t, int64_t *stride) {
  int64_t s = 1;
  for (uint32_t k = t->rank; k-- > 0;) {
    stride[k] = s;
    s *= t->dim[k];
  }
}

void interp_broadcast(struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *x = &ir_value_at(in->m, op->in[0])->type;
  const struct ir_type *o = &ir_value_at(in->m, op->out[0])->type;
  int64_t stride[IR_MAX_RANK];
  dense_strides(x, stride);
  for (uint32_t k = 0; k < x->rank; k++)
    if (x->dim[k] != o->dim[k])
      stride[k] = 0;
  gather(cell_size(out_cell(in, op)), val_buf(in, op->in[0]), val_buf(in, op->out[0]), o->rank,
         o->dim, stride);
}

void interp_transpose(struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *x = &ir_value_at(in->m, op->in[0])->type;
  const struct ir_type *o = &ir_value_at(in->m, op->out[0])->type;
  const struct ir_attr *perm = interp_attr(op, IR_ATTR_perm);
  int64_t dense[IR_MAX_RANK], stride[IR_MAX_RANK];
  dense_strides(x, dense);
  for (uint32_t k = 0; k < o->rank; k++)
    stride[k] = dense[perm->ints[k]];
  gather(cell_size(out_cell(in, op)), val_buf(in, op->in[0]), val_buf(in, op->out[0]), o->rank,
         o->dim, stride);
}

/* ---- reductions: the operand is [outer, n, inner], the result [outer, inner] ---- */

struct reduction {
  size_t outer, n, inner;
};

static struct reduction reduction_of(const struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *x = &ir_value_at(in->m, op->in[0])->type;
  const struct ir_attr *axis = interp_attr(op, IR_ATTR_axis);
  struct reduction r = {1, (size_t)x->dim[axis->i], 1};
  for (uint32_t k = 0; k < x->rank; k++)
    if (k < (uint32_t)axis->i)
      r.outer *= (size_t)x->dim[k];
    else if (k > (uint32_t)axis->i)
      r.inner *= (size_t)x->dim[k];
  return r;
}

size_t interp_reduce_scratch(const struct interp *in, const struct ir_opnode *op) {
  return reduction_of(in, op).inner * sizeof(double);
}

#define SUM(T, A)                                                                                  \
  do {                                                                                             \
    const T *p = (const T *)x + i * r.n * r.inner;                                                 \
    A *acc = in->scratch;                                                                          \
    if (r.inner == 1) {                                                                            \
      A s = 0;                                                                                     \
      for (size_t k = 0; k < r.n; k++)                                                             \
        s += (A)p[k];                                                                              \
      acc[0] = s;                                                                                  \
      break;                                                                                       \
    }                                                                                              \
    memset(acc, 0, r.inner * sizeof(A));                                                           \
    for (size_t k = 0; k < r.n; k++)                                                               \
      for (size_t j = 0; j < r.inner; j++)                                                         \
        acc[j] += (A)p[k * r.inner + j];                                                           \
  } while (0)

/* n sums in double, rounded once to a float result of dtype t. */
static void put_sums(enum dtype t, enum cell c, size_t n, const double *acc, void *o, size_t at) {
  if (c == CELL_DOUBLE) {
    memcpy((double *)o + at, acc, n * sizeof *acc);
    return;
  }
  float *r = (float *)o + at;
  if (t == DT_F32)
    for (size_t j = 0; j < n; j++)
      r[j] = (float)acc[j];
  else
    for (size_t j = 0; j < n; j++)
      r[j] = (float)num_round(t, acc[j]);
}

static void reduce_sum(struct interp *in, const struct ir_opnode *op) {
  struct reduction r = reduction_of(in, op);
  const void *x = val_buf(in, op->in[0]);
  void *o = val_buf(in, op->out[0]);
  enum dtype t = val_dtype(in, op->out[0]);
  enum cell c = cell_of(in, t);
  for (size_t i = 0; i < r.outer; i++) {
    if (c == CELL_INT) {
      SUM(int64_t, uint64_t);
      memcpy((int64_t *)o + i * r.inner, in->scratch, r.inner * sizeof(int64_t));
      continue;
    }
    if (c == CELL_FLOAT)
      SUM(float, double);
    else
      SUM(double, double);
    put_sums(t, c, r.inner, in->scratch, o, i * r.inner);
  }
  if (c == CELL_INT)
    interp_wrap_cells(t, r.outer * r.inner, o);
}

/* `better`: a replaces the best b so far. NaN wins over everything, and -0 lies below +0. */
static inline bool above_f(float a, float b) {
  return a > b || isnan(a) || (a == b && signbit(b) && !signbit(a));
}
static inline bool below_f(float a, float b) {
  return a < b || isnan(a) || (a == b && signbit(a) && !signbit(b));
}
static inline bool above_d(double a, double b) {
  return a > b || isnan(a) || (a == b && signbit(b) && !signbit(a));
}
static inline bool below_d(double a, double b) {
  return a < b || isnan(a) || (a == b && signbit(a) && !signbit(b));
}
static inline bool above_i(int64_t a, int64_t b) {
  return a > b;
}
static inline bool below_i(int64_t a, int64_t b) {
  return a < b;
}

#define EXTREME(T, better)                                                                         \
  do {                                                                                             \
    const T *p = (const T *)x + i * r.n * r.inner;                                                 \
    T *best = (T *)o + i * r.inner;                                                                \
    memcpy(best, p, r.inner * sizeof(T));                                                          \
    for (size_t k = 1; k < r.n; k++)                                                               \
      for (size_t j = 0; j < r.inner; j++) {                                                       \
        T v = p[k * r.inner + j];                                                                  \
        if (better(v, best[j]))                                                                    \
          best[j] = v;                                                                             \
      }                                                                                            \
  } while (0)

void interp_reduce(struct interp *in, const struct ir_opnode *op) {
  if (out_cell(in, op) == CELL_PAYLOAD) {
    struct reduction r = reduction_of(in, op);
    const int64_t *x = val_buf(in, op->in[0]);
    int64_t *o = val_buf(in, op->out[0]);
    for (size_t i = 0; i < r.outer; i++)
      interp_algebra_reduce(op->opcode, r.n, r.inner, x + i * r.n * r.inner, o + i * r.inner);
    return;
  }
  if (op->opcode == IR_REDUCE_SUM) {
    reduce_sum(in, op);
    return;
  }
  struct reduction r = reduction_of(in, op);
  const void *x = val_buf(in, op->in[0]);
  void *o = val_buf(in, op->out[0]);
  enum cell c = out_cell(in, op);
  KILN_ASSERT(c != CELL_BOOL);
  bool max = op->opcode == IR_REDUCE_MAX;
  for (size_t i = 0; i < r.outer; i++) {
    if (c == CELL_FLOAT && max)
      EXTREME(float, above_f);
    else if (c == CELL_FLOAT)
      EXTREME(float, below_f);
    else if (c == CELL_DOUBLE && max)
      EXTREME(double, above_d);
    else if (c == CELL_DOUBLE)
      EXTREME(double, below_d);
    else if (max)
      EXTREME(int64_t, above_i);
    else
      EXTREME(int64_t, below_i);
  }
}

/* ---- dot ---- */

/* Scratch: b as double [K,N] (twice for tf32x3: high and low parts), two rows of a, one of sums. */
size_t interp_dot_scratch(const struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *b = &ir_value_at(in->m, op->in[1])->type;
  size_t k = (size_t)b->dim[0], n = (size_t)b->dim[1];
  return (2 * k * n + 2 * k + n) * sizeof(double);
}

enum entry { ENTRY_PLAIN, ENTRY_TF32, ENTRY_TF32X3 };

/* Operand cells as the matrix unit takes them; `low`: what tf32 cuts off, itself rounded to
 * tf32. */
static void enter(enum entry how, bool low, enum cell c, const void *x, size_t first, size_t n,
                  double *o) {
  if (c == CELL_DOUBLE) {
    memcpy(o, (const double *)x + first, n * sizeof *o);
    return;
  }
  const float *p = (const float *)x + first;
  if (how == ENTRY_PLAIN)
    for (size_t i = 0; i < n; i++)
      o[i] = (double)p[i];
  else if (!low)
    for (size_t i = 0; i < n; i++)
      o[i] = (double)num_round_tf32(p[i]);
  else
    for (size_t i = 0; i < n; i++)
      o[i] = (double)num_round_tf32(p[i] - num_round_tf32(p[i]));
}

/* acc[j] += sum over k of a[k] * b[k,j]: four rows of b a time, so that acc is touched less. */
static void add_row(size_t k_n, size_t n, const double *restrict a, const double *restrict b,
                    double *restrict acc) {
  size_t k = 0;
  for (; k + 4 <= k_n; k += 4) {
    const double *b0 = b + k * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
    double a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
    for (size_t j = 0; j < n; j++)
      acc[j] = acc[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
  }
  for (; k < k_n; k++)
    for (size_t j = 0; j < n; j++)
      acc[j] += a[k] * b[k * n + j];
}

static void dot_int(struct interp *in, const struct ir_opnode *op, size_t m, size_t k_n, size_t n) {
  const int64_t *a = val_buf(in, op->in[0]), *b = val_buf(in, op->in[1]);
  int64_t *o = val_buf(in, op->out[0]);
  memcpy(o, val_buf(in, op->in[2]), m * n * sizeof *o);
  for (size_t i = 0; i < m; i++)
    for (size_t k = 0; k < k_n; k++) {
      uint64_t av = (uint64_t)a[i * k_n + k];
      for (size_t j = 0; j < n; j++)
        o[i * n + j] = (int64_t)((uint64_t)o[i * n + j] + av * (uint64_t)b[k * n + j]);
    }
  interp_wrap_cells(val_dtype(in, op->out[0]), m * n, o);
}

static enum entry entry_of(const struct interp *in, const struct ir_opnode *op) {
  const struct ir_attr *prec = interp_attr(op, IR_ATTR_prec);
  if (!prec || in->opt.domain == INTERP_DOUBLE)
    return ENTRY_PLAIN;
  const char *name = ir_sym(in->m, prec->s);
  return str_eq(name, "tf32") ? ENTRY_TF32 : str_eq(name, "tf32x3") ? ENTRY_TF32X3 : ENTRY_PLAIN;
}

void interp_dot(struct interp *in, const struct ir_opnode *op) {
  const struct ir_type *at = &ir_value_at(in->m, op->in[0])->type;
  const struct ir_type *bt = &ir_value_at(in->m, op->in[1])->type;
  size_t m = (size_t)at->dim[0], k = (size_t)at->dim[1], n = (size_t)bt->dim[1];
  enum dtype t = val_dtype(in, op->out[0]);
  enum cell c = cell_of(in, t), ca = val_cell(in, op->in[0]), cb = val_cell(in, op->in[1]);
  if (c == CELL_INT) {
    dot_int(in, op, m, k, n);
    return;
  }
  const void *a = val_buf(in, op->in[0]), *b = val_buf(in, op->in[1]);
  const void *first = val_buf(in, op->in[2]);
  if (c == CELL_PAYLOAD) { /* prec is about rounding: there is none here */
    interp_algebra_dot(m, k, n, a, b, first, val_buf(in, op->out[0]));
    return;
  }
  void *o = val_buf(in, op->out[0]);
  double *b_high = in->scratch, *b_low = b_high + k * n;
  double *a_high = b_low + k * n, *a_low = a_high + k, *acc = a_low + k;
  enum entry how = entry_of(in, op);
  enter(how, false, cb, b, 0, k * n, b_high);
  if (how == ENTRY_TF32X3)
    enter(how, true, cb, b, 0, k * n, b_low);
  for (size_t i = 0; i < m; i++) {
    enter(ENTRY_PLAIN, false, c, first, i * n, n, acc);
    enter(how, false, ca, a, i * k, k, a_high);
    add_row(k, n, a_high, b_high, acc);
    if (how == ENTRY_TF32X3) { /* the product of the two low parts is left out, as it always is */
      enter(how, true, ca, a, i * k, k, a_low);
      add_row(k, n, a_low, b_high, acc);
      add_row(k, n, a_high, b_low, acc);
    }
    put_sums(t, c, n, acc, o, i * n);
  }
}
