/* Loads and stores, and what a load may read outside of its tensor. */
#include "base/num.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

static enum dtype dtype_of(const struct dsl_val *v) {
  return (enum dtype)v->t.dtype;
}

static const char *source_text(struct fe_file *f, const struct dsl_view *view, uint32_t d) {
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  const struct dsl_extent *e = &f->extents.at[view->extent[d]];
  sb_printf(&b, "dim %" PRIu32, d);
  if (e->kind == DSL_EXTENT_DIM) {
    sb_puts(&b, " (");
    expr_print(&f->m->exprs, e->dim, &b);
    sb_putc(&b, ')');
  }
  sb_printf(&b, " of %s", view->name);
  return sb_str(&b);
}

/* The load's source of padding along a dim; 0 if it stays inside for every shape that the kernel's
 * text and config allow. */
static uint32_t pad_source(struct fe_file *f, const struct dsl_view *view, uint32_t d,
                           const struct dsl_val *offset, int64_t size) {
  int64_t extent = view->t.dim[d];
  struct dsl_key at = dsl_key_of(f, offset);
  if (extent != IR_DYN && !view->may_miss[d] && offset->has_range && offset->lo >= 0 &&
      offset->hi <= extent - size)
    return 0;
  for (uint32_t i = 1; i < f->srcs.n; i++) {
    const struct dsl_src *s = &f->srcs.at[i];
    if (s->extent == view->extent[d] && dsl_key_eq(s->offset, at) && s->size == size)
      return i;
  }
  struct dsl_src s = {.loc = fe_where(f->fe),
                      .text = source_text(f, view, d),
                      .extent = view->extent[d],
                      .offset = at,
                      .size = size};
  VEC_PUSH(fe_trace_arena(f->fe), &f->srcs, s);
  return f->srcs.n - 1;
}

bool dsl_check_pad(struct fe_file *f, enum dtype t, const struct dsl_opnd *pad) {
  const char *why;
  if (dsl_fits(f, t, pad, &why))
    return true;
  fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "pad: %s", why);
  return false;
}

double dsl_set_pad(struct fe_file *f, struct ir_op o, enum dtype t, const struct dsl_opnd *pad) {
  double value = num_round(t, pad->f);
  if (value == 0)
    return 0;
  struct ir_attr a = {.key = IR_ATTR_pad};
  if (dtype_is_float(t))
    a.f = value;
  else
    a.i = pad->kind == DSL_FLT ? (int64_t)pad->f : pad->i;
  ir_set_attr(f->m, o, a);
  return value;
}

struct dsl_val *dsl_load(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *offset,
                         struct ir_type t, bool has_pad, const struct dsl_opnd *pad) {
  enum dtype dt = (enum dtype)t.dtype;
  if (has_pad && !dsl_check_pad(f, dt, pad))
    return NULL;
  struct ir_val in[IR_MAX_RANK + 1] = {view->v};
  for (uint32_t d = 0; d < t.rank; d++)
    in[d + 1] = offset[d]->v;
  struct ir_op o = dsl_build(f, IR_LOAD, t.rank + 1u, in, 1, &t);
  double value = has_pad ? dsl_set_pad(f, o, dt, pad) : 0;
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  uint32_t src[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < t.rank && !has_pad; d++)
    src[d] = pad_source(f, view, d, offset[d], t.dim[d]);
  dsl_pad_loaded(f, r, has_pad, value, src);
  return r;
}

struct dsl_val *dsl_load_scalar(struct fe_file *f, struct dsl_view *view,
                                struct dsl_val *const *index) {
  struct ir_type t = view->t;
  t.kind = IR_TILE;
  for (uint32_t d = 0; d < t.rank; d++)
    t.dim[d] = 1;
  struct dsl_val *x = dsl_load(f, view, index, t, false, NULL);
  struct ir_type s = ir_scalar((enum dtype)t.dtype);
  return dsl_new_val(f, s, dsl_build1(f, IR_ITEM, s, 1, &x->v));
}

bool dsl_check_written(struct fe_file *f, const struct dsl_view *view, const char *what) {
  const struct ir_arg *arg = &f->m->args.at[view->arg];
  if (arg->kind == IR_ARG_IN) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s the input `%s`; declare it with out or inout", what,
                  ir_sym(f->m, arg->name));
    return false;
  }
  if (view->repeats) {
    fe_soft_error(f->fe, DIAG_OPERAND,
                  "%s `%s`: after every() several coordinates are one element; write to the "
                  "tensor itself",
                  what, view->name);
    return false;
  }
  return true;
}

struct dsl_val *dsl_written(struct fe_file *f, const struct dsl_view *view, const char *what,
                            struct dsl_val *x) {
  enum dtype from = dtype_of(x), to = (enum dtype)view->t.dtype;
  bool both_float = dtype_is_float(from) && dtype_is_float(to);
  bool both_int = dtype_is_int(from) && dtype_is_int(to);
  if (from == to)
    return x;
  if (both_float || both_int)
    return dsl_cast(f, x, to);
  fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s of %s to `%s`, which is %s; cast it", what,
                dsl_describe_type(f, x->t), view->name, dtype_name(to));
  return NULL;
}

bool dsl_store(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *offset,
               struct dsl_val *x) {
  struct ir_type vt = view->t;
  if (!dsl_check_written(f, view, "store to"))
    return false;
  if (x->t.kind == IR_SCALAR) {
    struct ir_type one = {.kind = IR_TILE, .dtype = x->t.dtype, .rank = vt.rank};
    for (uint32_t d = 0; d < vt.rank; d++)
      one.dim[d] = 1;
    x = dsl_grow(f, x, one);
  }
  if (x->t.rank != vt.rank) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "store of %s to `%s`, which has rank %u",
                  dsl_describe_type(f, x->t), view->name, vt.rank);
    return false;
  }
  x = dsl_written(f, view, "store", x);
  if (!x)
    return false;
  struct ir_val in[IR_MAX_RANK + 2] = {view->v};
  for (uint32_t d = 0; d < vt.rank; d++)
    in[d + 1] = offset[d]->v;
  in[vt.rank + 1] = x->v;
  dsl_build(f, IR_STORE, vt.rank + 2u, in, 0, NULL);
  return true;
}
