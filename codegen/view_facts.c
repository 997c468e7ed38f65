/* What can be known of a view before the launch: see view.h. Each op that makes a view is followed
 * as the interpreter follows it (ir/interp_view.c), on launch expressions instead of numbers. */
#include "codegen/view.h"

#include "ir/range.h"

#define MAX_FACTORS 12

/* ---- products ---- */

/* A product of launch expressions times num / den: how sizes compare where their quotients come out
 * even. */
struct product {
  int64_t num, den;
  uint32_t n;
  uint32_t factor[MAX_FACTORS]; /* ids, sorted */
  bool known;
};

static void add_factor(struct product *p, uint32_t id) {
  uint32_t k = p->n;
  if (p->n == MAX_FACTORS) {
    p->known = false;
    return;
  }
  for (; k > 0 && p->factor[k - 1] > id; k--)
    p->factor[k] = p->factor[k - 1];
  p->factor[k] = id;
  p->n++;
}

static void multiply(struct ir_module *m, struct product *p, struct expr e) {
  int64_t value;
  if (!e.id) {
    p->known = false;
    return;
  }
  const struct expr_node n = *expr_at(&m->exprs, e);
  if (ir_expr_value(m, e, &value)) {
    p->known = p->known && value > 0 && !__builtin_mul_overflow(p->num, value, &p->num);
  } else if (n.op == EXPR_MUL) {
    multiply(m, p, n.in[0]);
    multiply(m, p, n.in[1]);
  } else if ((n.op == EXPR_DIV || n.op == EXPR_CDIV) && ir_expr_value(m, n.in[1], &value) &&
             value > 0 && ir_expr_divisor(m, n.in[0]) % value == 0) {
    multiply(m, p, n.in[0]);
    p->known = p->known && !__builtin_mul_overflow(p->den, value, &p->den);
  } else {
    add_factor(p, e.id);
  }
  int64_t common = p->known ? ir_gcd(p->num, p->den) : 1;
  p->num /= common;
  p->den /= common;
}

static struct product product_of(struct ir_module *m, uint32_t n, const struct expr *e) {
  struct product p = {.num = 1, .den = 1, .known = true};
  for (uint32_t i = 0; i < n; i++)
    multiply(m, &p, e[i]);
  return p;
}

bool cg_same_product(struct ir_module *m, uint32_t n, const struct expr *a, uint32_t k,
                     const struct expr *b) {
  struct product x = product_of(m, n, a), y = product_of(m, k, b);
  return x.known && y.known && x.num == y.num && x.den == y.den && x.n == y.n &&
         memcmp(x.factor, y.factor, x.n * sizeof x.factor[0]) == 0;
}

/* ---- facts ---- */

static int64_t times(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? 1 : r;
}

static struct cg_view_fact of_arg(struct ir_module *m, struct ir_val view) {
  struct cg_view_fact f = {.inside = true};
  struct ir_entry e = ir_entry_of(m, view);
  f.arg = e.index;
  f.rank = m->args.at[f.arg].rank;
  for (uint32_t d = 0; d < f.rank; d++) {
    struct cg_dim_fact *x = &f.dim[d];
    int64_t size;
    x->size = x->end = m->args.at[f.arg].dim[d];
    x->stride = ir_arg_stride(m, f.arg, d);
    x->stride_div = ir_expr_divisor(m, x->stride);
    x->end_div = ir_expr_divisor(m, x->end);
    x->end_least = ir_expr_value(m, x->size, &size) ? size : 0;
    x->from_zero = x->bounded = true;
    x->div = 1;
  }
  return f;
}

static struct ir_interval interval(const struct ir_intervals *r, struct ir_val v) {
  return r && v.id < r->n ? ir_interval_of(r, v) : (struct ir_interval){INT64_MIN, INT64_MAX, 1};
}

static bool is_nonneg(struct ir_module *m, const struct ir_intervals *r, struct ir_val v) {
  return ir_val_is_nonneg(m, v) || interval(r, v).lo >= 0;
}

bool cg_fits(struct ir_module *m, const struct ir_intervals *r, const struct cg_dim_fact *d,
             struct ir_val offset, int64_t extent) {
  int64_t end;
  if (d->end.id && ir_val_fits(m, offset, extent, d->end))
    return true;
  return !__builtin_add_overflow(interval(r, offset).hi, extent, &end) && end <= d->end_least;
}

bool cg_starts(struct ir_module *m, const struct ir_intervals *r, const struct cg_dim_fact *d,
               struct ir_val offset) {
  return d->from_zero && is_nonneg(m, r, offset);
}

/* The base moves by `offset` along d. */
static void move_base(struct ir_module *m, struct cg_view_fact *f, struct cg_dim_fact *d,
                      struct ir_val offset) {
  int64_t by = ir_val_divisor(m, offset);
  if (d->div == 1)
    f->base_div = ir_gcd(f->base_div, times(d->stride_div, by));
  else if (d->phase || by % d->div)
    f->base_div = ir_gcd(f->base_div, d->stride_div);
  else
    f->base_div = ir_gcd(f->base_div, times(d->stride_div, by / d->div));
}

static void at(struct ir_module *m, const struct ir_intervals *r, struct cg_view_fact *f,
               uint32_t axis, struct ir_val index) {
  struct cg_dim_fact *d = &f->dim[axis];
  f->inside = f->inside && cg_starts(m, r, d, index) && cg_fits(m, r, d, index, 1);
  move_base(m, f, d, index);
  f->rank--;
  for (uint32_t k = axis; k < f->rank; k++)
    f->dim[k] = f->dim[k + 1];
}

/* Coordinate x becomes x + offset; `size` of them. */
static void slice(struct ir_module *m, const struct ir_intervals *r, struct cg_view_fact *f,
                  uint32_t axis, struct ir_val offset, struct ir_val size, struct expr to) {
  struct cg_dim_fact *d = &f->dim[axis];
  int64_t zero, count, end, off_div = ir_val_divisor(m, offset);
  bool still = ir_val_const(m, offset, &zero) && zero == 0, inside = false;
  struct ir_interval off = interval(r, offset), len = interval(r, size);
  if (still && to.id && d->end.id && to.id == d->end.id)
    inside = true;
  else if (ir_val_const(m, size, &count) && count >= 0)
    inside = cg_fits(m, r, d, offset, count);
  else
    inside = !__builtin_add_overflow(off.hi, len.hi, &end) && end <= d->end_least;
  int64_t size_div = to.id ? ir_expr_divisor(m, to) : ir_val_divisor(m, size);
  int64_t left = 0;
  if (off.hi == INT64_MAX || off.lo <= INT64_MIN / 2 || off.hi >= INT64_MAX / 2 ||
      off.hi > d->end_least)
    left = still ? d->end_least : 0;
  else
    left = d->end_least - off.hi;
  left = len.lo < left ? len.lo : left;
  d->end_least = left < 0 ? 0 : left;
  if (inside) {
    d->end = to;
    d->end_div = size_div;
  } else {
    struct expr least = {0};
    if (still && d->end.id && to.id)
      least = expr_op2(&m->exprs, EXPR_MIN, d->end, to);
    d->end = least;
    d->end_div = ir_gcd(ir_gcd(d->end_div, off_div), size_div);
  }
  if (!still) {
    d->from_zero = d->from_zero && is_nonneg(m, r, offset);
    d->start_div = d->from_zero ? 0 : ir_gcd(d->start_div, off_div);
    move_base(m, f, d, offset);
    d->phase = d->phase || (d->div > 1 && off_div % d->div);
  }
  d->size = to;
  d->bounded = d->bounded && inside;
}

static void every(struct ir_module *m, struct cg_dim_fact *d, int64_t n) {
  struct expr count = expr_const(&m->exprs, n);
  if (d->size.id)
    d->size = expr_op2(&m->exprs, EXPR_MUL, d->size, count);
  if (d->end.id)
    d->end = expr_op2(&m->exprs, EXPR_MUL, d->end, count);
  d->end_div = times(d->end_div, n);
  d->start_div = times(d->start_div, n);
  if (__builtin_mul_overflow(d->end_least, n, &d->end_least))
    d->end_least = 0;
  d->div = times(d->div, n);
}

static bool is_whole(const struct cg_dim_fact *d) {
  return d->from_zero && d->end.id && d->end.id == d->size.id && d->div == 1;
}

static bool is_one(struct ir_module *m, struct expr e) {
  int64_t value;
  return ir_expr_value(m, e, &value) && value == 1;
}

bool cg_is_many(struct ir_module *m, struct expr e) {
  int64_t value;
  return e.id && (ir_expr_value(m, e, &value) ? value != 1 : ir_expr_divisor(m, e) != 1);
}

/* The stride of dim j, of dims [.., j1) of the new view that hold what [i0, i1) of the old one do.
 * Dims of one element may lie anywhere; and where both sides have several dims, some may turn out
 * to be equal and need not lie one after the other. */
static void split_or_join(struct ir_module *m, const struct cg_view_fact *old, uint32_t i0,
                          uint32_t i1, struct cg_view_fact *f, uint32_t j, uint32_t j1) {
  const struct cg_dim_fact *last = &old->dim[i1 - 1];
  struct cg_dim_fact *d = &f->dim[j];
  if (i1 > i0 + 1 && (j + 1 < j1 || !cg_is_many(m, last->size)))
    return;
  if (!last->stride.id)
    return;
  d->stride = last->stride;
  for (uint32_t k = j + 1; k < j1; k++)
    d->stride = expr_op2(&m->exprs, EXPR_MUL, d->stride, f->dim[k].size);
  d->stride_div = ir_expr_divisor(m, d->stride);
}

/* Groups of dims that hold as many elements before and after. */
static void match_groups(struct ir_module *m, const struct cg_view_fact *old,
                         struct cg_view_fact *f) {
  struct expr before[IR_MAX_RANK] = {{0}}, after[IR_MAX_RANK] = {{0}};
  uint32_t i0 = 0, j0 = 0;
  for (uint32_t i = 0; i < old->rank; i++)
    before[i] = old->dim[i].size;
  for (uint32_t j = 0; j < f->rank; j++)
    after[j] = f->dim[j].size;
  for (uint32_t j1 = 1; j1 <= f->rank && i0 < old->rank; j1++) {
    uint32_t i1 = i0 + 1;
    if (j1 == j0 + 1 && is_one(m, after[j0])) {
      j0++;
      continue;
    }
    while (i1 <= old->rank && !cg_same_product(m, i1 - i0, before + i0, j1 - j0, after + j0))
      i1++;
    if (i1 > old->rank)
      continue;
    if (i1 == i0 + 1 && j1 == j0 + 1) {
      const struct cg_dim_fact *x = &old->dim[i0];
      f->dim[j0] = *x;
      f->dim[j0].size = after[j0];
      f->dim[j0].end = x->end.id == x->size.id ? after[j0] : x->end;
    } else {
      for (uint32_t j = j0; j < j1; j++)
        split_or_join(m, old, i0, i1, f, j, j1);
    }
    i0 = i1;
    j0 = j1;
  }
}

static void reshape(struct ir_module *m, struct cg_view_fact *f, struct ir_val view) {
  struct cg_view_fact old = *f;
  bool whole = true;
  old.rank = 0;
  for (uint32_t i = 0; i < f->rank; i++) {
    const struct cg_dim_fact *x = &f->dim[i];
    /* The one element of a dim of one goes with the dim: it must be in range. */
    if (!cg_is_many(m, x->size))
      f->inside = f->inside && x->from_zero && (is_whole(x) || x->end_least >= 1);
    if (is_one(m, x->size))
      continue;
    whole = whole && is_whole(x);
    old.dim[old.rank++] = *x;
  }
  f->rank = ir_type_of(m, view).rank;
  for (uint32_t j = 0; j < f->rank; j++) {
    struct cg_dim_fact *d = &f->dim[j];
    struct expr size = ir_view_size(m, view, j);
    int64_t value;
    *d = (struct cg_dim_fact){.size = size, .stride_div = 1, .start_div = 1, .div = 1};
    d->end_div = 1;
    if (!whole && !is_one(m, size))
      continue;
    d->end = size;
    d->from_zero = d->bounded = true;
    d->start_div = 0;
    d->end_div = size.id ? ir_expr_divisor(m, size) : 1;
    d->end_least = ir_expr_value(m, size, &value) && value > 0 ? value : 0;
  }
  match_groups(m, &old, f);
}

static struct cg_view_fact facts(struct ir_module *m, const struct ir_intervals *r,
                                 struct ir_val view) {
  struct ir_op def = ir_value_at(m, view)->def;
  if (!def.id)
    return of_arg(m, view);
  const struct ir_opnode n = *ir_op_at(m, def);
  struct cg_view_fact f = facts(m, r, n.in[0]), from;
  uint32_t axis = (uint32_t)ir_attr_int(m, def, IR_ATTR_axis, 0);
  switch ((int)n.opcode) {
  case IR_VIEW_AT: at(m, r, &f, axis, n.in[1]); break;
  case IR_VIEW_SLICE:
    for (uint32_t d = 0; d < f.rank; d++)
      slice(m, r, &f, d, n.in[1 + d], n.in[1 + f.rank + d], ir_view_size(m, view, d));
    break;
  case IR_VIEW_TRANSPOSE:
    from = f;
    for (uint32_t d = 0; d < f.rank; d++)
      f.dim[d] = from.dim[ir_get_attr(m, def, IR_ATTR_perm)->ints[d]];
    break;
  case IR_VIEW_EVERY: every(m, &f.dim[axis], ir_attr_int(m, def, IR_ATTR_count, 1)); break;
  case IR_VIEW_RESHAPE: reshape(m, &f, view); break;
  default: break;
  }
  return f;
}

struct cg_view_fact cg_view_facts(struct ir_module *m, const struct ir_intervals *r,
                                  struct ir_val view) {
  return facts(m, r, view);
}
