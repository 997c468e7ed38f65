/* Views of tensors while tracing: the IR's view ops, what messages call them, and which dims may
 * reach outside of their tensor. */
#include "frontend/dsl.h"

#include <inttypes.h>

#define MAX_NAME 60 /* a longer name says no more */

struct dsl_key dsl_key_of(const struct fe_file *f, const struct dsl_val *v) {
  if (v->has_range && v->lo == v->hi)
    return (struct dsl_key){.is_const = true, .n = v->lo};
  /* An index made of another integer is as good as that. */
  const struct ir_opnode *def = ir_op_at(f->m, ir_value_at(f->m, v->v)->def);
  bool is_cast = def->opcode == IR_CAST && v->t.dtype == DT_INDEX &&
                 dtype_is_int((enum dtype)ir_type_of(f->m, def->in[0]).dtype);
  return (struct dsl_key){.n = is_cast ? def->in[0].id : v->v.id};
}

/* ---- extents ---- */

static bool same_extent(const struct dsl_extent *a, const struct dsl_extent *b) {
  if (a->kind != b->kind || a->kind == DSL_EXTENT_OTHER)
    return false;
  return a->dim.id == b->dim.id && a->parent == b->parent && dsl_key_eq(a->offset, b->offset) &&
         dsl_key_eq(a->size, b->size);
}

static uint32_t find_extent(struct fe_file *f, struct dsl_extent e) {
  for (uint32_t i = 1; i < f->extents.n; i++)
    if (same_extent(&f->extents.at[i], &e))
      return i;
  VEC_PUSH(fe_trace_arena(f->fe), &f->extents, e);
  return f->extents.n - 1;
}

/* ---- making views ---- */

struct dsl_view *dsl_arg_view(struct fe_file *f, uint32_t arg, struct ir_val v) {
  const struct ir_arg *a = &f->m->args.at[arg];
  struct dsl_view *w = ARENA_NEW(fe_trace_arena(f->fe), struct dsl_view);
  w->h.kind = FE_DEV_OBJECT;
  w->arg = arg;
  w->t = ir_type_of(f->m, v);
  w->v = v;
  w->name = ir_sym(f->m, a->name);
  for (uint32_t d = 0; d < a->rank; d++)
    w->extent[d] = find_extent(f, (struct dsl_extent){.kind = DSL_EXTENT_DIM, .dim = a->dim[d]});
  return w;
}

void dsl_push_view(struct fe_file *f, struct dsl_view *v) {
  if (v)
    lua_pushlightuserdata(fe_lua(f->fe), v);
  else
    fe_push_unknown(f->fe);
}

/* A view made of another by an op with these operands. */
static struct dsl_view *derive(struct fe_file *f, struct dsl_view *from, const char *method,
                               enum ir_opcode op, struct ir_type t, uint32_t n,
                               const struct ir_val *more) {
  struct arena *a = fe_trace_arena(f->fe);
  struct dsl_view *w = arena_copy(a, from, sizeof *from);
  struct ir_val in[1 + 2 * IR_MAX_RANK] = {from->v};
  for (uint32_t i = 0; i < n; i++)
    in[1 + i] = more[i];
  w->h.flags = 0;
  w->h.region = fe_value_region(f->fe);
  w->made = fe_where(f->fe);
  w->t = t;
  w->v = dsl_build1(f, op, t, 1 + n, in);
  if (strlen(from->name) > MAX_NAME)
    w->name = arena_printf(a, "a view of %s", ir_sym(f->m, f->m->args.at[from->arg].name));
  else
    w->name = arena_printf(a, "%s:%s(%s)", from->name, method, str_eq(method, "T") ? "" : "...");
  return w;
}

static void set_attr(struct fe_file *f, const struct dsl_view *v, struct ir_attr a) {
  ir_set_attr(f->m, ir_value_at(f->m, v->v)->def, a);
}

struct dsl_view *dsl_view_at(struct fe_file *f, struct dsl_view *v, struct dsl_val *index) {
  struct ir_type t = v->t;
  t.rank--;
  for (uint32_t d = 0; d <= t.rank; d++)
    t.dim[d] = d < t.rank ? t.dim[d + 1] : 0;
  struct dsl_view *w = derive(f, v, "at", IR_VIEW_AT, t, 1, &index->v);
  set_attr(f, w, (struct ir_attr){.key = IR_ATTR_axis});
  for (uint32_t d = 0; d < t.rank; d++) {
    w->extent[d] = v->extent[d + 1];
    w->may_miss[d] = v->may_miss[d + 1];
  }
  return w;
}

/* A size that the IR may state: it is a constant there, not only known to be one number. */
static int64_t static_size(struct fe_file *f, const struct dsl_val *size) {
  struct ir_op def = ir_value_at(f->m, size->v)->def;
  return ir_op_at(f->m, def)->opcode == IR_CONST && size->lo >= 0 ? size->lo : IR_DYN;
}

/* Is every element of the slice an element of the view, whatever the arguments? */
static bool stays_inside(const struct dsl_view *v, uint32_t d, const struct dsl_val *offset,
                         const struct dsl_val *size) {
  int64_t end;
  return !v->may_miss[d] && v->t.dim[d] != IR_DYN && offset->has_range && offset->lo >= 0 &&
         size->has_range && !__builtin_add_overflow(offset->hi, size->hi, &end) &&
         end <= v->t.dim[d];
}

struct dsl_view *dsl_view_slice(struct fe_file *f, struct dsl_view *v,
                                struct dsl_val *const *offset, struct dsl_val *const *size) {
  struct ir_val in[2 * IR_MAX_RANK] = {{0}};
  struct ir_type t = v->t;
  for (uint32_t d = 0; d < t.rank; d++) {
    in[d] = offset[d]->v;
    in[t.rank + d] = size[d]->v;
    t.dim[d] = static_size(f, size[d]);
  }
  struct dsl_view *w = derive(f, v, "slice", IR_VIEW_SLICE, t, 2u * t.rank, in);
  for (uint32_t d = 0; d < t.rank; d++) {
    w->extent[d] = find_extent(f, (struct dsl_extent){.kind = DSL_EXTENT_SLICE,
                                                      .parent = v->extent[d],
                                                      .offset = dsl_key_of(f, offset[d]),
                                                      .size = dsl_key_of(f, size[d])});
    w->may_miss[d] = !stays_inside(v, d, offset[d], size[d]);
  }
  return w;
}

struct dsl_view *dsl_view_permute(struct fe_file *f, struct dsl_view *v, const char *what,
                                  const int64_t *perm) {
  struct ir_type t = v->t;
  for (uint32_t d = 0; d < t.rank; d++)
    t.dim[d] = v->t.dim[perm[d]];
  struct dsl_view *w = derive(f, v, what, IR_VIEW_TRANSPOSE, t, 0, NULL);
  set_attr(f, w, (struct ir_attr){.key = IR_ATTR_perm, .ints = perm, .n_ints = t.rank});
  for (uint32_t d = 0; d < t.rank; d++) {
    w->extent[d] = v->extent[perm[d]];
    w->may_miss[d] = v->may_miss[perm[d]];
  }
  return w;
}

struct dsl_view *dsl_view_every(struct fe_file *f, struct dsl_view *v, uint32_t axis, int64_t n) {
  struct ir_type t = v->t;
  if (t.dim[axis] != IR_DYN && __builtin_mul_overflow(t.dim[axis], n, &t.dim[axis]))
    t.dim[axis] = IR_DYN;
  struct dsl_view *w = derive(f, v, "every", IR_VIEW_EVERY, t, 0, NULL);
  set_attr(f, w, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  set_attr(f, w, (struct ir_attr){.key = IR_ATTR_count, .i = n});
  w->repeats = true;
  w->extent[axis] = find_extent(f, (struct dsl_extent){.kind = DSL_EXTENT_EVERY,
                                                       .parent = v->extent[axis],
                                                       .size = {.is_const = true, .n = n}});
  return w;
}

struct dsl_view *dsl_view_reshape(struct fe_file *f, struct dsl_view *v, uint32_t rank,
                                  struct dsl_val *const *size) {
  struct ir_val in[IR_MAX_RANK] = {{0}};
  struct ir_type t = {.kind = IR_VIEW, .dtype = v->t.dtype, .rank = (uint8_t)rank};
  bool misses = false;
  for (uint32_t d = 0; d < rank; d++) {
    in[d] = size[d]->v;
    t.dim[d] = static_size(f, size[d]);
  }
  int64_t before = ir_elems(v->t), after = ir_elems(t);
  if (before != IR_DYN && after != IR_DYN && before != after) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "a reshape of `%s` to %s: %" PRId64 " elements cannot become %" PRId64, v->name,
                  dsl_shape_text(f, t), before, after);
    return NULL;
  }
  struct dsl_view *w = derive(f, v, "reshape", IR_VIEW_RESHAPE, t, rank, in);
  for (uint32_t d = 0; d < v->t.rank; d++)
    misses |= v->may_miss[d];
  for (uint32_t d = 0; d < rank; d++) {
    w->extent[d] = find_extent(f, (struct dsl_extent){.kind = DSL_EXTENT_OTHER});
    w->may_miss[d] = misses;
  }
  return w;
}

struct dsl_val *dsl_view_size(struct fe_file *f, struct dsl_view *v, uint32_t axis) {
  const struct dsl_extent *e = &f->extents.at[v->extent[axis]];
  struct ir_type t = ir_scalar(DT_INDEX);
  if (v->t.dim[axis] != IR_DYN)
    return dsl_const_int(f, DT_INDEX, v->t.dim[axis]);
  const struct expr_node *n = expr_at(&f->m->exprs, e->dim);
  for (uint32_t j = 0; e->kind == DSL_EXTENT_DIM && j < f->m->dims.n; j++)
    if (n->op == EXPR_SYM && n->sym.id == f->m->dims.at[j].id)
      return dsl_new_val(f, t, f->dim_vals[j]);
  struct ir_op o = dsl_build(f, IR_DIM, 1, &v->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  return dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
}
