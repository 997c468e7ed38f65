/* Interpreter: elements of a view at indices: gather, scatter, atomic. Elements are taken in
 * row-major order of the result, one by one. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <string.h>

/* A walk over the elements that the indices select. */
struct picker {
  const struct interp_view *v;
  uint32_t rank;            /* of what is selected; 0: one element */
  int64_t dim[IR_MAX_RANK]; /* its sizes */
  int64_t at[IR_MAX_RANK];
  struct {
    const int64_t *x;
    int64_t step[IR_MAX_RANK]; /* cells, per dim of what is selected; 0 where it has one */
    int64_t cell;
  } index[IR_MAX_RANK];
};

static struct picker pick(const struct interp *in, const struct ir_opnode *op,
                          const struct ir_type *t) {
  struct picker p = {.v = val_view(in, op->in[0]), .rank = t->rank};
  memcpy(p.dim, t->dim, sizeof p.dim);
  for (uint32_t k = 0; k < p.v->rank; k++) {
    const struct ir_type *x = &ir_value_at(in->m, op->in[1 + k])->type;
    p.index[k].x = val_buf(in, op->in[1 + k]);
    int64_t step = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
      p.index[k].step[d] = x->dim[d] == 1 ? 0 : step;
      step *= x->dim[d];
    }
  }
  return p;
}

/* The element where the walk is; false: out of range. */
static bool picked(const struct picker *p, int64_t *element) {
  uint64_t e = p->v->base;
  if (p->v->empty)
    return false;
  for (uint32_t k = 0; k < p->v->rank; k++) {
    int64_t x = p->index[k].x[p->index[k].cell];
    if (x < p->v->dim[k].lo || x >= p->v->dim[k].hi)
      return false;
    e += interp_view_step(&p->v->dim[k], x);
  }
  *element = (int64_t)e;
  return true;
}

static void advance(struct picker *p) {
  for (uint32_t d = p->rank; d-- > 0;) {
    bool more = ++p->at[d] < p->dim[d];
    for (uint32_t k = 0; k < p->v->rank; k++)
      p->index[k].cell += more ? p->index[k].step[d] : -p->index[k].step[d] * (p->dim[d] - 1);
    if (more)
      return;
    p->at[d] = 0;
  }
}

void interp_gather(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct ir_type *t = &ir_value_at(in->m, op->out[0])->type;
  struct picker p = pick(in, op, t);
  struct interp_bound *b = &in->bound[p.v->arg];
  enum cell c = cell_of(in, (enum dtype)t->dtype);
  char *out = val_buf(in, op->out[0]);
  size_t n = val_elems(in, op->out[0]), size = cell_size(c);
  if (!interp_view_ok(in, o, p.v))
    return;
  interp_fill_pad(in, o, (enum dtype)t->dtype, n, out);
  for (size_t i = 0; i < n; i++, advance(&p)) {
    int64_t e;
    if (!picked(&p, &e))
      continue;
    interp_load_cells(b->t.dtype, c, b->t.data, e, 1, 1, out + i * size);
    if (b->tracked)
      interp_note_read(in, o, b, e);
  }
}

void interp_scatter(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  struct ir_val value = op->in[op->n_in - 1];
  const struct ir_type *t = &ir_value_at(in->m, value)->type;
  struct picker p = pick(in, op, t);
  struct interp_bound *b = &in->bound[p.v->arg];
  enum cell c = cell_of(in, (enum dtype)t->dtype);
  const char *x = val_buf(in, value);
  size_t n = val_elems(in, value), size = cell_size(c);
  if (!interp_view_ok(in, o, p.v))
    return;
  in->scatter++;
  for (size_t i = 0; i < n; i++, advance(&p)) {
    int64_t e;
    if (!picked(&p, &e))
      continue;
    interp_store_cells(b->t.dtype, c, b->t.data, e, 1, 1, x + i * size);
    if (b->tracked) {
      interp_note_write(in, o, b, e);
      interp_note_repeated(in, o, b, e);
    }
    if (b->watched)
      interp_note_watched(in, o, e, (int64_t)i);
  }
}

/* ---- atomics ---- */

enum atomic { ATOMIC_ADD, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_SWAP };

static enum atomic kind_of(const struct interp *in, const struct ir_opnode *op) {
  static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
  const char *kind = ir_sym(in->m, interp_attr(op, IR_ATTR_kind)->s);
  for (uint32_t k = 0; k < sizeof names / sizeof names[0]; k++)
    if (str_eq(kind, names[k]))
      return (enum atomic)k;
  return ATOMIC_SWAP;
}

/* As min and max: NaN if either is, -0 below 0. */
static double extreme(bool largest, double x, double y) {
  if (isnan(x) || isnan(y))
    return NAN;
  bool below = x < y || (x == y && signbit(x) && !signbit(y));
  return below == largest ? y : x;
}

static double combine_float(enum atomic kind, double x, double y) {
  switch ((int)kind) {
  case ATOMIC_ADD: return x + y;
  case ATOMIC_MIN: return extreme(false, x, y);
  case ATOMIC_MAX: return extreme(true, x, y);
  default: return y;
  }
}

static int64_t combine_int(enum atomic kind, int64_t x, int64_t y) {
  switch (kind) {
  case ATOMIC_ADD: return (int64_t)((uint64_t)x + (uint64_t)y);
  case ATOMIC_MIN: return x < y ? x : y;
  case ATOMIC_MAX: return x > y ? x : y;
  case ATOMIC_AND: return x & y;
  case ATOMIC_OR: return x | y;
  case ATOMIC_XOR: return x ^ y;
  case ATOMIC_SWAP: break;
  }
  return y;
}

static int64_t combine_payload(enum atomic kind, int64_t x, int64_t y) {
  const int64_t both[2] = {x, y};
  int64_t r = y;
  if (kind != ATOMIC_SWAP)
    interp_algebra_reduce(kind == ATOMIC_ADD   ? IR_REDUCE_SUM
                          : kind == ATOMIC_MIN ? IR_REDUCE_MIN
                                               : IR_REDUCE_MAX,
                          2, 1, both, &r);
  return r;
}

union one_cell {
  float f;
  double d;
  int64_t i;
};

static void combine(enum atomic kind, enum dtype t, enum cell c, const union one_cell *old,
                    const void *x, union one_cell *out) {
  union one_cell y = {.i = 0};
  memcpy(&y, x, cell_size(c));
  switch (c) {
  case CELL_FLOAT: /* the sum of two, rounded by way of double, is what one rounding gives */
    out->f = (float)num_round(t, combine_float(kind, (double)old->f, (double)y.f));
    return;
  case CELL_DOUBLE: out->d = combine_float(kind, old->d, y.d); return;
  case CELL_INT:
    out->i = combine_int(kind, old->i, y.i);
    interp_wrap_cells(t, 1, &out->i);
    return;
  case CELL_PAYLOAD: out->i = combine_payload(kind, old->i, y.i); return;
  case CELL_BOOL: break;
  }
  KILN_UNREACHABLE(); /* the verifier knows the dtypes */
}

void interp_atomic(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  struct ir_val value = op->in[op->n_in - 1];
  const struct ir_type *t = &ir_value_at(in->m, value)->type;
  struct picker p = pick(in, op, t);
  struct interp_bound *b = &in->bound[p.v->arg];
  enum cell c = cell_of(in, (enum dtype)t->dtype);
  enum atomic kind = kind_of(in, op);
  const char *x = val_buf(in, value);
  char *out = val_buf(in, op->out[0]);
  size_t n = val_elems(in, value), size = cell_size(c);
  /* An exchange of which nobody wants the old value only writes. */
  bool reads = kind != ATOMIC_SWAP || in->last_use[op->out[0].id];
  bool orders = in->order && ir_get_attr(in->m, o, IR_ATTR_sem);
  if (!interp_view_ok(in, o, p.v))
    return;
  memset(out, 0, n * size);
  for (size_t i = 0; i < n; i++, advance(&p)) {
    union one_cell old, new;
    int64_t e;
    if (!picked(&p, &e))
      continue;
    interp_load_cells(b->t.dtype, c, b->t.data, e, 1, 1, &old);
    combine(kind, (enum dtype)t->dtype, c, &old, x + i * size, &new);
    interp_store_cells(b->t.dtype, c, b->t.data, e, 1, 1, &new);
    memcpy(out + i * size, &old, size);
    if (b->tracked)
      interp_note_atomic(in, o, b, e, reads);
    if (orders)
      interp_order_sync(in, b, e);
    if (b->watched)
      interp_note_watched(in, o, e, (int64_t)i);
  }
}
