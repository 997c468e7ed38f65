/* Views as values of the machine module: base, strides, sizes and ranges as index scalars, computed
 * where the op that makes the view stands; constants and what the facts tell are folded away. The
 * arithmetic is that of ir/interp_view.c, line by line; what cannot overflow there for any operand
 * does not here. */
#include "codegen/lower.h"

#include "base/check.h"
#include "ir/range.h"

#define MAX_EXTENT (INT64_C(1) << 62) /* as INTERP_MAX_EXTENT */

static struct ir_val min_of(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_MIN, a, b);
}

static struct ir_val max0(struct lower *l, struct ir_val a) {
  struct ir_val zero = cg_index(l, 0);
  return cg_op2(l, IR_MAX, a, zero);
}

static struct ir_val and_of(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_AND, a, b);
}

static bool is_zero(const struct lower *l, struct ir_val v) {
  int64_t c;
  return cg_is_const(l, v, &c) && c == 0;
}

/* Floor of a / c, c > 0. */
static struct ir_val quotient(struct lower *l, struct ir_val a, int64_t c) {
  int64_t x;
  if (c == 1)
    return a;
  if (cg_is_const(l, a, &x))
    return cg_index(l, x / c - (x % c < 0));
  struct ir_val in[2] = {a, cg_index(l, c)};
  return ir_build1(&l->b, IR_FLOORDIV, ir_scalar(DT_INDEX), 2, in);
}

struct ir_val cg_view_step(struct lower *l, const struct cg_view_dim *d, struct ir_val x) {
  return cg_mul(l, quotient(l, cg_add(l, x, d->phase), d->div), d->stride);
}

/* Whole dims of an argument become parameters of the kernel only where someone asks. */
static void ask(struct lower *l, struct cg_view_dim *d) {
  if (!d->size.id)
    d->size = d->end = cg_launch_index(l, d->size_expr);
}

struct ir_val cg_view_size(struct lower *l, const struct cg_view_dim *d) {
  return d->size.id ? d->size : cg_launch_index(l, d->size_expr);
}

struct ir_val cg_view_end(struct lower *l, const struct cg_view_dim *d) {
  return d->end.id ? d->end : cg_launch_index(l, d->size_expr);
}

static struct cg_view *of_arg(struct lower *l, uint32_t arg) {
  struct ir_module *m = l->m;
  struct cg_view *v = ARENA_NEW(l->a, struct cg_view);
  const struct ir_val zero = cg_index(l, 0);
  v->arg = arg;
  v->rank = m->args.at[arg].rank;
  v->base = zero;
  v->inside = v->ok = cg_bool(l, true);
  for (uint32_t d = 0; d < v->rank; d++) {
    struct cg_view_dim *x = &v->dim[d];
    int64_t size;
    x->size_expr = m->args.at[arg].dim[d];
    x->start = x->phase = zero;
    x->stride = cg_launch_index(l, ir_arg_stride(m, arg, d));
    x->div = 1;
    x->one = ir_expr_value(m, x->size_expr, &size) && size == 1;
  }
  return v;
}

const struct cg_view *cg_view_at(struct lower *l, struct ir_val v) {
  struct cg_lval *x = &l->val[v.id];
  if (!x->view) {
    struct ir_entry e = ir_entry_of(l->m, v);
    KILN_ASSERT(e.kind == IR_ENTRY_ARG);
    struct ir_builder saved = cg_enter_top(l);
    x->view = of_arg(l, e.index);
    cg_leave_top(l, saved);
  }
  return x->view;
}

/* ---- at, slice, every ---- */

static void at(struct lower *l, struct cg_view *v, uint32_t axis, struct ir_val x, bool sure) {
  struct cg_view_dim d = v->dim[axis];
  if (!sure) {
    ask(l, &d);
    struct ir_val in_range = cg_cmp(l, IR_GE, x, d.start);
    in_range = and_of(l, in_range, cg_cmp(l, IR_LT, x, d.end));
    v->inside = and_of(l, v->inside, in_range);
  }
  v->base = cg_add(l, v->base, cg_view_step(l, &d, x));
  v->rank--;
  for (uint32_t k = axis; k < v->rank; k++)
    v->dim[k] = v->dim[k + 1];
}

static bool is_between(const struct lower *l, struct ir_val v, int64_t lo, int64_t hi) {
  struct ir_interval x = ir_interval_of(l->intervals, v);
  return x.lo >= lo && x.hi <= hi;
}

/* Coordinate x of the result is x + offset of what was. o: the op; to: what is known of the
 * result. */
static void slice(struct lower *l, struct ir_op o, struct cg_view *v, uint32_t k,
                  const struct ir_val *in, const struct cg_dim_fact *to) {
  const struct ir_opnode *n = ir_op_at(l->m, o);
  struct ir_val of = n->in[1 + k], len = n->in[1 + v->rank + k];
  struct ir_val offset = in[k], size = in[v->rank + k];
  struct cg_view_dim *d = &v->dim[k];
  int64_t c;
  ask(l, d);
  if (!ir_val_is_nonneg(l->m, len) && !is_between(l, len, 0, INT64_MAX))
    size = max0(l, size);
  if (!to->bounded && !is_between(l, len, INT64_MIN, MAX_EXTENT))
    size = min_of(l, size, cg_index(l, MAX_EXTENT));
  d->size = size;
  d->size_expr = to->size;
  d->one = cg_is_const(l, size, &c) && c == 1;
  /* No size and no coordinate is beyond 2^62: a larger offset leaves nothing in range, as this one
   * does. */
  struct ir_val near = offset;
  if (!is_between(l, of, -MAX_EXTENT, MAX_EXTENT)) {
    near = min_of(l, offset, cg_index(l, MAX_EXTENT));
    near = cg_op2(l, IR_MAX, near, cg_index(l, -MAX_EXTENT));
  }
  if (to->end.id && to->end.id == to->size.id)
    d->end = size;
  else if (is_zero(l, offset))
    d->end = min_of(l, d->end, size);
  else
    d->end = min_of(l, max0(l, cg_op2(l, IR_SUB, d->end, near)), size);
  if (is_zero(l, offset))
    return;
  if (!to->from_zero)
    d->start = min_of(l, max0(l, cg_op2(l, IR_SUB, d->start, near)), size);
  struct ir_val from = cg_add(l, offset, d->phase), whole = quotient(l, from, d->div);
  v->base = cg_add(l, v->base, cg_mul(l, whole, d->stride));
  if (d->div > 1 && !to->phase)
    d->phase = cg_index(l, 0);
  else if (d->div > 1)
    d->phase = cg_op2(l, IR_SUB, from, cg_muli(l, whole, d->div));
}

static void fails_unless(struct lower *l, struct cg_view *v, struct ir_val ok, const char *fault) {
  int64_t c;
  if (cg_is_const(l, ok, &c) && c)
    return;
  v->ok = and_of(l, v->ok, ok);
  v->fault = fault;
}

static void every(struct lower *l, struct cg_view *v, uint32_t axis, int64_t n,
                  const struct cg_dim_fact *to) {
  struct cg_view_dim *d = &v->dim[axis];
  int64_t div;
  ask(l, d);
  if (__builtin_mul_overflow(d->div, n, &div) || div > MAX_EXTENT) {
    fails_unless(l, v, cg_bool(l, false), "a view with a dim longer than 2^62");
    return;
  }
  if (!to->bounded) {
    struct ir_val most = cg_index(l, MAX_EXTENT / n);
    fails_unless(l, v, cg_cmp(l, IR_LE, d->size, most), "a view with a dim longer than 2^62");
  }
  d->size = cg_muli(l, d->size, n);
  d->start = cg_muli(l, d->start, n);
  d->end = cg_muli(l, d->end, n);
  d->phase = cg_muli(l, d->phase, n);
  d->div = div;
  d->size_expr = to->size;
  d->one = d->one && n == 1;
}

/* ---- reshape ---- */

/* Dims of before and after, and how many elements lie behind each: suffix products. Where the
 * products of dims i.. and j.. are equal, a group of dims ends on both sides; where those of
 * i + 1.. and j + 1.. are too, the dims are the same. That is what the interpreter finds by
 * walking, here for sizes of which nothing is known before the launch; what is known of them is
 * folded. */
struct reshape {
  struct ir_op op;
  uint32_t n_old, n_new;
  struct cg_view_dim old[IR_MAX_RANK];
  struct expr old_size[IR_MAX_RANK], new_size[IR_MAX_RANK];
  struct ir_val behind_old[IR_MAX_RANK + 1], behind_new[IR_MAX_RANK + 1];
  struct ir_val one[IR_MAX_RANK]; /* bool: the old dim has one element */
  /* Strides of old dims; for one of one element that which puts it in order with the dim behind
   * it, and with the dim before it. */
  struct ir_val to_right[IR_MAX_RANK], to_left[IR_MAX_RANK];
  struct ir_val none; /* bool: there are no elements */
};

static bool is_true(const struct lower *l, struct ir_val v) {
  int64_t c;
  return cg_is_const(l, v, &c) && c;
}

static struct ir_val not_of(struct lower *l, struct ir_val v) {
  int64_t c;
  if (cg_is_const(l, v, &c))
    return cg_bool(l, !c);
  return ir_build1(&l->b, IR_NOT, ir_scalar(DT_BOOL), 1, &v);
}

static struct ir_val or_of(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_OR, a, b);
}

static struct ir_val equal(struct lower *l, struct ir_val a, struct ir_val b) {
  return a.id == b.id ? cg_bool(l, true) : cg_cmp(l, IR_EQ, a, b);
}

/* Do dims i.. of before hold as many elements as j.. of after? */
static struct ir_val same_behind(struct lower *l, const struct reshape *r, uint32_t i, uint32_t j) {
  if (cg_same_product(l->m, r->n_old - i, r->old_size + i, r->n_new - j, r->new_size + j))
    return cg_bool(l, true);
  return equal(l, r->behind_old[i], r->behind_new[j]);
}

static struct ir_val same_dim(struct lower *l, const struct reshape *r, uint32_t i, uint32_t j) {
  struct ir_val first = same_behind(l, r, i, j);
  return and_of(l, first, same_behind(l, r, i + 1, j + 1));
}

static bool is_whole(const struct lower *l, const struct cg_view_dim *d) {
  return is_zero(l, d->start) && d->end.id == d->size.id;
}

static void open_reshape(struct lower *l, struct reshape *r, struct cg_view *v,
                         const struct ir_val *size, const struct cg_view_fact *to) {
  struct ir_val c1 = cg_index(l, 1);
  for (uint32_t i = 0; i < v->rank; i++) {
    struct cg_view_dim *d = &v->dim[i];
    ask(l, d);
    if (d->one) {
      if (!is_whole(l, d))
        v->inside = and_of(l, v->inside, cg_cmp(l, IR_LT, d->start, d->end));
      continue;
    }
    r->old_size[r->n_old] = d->size_expr;
    r->one[r->n_old] = cg_is_many(l->m, d->size_expr) ? cg_bool(l, false) : equal(l, d->size, c1);
    r->old[r->n_old++] = *d;
  }
  r->behind_old[r->n_old] = r->behind_new[r->n_new] = c1;
  for (uint32_t i = r->n_old; i-- > 0;) {
    struct ir_val own = r->old[i].stride, next = own;
    r->behind_old[i] = cg_mul(l, r->old[i].size, r->behind_old[i + 1]);
    if (i + 1 < r->n_old)
      next = cg_mul(l, r->to_right[i + 1], r->old[i + 1].size);
    r->to_right[i] = cg_select(l, r->one[i], next, own);
  }
  for (uint32_t i = 0; i < r->n_old; i++) {
    struct ir_val own = r->old[i].stride;
    r->to_left[i] = i ? cg_select(l, r->one[i], r->to_left[i - 1], own) : own;
  }
  for (uint32_t j = r->n_new; j-- > 0;) {
    r->new_size[j] = to->dim[j].size;
    r->behind_new[j] = cg_mul(l, size[j], r->behind_new[j + 1]);
  }
  r->none = equal(l, r->behind_old[0], cg_index(l, 0));
}

/* What an access demands of old dim i: whole, if it is split or joined; and the next right
 * behind it, if no group ends between them. A dim of one element needs to be in range only. */
static void check_old(struct lower *l, struct cg_view *v, const struct reshape *r, uint32_t i) {
  const struct cg_view_dim *d = &r->old[i];
  struct ir_val same = cg_bool(l, false), ends = same;
  for (uint32_t j = 0; j < r->n_new && !is_true(l, same); j++)
    same = or_of(l, same, same_dim(l, r, i, j));
  if (d->div != 1 && !is_true(l, same)) {
    cg_error(
        l->m, l->ctx->diags, r->op, DIAG_LOWER_UNSUPPORTED,
        "a reshape of a view that repeats elements (`:every`) is lowered to the GPU only where "
        "that dim keeps its size for sure: reshape first");
    l->failed = true;
  }
  if (!is_whole(l, d)) {
    struct ir_val there = or_of(l, not_of(l, r->one[i]), cg_cmp(l, IR_LT, d->start, d->end));
    v->inside = and_of(l, v->inside, there);
    struct ir_val whole = equal(l, d->start, cg_index(l, 0));
    whole = and_of(l, whole, equal(l, d->end, d->size));
    whole = or_of(l, or_of(l, same, r->one[i]), whole);
    fails_unless(l, v, or_of(l, whole, r->none),
                 "a reshaped view: a dim that is split or joined reaches outside of its tensor");
  }
  if (i + 1 == r->n_old)
    return;
  for (uint32_t j = 0; j <= r->n_new && !is_true(l, ends); j++)
    ends = or_of(l, ends, same_behind(l, r, i + 1, j));
  if (is_true(l, ends))
    return;
  struct ir_val next = cg_mul(l, r->to_right[i + 1], r->old[i + 1].size);
  struct ir_val adjacent = equal(l, r->to_right[i], next);
  fails_unless(l, v, or_of(l, or_of(l, ends, adjacent), r->none),
               "a reshaped view: two of its dims do not lie one after the other in memory, and a "
               "view moves no data");
}

/* New dim j: an old one, or part of one or of several. */
static struct cg_view_dim new_dim(struct lower *l, const struct reshape *r, uint32_t j,
                                  struct ir_val size) {
  struct ir_val zero = cg_index(l, 0), per = r->behind_new[j + 1];
  struct cg_view_dim d = {.size = size, .start = zero, .end = size, .phase = zero, .div = 1};
  int64_t c;
  d.size_expr = r->new_size[j];
  d.stride = zero;
  d.one = cg_is_const(l, size, &c) && c == 1;
  if (d.one)
    return d;
  /* It ends within old dim i, or at its end, if what lies behind it is less than what i and those
   * behind hold. The last such dim first. */
  bool done = false;
  struct ir_val found = cg_bool(l, false);
  for (uint32_t i = r->n_old; i-- > 0 && !done;) {
    bool even = is_true(l, same_behind(l, r, i + 1, j + 1));
    struct ir_val here =
        even || i == 0 ? cg_bool(l, true) : cg_cmp(l, IR_LT, per, r->behind_old[i]);
    struct ir_val stride = r->to_left[i];
    if (!even) {
      struct ir_val parts = per;
      if (!(cg_is_const(l, r->behind_old[i + 1], &c) && c == 1))
        parts = ir_build1(&l->b, IR_FLOORDIV, ir_scalar(DT_INDEX), 2,
                          (struct ir_val[]){per, r->behind_old[i + 1]});
      stride = cg_mul(l, parts, r->old[i].stride);
    }
    done = is_true(l, here);
    here = and_of(l, here, not_of(l, found));
    d.stride = cg_select(l, here, stride, d.stride);
    found = or_of(l, found, here);
  }
  for (uint32_t i = 0; i < r->n_old; i++) {
    const struct cg_view_dim *x = &r->old[i];
    struct ir_val same = same_dim(l, r, i, j);
    if (is_true(l, same)) {
      d.start = x->start;
      d.end = x->end.id == x->size.id ? size : x->end;
      d.stride = x->stride;
      d.div = x->div;
      d.phase = x->phase;
      return d;
    }
    if (is_whole(l, x))
      continue;
    same = and_of(l, same, not_of(l, r->one[i]));
    d.start = cg_select(l, same, x->start, d.start);
    d.end = cg_select(l, same, x->end, d.end);
  }
  return d;
}

static void reshape(struct lower *l, struct ir_op o, struct cg_view *v, const struct ir_val *in,
                    const struct cg_view_fact *to) {
  struct reshape r = {.op = o, .n_new = ir_type_of(l->m, ir_op_at(l->m, o)->out[0]).rank};
  struct ir_val size[IR_MAX_RANK];
  for (uint32_t j = 0; j < r.n_new; j++) {
    struct ir_val len = ir_op_at(l->m, o)->in[1 + j];
    size[j] = in[j];
    if (!ir_val_is_nonneg(l->m, len) && !is_between(l, len, 0, INT64_MAX))
      size[j] = max0(l, size[j]);
    if (!to->dim[j].size.id && !is_between(l, len, INT64_MIN, MAX_EXTENT))
      size[j] = min_of(l, size[j], cg_index(l, MAX_EXTENT));
  }
  open_reshape(l, &r, v, size, to);
  fails_unless(l, v, same_behind(l, &r, 0, 0),
               "a reshaped view: it has another number of elements");
  for (uint32_t i = 0; i < r.n_old; i++)
    check_old(l, v, &r, i);
  v->rank = r.n_new;
  for (uint32_t j = 0; j < r.n_new; j++)
    v->dim[j] = new_dim(l, &r, j, size[j]);
}

/* ---- ops ---- */

const struct cg_view *cg_make_view(struct lower *l, struct ir_op o, const struct cg_view *from,
                                   const struct ir_val *in) {
  struct ir_module *m = l->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  struct cg_view *v = arena_copy(l->a, from, sizeof *from);
  struct cg_view_fact before = cg_view_facts(m, l->intervals, n.in[0]);
  struct cg_view_fact after = cg_view_facts(m, l->intervals, n.out[0]);
  uint32_t axis = (uint32_t)ir_attr_int(m, o, IR_ATTR_axis, 0);
  switch ((int)n.opcode) {
  case IR_VIEW_AT: {
    const struct cg_dim_fact *d = &before.dim[axis];
    bool sure = cg_starts(m, l->intervals, d, n.in[1]) && cg_fits(m, l->intervals, d, n.in[1], 1);
    at(l, v, axis, in[0], sure);
    break;
  }
  case IR_VIEW_SLICE:
    for (uint32_t d = 0; d < v->rank; d++)
      slice(l, o, v, d, in, &after.dim[d]);
    break;
  case IR_VIEW_TRANSPOSE:
    for (uint32_t d = 0; d < v->rank; d++)
      v->dim[d] = from->dim[ir_get_attr(m, o, IR_ATTR_perm)->ints[d]];
    break;
  case IR_VIEW_EVERY:
    every(l, v, axis, ir_attr_int(m, o, IR_ATTR_count, 1), &after.dim[axis]);
    break;
  case IR_VIEW_RESHAPE: reshape(l, o, v, in, &after); break;
  default: KILN_UNREACHABLE();
  }
  return v;
}

void cg_lower_view(struct lower *l, struct ir_op o) {
  const struct ir_opnode n = *ir_op_at(l->m, o);
  struct ir_val in[2 * IR_MAX_RANK];
  for (uint32_t i = 1; i < n.n_in; i++)
    in[i - 1] = cg_scalar(l, n.in[i]);
  l->val[n.out[0].id].view = cg_make_view(l, o, cg_view_at(l, n.in[0]), in);
}

void cg_check_view(struct lower *l, const struct cg_view *v) {
  int64_t c;
  if (cg_is_const(l, v->ok, &c) && c)
    return;
  struct ir_op check = ir_build(&l->b, IR_CHECK, 1, &v->ok, 0, NULL);
  struct ir_attr message = {.key = IR_ATTR_message, .s = symtab_get(l->m->syms, v->fault)};
  ir_set_attr(l->m, check, message);
}
