/* Methods of tensors and views: loads, stores, and views of them. */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <stdio.h>

static struct dsl_view *self_view(lua_State *L, struct fe_file *f, const char *what) {
  struct fe_dev *h = fe_to_dev(L, 1);
  if (h && h->kind == FE_DEV_OBJECT) {
    struct dsl_view *v = (struct dsl_view *)h;
    return fe_check_open(f->fe, h, v->made) ? v : NULL;
  }
  if (!fe_is_unknown(h))
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes a tensor, got %s; call it as t:%s(...)", what,
                  dsl_describe(f, 1), what);
  return NULL;
}

static const char *plural(const char *list) {
  return str_eq(list, "index") ? "indices" : str_eq(list, "offset") ? "offsets" : "sizes";
}

/* The list at idx must have one entry per dim of the tensor. */
static bool check_list(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                       const char *what, const char *list) {
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  const char *name = v->name;
  uint32_t rank = v->t.rank;
  const char *entries = rank == 1 ? list : plural(list);
  if (lua_type(L, idx) != LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s of `%s` needs a list of %" PRIu32 " %s, got %s", what,
                  name, rank, entries, dsl_describe(f, idx));
    return false;
  }
  size_t n = lua_rawlen(L, idx);
  if (n != rank) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "%s of `%s` needs %" PRIu32 " %s, got %zu", what,
                  name, rank, entries, n);
    return false;
  }
  return true;
}

/* The index scalar at a stack index; list, d: which of what it is, for messages. */
static struct dsl_val *read_index(struct fe_file *f, int idx, const char *what, const char *list,
                                  uint32_t d) {
  struct dsl_opnd o;
  char name[64];
  snprintf(name, sizeof name, "%s %" PRIu32 " of %s", list, d, what);
  return dsl_opnd_at(f, idx, name, &o) ? dsl_as_index(f, &o, name) : NULL;
}

/* A list of index scalars, one per dim. */
static bool read_list(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                      const char *what, const char *list, struct dsl_val *out[IR_MAX_RANK]) {
  if (!check_list(L, f, v, idx, what, list))
    return false;
  bool ok = true;
  for (uint32_t d = 0; d < v->t.rank; d++) {
    lua_rawgeti(L, idx, (lua_Integer)d + 1);
    int at = lua_gettop(L);
    fe_check_defined(f->fe, at);
    out[d] = read_index(f, at, what, list, d);
    ok &= out[d] != NULL;
    lua_settop(L, at - 1);
  }
  return ok;
}

static bool read_sizes(lua_State *L, struct fe_file *f, const struct dsl_view *v, int idx,
                       struct ir_type *t) {
  if (!check_list(L, f, v, idx, "tile", "size"))
    return false;
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  if (!dsl_sizes_at(f, idx, idx, "tile", &rank, dim))
    return false;
  *t = ir_tile((enum dtype)v->t.dtype, rank, dim);
  return true;
}

/* {pad = x} */
static bool read_options(lua_State *L, struct fe_file *f, int idx, const char *what, bool *has_pad,
                         struct dsl_opnd *pad) {
  *has_pad = false;
  if (lua_isnoneornil(L, idx))
    return true;
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  if (lua_type(L, idx) != LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "options of %s are a table {pad = x}, got %s", what,
                  dsl_describe(f, idx));
    return false;
  }
  int top = lua_gettop(L);
  bool ok = true;
  lua_pushnil(L);
  while (lua_next(L, idx)) {
    int at = lua_gettop(L);
    fe_check_defined(f->fe, at);
    if (lua_type(L, at - 1) != LUA_TSTRING || !str_eq(lua_tostring(L, at - 1), "pad")) {
      fe_soft_error(f->fe, DIAG_OPERAND, "%s has no option %s; it has pad", what,
                    lua_type(L, at - 1) == LUA_TSTRING ? lua_tostring(L, at - 1)
                                                       : dsl_describe(f, at - 1));
      lua_settop(L, top);
      return false;
    } else if (lua_type(L, at) != LUA_TNUMBER && lua_type(L, at) != LUA_TBOOLEAN) {
      if (!fe_is_unknown(fe_to_dev(L, at)))
        fe_soft_error(f->fe, DIAG_OPERAND, "pad is a plain number, got %s", dsl_describe(f, at));
      ok = false;
    } else {
      *has_pad = true;
      ok &= dsl_opnd_at(f, at, "pad", pad);
    }
    lua_settop(L, at - 1);
  }
  lua_settop(L, top);
  return ok;
}

int dsl_fn_tensor_tile(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "tile");
  lua_settop(L, 4);
  struct dsl_val *offset[IR_MAX_RANK];
  struct ir_type t;
  struct dsl_opnd pad = {0};
  bool has_pad;
  bool ok = v && read_list(L, f, v, 2, "tile", "offset", offset);
  ok = v && read_sizes(L, f, v, 3, &t) && ok;
  ok = read_options(L, f, 4, "tile", &has_pad, &pad) && ok;
  dsl_push(f, ok ? dsl_load(f, v, offset, t, has_pad, &pad) : NULL);
  return 1;
}

int dsl_fn_tensor_store(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "store");
  lua_settop(L, 3);
  struct dsl_val *offset[IR_MAX_RANK];
  bool ok = v && read_list(L, f, v, 2, "store", "offset", offset);
  struct dsl_opnd o;
  if (!v || !dsl_opnd_at(f, 3, "store", &o) || !ok)
    return 0;
  struct dsl_val *x = o.kind == DSL_DEV ? o.dev : dsl_const(f, f->m->args.at[v->arg].dtype, &o);
  if (x)
    dsl_store(f, v, offset, x);
  return 0;
}

/* ---- views of views ---- */

int dsl_fn_tensor_at(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "at");
  int n = lua_gettop(L) - 1;
  struct dsl_val *index[IR_MAX_RANK] = {0};
  bool ok = v != NULL;
  if (v && (n < 1 || n > v->t.rank)) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "at of `%s` takes 1 to %d indices, got %d", v->name,
                  v->t.rank, n);
    ok = false;
  }
  for (int d = 0; ok && d < n; d++) {
    index[d] = read_index(f, d + 2, "at", "index", (uint32_t)d);
    ok &= index[d] != NULL;
  }
  if (!ok) {
    dsl_push(f, NULL);
  } else if (n == v->t.rank) {
    dsl_push(f, dsl_load_scalar(f, v, index));
  } else {
    for (int d = 0; d < n; d++)
      v = dsl_view_at(f, v, index[d]);
    dsl_push_view(f, v);
  }
  return 1;
}

int dsl_fn_tensor_slice(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "slice");
  lua_settop(L, 3);
  struct dsl_val *offset[IR_MAX_RANK], *size[IR_MAX_RANK];
  bool ok = v && read_list(L, f, v, 2, "slice", "offset", offset);
  ok = v && read_list(L, f, v, 3, "slice", "size", size) && ok;
  for (uint32_t d = 0; ok && d < v->t.rank; d++)
    if (size[d]->is_const && size[d]->lo < 0) {
      fe_soft_error(f->fe, DIAG_OPERAND, "size %" PRIu32 " of slice is %" PRId64 "; the least is 0",
                    d, size[d]->lo);
      ok = false;
    }
  dsl_push_view(f, ok ? dsl_view_slice(f, v, offset, size) : NULL);
  return 1;
}

int dsl_fn_tensor_T(lua_State *L) {
  static const int64_t perm[2] = {1, 0};
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "T");
  if (v && v->t.rank != 2) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  ":T() takes a view of rank 2, `%s` has rank %d; permute its dims with "
                  ":permute(...)",
                  v->name, v->t.rank);
    v = NULL;
  }
  dsl_push_view(f, v ? dsl_view_permute(f, v, "T", perm) : NULL);
  return 1;
}

/* The values of a call from argument `first` on, or of the one list there, lie on the stack from
 * the index returned on; *n: how many. */
static int spread_list(lua_State *L, int first, int *n) {
  int top = lua_gettop(L);
  if (top != first || lua_type(L, first) != LUA_TTABLE) {
    *n = top - first + 1;
    return first;
  }
  *n = (int)lua_rawlen(L, first);
  for (int i = 1; i <= *n && i <= IR_MAX_RANK + 1; i++)
    lua_rawgeti(L, first, i);
  return top + 1;
}

int dsl_fn_tensor_permute(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "permute");
  int n, first = spread_list(L, 2, &n);
  int64_t perm[IR_MAX_RANK] = {0};
  unsigned seen = 0;
  if (!v) {
    dsl_push(f, NULL);
    return 1;
  }
  bool ok = n == v->t.rank;
  for (int d = 0; ok && d < n; d++) {
    int is_int = 0;
    perm[d] = lua_type(L, first + d) == LUA_TNUMBER ? lua_tointegerx(L, first + d, &is_int) : 0;
    ok = is_int && perm[d] >= 0 && perm[d] < n && !(seen >> perm[d] & 1);
    if (ok)
      seen |= 1u << perm[d];
  }
  if (!ok)
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                  "permute of `%s` names each of its dims 0 to %d once, as plain numbers", v->name,
                  v->t.rank - 1);
  dsl_push_view(f, ok ? dsl_view_permute(f, v, "permute", perm) : NULL);
  return 1;
}

int dsl_fn_tensor_every(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "every");
  lua_settop(L, 3);
  int64_t n = 0;
  int axis = v ? dsl_axis_at(f, 2, "every", v->t.rank) : -1;
  bool ok = v && dsl_size_at(f, 3, "the count of every", &n) && axis >= 0;
  if (ok && n > FE_MAX_ELEMS) {
    fe_soft_error(f->fe, DIAG_OPERAND, "the count of every is %" PRId64 ", more than %" PRId64, n,
                  FE_MAX_ELEMS);
    ok = false;
  }
  dsl_push_view(f, ok ? dsl_view_every(f, v, (uint32_t)axis, n) : NULL);
  return 1;
}

int dsl_fn_tensor_reshape(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "reshape");
  int n, first = spread_list(L, 2, &n);
  struct dsl_val *size[IR_MAX_RANK];
  bool ok = v != NULL;
  if (v && (n < 1 || n > IR_MAX_RANK)) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "reshape of `%s` takes 1 to %d sizes, got %d",
                  v->name, IR_MAX_RANK, n);
    ok = false;
  }
  for (int d = 0; ok && d < n; d++) {
    fe_check_defined(f->fe, first + d);
    size[d] = read_index(f, first + d, "reshape", "size", (uint32_t)d);
    ok &= size[d] != NULL;
    if (ok && size[d]->is_const && size[d]->lo < 0) {
      fe_soft_error(f->fe, DIAG_OPERAND, "size %d of reshape is %" PRId64 "; the least is 0", d,
                    size[d]->lo);
      ok = false;
    }
  }
  dsl_push_view(f, ok ? dsl_view_reshape(f, v, (uint32_t)n, size) : NULL);
  return 1;
}

int dsl_fn_tensor_size(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "size");
  lua_settop(L, 2);
  int axis = v ? dsl_axis_at(f, 2, "size", v->t.rank) : -1;
  dsl_push(f, axis >= 0 ? dsl_view_size(f, v, (uint32_t)axis) : NULL);
  return 1;
}

/* ---- elements at indices ---- */

/* An integer scalar or tile as index. */
static struct dsl_val *read_indices(struct fe_file *f, int idx, const char *what, uint32_t d) {
  struct dsl_opnd o;
  char name[64];
  snprintf(name, sizeof name, "index %" PRIu32 " of %s", d, what);
  if (!dsl_opnd_at(f, idx, name, &o))
    return NULL;
  if (o.kind != DSL_DEV || o.dev->t.kind == IR_SCALAR)
    return dsl_as_index(f, &o, name);
  if (!dtype_is_int((enum dtype)o.dev->t.dtype)) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s is %s, not integers", name,
                  dsl_describe_type(f, o.dev->t));
    return NULL;
  }
  return dsl_cast(f, o.dev, DT_INDEX);
}

static bool read_index_list(lua_State *L, struct fe_file *f, const struct dsl_view *v,
                            const char *what, struct dsl_val *out[IR_MAX_RANK]) {
  if (!check_list(L, f, v, 2, what, "index"))
    return false;
  bool ok = true;
  for (uint32_t d = 0; d < v->t.rank; d++) {
    lua_rawgeti(L, 2, (lua_Integer)d + 1);
    int at = lua_gettop(L);
    fe_check_defined(f->fe, at);
    out[d] = read_indices(f, at, what, d);
    ok &= out[d] != NULL;
    lua_settop(L, at - 1);
  }
  return ok;
}

int dsl_fn_tensor_gather(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "gather");
  lua_settop(L, 3);
  struct dsl_val *index[IR_MAX_RANK];
  struct dsl_opnd pad = {0};
  bool has_pad, ok = v && read_index_list(L, f, v, "gather", index);
  ok = read_options(L, f, 3, "gather", &has_pad, &pad) && ok;
  dsl_push(f, ok ? dsl_gather(f, v, index, has_pad, &pad) : NULL);
  return 1;
}

/* The indices and the value of a call; numbers take the view's dtype. NULL after an error. */
static struct dsl_val *read_written(lua_State *L, struct fe_file *f, struct dsl_view *v,
                                    const char *what, struct dsl_val *index[IR_MAX_RANK]) {
  lua_settop(L, 3);
  bool ok = v && read_index_list(L, f, v, what, index);
  struct dsl_opnd o;
  if (!v || !dsl_opnd_at(f, 3, what, &o) || !ok)
    return NULL;
  return o.kind == DSL_DEV ? o.dev : dsl_const(f, (enum dtype)v->t.dtype, &o);
}

int dsl_fn_tensor_scatter(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, "scatter");
  struct dsl_val *index[IR_MAX_RANK], *x = read_written(L, f, v, "scatter", index);
  if (x)
    dsl_scatter(f, v, index, x);
  return 0;
}

static int atomic(lua_State *L, const char *what, const char *kind) {
  struct fe_file *f = dsl_of(L);
  struct dsl_view *v = self_view(L, f, what);
  struct dsl_val *index[IR_MAX_RANK], *x = read_written(L, f, v, what, index);
  dsl_push(f, x ? dsl_atomic(f, v, what, kind, index, x) : NULL);
  return 1;
}

#define ATOMIC(kind)                                                                               \
  int dsl_fn_tensor_atomic_##kind(lua_State *L) {                                                  \
    return atomic(L, "atomic_" #kind, #kind);                                                      \
  }
ATOMIC(add)
ATOMIC(min)
ATOMIC(max)
ATOMIC(and)
ATOMIC(or)
ATOMIC(xor)
ATOMIC(exchange)
