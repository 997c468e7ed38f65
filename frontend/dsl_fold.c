/* Functions of kernel Lua along an axis, beside the sums and maxima of dsl_tile.c: any and all,
 * argmax and argmin, cumsum. And random numbers. In an oracle the same names work on host
 * arrays. */
#include "base/num.h"
#include "base/random.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

/* ---- on host arrays ---- */

/* One line: n elements, `step` apart. */
static void fold_line(const struct fe_file *f, enum ir_opcode op, int64_t n, int64_t step,
                      const double *x, double *out) {
  double sum = 0;
  int64_t best = 0;
  bool any = false, all = true;
  for (int64_t k = 0; k < n; k++) {
    double v = x[k * step], b = x[best * step];
    any = any || v != 0;
    all = all && v != 0;
    if (op == IR_SCAN_SUM)
      out[k * step] = sum = dsl_round(f, sum + v);
    else if (!isnan(b) && (isnan(v) || (op == IR_ARGMAX ? v > b : v < b)))
      best = k;
  }
  if (op != IR_SCAN_SUM)
    *out = op == IR_REDUCE_ANY ? any : op == IR_REDUCE_ALL ? all : (double)best;
}

static int fold_array(lua_State *L, struct fe_file *f, enum ir_opcode op, const char *what,
                      int axis) {
  const struct dsl_array *a = dsl_to_array(L, 1);
  int64_t dim[IR_MAX_RANK] = {dsl_array_count(a)}, n = dim[0], inner = 1;
  uint32_t rank = a->rank;
  if ((axis < 0 ? n : a->dim[axis]) == 0 && op != IR_SCAN_SUM && op != IR_REDUCE_ANY &&
      op != IR_REDUCE_ALL)
    fe_error(f->fe, DIAG_OPERAND, "%s of an array without elements", what);
  struct dsl_array *copy = dsl_new_array(L, f, axis < 0 ? 1 : rank, axis < 0 ? dim : a->dim);
  dsl_array_copy(a, copy->data);
  fe_charge(f->fe, (uint64_t)n / 16 + 1);
  int64_t len = axis < 0 ? n : a->dim[axis];
  if (axis < 0) {
    double r;
    fold_line(f, op, n, 1, copy->data, &r);
    if (op == IR_ARGMAX || op == IR_ARGMIN)
      lua_pushinteger(L, (lua_Integer)r);
    else
      lua_pushboolean(L, r != 0);
    return 1;
  }
  for (uint32_t d = 0; d < rank; d++) {
    dim[d] = a->dim[d];
    inner *= (int)d > axis ? dim[d] : 1;
  }
  bool scan = op == IR_SCAN_SUM;
  if (!scan)
    dim[axis] = 1;
  struct dsl_array *out = dsl_new_array(L, f, rank, dim);
  int64_t lines = dsl_array_count(out);
  if (scan)
    lines = len ? lines / len : 0;
  for (int64_t i = 0; i < lines; i++) {
    int64_t from = i / inner * inner * len + i % inner;
    fold_line(f, op, len, inner, copy->data + from, out->data + (scan ? from : i));
  }
  return 1;
}

/* axis: 0, 1; -1: argument 2, or all where there is none. */
static int fold(lua_State *L, const char *what, enum ir_opcode op, int axis) {
  struct fe_file *f = dsl_of(L);
  int want = axis < 0 ? 2 : 1, n = lua_gettop(L);
  if (n < 1 || n > want) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes (x%s), got %d value%s", what,
                  want == 2 ? " [, axis]" : "", n, n == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  const struct dsl_array *a = dsl_to_array(L, 1);
  struct dsl_val *v = a ? NULL : dsl_val_at(f, 1, what);
  if (!a && !v)
    return dsl_push(f, NULL);
  uint32_t rank = a ? a->rank : v->t.rank;
  if (axis >= 0 && rank != 2) {
    fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH, "%s takes rank 2, got %s; use %s(x, axis)", what,
                  a ? "an array of another rank" : dsl_describe_type(f, v->t), what + 3);
    return dsl_push(f, NULL);
  }
  bool all = axis < 0 && n < 2;
  if (all && op == IR_SCAN_SUM) {
    if (rank != 1) {
      fe_soft_error(f->fe, DIAG_OPERAND, "cumsum of rank %" PRIu32 " needs an axis: cumsum(x, 1)",
                    rank);
      return dsl_push(f, NULL);
    }
    axis = 0;
    all = false;
  } else if (axis < 0 && !all) {
    axis = dsl_axis_at(f, 2, what, rank);
    if (axis < 0)
      return dsl_push(f, NULL);
  }
  if (a)
    return fold_array(L, f, op, what, all ? -1 : axis);
  return dsl_push(f, all ? dsl_fold_all(f, op, what, v)
                         : dsl_fold_axis(f, op, what, v, (uint32_t)axis));
}

#define FOLDS(X)                                                                                   \
  X(any, IR_REDUCE_ANY, -1)                                                                        \
  X(all, IR_REDUCE_ALL, -1)                                                                        \
  X(argmax, IR_ARGMAX, -1)                                                                         \
  X(argmin, IR_ARGMIN, -1)                                                                         \
  X(cumsum, IR_SCAN_SUM, -1)                                                                       \
  X(rowany, IR_REDUCE_ANY, 1)                                                                      \
  X(rowall, IR_REDUCE_ALL, 1)                                                                      \
  X(rowargmax, IR_ARGMAX, 1)                                                                       \
  X(rowargmin, IR_ARGMIN, 1)                                                                       \
  X(colany, IR_REDUCE_ANY, 0)                                                                      \
  X(colall, IR_REDUCE_ALL, 0)                                                                      \
  X(colargmax, IR_ARGMAX, 0)                                                                       \
  X(colargmin, IR_ARGMIN, 0)

#define X(name, op, axis)                                                                          \
  int dsl_fn_global_##name(lua_State *L) {                                                         \
    return fold(L, #name, op, axis);                                                               \
  }
FOLDS(X)
#undef X

/* ---- random numbers ---- */

#define TWO_PI 6.28318530717958647693

/* Words of 64-bit integers, which arrays hold as doubles: what is no such integer is made one. */
static uint32_t word_of(double seed, double counter, unsigned word) {
  uint64_t key = (uint64_t)num_load_int(DT_F64, &seed, 0);
  uint64_t at = (uint64_t)num_load_int(DT_F64, &counter, 0);
  return random_word(key, at, word);
}

static double unit(double seed, double counter, unsigned word, double add) {
  uint32_t bits = word_of(seed, counter, word);
  return ((double)(bits >> 8) + add) * 0x1p-24;
}

/* x: seed, counter, word. */
static double h_bits(const double *x) {
  return (int32_t)word_of(x[0], x[1], (unsigned)x[2]);
}
static double h_uniform(const double *x) {
  return unit(x[0], x[1], (unsigned)x[2], 0);
}
static double h_normal(const double *x) {
  return sqrt(-2 * log(unit(x[0], x[1], 0, 1))) * cos(TWO_PI * unit(x[0], x[1], 1, 0));
}

static struct dsl_val *with_num(struct fe_file *f, const char *what, enum ir_opcode op,
                                struct dsl_val *x, double y) {
  if (!x)
    return NULL;
  const struct dsl_opnd in[2] = {dsl_opnd_dev(x), dsl_opnd_num(y)};
  return dsl_elem(f, op, what, 2, in, DT_COUNT);
}

static struct dsl_val *with_int(struct fe_file *f, const char *what, enum ir_opcode op,
                                struct dsl_val *x, int64_t y) {
  if (!x)
    return NULL;
  const struct dsl_opnd in[2] = {dsl_opnd_dev(x), {.kind = DSL_INT, .i = y, .f = (double)y}};
  return dsl_elem(f, op, what, 2, in, DT_COUNT);
}

static struct dsl_val *math(struct fe_file *f, const char *what, enum ir_opcode op,
                            struct dsl_val *x) {
  if (!x)
    return NULL;
  const struct dsl_opnd in = dsl_opnd_dev(x);
  return dsl_math(f, op, what, &in);
}

/* (top 24 bits + add) / 2^24 as f32, every step of it exact */
static struct dsl_val *uniform(struct fe_file *f, const char *what, struct dsl_val *bits,
                               int64_t add) {
  struct dsl_val *top = with_int(f, what, IR_SHR, bits, 8);
  top = with_int(f, what, IR_AND, top, 0xffffff);
  if (add)
    top = with_int(f, what, IR_ADD, top, add);
  return top ? with_num(f, what, IR_MUL, dsl_cast(f, top, DT_F32), 0x1p-24) : NULL;
}

static struct dsl_val *normal(struct fe_file *f, const char *what, const struct dsl_opnd *seed,
                              const struct dsl_opnd *counter) {
  struct dsl_val *first = dsl_random(f, what, seed, counter, 0);
  struct dsl_val *second = first ? dsl_random(f, what, seed, counter, 1) : NULL;
  if (!second)
    return NULL;
  struct dsl_val *r = math(f, what, IR_LOG, uniform(f, what, first, 1)); /* of (0, 1] */
  r = math(f, what, IR_SQRT, with_num(f, what, IR_MUL, r, -2));
  struct dsl_val *turn = with_num(f, what, IR_MUL, uniform(f, what, second, 0), TWO_PI);
  turn = math(f, what, IR_COS, turn);
  if (!r || !turn)
    return NULL;
  const struct dsl_opnd in[2] = {dsl_opnd_dev(r), dsl_opnd_dev(turn)};
  return dsl_elem(f, IR_MUL, what, 2, in, DT_COUNT);
}

enum draw { DRAW_BITS, DRAW_UNIFORM, DRAW_NORMAL };

static bool is_plain_int(lua_State *L, int idx) {
  int ok = 0;
  if (lua_type(L, idx) == LUA_TNUMBER)
    (void)lua_tointegerx(L, idx, &ok);
  return ok;
}

/* (seed, counter [, word]) */
static int draw(lua_State *L, const char *what, enum draw how) {
  struct fe_file *f = dsl_of(L);
  int n = lua_gettop(L), most = how == DRAW_NORMAL ? 2 : 3;
  lua_Integer word = 0;
  if (n < 2 || n > most) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes (seed, counter%s), got %d value%s", what,
                  most == 3 ? " [, word]" : "", n, n == 1 ? "" : "s");
    return dsl_push(f, NULL);
  }
  if (n == 3) {
    word = is_plain_int(L, 3) ? lua_tointeger(L, 3) : -1;
    if (word < 0 || word > 3) {
      if (!fe_is_unknown(fe_to_dev(L, 3)))
        fe_soft_error(f->fe, DIAG_OPERAND, "the word of %s is %s; it must be 0, 1, 2 or 3", what,
                      dsl_describe(f, 3));
      return dsl_push(f, NULL);
    }
  }
  bool plain = is_plain_int(L, 1) && is_plain_int(L, 2);
  if (dsl_to_array(L, 1) || dsl_to_array(L, 2) || (plain && f->mode == DSL_HOST)) {
    lua_settop(L, 2);
    lua_pushinteger(L, word);
    dsl_array_elem(L, f, what,
                   how == DRAW_BITS      ? h_bits
                   : how == DRAW_UNIFORM ? h_uniform
                                         : h_normal,
                   1, 3);
    return 1;
  }
  struct dsl_opnd seed, counter;
  bool ok = dsl_opnd_at(f, 1, what, &seed);
  ok = dsl_opnd_at(f, 2, what, &counter) && ok;
  if (!ok)
    return dsl_push(f, NULL);
  if (how == DRAW_NORMAL)
    return dsl_push(f, normal(f, what, &seed, &counter));
  struct dsl_val *bits = dsl_random(f, what, &seed, &counter, word);
  return dsl_push(f, bits && how == DRAW_UNIFORM ? uniform(f, what, bits, 0) : bits);
}

int dsl_fn_global_random_bits(lua_State *L) {
  return draw(L, "random_bits", DRAW_BITS);
}

int dsl_fn_global_random(lua_State *L) {
  return draw(L, "random", DRAW_UNIFORM);
}

int dsl_fn_global_random_normal(lua_State *L) {
  return draw(L, "random_normal", DRAW_NORMAL);
}
