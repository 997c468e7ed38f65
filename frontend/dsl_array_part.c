/* Parts and elements of host arrays: slice, at, store, every, gather, scatter. What only looks is a
 * view; what writes takes arrays of the oracle's own, never an argument's. */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <stdio.h>
#include <math.h>

/* Entry d of a list of integers. */
static int64_t list_entry(lua_State *L, int idx, uint32_t d, const char *method, const char *what) {
  int ok = 0;
  int64_t n = 0;
  if (lua_type(L, idx) == LUA_TTABLE) {
    lua_rawgeti(L, idx, (lua_Integer)d + 1);
    n = lua_tointegerx(L, -1, &ok);
    lua_pop(L, 1);
  }
  if (!ok)
    fe_error(dsl_of(L)->fe, DIAG_OPERAND, ":%s needs a list of %s, one integer per dim", method,
             what);
  return n;
}

static void check_part(struct fe_file *f, const struct dsl_array *a, const char *method, uint32_t d,
                       int64_t at, int64_t n) {
  if (at < 0 || n < 0 || n > a->dim[d] || at > a->dim[d] - n)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH,
             ":%s: %" PRId64 " elements from %" PRId64 " on are not inside dim %" PRIu32 " of %s",
             method, n, at, d, dsl_array_shape(f, a));
}

/* a:slice(offsets, sizes) */
int dsl_fn_array_slice(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "slice(offsets, sizes)");
  struct dsl_array *v = dsl_array_view(L, 1);
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t at = list_entry(L, 2, d, "slice", "offsets");
    int64_t n = list_entry(L, 3, d, "slice", "sizes");
    check_part(f, a, "slice", d, at, n);
    v->data += at * a->stride[d];
    v->dim[d] = n;
  }
  return 1;
}

/* a:at(i, j, ...): an element, or the array at the first indices */
int dsl_fn_array_at(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "at(...)");
  int n = lua_gettop(L) - 1;
  int64_t at = 0;
  if (n < 1 || n > (int)a->rank)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":at of %s takes 1 to %" PRIu32 " indices, got %d",
             dsl_array_shape(f, a), a->rank, n);
  for (int d = 0; d < n; d++) {
    char what[32];
    snprintf(what, sizeof what, "index %d of :at", d);
    int64_t i = dsl_integer_at(f, d + 2, what);
    if (i < 0 || i >= a->dim[d])
      fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":at: index %" PRId64 " is outside of dim %d of %s", i,
               d, dsl_array_shape(f, a));
    at += i * a->stride[d];
  }
  if (n == (int)a->rank) {
    lua_pushnumber(L, a->data[at]);
    return 1;
  }
  struct dsl_array *v = dsl_array_view(L, 1);
  v->rank = a->rank - (uint32_t)n;
  v->data += at;
  for (uint32_t d = 0; d < v->rank; d++) {
    v->dim[d] = a->dim[d + (uint32_t)n];
    v->stride[d] = a->stride[d + (uint32_t)n];
  }
  return 1;
}

int dsl_fn_array_size(lua_State *L) {
  struct dsl_array *a = dsl_array_self(L, "size(axis)");
  int axis = dsl_axis_at(dsl_of(L), 2, "size", a->rank);
  lua_pushinteger(L, axis < 0 ? 0 : a->dim[axis]);
  return 1;
}

/* a:every(axis, n): element x of the axis is element x // n of a's */
int dsl_fn_array_every(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "every(axis, n)");
  int axis = dsl_axis_at(f, 2, "every", a->rank);
  int64_t n, dim[IR_MAX_RANK], i[IR_MAX_RANK] = {0}, at = 0;
  if (axis < 0 || !dsl_size_at(f, 3, "the count of every", &n)) {
    lua_pushvalue(L, 1);
    return 1;
  }
  for (uint32_t d = 0; d < a->rank; d++)
    dim[d] = a->dim[d];
  if (__builtin_mul_overflow(dim[axis], n, &dim[axis]))
    dim[axis] = INT64_MAX; /* refused for its size */
  struct dsl_array *r = dsl_new_array(L, f, a->rank, dim);
  if (dsl_array_count(r) == 0)
    return 1;
  do {
    int64_t from = dsl_array_offset(a->rank, i, a->stride);
    r->data[at++] = a->data[from - (i[axis] - i[axis] / n) * a->stride[axis]];
  } while (dsl_array_next(a->rank, dim, i));
  return 1;
}

/* ---- writing ---- */

static void check_own(struct fe_file *f, const struct dsl_array *a, const char *method) {
  if (a->link || a->ended)
    fe_error(f->fe, DIAG_OPERAND,
             ":%s writes to an argument's array; make one of your own first: x + 0, zeros(...)",
             method);
}

/* The values to write at idx as dense memory of `rank` and `dim`; a number stands for all. Pushes
 * what holds them. */
static const double *dense_values(lua_State *L, struct fe_file *f, int idx, const char *method,
                                  uint32_t rank, const int64_t *dim) {
  const struct dsl_array *y = dsl_to_array(L, idx);
  bool fits = y && y->rank == rank;
  for (uint32_t d = 0; fits && d < rank; d++)
    fits = y->dim[d] == dim[d];
  if (!y && lua_type(L, idx) != LUA_TNUMBER)
    fe_error(f->fe, DIAG_OPERAND, ":%s writes an array or a number, got %s", method,
             dsl_describe(f, idx));
  struct dsl_array *r = dsl_new_array(L, f, rank, dim);
  if (y && !fits)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":%s of %s to elements of shape %s", method,
             dsl_array_shape(f, y), dsl_array_shape(f, r));
  if (y)
    dsl_array_copy(y, r->data);
  for (int64_t i = 0, n = dsl_array_count(r); !y && i < n; i++)
    r->data[i] = lua_tonumber(L, idx);
  return r->data;
}

/* a:store(offsets, y): in place; gives a */
int dsl_fn_array_store(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "store(offsets, y)");
  lua_settop(L, 3);
  check_own(f, a, "store");
  const struct dsl_array *y = dsl_to_array(L, 3);
  int64_t dim[IR_MAX_RANK], i[IR_MAX_RANK] = {0};
  double *to = a->data;
  if (y && y->rank != a->rank)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":store of %s to %s: the ranks differ",
             dsl_array_shape(f, y), dsl_array_shape(f, a));
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t at = list_entry(L, 2, d, "store", "offsets");
    dim[d] = y ? y->dim[d] : 1;
    check_part(f, a, "store", d, at, dim[d]);
    to += at * a->stride[d];
  }
  const double *x = dense_values(L, f, 3, "store", a->rank, dim);
  bool more = true;
  for (uint32_t d = 0; d < a->rank; d++)
    more &= dim[d] > 0;
  for (; more; more = dsl_array_next(a->rank, dim, i))
    to[dsl_array_offset(a->rank, i, a->stride)] = *x++;
  lua_pushvalue(L, 1);
  return 1;
}

/* ---- elements at indices ---- */

/* One index per dim of an array, each a number or an array; the arrays broadcast. */
struct indices {
  uint32_t rank; /* of what is selected; 0: one element */
  int64_t dim[IR_MAX_RANK];
  struct {
    double number; /* where data is NULL */
    const double *data;
    int64_t stride[IR_MAX_RANK];
  } at[IR_MAX_RANK];
};

static void read_index(lua_State *L, struct fe_file *f, const char *method, uint32_t k,
                       struct indices *x, bool *any) {
  const struct dsl_array *a = dsl_to_array(L, -1);
  if (!a && lua_type(L, -1) != LUA_TNUMBER)
    fe_error(f->fe, DIAG_OPERAND, ":%s: index %" PRIu32 " is %s, not a number or an array", method,
             k, dsl_describe(f, -1));
  x->at[k].number = a ? 0 : lua_tonumber(L, -1);
  x->at[k].data = a ? a->data : NULL;
  if (!a)
    return;
  bool fits = !*any || x->rank == a->rank;
  for (uint32_t d = 0; fits && d < a->rank; d++) {
    x->at[k].stride[d] = a->dim[d] == 1 ? 0 : a->stride[d];
    x->dim[d] = *any && x->dim[d] != 1 ? x->dim[d] : a->dim[d];
    fits = a->dim[d] == 1 || a->dim[d] == x->dim[d];
  }
  if (!fits)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH,
             ":%s: index %" PRIu32 " is %s, which does not fit those before it", method, k,
             dsl_array_shape(f, a));
  x->rank = a->rank;
  *any = true;
}

static struct indices read_indices(lua_State *L, struct fe_file *f, const struct dsl_array *a,
                                   const char *method) {
  struct indices x = {.rank = 0};
  bool any = false;
  if (lua_type(L, 2) != LUA_TTABLE || lua_rawlen(L, 2) != a->rank)
    fe_error(f->fe, DIAG_OPERAND, ":%s of %s needs a list of indices, one per dim", method,
             dsl_array_shape(f, a));
  for (uint32_t k = 0; k < a->rank; k++) {
    lua_rawgeti(L, 2, (lua_Integer)k + 1); /* arrays stay alive: the list holds them */
    read_index(L, f, method, k, &x, &any);
    lua_pop(L, 1);
  }
  return x;
}

/* The element of `a` for place i of what is selected; NULL: out of range. */
static double *element(struct fe_file *f, const struct dsl_array *a, const char *method,
                       const struct indices *x, const int64_t *i) {
  int64_t at = 0;
  for (uint32_t k = 0; k < a->rank; k++) {
    const double *data = x->at[k].data;
    double v = data ? data[dsl_array_offset(x->rank, i, x->at[k].stride)] : x->at[k].number;
    if (v != floor(v)) /* NaN too; infinities are only out of range */
      fe_error(f->fe, DIAG_OPERAND, ":%s: index %" PRIu32 " has %.14g, which is no integer", method,
               k, v);
    if (!(v >= 0 && v < (double)a->dim[k]))
      return NULL;
    at += (int64_t)v * a->stride[k];
  }
  return a->data + at;
}

static bool is_empty(const struct indices *x) {
  for (uint32_t d = 0; d < x->rank; d++)
    if (!x->dim[d])
      return true;
  return false;
}

static double read_pad(lua_State *L, struct fe_file *f, int idx) {
  if (lua_isnoneornil(L, idx))
    return 0;
  double pad = 0;
  bool ok = lua_type(L, idx) == LUA_TTABLE;
  if (ok) {
    lua_getfield(L, idx, "pad");
    ok = lua_type(L, -1) == LUA_TNUMBER;
    pad = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  if (!ok)
    fe_error(f->fe, DIAG_OPERAND, "options of :gather are a table {pad = x}");
  return pad;
}

/* a:gather(indices [, {pad = x}]) */
int dsl_fn_array_gather(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "gather(indices)");
  struct indices x = read_indices(L, f, a, "gather");
  double pad = read_pad(L, f, 3);
  int64_t i[IR_MAX_RANK] = {0}, n = 0;
  if (!x.rank) {
    const double *e = element(f, a, "gather", &x, i);
    lua_pushnumber(L, e ? *e : pad);
    return 1;
  }
  struct dsl_array *r = dsl_new_array(L, f, x.rank, x.dim);
  if (is_empty(&x))
    return 1;
  do {
    const double *e = element(f, a, "gather", &x, i);
    r->data[n++] = e ? *e : pad;
  } while (dsl_array_next(x.rank, x.dim, i));
  return 1;
}

static int scatter(lua_State *L, const char *method, bool add) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, add ? "scatter_add(indices, y)" : "scatter(indices, y)");
  lua_settop(L, 3);
  check_own(f, a, method);
  struct indices x = read_indices(L, f, a, method);
  const double *y = dense_values(L, f, 3, method, x.rank, x.dim);
  int64_t i[IR_MAX_RANK] = {0};
  bool more = !is_empty(&x);
  for (; more; more = dsl_array_next(x.rank, x.dim, i), y++) {
    double *e = element(f, a, method, &x, i);
    if (e)
      *e = add ? dsl_round(f, *e + *y) : *y;
  }
  lua_pushvalue(L, 1);
  return 1;
}

int dsl_fn_array_scatter(lua_State *L) {
  return scatter(L, "scatter", false);
}

int dsl_fn_array_scatter_add(lua_State *L) {
  return scatter(L, "scatter_add", true);
}
