/* Elementwise functions of kernel Lua: exp, max, gelu, ... Each works on device values (an op), on
 * host arrays (in oracles) and on plain numbers (as Lua's own math would). */
#include "frontend/dsl.h"

#include <math.h>

/* ---- the functions on doubles ---- */

static double h_exp(const double *x) {
  return exp(x[0]);
}
static double h_exp2(const double *x) {
  return exp2(x[0]);
}
static double h_log(const double *x) {
  return log(x[0]);
}
static double h_log2(const double *x) {
  return log2(x[0]);
}
static double h_sqrt(const double *x) {
  return sqrt(x[0]);
}
static double h_rsqrt(const double *x) {
  return 1 / sqrt(x[0]);
}
static double h_tanh(const double *x) {
  return tanh(x[0]);
}
static double h_erf(const double *x) {
  return erf(x[0]);
}
static double h_sigmoid(const double *x) {
  return 1 / (1 + exp(-x[0]));
}
static double h_sin(const double *x) {
  return sin(x[0]);
}
static double h_cos(const double *x) {
  return cos(x[0]);
}
static double h_floor(const double *x) {
  return floor(x[0]);
}
static double h_ceil(const double *x) {
  return ceil(x[0]);
}
static double h_round(const double *x) {
  return rint(x[0]); /* ties to even */
}
static double h_trunc(const double *x) {
  return trunc(x[0]);
}
static double h_abs(const double *x) {
  return fabs(x[0]);
}
static double h_gelu(const double *x) {
  return 0.5 * x[0] * (1 + erf(x[0] * 0.70710678118654752440));
}
static double h_gelu_tanh(const double *x) {
  return 0.5 * x[0] * (1 + tanh(0.79788456080286535588 * (x[0] + 0.044715 * x[0] * x[0] * x[0])));
}
/* NaN stays NaN, as in the max op. */
static double h_relu(const double *x) {
  return x[0] > 0 || isnan(x[0]) ? x[0] : 0;
}
static double h_silu(const double *x) {
  return x[0] / (1 + exp(-x[0]));
}
static double h_min(const double *x) {
  return isnan(x[0]) || x[0] < x[1] ? x[0] : x[1];
}
static double h_max(const double *x) {
  return isnan(x[0]) || x[0] > x[1] ? x[0] : x[1];
}
static double h_lt(const double *x) {
  return x[0] < x[1];
}
static double h_le(const double *x) {
  return x[0] <= x[1];
}
static double h_gt(const double *x) {
  return x[0] > x[1];
}
static double h_ge(const double *x) {
  return x[0] >= x[1];
}
static double h_eq(const double *x) {
  return x[0] == x[1];
}
static double h_ne(const double *x) {
  return x[0] != x[1];
}

/* ---- the composed ones on device values ---- */

/* a op number */
static struct dsl_val *with_num(struct fe_file *f, enum ir_opcode op, const char *what,
                                struct dsl_val *a, double x) {
  if (!a)
    return NULL;
  const struct dsl_opnd in[2] = {dsl_opnd_dev(a), dsl_opnd_num(x)};
  return dsl_elem(f, op, what, 2, in, DT_COUNT);
}

static struct dsl_val *two(struct fe_file *f, enum ir_opcode op, const char *what,
                           struct dsl_val *a, struct dsl_val *b) {
  if (!a || !b)
    return NULL;
  const struct dsl_opnd in[2] = {dsl_opnd_dev(a), dsl_opnd_dev(b)};
  return dsl_elem(f, op, what, 2, in, DT_COUNT);
}

static struct dsl_val *one(struct fe_file *f, enum ir_opcode op, const char *what,
                           struct dsl_val *a) {
  if (!a)
    return NULL;
  const struct dsl_opnd in = dsl_opnd_dev(a);
  return dsl_elem(f, op, what, 1, &in, DT_COUNT);
}

/* x * (1 + g) / 2 */
static struct dsl_val *half_gate(struct fe_file *f, const char *what, struct dsl_val *x,
                                 struct dsl_val *g) {
  /* one after the other: C leaves the order of arguments open, and with it that of the ops */
  struct dsl_val *gate = with_num(f, IR_ADD, what, g, 1);
  struct dsl_val *half = with_num(f, IR_MUL, what, x, 0.5);
  return two(f, IR_MUL, what, half, gate);
}

static struct dsl_val *d_gelu(struct fe_file *f, const char *what, struct dsl_val *x) {
  struct dsl_val *e = with_num(f, IR_MUL, what, x, 0.70710678118654752440);
  return half_gate(f, what, x, one(f, IR_ERF, what, e));
}

static struct dsl_val *d_gelu_tanh(struct fe_file *f, const char *what, struct dsl_val *x) {
  struct dsl_val *sq = two(f, IR_MUL, what, x, x);
  struct dsl_val *inner = with_num(f, IR_ADD, what, with_num(f, IR_MUL, what, sq, 0.044715), 1);
  struct dsl_val *arg =
      two(f, IR_MUL, what, with_num(f, IR_MUL, what, x, 0.79788456080286535588), inner);
  return half_gate(f, what, x, one(f, IR_TANH, what, arg));
}

static struct dsl_val *d_relu(struct fe_file *f, const char *what, struct dsl_val *x) {
  return with_num(f, IR_MAX, what, x, 0);
}

static struct dsl_val *d_silu(struct fe_file *f, const char *what, struct dsl_val *x) {
  return two(f, IR_MUL, what, x, one(f, IR_SIGMOID, what, x));
}

/* ---- dispatch ---- */

typedef struct dsl_val *(*build_fn)(struct fe_file *f, const char *what, struct dsl_val *x);

static int call_unary(lua_State *L, const char *what, dsl_fn host, enum ir_opcode op,
                      build_fn build) {
  struct fe_file *f = dsl_of(L);
  if (lua_gettop(L) != 1) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes one value, got %d", what, lua_gettop(L));
    return dsl_push(f, NULL);
  }
  if (lua_type(L, 1) == LUA_TNUMBER) {
    if (op == IR_ABS && lua_isinteger(L, 1)) {
      lua_Integer i = lua_tointeger(L, 1);
      lua_pushinteger(L, i < 0 ? (lua_Integer)(0u - (lua_Unsigned)i) : i);
    } else {
      double x = lua_tonumber(L, 1);
      lua_pushnumber(L, host(&x));
    }
    return 1;
  }
  if (dsl_to_array(L, 1)) {
    dsl_array_elem(L, f, what, host, 1, 1);
    return 1;
  }
  struct dsl_opnd x;
  if (!dsl_opnd_at(f, 1, what, &x))
    return dsl_push(f, NULL);
  if (x.kind != DSL_DEV) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes tiles, scalars and numbers, got %s", what,
                  dsl_describe_opnd(f, &x));
    return dsl_push(f, NULL);
  }
  if (build && build != d_relu && !dtype_is_float((enum dtype)x.dev->t.dtype)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s takes floats, got %s; cast it first", what,
                  dsl_describe_type(f, x.dev->t));
    return dsl_push(f, NULL);
  }
  return dsl_push(f, build ? build(f, what, x.dev) : dsl_math(f, op, what, &x));
}

#define UNARY(X)                                                                                   \
  X(exp, IR_EXP, NULL)                                                                             \
  X(exp2, IR_EXP2, NULL)                                                                           \
  X(log, IR_LOG, NULL)                                                                             \
  X(log2, IR_LOG2, NULL)                                                                           \
  X(sqrt, IR_SQRT, NULL)                                                                           \
  X(rsqrt, IR_RSQRT, NULL)                                                                         \
  X(tanh, IR_TANH, NULL)                                                                           \
  X(erf, IR_ERF, NULL)                                                                             \
  X(sigmoid, IR_SIGMOID, NULL)                                                                     \
  X(sin, IR_SIN, NULL)                                                                             \
  X(cos, IR_COS, NULL)                                                                             \
  X(floor, IR_FLOOR, NULL)                                                                         \
  X(ceil, IR_CEIL, NULL)                                                                           \
  X(round, IR_ROUND, NULL)                                                                         \
  X(trunc, IR_TRUNC, NULL)                                                                         \
  X(abs, IR_ABS, NULL)                                                                             \
  X(gelu, IR_NO_OP, d_gelu)                                                                        \
  X(gelu_tanh, IR_NO_OP, d_gelu_tanh)                                                              \
  X(relu, IR_NO_OP, d_relu)                                                                        \
  X(silu, IR_NO_OP, d_silu)

#define X(name, op, build)                                                                         \
  int dsl_fn_global_##name(lua_State *L) {                                                         \
    return call_unary(L, #name, h_##name, op, build);                                              \
  }
UNARY(X)
#undef X

/* ---- min, max ---- */

/* Replaces the values at idx a and top by min or max of them. */
static void fold_step(lua_State *L, struct fe_file *f, const char *what, bool is_max) {
  int b = lua_gettop(L), a = b - 1;
  if (lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER) {
    bool second = is_max ? lua_compare(L, a, b, LUA_OPLT) : lua_compare(L, b, a, LUA_OPLT);
    if (second)
      lua_remove(L, a);
    else
      lua_pop(L, 1);
    return;
  }
  if (dsl_to_array(L, a) || dsl_to_array(L, b)) {
    dsl_array_elem(L, f, what, is_max ? h_max : h_min, a, 2);
  } else {
    struct dsl_opnd in[2];
    bool ok = dsl_opnd_at(f, a, what, &in[0]);
    ok = dsl_opnd_at(f, b, what, &in[1]) && ok;
    if (ok && in[0].kind != DSL_DEV && in[1].kind != DSL_DEV) {
      fe_soft_error(f->fe, DIAG_OPERAND, "%s takes tiles, scalars and numbers, got %s and %s", what,
                    dsl_describe_opnd(f, &in[0]), dsl_describe_opnd(f, &in[1]));
      ok = false;
    }
    dsl_push(f, ok ? dsl_elem(f, is_max ? IR_MAX : IR_MIN, what, 2, in, DT_COUNT) : NULL);
  }
  lua_replace(L, a);
  lua_settop(L, a);
}

static int min_max(lua_State *L, const char *what, bool is_max) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L);
  if (n == 0) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes at least one value", what);
    return dsl_push(f, NULL);
  }
  if (n == 1) {
    /* Of one tile or array: over all of its elements. */
    if (dsl_to_array(L, 1)) {
      dsl_array_reduce(L, f, is_max ? DSL_MAX : DSL_MIN, 1, -1);
      return 1;
    }
    struct fe_dev *h = fe_to_dev(L, 1);
    struct dsl_opnd x;
    if (!dsl_opnd_at(f, 1, what, &x))
      return dsl_push(f, NULL);
    if (h && !(h->flags & FE_DEV_SCALAR))
      return dsl_push(f, dsl_reduce_all(f, is_max ? IR_REDUCE_MAX : IR_REDUCE_MIN, what, x.dev));
    return 1;
  }
  lua_pushvalue(L, 1);
  for (int i = 2; i <= n; i++) {
    lua_pushvalue(L, i);
    fold_step(L, f, what, is_max);
  }
  return 1;
}

int dsl_fn_global_min(lua_State *L) {
  return min_max(L, "min", false);
}

int dsl_fn_global_max(lua_State *L) {
  return min_max(L, "max", true);
}

/* clamp(x, lo, hi): hi where the two cross. Plain bounds that cross are a mistake, but in oracles,
 * where sizes are plain: lo and hi of an array without elements cross. */
int dsl_fn_global_clamp(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  if (lua_gettop(L) != 3) {
    fe_soft_error(f->fe, DIAG_OPERAND, "clamp takes (x, lo, hi), got %d value%s", lua_gettop(L),
                  lua_gettop(L) == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  if (lua_type(L, 2) == LUA_TNUMBER && lua_type(L, 3) == LUA_TNUMBER && !dsl_to_array(L, 1) &&
      lua_compare(L, 3, 2, LUA_OPLT)) {
    fe_soft_error(f->fe, DIAG_OPERAND, "clamp: lo is %s, above hi, %s", luaL_tolstring(L, 2, NULL),
                  luaL_tolstring(L, 3, NULL));
    return dsl_push(f, NULL);
  }
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  fold_step(L, f, "clamp", true);
  lua_pushvalue(L, 3);
  fold_step(L, f, "clamp", false);
  return 1;
}

/* ---- comparisons as functions: what operators cannot give on host arrays ---- */

static int compare(lua_State *L, const char *what, dsl_fn host, enum fe_op op) {
  struct fe_file *f = dsl_of(L);
  if (lua_gettop(L) != 2) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes two values, got %d", what, lua_gettop(L));
    return dsl_push(f, NULL);
  }
  if (dsl_to_array(L, 1) || dsl_to_array(L, 2)) {
    dsl_array_elem(L, f, what, host, 1, 2);
    return 1;
  }
  if (lua_type(L, 1) == LUA_TNUMBER && lua_type(L, 2) == LUA_TNUMBER) {
    bool swap = op == FE_OP_GT || op == FE_OP_GE, negate = op == FE_OP_NE;
    int how = op == FE_OP_EQ || op == FE_OP_NE   ? LUA_OPEQ
              : op == FE_OP_LT || op == FE_OP_GT ? LUA_OPLT
                                                 : LUA_OPLE;
    lua_pushboolean(L, lua_compare(L, swap ? 2 : 1, swap ? 1 : 2, how) != negate);
    return 1;
  }
  struct dsl_opnd a, b;
  bool ok = dsl_opnd_at(f, 1, what, &a);
  ok = dsl_opnd_at(f, 2, what, &b) && ok;
  if (ok && a.kind != DSL_DEV && b.kind != DSL_DEV) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s compares numbers, got %s and %s", what,
                  dsl_describe_opnd(f, &a), dsl_describe_opnd(f, &b));
    ok = false;
  }
  return dsl_push(f, ok ? dsl_binary(f, op, &a, &b) : NULL);
}

#define COMPARE(X)                                                                                 \
  X(lt, FE_OP_LT)                                                                                  \
  X(le, FE_OP_LE)                                                                                  \
  X(gt, FE_OP_GT)                                                                                  \
  X(ge, FE_OP_GE)                                                                                  \
  X(eq, FE_OP_EQ)                                                                                  \
  X(ne, FE_OP_NE)

#define X(name, op)                                                                                \
  int dsl_fn_global_##name(lua_State *L) {                                                         \
    return compare(L, #name, h_##name, op);                                                        \
  }
COMPARE(X)
#undef X

/* ---- cdiv ---- */

static struct dsl_val *cdiv_dev(struct fe_file *f, const struct dsl_opnd *a,
                                const struct dsl_opnd *b) {
  struct dsl_opnd in[2] = {*a, *b};
  if (f->mode == DSL_GRID) {
    struct dsl_val *v[2];
    for (int i = 0; i < 2; i++)
      if (!(v[i] = dsl_as_index(f, &in[i], "operand of cdiv")))
        return NULL;
    return dsl_new_expr(f, DT_INDEX, expr_op2(&f->m->exprs, EXPR_CDIV, v[0]->e, v[1]->e));
  }
  const struct dsl_val *dev = a->kind == DSL_DEV ? a->dev : b->dev;
  if (!dtype_is_int((enum dtype)dev->t.dtype)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "cdiv takes integers, got %s",
                  dsl_describe_type(f, dev->t));
    return NULL;
  }
  /* -((-a) // b): no sum that could overflow, and floor division does the rest. */
  struct dsl_opnd neg = *a;
  if (a->kind == DSL_DEV) {
    struct dsl_val *v = dsl_elem(f, IR_NEG, "cdiv", 1, a, DT_COUNT);
    if (!v)
      return NULL;
    neg = dsl_opnd_dev(v);
  } else {
    neg.i = -neg.i;
    neg.f = -neg.f;
  }
  in[0] = neg;
  struct dsl_val *q = dsl_elem(f, IR_FLOORDIV, "cdiv", 2, in, DT_COUNT);
  return one(f, IR_NEG, "cdiv", q);
}

int dsl_fn_global_cdiv(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  if (lua_gettop(L) != 2) {
    fe_soft_error(f->fe, DIAG_OPERAND, "cdiv takes (a, b), got %d value%s", lua_gettop(L),
                  lua_gettop(L) == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  if (fe_is_dev(L, 1) || fe_is_dev(L, 2)) {
    struct dsl_opnd a, b;
    bool ok = dsl_opnd_at(f, 1, "cdiv", &a);
    ok = dsl_opnd_at(f, 2, "cdiv", &b) && ok;
    return dsl_push(f, ok ? cdiv_dev(f, &a, &b) : NULL);
  }
  int ia, ib;
  lua_Integer a = lua_tointegerx(L, 1, &ia), b = lua_tointegerx(L, 2, &ib);
  if (!ia || !ib || b <= 0)
    fe_error(f->fe, DIAG_OPERAND, "cdiv takes integers, the second at least 1; got %s and %s",
             dsl_describe(f, 1), dsl_describe(f, 2));
  lua_Integer q = a / b;
  lua_pushinteger(L, a % b > 0 ? q + 1 : q);
  return 1;
}

void dsl_open_math(lua_State *L) {
  lua_pushnumber(L, HUGE_VAL);
  lua_setglobal(L, "inf");
  lua_pushnumber(L, 1.44269504088896340736);
  lua_setglobal(L, "log2e");
  lua_pushnumber(L, 3.14159265358979323846);
  lua_setglobal(L, "pi");
}
