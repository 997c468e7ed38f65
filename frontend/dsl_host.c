/* Functions on whole host arrays for oracles (matmul, softmax, mean, map), and the random numbers
 * of inputs(). Elementwise functions and reductions are in dsl_math.c and dsl_tile.c: they share
 * their names with the tile functions. */
#include "base/num.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

static struct dsl_array *arg_array(lua_State *L, struct fe_file *f, int idx, const char *what) {
  struct dsl_array *a = dsl_to_array(L, idx);
  if (!a)
    fe_error(f->fe, DIAG_OPERAND, "%s takes arrays (it is for oracles), got %s", what,
             dsl_describe(f, idx));
  return a;
}

/* ---- matmul ---- */

/* Rows and columns of the last two dims such that one of them is dense; copies if neither is. */
struct operand {
  const double *data;
  int64_t row, col;
};

static struct operand as_operand(lua_State *L, struct fe_file *f, int idx) {
  struct dsl_array *a = dsl_to_array(L, idx);
  uint32_t d = a->rank - 1;
  if (a->stride[d] != 1 && a->stride[d - 1] != 1 && dsl_array_count(a) > 0) {
    struct dsl_array *dense = dsl_new_array(L, f, a->rank, a->dim);
    dsl_array_copy(a, dense->data);
    lua_replace(L, idx);
    a = dense;
  }
  return (struct operand){a->data, a->stride[d - 1], a->stride[d]};
}

/* For hosts without a matrix product: rows of b in order, so that memory is read along them. */
static void plain_matmul(const struct fe_matmul *x) {
  for (int64_t i = 0; i < x->m; i++) {
    double *c = x->c + i * x->n;
    memset(c, 0, (size_t)x->n * sizeof *c);
    for (int64_t p = 0; p < x->k; p++) {
      double a = x->a[i * x->a_row + p * x->a_col];
      const double *b = x->b + p * x->b_row;
      for (int64_t j = 0; j < x->n; j++)
        c[j] += a * b[j * x->b_col];
    }
  }
}

static void one_matmul(struct fe_file *f, const struct fe_matmul *x) {
  if (x->m == 0 || x->n == 0)
    return;
  if (x->k == 0) {
    memset(x->c, 0, (size_t)(x->m * x->n) * sizeof *x->c);
  } else if (f->host.matmul) {
    if (!f->host.matmul(f->host.user, x))
      fe_error(f->fe, DIAG_LUA_ERROR, "matmul: the host's matrix product failed");
  } else {
    double work = (double)x->m * (double)x->n * (double)x->k / 16;
    fe_charge(f->fe, work < 1e18 ? (uint64_t)work + 1 : UINT64_MAX / 2);
    plain_matmul(x);
  }
  for (int64_t i = 0; f->single && i < x->m * x->n; i++)
    x->c[i] = dsl_round(f, x->c[i]);
}

int dsl_fn_global_matmul(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  struct dsl_array *a = arg_array(L, f, 1, "matmul"), *b = arg_array(L, f, 2, "matmul");
  uint32_t r = a->rank;
  bool fits = r >= 2 && b->rank == r && a->dim[r - 1] == b->dim[r - 2];
  int64_t dim[IR_MAX_RANK], batch = 1;
  for (uint32_t d = 0; fits && d + 2 < r; d++) {
    fits = a->dim[d] == b->dim[d];
    dim[d] = a->dim[d];
    batch *= dim[d];
  }
  if (!fits)
    fe_error(f->fe, DIAG_SHAPE_MISMATCH, "matmul of %s and %s: it takes (...,M,K) and (...,K,N)",
             luaL_tolstring(L, 1, NULL), luaL_tolstring(L, 2, NULL));
  dim[r - 2] = a->dim[r - 2];
  dim[r - 1] = b->dim[r - 1];
  struct operand x = as_operand(L, f, 1), y = as_operand(L, f, 2);
  a = dsl_to_array(L, 1);
  b = dsl_to_array(L, 2);
  struct dsl_array *c = dsl_new_array(L, f, r, dim);
  struct fe_matmul mm = {.m = dim[r - 2],
                         .n = dim[r - 1],
                         .k = a->dim[r - 1],
                         .a_row = x.row,
                         .a_col = x.col,
                         .b_row = y.row,
                         .b_col = y.col};
  for (int64_t t = 0; t < batch; t++) {
    int64_t rest = t, oa = 0, ob = 0;
    for (uint32_t d = r - 2; d-- > 0;) {
      oa += rest % dim[d] * a->stride[d];
      ob += rest % dim[d] * b->stride[d];
      rest /= dim[d];
    }
    mm.a = x.data + oa;
    mm.b = y.data + ob;
    mm.c = c->data + t * mm.m * mm.n;
    one_matmul(f, &mm);
  }
  return 1;
}

/* ---- softmax, mean ---- */

/* Over the last axis: exp(x - max) / sum. A row of -inf alone gives NaN. */
int dsl_fn_global_softmax(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 1);
  struct dsl_array *x = arg_array(L, f, 1, "softmax");
  struct dsl_array *y = dsl_new_array(L, f, x->rank, x->dim);
  dsl_array_copy(x, y->data);
  int64_t n = x->rank ? x->dim[x->rank - 1] : 1, count = dsl_array_count(y);
  for (double *row = y->data; n && row < y->data + count; row += n) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
      max = row[i] > max || isnan(row[i]) ? row[i] : max;
    for (int64_t i = 0; i < n; i++) {
      row[i] = dsl_round(f, exp(dsl_round(f, row[i] - max)));
      sum = dsl_round(f, sum + row[i]);
    }
    for (int64_t i = 0; i < n; i++)
      row[i] = dsl_round(f, row[i] / sum);
  }
  return 1;
}

static double round_to(const double *x) {
  return num_round((enum dtype)(int)x[1], x[0]);
}

/* rounded(x, dtype): x in the reference; in the baseline what a kernel makes of x on the way */
int dsl_fn_global_rounded(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  enum dtype t;
  arg_array(L, f, 1, "rounded");
  if (!dsl_dtype_at(f, 2, "rounded", &t) || !f->single) {
    lua_settop(L, 1);
    return 1;
  }
  lua_pushinteger(L, (lua_Integer)t);
  lua_replace(L, 2);
  dsl_array_elem(L, f, "rounded", round_to, 1, 2);
  return 1;
}

static double divide(const double *x) {
  return x[0] / x[1];
}

/* mean(x, axis), mean(x) */
int dsl_fn_global_mean(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  lua_settop(L, 2);
  struct dsl_array *x = arg_array(L, f, 1, "mean");
  int axis = n > 1 ? dsl_axis_at(f, 2, "mean", x->rank) : -1;
  if (n > 1 && axis < 0) {
    dsl_push(f, NULL);
    return 1;
  }
  int64_t count = axis < 0 ? dsl_array_count(x) : x->dim[axis];
  dsl_array_reduce(L, f, DSL_SUM, 1, axis);
  lua_pushnumber(L, (double)count);
  int top = lua_gettop(L);
  dsl_array_elem(L, f, "mean", divide, top - 1, 2);
  return 1;
}

/* map(fn, x, ...): fn of the elements, at equal shapes. */
int dsl_fn_global_map(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L) - 1;
  if (lua_type(L, 1) != LUA_TFUNCTION || n < 1 || n > 8)
    fe_error(f->fe, DIAG_OPERAND, "map takes a function and 1 to 8 arrays");
  struct dsl_array *first = arg_array(L, f, 2, "map");
  for (int k = 0; k < n; k++) {
    struct dsl_array *a = arg_array(L, f, k + 2, "map");
    bool same = a->rank == first->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
      same = a->dim[d] == first->dim[d];
    if (!same)
      fe_error(f->fe, DIAG_SHAPE_MISMATCH, "map of %s and %s: the shapes must be equal",
               luaL_tolstring(L, 2, NULL), luaL_tolstring(L, k + 2, NULL));
    /* Dense from here on. */
    struct dsl_array *dense = dsl_new_array(L, f, a->rank, a->dim);
    dsl_array_copy(a, dense->data);
    lua_replace(L, k + 2);
  }
  first = dsl_to_array(L, 2);
  struct dsl_array *out = dsl_new_array(L, f, first->rank, first->dim);
  int64_t count = dsl_array_count(out);
  for (int64_t i = 0; i < count; i++) {
    fe_charge(f->fe, 1);
    lua_pushvalue(L, 1);
    for (int k = 0; k < n; k++)
      lua_pushnumber(L, dsl_to_array(L, k + 2)->data[i]);
    lua_call(L, n, 1);
    if (lua_type(L, -1) != LUA_TNUMBER)
      fe_error(f->fe, DIAG_OPERAND, "map: the function gave %s, not a number",
               dsl_describe(f, lua_gettop(L)));
    out->data[i] = dsl_round(f, lua_tonumber(L, -1));
    lua_pop(L, 1);
  }
  return 1;
}

/* ---- random numbers: xoshiro256**, seeded by splitmix64 ---- */

void dsl_seed(struct fe_file *f, uint64_t seed) {
  for (int i = 0; i < 4; i++) {
    uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    f->rng[i] = z ^ (z >> 31);
  }
}

static uint64_t next_random(struct fe_file *f) {
  uint64_t *s = f->rng;
  uint64_t x = s[1] * 5, t = s[1] << 17;
  uint64_t r = (x << 7 | x >> 57) * 9;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = s[3] << 45 | s[3] >> 19;
  return r;
}

static double unit_random(struct fe_file *f) {
  return (double)(next_random(f) >> 11) * 0x1p-53;
}

enum random_kind { RANDOM_NORMAL, RANDOM_UNIFORM, RANDOM_INT };

static double draw(struct fe_file *f, enum random_kind kind, double lo, double hi) {
  switch (kind) {
  case RANDOM_NORMAL: {
    /* Box-Muller; 1 - u is never 0. */
    double u = unit_random(f), v = unit_random(f);
    return sqrt(-2 * log(1 - u)) * cos(6.28318530717958647692 * v);
  }
  case RANDOM_UNIFORM: return lo + (hi - lo) * unit_random(f);
  case RANDOM_INT: return lo + floor((hi - lo + 1) * unit_random(f));
  }
  return 0;
}

/* rng:normal(dims...), rng:uniform(lo, hi, dims...), rng:int(lo, hi, dims...): an array, or one
 * number where no dims are given. */
static int random_values(lua_State *L, enum random_kind kind) {
  struct fe_file *f = dsl_of(L);
  int first = kind == RANDOM_NORMAL ? 2 : 4, n = lua_gettop(L) - first + 1;
  double lo = 0, hi = 0;
  if (kind != RANDOM_NORMAL) {
    lo = dsl_number_at(f, 2, kind == RANDOM_INT ? "lo of rng:int" : "lo of rng:uniform");
    hi = dsl_number_at(f, 3, kind == RANDOM_INT ? "hi of rng:int" : "hi of rng:uniform");
  }
  if (kind == RANDOM_INT && !(lo == floor(lo) && hi == floor(hi) && hi >= lo))
    fe_error(f->fe, DIAG_OPERAND, "rng:int(lo, hi) needs integers with lo <= hi");
  if (kind == RANDOM_INT && (lo < -0x1p53 || hi > 0x1p53 || hi - lo > 0x1p53))
    fe_error(f->fe, DIAG_OPERAND,
             "rng:int(lo, hi) takes bounds of at most 2^53 in size and apart, got %.14g and %.14g",
             lo, hi);
  if (n <= 0) {
    double x = draw(f, kind, lo, hi);
    if (kind == RANDOM_INT)
      lua_pushinteger(L, (lua_Integer)x);
    else
      lua_pushnumber(L, x);
    return 1;
  }
  if (n > IR_MAX_RANK)
    fe_error(f->fe, DIAG_OPERAND, "arrays have at most %d dims", IR_MAX_RANK);
  int64_t dim[IR_MAX_RANK];
  for (int d = 0; d < n; d++) {
    dim[d] = dsl_integer_at(f, first + d, "a size");
    if (dim[d] < 0)
      fe_error(f->fe, DIAG_OPERAND, "a size is %" PRId64 "; the least is 0", dim[d]);
  }
  struct dsl_array *a = dsl_new_array(L, f, (uint32_t)n, dim);
  int64_t count = dsl_array_count(a);
  for (int64_t i = 0; i < count; i++)
    a->data[i] = draw(f, kind, lo, hi);
  return 1;
}

int dsl_fn_rng_normal(lua_State *L) {
  return random_values(L, RANDOM_NORMAL);
}
int dsl_fn_rng_uniform(lua_State *L) {
  return random_values(L, RANDOM_UNIFORM);
}
int dsl_fn_rng_int(lua_State *L) {
  return random_values(L, RANDOM_INT);
}

void dsl_push_rng(lua_State *L, struct fe_file *f) {
  lua_newtable(L);
  dsl_register_all(L, f, DSL_OF_rng);
}
