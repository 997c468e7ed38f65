/* Host arrays: what an oracle computes with. Dense or strided doubles behind a userdata,
 * arithmetic through metamethods, methods T, row, col, reshape; parts and single elements in
 * dsl_array_part.c, functions in dsl_host.c.
 *
 * Memory comes from the host's allocator and is counted against fe_limits.host_mem; Lua's
 * collector sees only the small userdata, so it is run whenever much has been allocated since the
 * last time. */
#include "frontend/dsl.h"

#include "base/threads.h"

#include <inttypes.h>
#include <math.h>

static const char meta_key = 0, method_key = 0; /* addresses: registry keys */

#define COLLECT_AFTER ((size_t)256 << 20)

double dsl_round(const struct fe_file *f, double x) {
  return f->single ? (double)(float)x : x;
}

struct dsl_array *dsl_to_array(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TUSERDATA || !lua_getmetatable(L, idx))
    return NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? lua_touserdata(L, idx) : NULL;
}

int64_t dsl_array_count(const struct dsl_array *a) {
  int64_t n = 1;
  for (uint32_t d = 0; d < a->rank; d++)
    n *= a->dim[d];
  return n;
}

static struct dsl_array *push_array(lua_State *L, uint32_t rank, const int64_t *dim) {
  struct dsl_array *a = lua_newuserdatauv(L, sizeof *a, 1);
  *a = (struct dsl_array){.rank = rank};
  int64_t stride = 1;
  for (uint32_t d = rank; d-- > 0;) {
    a->dim[d] = dim[d];
    a->stride[d] = stride;
    stride *= dim[d];
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_setmetatable(L, -2);
  return a;
}

static void enlist(struct fe_file *f, struct dsl_array *a) {
  a->next = f->borrowed;
  a->link = &f->borrowed;
  if (a->next)
    a->next->link = &a->next;
  f->borrowed = a;
}

static void delist(struct dsl_array *a) {
  if (!a->link)
    return;
  *a->link = a->next;
  if (a->next)
    a->next->link = a->link;
  a->link = NULL;
}

struct dsl_array *dsl_borrow_array(lua_State *L, struct fe_file *f, uint32_t rank,
                                   const int64_t *dim, double *data) {
  struct dsl_array *a = push_array(L, rank, dim);
  a->data = data;
  enlist(f, a);
  return a;
}

void dsl_end_borrowed(struct fe_file *f) {
  while (f->borrowed) {
    struct dsl_array *a = f->borrowed;
    delist(a);
    a->data = &a->nothing;
    a->ended = true;
    for (uint32_t d = 0; d < IR_MAX_RANK; d++)
      a->dim[d] = 0;
  }
}

struct dsl_array *dsl_new_array(lua_State *L, struct fe_file *f, uint32_t rank,
                                const int64_t *dim) {
  size_t limit = fe_host_of(f->fe)->limits.host_mem;
  int64_t n = 1;
  for (uint32_t d = 0; d < rank; d++)
    if (__builtin_mul_overflow(n, dim[d], &n))
      n = INT64_MAX;
  bool fits = n <= (int64_t)(limit / sizeof(double));
  size_t bytes = fits ? (size_t)n * sizeof(double) : 0;
  if (fits && (f->host_since > COLLECT_AFTER || f->host_bytes + bytes > limit)) {
    lua_gc(L, LUA_GCCOLLECT);
    f->host_since = 0;
  }
  if (!fits || f->host_bytes + bytes > limit)
    fe_error(f->fe, DIAG_MEMORY_LIMIT, "arrays would take more than %zu MiB", limit >> 20);
  fe_charge(f->fe, (uint64_t)n / 16 + 1);
  struct dsl_array *a = push_array(L, rank, dim);
  bytes = bytes ? bytes : sizeof(double);
  a->owned = a->data = mem_get(f->mem, bytes);
  if (!a->owned)
    fe_out_of_memory(f->fe);
  a->bytes = bytes;
  f->host_bytes += bytes;
  f->host_since += bytes;
  return a;
}

static int array_gc(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = lua_touserdata(L, 1);
  delist(a);
  if (a->owned) {
    f->host_bytes -= a->bytes;
    mem_drop(f->mem, a->owned, a->bytes);
    a->owned = a->data = NULL;
  }
  return 0;
}

/* A view of the array at idx, to be given its own dims and strides. */
struct dsl_array *dsl_array_view(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  const struct dsl_array *a = lua_touserdata(L, idx);
  struct dsl_array *v = push_array(L, a->rank, a->dim);
  for (uint32_t d = 0; d < a->rank; d++)
    v->stride[d] = a->stride[d];
  v->data = a->data;
  if (a->link)
    enlist(dsl_of(L), v);
  v->ended = a->ended;
  lua_pushvalue(L, idx);
  lua_setiuservalue(L, -2, 1);
  return v;
}

/* ---- loops ---- */

/* Steps a multi-index over dim; false at the end. */
bool dsl_array_next(uint32_t rank, const int64_t *dim, int64_t *i) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++i[d] < dim[d])
      return true;
    i[d] = 0;
  }
  return false;
}

int64_t dsl_array_offset(uint32_t rank, const int64_t *i, const int64_t *stride) {
  int64_t o = 0;
  for (uint32_t d = 0; d < rank; d++)
    o += i[d] * stride[d];
  return o;
}

/* Work over the rows of a result (its last dim), side by side where there is enough of it. */
struct rows {
  const int64_t *dim;
  uint32_t outer; /* dims but the last */
  int64_t inner;
  double *out;
};

static struct rows rows_of(uint32_t rank, const int64_t *dim, double *out) {
  struct rows r = {dim, rank ? rank - 1 : 0, rank ? dim[rank - 1] : 1, out};
  return r;
}

static void each_row(const struct rows *r, int64_t count,
                     void (*part)(void *user, int64_t first, int64_t end), void *user) {
  if (count > 0)
    threads_split(count / r->inner, (1 << 16) / r->inner + 1, part, user);
}

/* The indices of a row. */
static void find_row(const struct rows *r, int64_t number, int64_t *index) {
  for (uint32_t d = r->outer; d-- > 0;) {
    index[d] = number % r->dim[d];
    number /= r->dim[d];
  }
}

struct copying {
  struct rows rows;
  const struct dsl_array *from;
};

static void copy_rows(void *user, int64_t first, int64_t end) {
  const struct copying *c = user;
  const struct rows *r = &c->rows;
  int64_t i[IR_MAX_RANK] = {0}, step = c->from->rank ? c->from->stride[r->outer] : 0;
  find_row(r, first, i);
  for (int64_t n = first; n < end; n++, dsl_array_next(r->outer, r->dim, i)) {
    const double *row = c->from->data + dsl_array_offset(r->outer, i, c->from->stride);
    double *out = r->out + n * r->inner;
    for (int64_t k = 0; k < r->inner; k++)
      out[k] = row[k * step];
  }
}

void dsl_array_copy(const struct dsl_array *a, double *out) {
  struct copying c = {rows_of(a->rank, a->dim, out), a};
  each_row(&c.rows, dsl_array_count(a), copy_rows, &c);
}

const char *dsl_array_shape(struct fe_file *f, const struct dsl_array *a) {
  struct strbuf b = {.arena = fe_arena(f->fe)};
  sb_putc(&b, '(');
  for (uint32_t d = 0; d < a->rank; d++)
    sb_printf(&b, "%s%" PRId64, d ? "," : "", a->dim[d]);
  sb_puts(&b, a->ended ? ") of an earlier call" : ")");
  return sb_str(&b);
}

struct elem_operand {
  const double *data;
  int64_t stride[IR_MAX_RANK];
  double number;
};

struct elem_work {
  struct rows rows;
  const struct fe_file *f;
  dsl_fn fn;
  struct elem_operand in[3];
  int n;
};

static void elem_rows(void *user, int64_t first, int64_t end) {
  const struct elem_work *w = user;
  const struct rows *r = &w->rows;
  int64_t i[IR_MAX_RANK] = {0};
  find_row(r, first, i);
  for (int64_t m = first; m < end; m++, dsl_array_next(r->outer, r->dim, i)) {
    const double *row[3] = {NULL, NULL, NULL};
    double *out = r->out + m * r->inner;
    for (int k = 0; k < w->n; k++)
      row[k] = w->in[k].data + dsl_array_offset(r->outer, i, w->in[k].stride);
    for (int64_t j = 0; j < r->inner; j++) {
      double x[3];
      for (int k = 0; k < w->n; k++)
        x[k] = row[k][j * w->in[k].stride[r->outer]];
      out[j] = dsl_round(w->f, w->fn(x));
    }
  }
}

void dsl_array_elem(lua_State *L, struct fe_file *f, const char *what, dsl_fn fn, int idx, int n) {
  const struct dsl_array *first = NULL;
  uint32_t rank = 0;
  int64_t dim[IR_MAX_RANK];
  for (int k = 0; k < n; k++) {
    const struct dsl_array *a = dsl_to_array(L, idx + k);
    if (!a) {
      if (lua_type(L, idx + k) != LUA_TNUMBER)
        fe_error(f->fe, DIAG_OPERAND, "%s takes arrays and numbers, got %s", what,
                 dsl_describe(f, idx + k));
      continue;
    }
    if (!first) {
      first = a;
      rank = a->rank;
      for (uint32_t d = 0; d < rank; d++)
        dim[d] = a->dim[d];
    }
    if (a->rank != rank)
      fe_error(f->fe, DIAG_SHAPE_MISMATCH,
               "shapes %s and %s of %s have different ranks; use :row(), :col() or :reshape(...)",
               dsl_array_shape(f, first), dsl_array_shape(f, a), what);
    for (uint32_t d = 0; d < rank; d++) {
      if (a->dim[d] != dim[d] && a->dim[d] != 1 && dim[d] != 1)
        fe_error(f->fe, DIAG_SHAPE_MISMATCH, "shapes %s and %s of %s do not fit",
                 dsl_array_shape(f, first), dsl_array_shape(f, a), what);
      if (dim[d] == 1)
        dim[d] = a->dim[d];
    }
  }
  if (!first) {
    double x[3];
    for (int k = 0; k < n; k++)
      x[k] = lua_tonumber(L, idx + k);
    lua_pushnumber(L, dsl_round(f, fn(x)));
    return;
  }
  struct dsl_array *out = dsl_new_array(L, f, rank, dim);
  struct elem_work w = {.rows = rows_of(rank, dim, out->data), .f = f, .fn = fn, .n = n};
  for (int k = 0; k < n; k++) {
    const struct dsl_array *a = dsl_to_array(L, idx + k);
    struct elem_operand *in = &w.in[k];
    in->number = a ? 0 : lua_tonumber(L, idx + k);
    in->data = a ? a->data : &in->number;
    for (uint32_t d = 0; d < rank; d++)
      in->stride[d] = a && a->dim[d] == dim[d] ? a->stride[d] : 0;
  }
  each_row(&w.rows, dsl_array_count(out), elem_rows, &w);
}

static double fold_value(const struct fe_file *f, enum dsl_fold fold, double acc, double x) {
  switch (fold) {
  case DSL_SUM: return dsl_round(f, acc + x);
  case DSL_MAX: return isnan(acc) || acc > x ? acc : x;
  case DSL_MIN: return isnan(acc) || acc < x ? acc : x;
  }
  return acc;
}

static double fold_start(enum dsl_fold fold) {
  return fold == DSL_SUM ? 0 : fold == DSL_MAX ? -INFINITY : INFINITY;
}

void dsl_array_reduce(lua_State *L, struct fe_file *f, enum dsl_fold fold, int idx, int axis) {
  const struct dsl_array *a = dsl_to_array(L, idx);
  int64_t i[IR_MAX_RANK] = {0}, n = dsl_array_count(a);
  fe_charge(f->fe, (uint64_t)n / 16 + 1);
  if (axis < 0) {
    double acc = fold_start(fold);
    if (n) {
      do
        acc = fold_value(f, fold, acc, a->data[dsl_array_offset(a->rank, i, a->stride)]);
      while (dsl_array_next(a->rank, a->dim, i));
    }
    lua_pushnumber(L, acc);
    return;
  }
  int64_t dim[IR_MAX_RANK], len = a->dim[axis], step = a->stride[axis];
  for (uint32_t d = 0; d < a->rank; d++)
    dim[d] = (int)d == axis ? 1 : a->dim[d];
  struct dsl_array *out = dsl_new_array(L, f, a->rank, dim);
  if (dsl_array_count(out) == 0)
    return;
  int64_t at = 0;
  do {
    const double *p = a->data + dsl_array_offset(a->rank, i, a->stride);
    double acc = fold_start(fold);
    for (int64_t k = 0; k < len; k++)
      acc = fold_value(f, fold, acc, p[k * step]);
    out->data[at++] = acc;
  } while (dsl_array_next(a->rank, dim, i));
}

/* ---- operators ---- */

static double e_add(const double *x) {
  return x[0] + x[1];
}
static double e_sub(const double *x) {
  return x[0] - x[1];
}
static double e_mul(const double *x) {
  return x[0] * x[1];
}
static double e_div(const double *x) {
  return x[0] / x[1];
}
static double e_idiv(const double *x) {
  return floor(x[0] / x[1]);
}
static double e_mod(const double *x) {
  double r = fmod(x[0], x[1]);
  return r != 0 && (r < 0) != (x[1] < 0) ? r + x[1] : r;
}
static double e_pow(const double *x) {
  return pow(x[0], x[1]);
}
static double e_neg(const double *x) {
  return -x[0];
}

#define OPERATOR(name, text, n)                                                                    \
  static int array_##name(lua_State *L) {                                                          \
    dsl_array_elem(L, dsl_of(L), text, e_##name, 1, n);                                            \
    return 1;                                                                                      \
  }
OPERATOR(add, "`+`", 2)
OPERATOR(sub, "`-`", 2)
OPERATOR(mul, "`*`", 2)
OPERATOR(div, "`/`", 2)
OPERATOR(idiv, "`//`", 2)
OPERATOR(mod, "`%`", 2)
OPERATOR(pow, "`^`", 2)
OPERATOR(neg, "`-`", 1)
#undef OPERATOR

static int array_compare(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  fe_error(f->fe, DIAG_OPERAND,
           "arrays are compared by lt(x, y), le, gt, ge, eq, ne, which give an array of 0 and 1");
}

/* ---- methods ---- */

struct dsl_array *dsl_array_self(lua_State *L, const char *what) {
  struct dsl_array *a = dsl_to_array(L, 1);
  if (!a)
    fe_error(dsl_of(L)->fe, DIAG_OPERAND, ":%s takes an array, got %s", what,
             dsl_describe(dsl_of(L), 1));
  return a;
}

int dsl_fn_array_T(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "T()");
  if (a->rank < 2)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":T() needs rank 2 or more, got %s",
             dsl_array_shape(f, a));
  struct dsl_array *v = dsl_array_view(L, 1);
  uint32_t d = a->rank - 1;
  v->dim[d - 1] = a->dim[d];
  v->dim[d] = a->dim[d - 1];
  v->stride[d - 1] = a->stride[d];
  v->stride[d] = a->stride[d - 1];
  return 1;
}

/* a:permute(i, j, ...) or a:permute({i, j, ...}): dim d is dim i_d of a */
int dsl_fn_array_permute(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "permute(...)");
  bool list = lua_gettop(L) == 2 && lua_type(L, 2) == LUA_TTABLE;
  int64_t n = list ? (int64_t)lua_rawlen(L, 2) : lua_gettop(L) - 1;
  uint32_t seen = 0;
  struct dsl_array *v = dsl_array_view(L, 1);
  int from = lua_gettop(L);
  for (uint32_t d = 0; n == a->rank && d < a->rank; d++) {
    if (list)
      lua_rawgeti(L, 2, (lua_Integer)d + 1);
    else
      lua_pushvalue(L, (int)d + 2);
    int ok;
    lua_Integer axis = lua_tointegerx(L, -1, &ok);
    lua_pop(L, 1);
    if (!ok || axis < 0 || axis >= a->rank)
      break;
    seen |= 1u << axis;
    v->dim[d] = a->dim[axis];
    v->stride[d] = a->stride[axis];
  }
  if (n != a->rank || seen != (1u << a->rank) - 1)
    fe_error(f->fe, DIAG_OPERAND, ":permute of %s needs each of its axes once, counted from 0",
             dsl_array_shape(f, a));
  lua_settop(L, from);
  return 1;
}

static int rank_2(lua_State *L, const char *what, uint32_t keep) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, what);
  if (a->rank != 1)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, ":%s needs rank 1, got %s", what, dsl_array_shape(f, a));
  int64_t n = a->dim[0], s = a->stride[0];
  struct dsl_array *v = dsl_array_view(L, 1);
  v->rank = 2;
  v->dim[keep] = n;
  v->stride[keep] = s;
  v->dim[1 - keep] = 1;
  v->stride[1 - keep] = 0;
  return 1;
}

int dsl_fn_array_row(lua_State *L) {
  return rank_2(L, "row()", 1);
}

int dsl_fn_array_col(lua_State *L) {
  return rank_2(L, "col()", 0);
}

int dsl_fn_array_reshape(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "reshape(...)");
  uint32_t n;
  int64_t dim[IR_MAX_RANK], count = 1;
  if (!dsl_sizes_at(f, 2, lua_gettop(L), ":reshape(...)", &n, dim)) {
    dsl_push(f, NULL);
    return 1;
  }
  for (uint32_t d = 0; d < n; d++)
    if (__builtin_mul_overflow(count, dim[d], &count))
      count = INT64_MAX;
  if (count != dsl_array_count(a))
    fe_error(f->fe, DIAG_SHAPE_MISMATCH,
             ":reshape of %s: %" PRId64 " elements cannot become %" PRId64, dsl_array_shape(f, a),
             dsl_array_count(a), count);
  struct dsl_array *r = dsl_new_array(L, f, n, dim);
  dsl_array_copy(a, r->data);
  return 1;
}

static int array_index(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  struct dsl_array *a = dsl_array_self(L, "");
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &method_key);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
      return 1;
    if (str_eq(lua_tostring(L, 2), "shape")) {
      lua_createtable(L, (int)a->rank, 0);
      for (uint32_t d = 0; d < a->rank; d++) {
        lua_pushinteger(L, a->dim[d]);
        lua_rawseti(L, -2, (lua_Integer)d + 1);
      }
      fe_born(f->fe, lua_gettop(L));
      return 1;
    }
  }
  uint32_t n;
  const char *const *names = dsl_names(f, DSL_OF_array, &n);
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  fe_error(f->fe, DIAG_OPERAND, "an array has no %s%s; it has %s", key ? key : dsl_describe(f, 2),
           key ? dsl_nearest(f, key, names, n) : "", dsl_join(f, names, n));
}

static int array_tostring(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_pushfstring(L, "array%s", dsl_array_shape(f, dsl_array_self(L, "")));
  return 1;
}

void dsl_open_array(lua_State *L, struct fe_file *f) {
  static const luaL_Reg meta[] = {
      {"__add", array_add},           {"__sub", array_sub},    {"__mul", array_mul},
      {"__div", array_div},           {"__idiv", array_idiv},  {"__mod", array_mod},
      {"__pow", array_pow},           {"__unm", array_neg},    {"__lt", array_compare},
      {"__le", array_compare},        {"__eq", array_compare}, {"__index", array_index},
      {"__tostring", array_tostring}, {"__gc", array_gc},      {NULL, NULL}};
  lua_newtable(L);
  dsl_register(L, f, meta);
  lua_pushliteral(L, "array");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_newtable(L);
  dsl_register_all(L, f, DSL_OF_array);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &method_key);
}
