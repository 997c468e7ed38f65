/* Interpreter: views of tensor arguments, and the ops that make views of views.
 *
 * No op here fails or overflows, whatever its operands: what lies outside is out of range, and a
 * view that cannot be (a reshape that would have to move data) says so only to an access that needs
 * it, so that passes may drop and move these ops as any other without an effect. */
#include "ir/interp_impl.h"

#include "base/check.h"

void interp_set_view(struct interp *in, struct ir_val v, uint32_t arg) {
  const struct interp_tensor *t = &in->bound[arg].t;
  struct interp_view *r = val_view(in, v);
  *r = (struct interp_view){.arg = arg, .rank = t->rank, .base = (uint64_t)t->offset};
  for (uint32_t d = 0; d < t->rank; d++)
    r->dim[d] = (struct interp_view_dim){
        .size = t->dim[d], .hi = t->dim[d], .stride = t->stride[d], .div = 1};
}

static void set_fault(struct interp_view *v, struct ir_op o, enum interp_fault fault, int64_t a,
                      int64_t b) {
  if (v->fault)
    return;
  v->faulty = o;
  v->fault = fault;
  v->fault_at[0] = a;
  v->fault_at[1] = b;
}

bool interp_view_ok(struct interp *in, struct ir_op o, const struct interp_view *v) {
  long long a = (long long)v->fault_at[0], b = (long long)v->fault_at[1];
  const char *op = ir_info(ir_op_at(in->m, o)->opcode)->name;
  switch (v->fault) {
  case VIEW_OK: return true;
  case VIEW_COUNT:
    interp_fail(in, o, DIAG_OPERAND, "'%s' of a reshaped view: %lld elements cannot become %lld",
                op, a, b);
    break;
  case VIEW_SPLIT:
    interp_fail(in, o, DIAG_OPERAND,
                "'%s' of a reshaped view: its dims %lld and %lld do not lie one after the other in "
                "memory, and a view moves no data",
                op, a, b);
    break;
  case VIEW_OUTSIDE:
    interp_fail(in, o, DIAG_OPERAND,
                "'%s' of a reshaped view: its dim %lld, of %lld elements, reaches outside of its "
                "tensor or repeats elements; only whole dims are split or joined",
                op, a, b);
    break;
  case VIEW_TOO_LONG:
    interp_fail(in, o, DIAG_OPERAND,
                "'%s' of a view whose dim %lld is longer than 2^62: %lld times as long as before",
                op, a, b);
    break;
  }
  const struct ir_loc *loc = &in->m->locs.at[ir_op_at(in->m, v->faulty)->loc];
  diag_note(in->diags, loc->at, "the view is made by this '%s'",
            ir_info(ir_op_at(in->m, v->faulty)->opcode)->name);
  return false;
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

static void view_at(struct interp_view *v, uint32_t axis, int64_t x) {
  if (x < v->dim[axis].lo || x >= v->dim[axis].hi)
    v->empty = true;
  else
    v->base += interp_view_step(&v->dim[axis], x);
  v->rank--;
  for (uint32_t d = axis; d < v->rank; d++)
    v->dim[d] = v->dim[d + 1];
}

/* Coordinate x of the result is coordinate x + offset of the operand. */
static void slice_dim(struct interp_view *v, struct interp_view_dim *d, int64_t offset,
                      int64_t size) {
  /* No size and no coordinate is beyond 2^62: such offsets leave nothing in range. */
  bool far = offset <= -INTERP_MAX_EXTENT || offset >= INTERP_MAX_EXTENT;
  d->size = clamp(size, 0, INTERP_MAX_EXTENT);
  d->lo = far ? 0 : clamp(d->lo - offset, 0, INTERP_MAX_EXTENT);
  d->hi = far ? 0 : clamp(d->hi - offset, 0, d->size);
  if (d->lo >= d->hi) {
    d->lo = d->hi = d->phase = 0;
    return;
  }
  int64_t at = offset + d->phase;
  int64_t whole = at / d->div - (at % d->div < 0);
  v->base += (uint64_t)whole * (uint64_t)d->stride;
  d->phase = at - whole * d->div;
}

static void view_every(struct interp_view *v, struct ir_op o, uint32_t axis, int64_t n) {
  struct interp_view_dim *d = &v->dim[axis];
  int64_t size, div;
  if (__builtin_mul_overflow(d->size, n, &size) || __builtin_mul_overflow(d->div, n, &div) ||
      size > INTERP_MAX_EXTENT || div > INTERP_MAX_EXTENT) {
    d->size = INTERP_MAX_EXTENT;
    set_fault(v, o, VIEW_TOO_LONG, axis, n);
    return;
  }
  d->size = size;
  d->lo *= n;
  d->hi *= n;
  d->div = div;
  d->phase *= n; /* below div */
}

/* ---- reshape ---- */

/* Elements of the dims; -1 where there are too many to count. */
static int64_t count(uint32_t rank, const struct interp_view_dim *d) {
  int64_t n = 1;
  for (uint32_t k = 0; k < rank; k++)
    if (d[k].size == 0)
      return 0;
  for (uint32_t k = 0; k < rank; k++)
    if (__builtin_mul_overflow(n, d[k].size, &n))
      return -1;
  return n;
}

static bool is_whole(const struct interp_view_dim *d) {
  return d->lo == 0 && d->hi == d->size && d->div == 1;
}

/* Dims [i, i_end) of the old view hold as many elements as [j, j_end) of the new one. home: the
 * numbers of old's dims, for messages. */
static void reshape_group(struct interp_view *r, struct ir_op o, const struct interp_view *old,
                          const uint32_t *home, uint32_t i, uint32_t i_end, uint32_t j,
                          uint32_t j_end) {
  if (i_end == i + 1 && j_end == j + 1) {
    r->dim[j] = old->dim[i];
    return;
  }
  for (uint32_t k = i; k < i_end; k++) {
    if (!is_whole(&old->dim[k]))
      set_fault(r, o, VIEW_OUTSIDE, home[k], old->dim[k].size);
    if (k + 1 < i_end && (uint64_t)old->dim[k].stride !=
                             (uint64_t)old->dim[k + 1].stride * (uint64_t)old->dim[k + 1].size)
      set_fault(r, o, VIEW_SPLIT, home[k], home[k + 1]);
  }
  uint64_t stride = (uint64_t)old->dim[i_end - 1].stride;
  for (uint32_t k = j_end; k-- > j;) {
    r->dim[k].stride = (int64_t)stride;
    stride *= (uint64_t)r->dim[k].size;
  }
}

/* Dims of one element go and come freely; of the others, groups of equal size are matched from the
 * left. */
static void view_reshape(struct interp_view *r, struct ir_op o, uint32_t rank,
                         const int64_t *size) {
  struct interp_view old = {.rank = 0};
  uint32_t home[IR_MAX_RANK];
  for (uint32_t d = 0; d < r->rank; d++) {
    if (r->dim[d].size != 1) {
      home[old.rank] = d;
      old.dim[old.rank++] = r->dim[d];
    } else if (r->dim[d].lo >= r->dim[d].hi) {
      r->empty = true; /* its one element is out of range; in range it lies at the base */
    }
  }
  r->rank = rank;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t n = clamp(size[d], 0, INTERP_MAX_EXTENT);
    r->dim[d] = (struct interp_view_dim){.size = n, .hi = n, .div = 1};
  }
  int64_t before = count(old.rank, old.dim), after = count(rank, r->dim);
  if (before != after || before < 0) {
    set_fault(r, o, VIEW_COUNT, before, after);
    return;
  }
  uint32_t i = 0, j = 0;
  while (before && i < old.rank) {
    while (r->dim[j].size == 1)
      j++;
    uint32_t i_end = i + 1, j_end = j + 1;
    int64_t n_old = old.dim[i].size, n_new = r->dim[j].size;
    while (n_old != n_new)
      if (n_old < n_new)
        n_old *= old.dim[i_end++].size;
      else
        n_new *= r->dim[j_end++].size;
    reshape_group(r, o, &old, home, i, i_end, j, j_end);
    i = i_end;
    j = j_end;
  }
}

/* ---- dispatch ---- */

void interp_view_op(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct interp_view *from = val_view(in, op->in[0]);
  uint32_t axis = (uint32_t)ir_attr_int(in->m, o, IR_ATTR_axis, 0);
  if (op->opcode == IR_DIM) {
    *(int64_t *)val_buf(in, op->out[0]) = from->dim[axis].size;
    return;
  }
  struct interp_view *v = val_view(in, op->out[0]);
  *v = *from;
  switch ((int)op->opcode) {
  case IR_VIEW_AT: view_at(v, axis, val_int(in, op->in[1])); break;
  case IR_VIEW_SLICE:
    for (uint32_t d = 0; d < v->rank; d++)
      slice_dim(v, &v->dim[d], val_int(in, op->in[1 + d]), val_int(in, op->in[1 + v->rank + d]));
    break;
  case IR_VIEW_TRANSPOSE: {
    const struct ir_attr *perm = ir_get_attr(in->m, o, IR_ATTR_perm);
    for (uint32_t d = 0; d < v->rank; d++)
      v->dim[d] = from->dim[perm->ints[d]];
    break;
  }
  case IR_VIEW_EVERY: view_every(v, o, axis, ir_attr_int(in->m, o, IR_ATTR_count, 1)); break;
  case IR_VIEW_RESHAPE: {
    int64_t size[IR_MAX_RANK];
    uint32_t rank = ir_value_at(in->m, op->out[0])->type.rank;
    for (uint32_t d = 0; d < rank; d++)
      size[d] = val_int(in, op->in[1 + d]);
    view_reshape(v, o, rank, size);
    break;
  }
  default: KILN_ASSERT(false);
  }
}
