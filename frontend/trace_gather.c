/* Elements of views at indices while tracing: gather, scatter, atomics. */
#include "frontend/dsl.h"

#include <inttypes.h>

bool dsl_selected(struct fe_file *f, const struct dsl_view *view, const char *what,
                  struct dsl_val *const *index, struct ir_type *t) {
  const struct dsl_val *lead = NULL;
  *t = ir_scalar((enum dtype)view->t.dtype);
  for (uint32_t k = 0; k < view->t.rank; k++) {
    struct ir_type x = index[k]->t;
    if (x.kind == IR_SCALAR)
      continue;
    if (lead && x.rank != lead->t.rank) {
      fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                    "%s of `%s`: indices %s and %s have different ranks; give them one with "
                    ":row(), :col() or :reshape(...)",
                    what, view->name, dsl_describe_type(f, lead->t), dsl_describe_type(f, x));
      return false;
    }
    if (!lead)
      *t = ir_tile((enum dtype)view->t.dtype, x.rank, x.dim);
    for (uint32_t d = 0; d < x.rank; d++) {
      if (x.dim[d] != 1 && t->dim[d] != 1 && x.dim[d] != t->dim[d]) {
        fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                      "%s of `%s`: index %" PRIu32 " is %s, the others %s: sizes are equal or 1",
                      what, view->name, k, dsl_describe_type(f, x), dsl_shape_text(f, *t));
        return false;
      }
      t->dim[d] = x.dim[d] > t->dim[d] ? x.dim[d] : t->dim[d];
    }
    lead = index[k];
  }
  if (ir_elems(*t) > FE_MAX_ELEMS) {
    fe_soft_error(f->fe, DIAG_LIMIT,
                  "%s of `%s`: a tile %s has %" PRId64 " elements; %" PRId64 " are the most", what,
                  view->name, dsl_shape_text(f, *t), ir_elems(*t), FE_MAX_ELEMS);
    return false;
  }
  return true;
}

static struct ir_op build(struct fe_file *f, enum ir_opcode op, const struct dsl_view *view,
                          struct dsl_val *const *index, const struct dsl_val *x, uint32_t n_out,
                          const struct ir_type *t) {
  struct ir_val in[IR_MAX_RANK + 2] = {view->v};
  uint32_t n = 1;
  for (uint32_t k = 0; k < view->t.rank; k++)
    in[n++] = index[k]->v;
  if (x)
    in[n++] = x->v;
  return dsl_build(f, op, n, in, n_out, t);
}

/* Is every index of dim k within the view, whatever the arguments? */
static bool stays_inside(const struct dsl_view *view, uint32_t k, const struct dsl_val *index) {
  return view->t.dim[k] != IR_DYN && !view->may_miss[k] && index->has_range && index->lo >= 0 &&
         index->hi < view->t.dim[k];
}

/* Padding along dim d of what was gathered: some index that varies along it may be out of range. */
static uint32_t pad_source(struct fe_file *f, const struct dsl_view *view,
                           struct dsl_val *const *index, uint32_t d, int64_t size) {
  for (uint32_t k = 0; k < view->t.rank; k++) {
    if (index[k]->t.kind == IR_SCALAR || index[k]->t.dim[d] == 1 || stays_inside(view, k, index[k]))
      continue;
    struct dsl_src s = {.loc = fe_where(f->fe),
                        .text = arena_printf(fe_trace_arena(f->fe),
                                             "index %" PRIu32 " of the gather "
                                             "from %s",
                                             k, view->name),
                        .size = size};
    VEC_PUSH(fe_trace_arena(f->fe), &f->srcs, s);
    return f->srcs.n - 1;
  }
  return 0;
}

struct dsl_val *dsl_gather(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *index,
                           bool has_pad, const struct dsl_opnd *pad) {
  struct ir_type t;
  if (!dsl_selected(f, view, "gather", index, &t) ||
      (has_pad && !dsl_check_pad(f, (enum dtype)t.dtype, pad)))
    return NULL;
  struct ir_op o = build(f, IR_GATHER, view, index, NULL, 1, &t);
  double value = has_pad ? dsl_set_pad(f, o, (enum dtype)t.dtype, pad) : 0;
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  uint32_t src[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < t.rank && !has_pad; d++)
    src[d] = pad_source(f, view, index, d, t.dim[d]);
  dsl_pad_loaded(f, r, has_pad, value, src);
  return r;
}

/* x as it goes to the elements that the indices select. */
static struct dsl_val *fit_value(struct fe_file *f, struct dsl_view *view, const char *what,
                                 struct dsl_val *const *index, struct dsl_val *x,
                                 struct ir_type *t) {
  if (!dsl_check_written(f, view, arena_printf(fe_trace_arena(f->fe), "%s to", what)) ||
      !dsl_selected(f, view, what, index, t))
    return NULL;
  bool fits = x->t.kind == IR_SCALAR || x->t.rank == t->rank;
  for (uint32_t d = 0; fits && d < x->t.rank; d++)
    fits = x->t.dim[d] == 1 || x->t.dim[d] == t->dim[d];
  if (!fits) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "%s of %s to `%s` at indices that select %s; a tile at an offset has indices "
                  "offset + iota(0, n) and offset + iota(1, n)",
                  what, dsl_describe_type(f, x->t), view->name,
                  t->rank ? dsl_shape_text(f, *t) : "one element");
    return NULL;
  }
  x = dsl_written(f, view, what, x);
  return x ? dsl_grow(f, x, *t) : NULL;
}

bool dsl_scatter(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *index,
                 struct dsl_val *x) {
  struct ir_type t;
  x = fit_value(f, view, "scatter", index, x, &t);
  if (x)
    build(f, IR_SCATTER, view, index, x, 0, NULL);
  return x != NULL;
}

/* The dtypes that a kind of atomic takes, for messages; NULL if t is one of them. */
static const char *not_atomic(const char *kind, enum dtype t) {
  bool wide_int = t == DT_S32 || t == DT_S64, wide = wide_int || t == DT_F32 || t == DT_F64;
  if (str_eq(kind, "add"))
    return wide || t == DT_F16 || t == DT_BF16 ? NULL : "f64, f32, f16, bf16, s64 or s32";
  if (str_eq(kind, "min") || str_eq(kind, "max"))
    return wide_int || t == DT_F32 ? NULL : "f32, s64 or s32";
  if (str_eq(kind, "exchange"))
    return wide ? NULL : "f64, f32, s64 or s32";
  return wide_int ? NULL : "s64 or s32";
}

struct dsl_val *dsl_atomic(struct fe_file *f, struct dsl_view *view, const char *what,
                           const char *kind, struct dsl_val *const *index, struct dsl_val *x) {
  struct ir_type t;
  const char *takes = not_atomic(kind, (enum dtype)view->t.dtype);
  if (takes) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s to `%s`, which is %s; it takes %s", what,
                  view->name, dtype_name((enum dtype)view->t.dtype), takes);
    return NULL;
  }
  x = fit_value(f, view, what, index, x, &t);
  if (!x)
    return NULL;
  struct ir_op o = build(f, IR_ATOMIC, view, index, x, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(f->m->syms, kind)});
  return dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
}
