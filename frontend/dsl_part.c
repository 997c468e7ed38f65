/* Functions of kernel Lua that cut, join and permute tiles or read their bits: x:slice, cat,
 * x:permute, bitcast. In an oracle cat works on host arrays; their slice is in dsl_array.c. */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <string.h>

/* The plain integers given as the stack's values 2, 3, ..., or as one list there; exactly n. */
static bool ints_at(lua_State *L, struct fe_file *f, int first, int last, const char *what,
                    const char *item, uint32_t n, int64_t *out) {
  bool list = first == last && lua_type(L, first) == LUA_TTABLE, ok = true;
  int64_t got = list ? (int64_t)lua_rawlen(L, first) : last - first + 1;
  for (int i = first; i <= last; i++)
    if (fe_is_unknown(fe_to_dev(L, i)))
      return false;
  if (got != n) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "%s needs %" PRIu32 " %s, got %" PRId64, what, n,
                  n == 1                 ? item
                  : str_eq(item, "axis") ? "axes"
                                         : arena_printf(fe_trace_arena(f->fe), "%ss", item),
                  got);
    return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (list)
      lua_rawgeti(L, first, (lua_Integer)i + 1);
    else
      lua_pushvalue(L, first + (int)i);
    int at = lua_gettop(L), is_int = 0;
    fe_check_defined(f->fe, at);
    out[i] = lua_type(L, at) == LUA_TNUMBER ? lua_tointegerx(L, at, &is_int) : 0;
    if (!is_int && !fe_is_unknown(fe_to_dev(L, at)))
      fe_soft_error(f->fe, DIAG_STAGE_OPERAND, "%s %" PRIu32 " of %s is %s, not a whole Lua number",
                    item, i, what, dsl_describe(f, at));
    ok = ok && is_int;
    lua_settop(L, at - 1);
  }
  return ok;
}

int dsl_fn_tile_permute(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_val *v = dsl_self_tile(f, ":permute(...)");
  int64_t perm[IR_MAX_RANK];
  if (!v || !ints_at(L, f, 2, lua_gettop(L), ":permute(...)", "axis", v->t.rank, perm))
    return dsl_push(f, NULL);
  unsigned seen = 0;
  for (uint32_t d = 0; d < v->t.rank; d++)
    if (perm[d] >= 0 && perm[d] < v->t.rank)
      seen |= 1u << perm[d];
  if (seen != (1u << v->t.rank) - 1) {
    fe_soft_error(f->fe, DIAG_OPERAND,
                  ":permute of %s names each of the axes 0 to %d once, in their new order",
                  dsl_describe_type(f, v->t), v->t.rank - 1);
    return dsl_push(f, NULL);
  }
  return dsl_push(f, dsl_permute(f, v, perm));
}

/* x:slice(offsets, sizes) */
int dsl_fn_tile_slice(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_val *v = dsl_self_tile(f, ":slice(offsets, sizes)");
  lua_settop(L, 3);
  if (!v)
    return dsl_push(f, NULL);
  int64_t offset[IR_MAX_RANK], size[IR_MAX_RANK];
  bool ok = true;
  for (int i = 2; i <= 3; i++)
    if (lua_type(L, i) != LUA_TTABLE) {
      if (!fe_is_unknown(fe_to_dev(L, i)))
        fe_soft_error(f->fe, DIAG_OPERAND,
                      ":slice takes two lists, x:slice({0, 0}, {4, 8}): %s is %s",
                      i == 2 ? "offsets" : "sizes", dsl_describe(f, i));
      ok = false;
    }
  if (!ok)
    return dsl_push(f, NULL);
  ok = ints_at(L, f, 2, 2, ":slice", "offset", v->t.rank, offset);
  ok = ints_at(L, f, 3, 3, ":slice", "size", v->t.rank, size) && ok;
  for (uint32_t d = 0; ok && d < v->t.rank; d++)
    if (size[d] < 1) {
      fe_soft_error(f->fe, DIAG_OPERAND,
                    ":slice: size %" PRIu32 " is %" PRId64 "; it must be at least 1", d, size[d]);
      ok = false;
    }
  return dsl_push(f, ok ? dsl_extract(f, v, offset, size) : NULL);
}

/* ---- cat ---- */

/* The operands are at stack places 2 to n. */
static int cat_arrays(lua_State *L, struct fe_file *f, uint32_t axis, int n) {
  const struct dsl_array *first = dsl_to_array(L, 2);
  int64_t dim[IR_MAX_RANK], inner = 1, outer = 1, total = 0;
  memcpy(dim, first->dim, sizeof dim);
  for (int i = 2; i <= n; i++) {
    const struct dsl_array *a = dsl_to_array(L, i);
    bool fits = a && a->rank == first->rank;
    for (uint32_t d = 0; fits && d < a->rank; d++)
      fits = d == axis || a->dim[d] == dim[d];
    if (!fits)
      fe_error(f->fe, DIAG_SHAPE_MISMATCH,
               "cat: operand %d is %s; all are arrays of one rank, equal but along axis %" PRIu32,
               i - 1, a ? "an array of another shape" : dsl_describe(f, i), axis);
    total += a->dim[axis];
  }
  dim[axis] = total;
  for (uint32_t d = 0; d < first->rank; d++)
    if (d > axis)
      inner *= dim[d];
    else if (d < axis)
      outer *= dim[d];
  struct dsl_array *out = dsl_new_array(L, f, first->rank, dim);
  int64_t at = 0;
  for (int i = 2; i <= n; i++) {
    const struct dsl_array *a = dsl_to_array(L, i);
    struct dsl_array *copy = dsl_new_array(L, f, a->rank, a->dim);
    int64_t row = a->dim[axis] * inner;
    dsl_array_copy(a, copy->data);
    fe_charge(f->fe, (uint64_t)dsl_array_count(a) / 16 + 1);
    for (int64_t k = 0; k < outer && row; k++)
      memcpy(out->data + k * total * inner + at, copy->data + k * row,
             (size_t)row * sizeof(double));
    at += row;
    lua_pop(L, 1);
  }
  return 1;
}

/* cat(axis, x, y, ...) */
int dsl_fn_global_cat(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  if (n < 2 || lua_type(L, 1) != LUA_TNUMBER) {
    if (n < 1 || !fe_is_unknown(fe_to_dev(L, 1)))
      fe_soft_error(f->fe, DIAG_OPERAND, "cat takes (axis, x, y, ...), got %s",
                    n ? n < 2 ? "no tile" : dsl_describe(f, 1) : "nothing");
    return dsl_push(f, NULL);
  }
  const struct dsl_array *a = dsl_to_array(L, 2);
  if (f->mode == DSL_HOST && !a)
    fe_error(f->fe, DIAG_OPERAND, "cat joins arrays, got %s", dsl_describe(f, 2));
  struct dsl_val **v = ARENA_ARRAY(fe_trace_arena(f->fe), struct dsl_val *, (size_t)n);
  bool ok = true;
  for (int i = 2; i <= n && !a; i++) {
    struct dsl_val *x = v[i - 2] = dsl_val_at(f, i, "cat");
    if (x && x->t.kind != IR_TILE) {
      fe_soft_error(f->fe, DIAG_OPERAND, "cat: operand %d is %s; it joins tiles: full(dtype, x, 1)",
                    i - 1, dsl_describe_type(f, x->t));
      x = NULL;
    }
    ok = ok && x;
  }
  if (!ok)
    return dsl_push(f, NULL);
  int axis = dsl_axis_at(f, 1, "cat", a ? a->rank : v[0]->t.rank);
  if (axis < 0)
    return dsl_push(f, NULL);
  if (a)
    return cat_arrays(L, f, (uint32_t)axis, n);
  for (int i = 1; i < n - 1; i++) {
    struct ir_type t = v[i]->t;
    if (t.dtype != v[0]->t.dtype) {
      fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                    "cat of %s and %s: two dtypes never mix; cast one of them",
                    dsl_describe_type(f, v[0]->t), dsl_describe_type(f, t));
      return dsl_push(f, NULL);
    }
    t.dim[axis] = v[0]->t.dim[axis];
    if (!ir_type_eq(t, v[0]->t)) {
      fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                    "cat of %s and %s: they may differ along axis %d alone",
                    dsl_describe_type(f, v[0]->t), dsl_describe_type(f, v[i]->t), axis);
      return dsl_push(f, NULL);
    }
  }
  return dsl_push(f, dsl_concat(f, (uint32_t)axis, (uint32_t)n - 1, v));
}

/* bitcast(x, dtype) */
int dsl_fn_global_bitcast(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  enum dtype t;
  if (!dsl_dtype_at(f, 2, "bitcast", &t))
    return dsl_push(f, NULL);
  struct dsl_val *x = dsl_val_at(f, 1, "bitcast");
  return dsl_push(f, x ? dsl_bitcast(f, x, t) : NULL);
}
