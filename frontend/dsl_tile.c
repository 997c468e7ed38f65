/* Functions of kernel Lua that make and reduce tiles: zeros, full, iota, range, dot, cast, where,
 * sum and the row and column reductions. In an oracle the same names work on host arrays. */
#include "base/num.h"
#include "frontend/dsl.h"
#include "ir/mma.h"

#include <inttypes.h>

static bool need_body(struct fe_file *f, const char *what) {
  if (f->mode == DSL_BODY)
    return true;
  fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                "%s is not available here: tiles live in a kernel's body", what);
  return false;
}

static int fill_host(lua_State *L, struct fe_file *f, const char *what, double x, int first) {
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  if (!dsl_sizes_at(f, first, lua_gettop(L), what, &rank, dim))
    return dsl_push(f, NULL);
  struct dsl_array *a = dsl_new_array(L, f, rank, dim);
  int64_t n = dsl_array_count(a);
  for (int64_t i = 0; i < n; i++)
    a->data[i] = x;
  return 1;
}

/* full(dtype, value, sizes...); zeros(dtype, sizes...) */
static int fill(lua_State *L, const char *what, int first) {
  struct fe_file *f = dsl_of(L);
  enum dtype t;
  if (!dsl_dtype_at(f, 1, what, &t))
    return dsl_push(f, NULL);
  if (f->mode == DSL_HOST)
    return fill_host(L, f, what, first == 2 ? 0 : dsl_number_at(f, 2, "the value of full"), first);
  if (!need_body(f, what))
    return dsl_push(f, NULL);
  struct dsl_opnd x = {.kind = t == DT_BOOL ? DSL_BOOL : DSL_INT};
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  if (lua_gettop(L) < first) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s needs sizes: %s", what,
                  first == 2 ? "zeros(f32, 64, 64)" : "full(f32, 1, 64, 64)");
    return dsl_push(f, NULL);
  }
  bool ok = first == 2 || dsl_opnd_at(f, 2, what, &x);
  ok = dsl_sizes_at(f, first, lua_gettop(L), what, &rank, dim) && ok;
  if (!ok)
    return dsl_push(f, NULL);
  struct dsl_val *v;
  if (x.kind == DSL_DEV) {
    v = x.dev;
    if (v->t.kind != IR_SCALAR || v->t.dtype != t) {
      fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                    "full of %s takes a number or a scalar of %s, got %s", dtype_name(t),
                    dtype_name(t), dsl_describe_type(f, v->t));
      return dsl_push(f, NULL);
    }
  } else {
    v = dsl_const(f, t, &x);
  }
  return dsl_push(f, v ? dsl_grow(f, v, ir_tile(t, rank, dim)) : NULL);
}

int dsl_fn_global_zeros(lua_State *L) {
  return fill(L, "zeros", 2);
}

int dsl_fn_global_full(lua_State *L) {
  return fill(L, "full", 3);
}

int dsl_fn_global_iota(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  int axis = dsl_axis_at(f, 1, "iota", 2);
  int64_t n;
  if (axis < 0 || !dsl_size_at(f, 2, "size of iota", &n))
    return dsl_push(f, NULL);
  if (f->mode == DSL_HOST) {
    const int64_t dim[2] = {axis ? 1 : n, axis ? n : 1};
    struct dsl_array *a = dsl_new_array(L, f, 2, dim);
    for (int64_t i = 0; i < n; i++)
      a->data[i] = (double)i;
    return 1;
  }
  if (n > FE_MAX_ELEMS) {
    fe_soft_error(f->fe, DIAG_LIMIT, "iota of %" PRId64 " elements; %" PRId64 " are the most", n,
                  (int64_t)FE_MAX_ELEMS);
    return dsl_push(f, NULL);
  }
  return dsl_push(f, dsl_iota(f, (uint32_t)axis, n));
}

/* ---- range ---- */

static bool range_bound(struct fe_file *f, int idx, struct dsl_opnd *out) {
  lua_State *L = fe_lua(f->fe);
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  int is_num = 0;
  if (lua_type(L, idx) == LUA_TNUMBER) {
    *out = (struct dsl_opnd){.kind = DSL_INT, .i = lua_tointegerx(L, idx, &is_num)};
    out->f = (double)out->i;
    if (is_num)
      return true;
  } else if (fe_is_dev(L, idx)) {
    if (!dsl_opnd_at(f, idx, "range", out))
      return false;
    struct dsl_val *v = dsl_as_index(f, out, "range bound");
    *out = dsl_opnd_dev(v);
    return v != NULL;
  }
  fe_soft_error(f->fe, DIAG_OPERAND, "range bound is %s, not an integer scalar",
                dsl_describe(f, idx));
  return false;
}

/* {merge = function(p, q) ... end}, the last argument. */
static bool range_options(struct fe_file *f, int idx, struct dsl_range *r) {
  lua_State *L = fe_lua(f->fe);
  bool ok = lua_getfield(L, idx, "merge") == LUA_TFUNCTION;
  lua_pop(L, 1);
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
    ok &= lua_type(L, -2) == LUA_TSTRING && str_eq(lua_tostring(L, -2), "merge") &&
          lua_type(L, -1) == LUA_TFUNCTION;
  if (!ok) {
    fe_soft_error(f->fe, DIAG_OPERAND,
                  "options of range are {merge = function(p, q) return {name = value, ...} end}");
    return false;
  }
  lua_getfield(L, idx, "merge");
  r->has_merge = lua_type(L, -1) == LUA_TFUNCTION;
  lua_rawsetp(L, LUA_REGISTRYINDEX, r);
  return true;
}

int dsl_fn_global_range(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  struct dsl_range *r = ARENA_NEW(fe_trace_arena(f->fe), struct dsl_range);
  r->h.kind = FE_DEV_RANGE;
  r->h.region = fe_value_region(f->fe);
  r->made = fe_where(f->fe);
  r->step = 1;
  if (!need_body(f, "range"))
    return dsl_push(f, NULL);
  bool ok = true;
  if (n > 2 && lua_type(L, n) == LUA_TTABLE)
    ok = range_options(f, n--, r);
  if (n == 4 && lua_isnil(L, n))
    n--;
  if (n < 2 || n > 3) {
    fe_soft_error(f->fe, DIAG_OPERAND, "range takes (lo, hi) or (lo, hi, step), got %d value%s", n,
                  n == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  ok = range_bound(f, 1, &r->lo) && ok;
  ok = range_bound(f, 2, &r->hi) && ok;
  if (n == 3)
    ok = dsl_size_at(f, 3, "range step", &r->step) && ok;
  if (!ok)
    return dsl_push(f, NULL);
  lua_pushlightuserdata(L, r);
  return 1;
}

/* ---- dot, cast, where ---- */

/* dot(a, b [, acc] [, {prec = "tf32"}]) */
int dsl_fn_global_dot(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  const char *prec = NULL;
  bool ok = true;
  if (n == 4 && lua_isnil(L, n)) /* options that were left out */
    n--;
  if (n > 2 && lua_type(L, n) == LUA_TTABLE) {
    lua_getfield(L, n, "prec");
    prec = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    bool more = false;
    for (lua_pushnil(L); lua_next(L, n); lua_pop(L, 1))
      more |= lua_type(L, -2) != LUA_TSTRING || !str_eq(lua_tostring(L, -2), "prec");
    if (more || !prec || ir_prec_find(prec) == IR_PREC_COUNT) {
      fe_soft_error(f->fe, DIAG_OPERAND, "the option of dot is {prec = W}, W one of %s",
                    ir_prec_words);
      ok = false;
    } else if (str_eq(prec, "ieee")) {
      prec = NULL;
    }
    n--;
  }
  if (n < 2 || n > 3) {
    fe_soft_error(f->fe, DIAG_OPERAND,
                  "dot takes two tiles and perhaps an accumulator, got %d value%s", n,
                  n == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  struct dsl_val *v[3] = {NULL, NULL, NULL};
  for (int i = 0; i < n; i++) {
    v[i] = dsl_val_at(f, i + 1, "dot");
    ok &= v[i] != NULL;
  }
  return dsl_push(f, ok ? dsl_dot(f, v[0], v[1], v[2], prec) : NULL);
}

static double round_elem(const double *x) {
  return num_round((enum dtype)(int)x[1], x[0]);
}

int dsl_fn_global_cast(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  enum dtype t;
  if (!dsl_dtype_at(f, 2, "cast", &t))
    return dsl_push(f, NULL);
  if (dsl_to_array(L, 1) || (f->mode != DSL_BODY && lua_type(L, 1) == LUA_TNUMBER)) {
    lua_pushinteger(L, (lua_Integer)t);
    lua_replace(L, 2);
    dsl_array_elem(L, f, "cast", round_elem, 1, 2);
    return 1;
  }
  struct dsl_opnd o;
  if (!dsl_opnd_at(f, 1, "cast", &o))
    return dsl_push(f, NULL);
  return dsl_push(f, o.kind == DSL_DEV ? dsl_cast(f, o.dev, t) : dsl_const(f, t, &o));
}

static double select_elem(const double *x) {
  return x[0] != 0 ? x[1] : x[2];
}

int dsl_fn_global_where(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  if (lua_gettop(L) != 3) {
    fe_soft_error(f->fe, DIAG_OPERAND, "where takes (mask, x, y), got %d value%s", lua_gettop(L),
                  lua_gettop(L) == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  if (dsl_to_array(L, 1)) {
    dsl_array_elem(L, f, "where", select_elem, 1, 3);
    return 1;
  }
  if (!fe_is_dev(L, 1)) {
    /* A plain condition chooses while tracing, as `if` does. That 0 and the like are true, as in
     * Lua, is rarely what is meant. */
    int type = lua_type(L, 1);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN) {
      fe_soft_error(f->fe, DIAG_OPERAND,
                    "where takes a mask, or true, false or nil to choose while tracing; got %s",
                    dsl_describe(f, 1));
      return dsl_push(f, NULL);
    }
    lua_pushvalue(L, lua_toboolean(L, 1) ? 2 : 3);
    return 1;
  }
  struct dsl_opnd m, x, y;
  bool ok = dsl_opnd_at(f, 1, "where", &m);
  ok = dsl_opnd_at(f, 2, "where", &x) && ok;
  ok = dsl_opnd_at(f, 3, "where", &y) && ok;
  return dsl_push(f, ok ? dsl_select(f, "where", &m, &x, &y) : NULL);
}

/* ---- reductions ---- */

static const enum ir_opcode fold_op[] = {IR_REDUCE_SUM, IR_REDUCE_MAX, IR_REDUCE_MIN};

/* axis: 0, 1; -1: argument 2, or all where there is none. */
static int reduce(lua_State *L, const char *what, enum dsl_fold fold, int axis) {
  struct fe_file *f = dsl_of(L);
  int want = axis < 0 ? 2 : 1, n = lua_gettop(L);
  if (n < 1 || n > want) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes (x%s), got %d value%s", what,
                  want == 2 ? ", axis" : "", n, n == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  struct dsl_array *a = dsl_to_array(L, 1);
  struct dsl_val *v = a ? NULL : dsl_val_at(f, 1, what);
  if (!a && !v)
    return dsl_push(f, NULL);
  uint32_t rank = a ? a->rank : v->t.rank;
  if (axis >= 0 && rank != 2) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "%s takes rank 2, got %s; use sum, amax, amin(x, axis)", what,
                  a ? "an array of another rank" : dsl_describe_type(f, v->t));
    return dsl_push(f, NULL);
  }
  bool all = axis < 0 && n < 2;
  if (axis < 0 && !all) {
    axis = dsl_axis_at(f, 2, what, rank);
    if (axis < 0)
      return dsl_push(f, NULL);
  }
  if (a) {
    dsl_array_reduce(L, f, fold, 1, all ? -1 : axis);
    return 1;
  }
  return dsl_push(f, all ? dsl_reduce_all(f, fold_op[fold], what, v)
                         : dsl_reduce(f, fold_op[fold], what, v, (uint32_t)axis));
}

#define REDUCTION(name, fold, axis)                                                                \
  int dsl_fn_global_##name(lua_State *L) {                                                         \
    return reduce(L, #name, fold, axis);                                                           \
  }
REDUCTION(rowsum, DSL_SUM, 1)
REDUCTION(rowmax, DSL_MAX, 1)
REDUCTION(rowmin, DSL_MIN, 1)
REDUCTION(colsum, DSL_SUM, 0)
REDUCTION(colmax, DSL_MAX, 0)
REDUCTION(colmin, DSL_MIN, 0)
REDUCTION(sum, DSL_SUM, -1)
REDUCTION(amax, DSL_MAX, -1)
REDUCTION(amin, DSL_MIN, -1)
#undef REDUCTION
