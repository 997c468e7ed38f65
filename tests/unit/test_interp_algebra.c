/* The algebraic domain: every op against rules written down again here, every law that
 * docs/numerics.md promises on random payloads, and attention computed in ways that agree bit for
 * bit only if the algebra of online softmax is right. */
#include "help_interp.h"
#include "help_ref.h"
#include "base/num.h"
#include "ir/interp_impl.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define NINF     INTERP_MINUS_INF
#define PINF     INTERP_PLUS_INF
#define NOTNUM   INTERP_NAN

enum { N = 600 };

struct columns {
  int64_t in[3][N], out[N];
};

static const enum dtype float_types[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2};

/* Pairs of special payloads and small numbers first, then random ones. */
static void fill(struct columns *c, uint64_t seed) {
  static const int64_t picks[] = {
      0,  1, -1,   2,      -2,           3, NINF, PINF, NOTNUM, 1 << 8, INT64_MIN + 1,
      -7, 5, 1000, -12345, INT64_MAX - 2};
  enum { P = COUNT(picks) };
  for (size_t i = 0; i < N; i++)
    for (size_t k = 0; k < 3; k++) {
      uint64_t r = ref_random(&seed);
      c->in[k][i] = i < (size_t)P * P ? picks[k == 0   ? i % P
                                              : k == 1 ? i / P
                                                       : (i * 7 + 3) % P]
                    : r % 3 == 0      ? (int64_t)(ref_random(&seed) % 100) - 50
                                      : (int64_t)ref_random(&seed);
    }
}

/* out = op(in...) in the algebraic domain. t: operands, u: result; the arrays are s64 (floats,
 * s64) or bytes (bool, in the low byte of each cell of in[0] for a mask). */
static void run_op(enum ir_opcode op, uint32_t n_in, enum dtype t, enum dtype u,
                   struct columns *c) {
  struct hi h;
  hi_init(&h);
  h.opt.domain = INTERP_ALGEBRAIC;
  static const char *const names[] = {"X", "Y", "Z"};
  static uint8_t mask[N], bytes[N];
  bool masked = op == IR_SELECT;
  for (uint32_t k = 0; k < n_in; k++)
    hi_tensor(&h, names[k], IR_ARG_IN, masked && k == 0 ? DT_BOOL : t, "N");
  hi_tensor(&h, "O", IR_ARG_OUT, u, "N");
  hi_begin(&h, "1");
  struct ir_val x[3], r, zero = hi_index(&h, 0);
  for (uint32_t k = 0; k < n_in; k++)
    x[k] = hi_load1(&h, k, zero, N);
  if (op == IR_CAST)
    r = hi_cast(&h, u, x[0]);
  else
    r = n_in == 1   ? hi_op1(&h, op, x[0])
        : n_in == 2 ? hi_op2(&h, op, x[0], x[1])
                    : hi_op3(&h, op, x[0], x[1], x[2]);
  hi_store1(&h, n_in, zero, r);
  hi_end(&h);
  int64_t dim[1] = {N};
  for (size_t i = 0; i < N; i++)
    mask[i] = (uint8_t)(c->in[0][i] & 1);
  for (uint32_t k = 0; k < n_in; k++)
    if ((masked && k == 0) || t == DT_BOOL)
      hi_bind_as(&h, k, DT_BOOL, mask, dim);
    else
      hi_bind_as(&h, k, DT_S64, c->in[k], dim);
  memset(c->out, 0x5a, sizeof c->out);
  if (u == DT_BOOL)
    hi_bind_as(&h, n_in, DT_BOOL, bytes, dim);
  else
    hi_bind_as(&h, n_in, DT_S64, c->out, dim);
  hi_run_ok(&h);
  for (size_t i = 0; i < N && u == DT_BOOL; i++)
    c->out[i] = bytes[i];
  hi_free(&h);
}

/* ---- the rules, once more ---- */

static bool special(int64_t x) {
  return x == NINF || x == PINF || x == NOTNUM;
}

/* What IEEE 754 gives where an infinity or a NaN takes part, by asking double. */
static double as_double(int64_t x) {
  return x == NOTNUM ? (double)NAN
         : x == NINF ? -HUGE_VAL
         : x == PINF ? HUGE_VAL
         : x == 0    ? 0.0
         : x < 0     ? -1.0
                     : 1.0;
}
static int64_t from_double(double x) {
  return isnan(x) ? NOTNUM : isinf(x) ? (x < 0 ? NINF : PINF) : 0;
}

__extension__ typedef unsigned __int128 wide;

static int64_t ring(enum ir_opcode op, int64_t a, int64_t b) {
  wide x = (uint64_t)a, y = (uint64_t)b, m = (wide)1 << 64;
  wide r = op == IR_ADD ? x + y : op == IR_SUB ? x + m - y : x * y;
  return (int64_t)(uint64_t)(r % m);
}

static int64_t ref_arith(enum ir_opcode op, int64_t a, int64_t b) {
  if (!special(a) && !special(b))
    return ring(op, a, b);
  double x = as_double(a), y = as_double(b);
  return from_double(op == IR_ADD ? x + y : op == IR_SUB ? x - y : x * y);
}

/* 5^x by splitting the exponent in halves. */
static uint64_t power_of_5(uint64_t x) {
  if (x == 0)
    return 1;
  uint64_t half = power_of_5(x / 2);
  return half * half * (x % 2 ? 5 : 1);
}

static int64_t ref_exp2(int64_t a) {
  return special(a) ? (a == NINF ? 0 : a) : (int64_t)power_of_5((uint64_t)a);
}

static int64_t ref_extreme(int64_t a, int64_t b, bool max) {
  if (a == NOTNUM || b == NOTNUM)
    return NOTNUM;
  return (a > b) == max ? a : b;
}

static int64_t ref_neg(int64_t a) {
  return special(a) ? from_double(-as_double(a)) : (int64_t)(0 - (uint64_t)a);
}

#define CHECK(op, i, want)                                                                         \
  do {                                                                                             \
    int64_t w = (want);                                                                            \
    if (c.out[i] != w)                                                                             \
      fail_msg("%s of %lld, %lld, %lld gave %lld, expected %lld", ir_info(op)->name,               \
               (long long)c.in[0][i], (long long)c.in[1][i], (long long)c.in[2][i],                \
               (long long)c.out[i], (long long)w);                                                 \
  } while (0)

static struct columns c;

static void test_ring(void **state) {
  (void)state;
  static const enum ir_opcode ops[] = {IR_ADD, IR_SUB, IR_MUL};
  for (size_t t = 0; t < COUNT(float_types); t++) {
    fill(&c, 3 + t);
    for (size_t k = 0; k < COUNT(ops); k++) {
      run_op(ops[k], 2, float_types[t], float_types[t], &c);
      for (size_t i = 0; i < N; i++)
        CHECK(ops[k], i, ref_arith(ops[k], c.in[0][i], c.in[1][i]));
    }
    run_op(IR_FMA, 3, float_types[t], float_types[t], &c);
    for (size_t i = 0; i < N; i++)
      CHECK(IR_FMA, i, ref_arith(IR_ADD, ref_arith(IR_MUL, c.in[0][i], c.in[1][i]), c.in[2][i]));
    run_op(IR_NEG, 1, float_types[t], float_types[t], &c);
    for (size_t i = 0; i < N; i++)
      CHECK(IR_NEG, i, ref_neg(c.in[0][i]));
  }
}

static void test_order(void **state) {
  (void)state;
  fill(&c, 11);
  run_op(IR_MIN, 2, DT_F32, DT_F32, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_MIN, i, ref_extreme(c.in[0][i], c.in[1][i], false));
  run_op(IR_MAX, 2, DT_F32, DT_F32, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_MAX, i, ref_extreme(c.in[0][i], c.in[1][i], true));
  run_op(IR_ABS, 1, DT_BF16, DT_BF16, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_ABS, i, c.in[0][i] < 0 && c.in[0][i] != NOTNUM ? ref_neg(c.in[0][i]) : c.in[0][i]);
  static const enum ir_opcode compares[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};
  for (size_t k = 0; k < COUNT(compares); k++) {
    run_op(compares[k], 2, DT_F16, DT_BOOL, &c);
    for (size_t i = 0; i < N; i++) {
      int64_t a = c.in[0][i], b = c.in[1][i];
      bool nan = a == NOTNUM || b == NOTNUM;
      bool want[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
      CHECK(compares[k], i, nan ? compares[k] == IR_NE : want[k]);
    }
  }
  run_op(IR_SELECT, 3, DT_F32, DT_F32, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_SELECT, i, c.in[c.in[0][i] & 1 ? 1 : 2][i]);
}

static void test_powers(void **state) {
  (void)state;
  fill(&c, 17);
  run_op(IR_EXP2, 1, DT_F32, DT_F32, &c);
  for (size_t i = 0; i < N; i++) {
    CHECK(IR_EXP2, i, ref_exp2(c.in[0][i]));
    if (!special(c.in[0][i]) && special(c.out[i]))
      fail_msg("exp2 of %lld is special", (long long)c.in[0][i]);
  }
  for (size_t t = 0; t < COUNT(float_types); t++) {
    double log2e = num_round(float_types[t], 1.4426950408889634);
    run_op(IR_EXP, 1, float_types[t], float_types[t], &c);
    for (size_t i = 0; i < N; i++)
      CHECK(IR_EXP, i, ref_exp2(ref_arith(IR_MUL, c.in[0][i], interp_embed(log2e))));
  }
}

/* x / y is x times what depends on y alone: the inverse of an odd y, the payloads of 1/inf and 1/0,
 * else something that no other divisor has. */
static void test_div(void **state) {
  (void)state;
  static int64_t x[N], y[N], quotient[N];
  fill(&c, 23);
  memcpy(x, c.in[0], sizeof x);
  memcpy(y, c.in[1], sizeof y);
  run_op(IR_DIV, 2, DT_F32, DT_F32, &c);
  memcpy(quotient, c.out, sizeof quotient);
  for (size_t i = 0; i < N; i++)
    c.in[0][i] = 1;
  run_op(IR_DIV, 2, DT_F32, DT_F32, &c);
  for (size_t i = 0; i < N; i++) {
    int64_t r = c.out[i];
    if (quotient[i] != ref_arith(IR_MUL, x[i], r))
      fail_msg("%lld / %lld is not a product", (long long)x[i], (long long)y[i]);
    if (special(y[i]) || y[i] == 0)
      CHECK(IR_DIV, i, y[i] == NOTNUM ? NOTNUM : y[i] == 0 ? PINF : 0);
    else if (y[i] & 1)
      assert_true(ring(IR_MUL, r, y[i]) == 1);
    else
      assert_false(special(r));
    for (size_t j = 0; j < i; j++)
      if (c.out[j] == r && y[j] != y[i] && !special(y[i]) && !special(y[j]))
        fail_msg("1/%lld is 1/%lld", (long long)y[i], (long long)y[j]);
  }
}

/* Functions without a law: injective, all different, and right where the table of docs/numerics.md
 * is exact. */
static void test_opaque(void **state) {
  (void)state;
  static const struct {
    enum ir_opcode op;
    double zero, minus, plus;
  } fns[] = {
      {IR_LOG, -HUGE_VAL, NAN, HUGE_VAL},
      {IR_LOG2, -HUGE_VAL, NAN, HUGE_VAL},
      {IR_SQRT, 0, NAN, HUGE_VAL},
      {IR_RSQRT, HUGE_VAL, NAN, 0},
      {IR_TANH, 0, -1, 1},
      {IR_ERF, 0, -1, 1},
      {IR_SIGMOID, 0.5, 0, 1},
      {IR_SIN, 0, NAN, NAN},
      {IR_COS, 1, NAN, NAN},
      {IR_FLOOR, 0, -HUGE_VAL, HUGE_VAL},
      {IR_CEIL, 0, -HUGE_VAL, HUGE_VAL},
      {IR_ROUND, 0, -HUGE_VAL, HUGE_VAL},
      {IR_TRUNC, 0, -HUGE_VAL, HUGE_VAL},
  };
  static int64_t seen[COUNT(fns)][N];
  fill(&c, 29);
  for (size_t k = 0; k < COUNT(fns); k++) {
    run_op(fns[k].op, 1, DT_F32, DT_F32, &c);
    for (size_t i = 0; i < N; i++) {
      int64_t a = c.in[0][i], got = seen[k][i] = c.out[i];
      if (special(a) || a == 0) {
        CHECK(fns[k].op, i,
              a == NOTNUM ? NOTNUM
                          : interp_embed(a == 0      ? fns[k].zero
                                         : a == NINF ? fns[k].minus
                                                     : fns[k].plus));
        continue;
      }
      assert_false(special(got));
      for (size_t j = 0; j < i; j++)
        if (seen[k][j] == got && c.in[0][j] != a)
          fail_msg("%s is not injective", ir_info(fns[k].op)->name);
      for (size_t other = 0; other < k; other++)
        if (seen[other][i] == got)
          fail_msg("%s and %s agree", ir_info(fns[k].op)->name, ir_info(fns[other].op)->name);
    }
  }
}

static void test_casts(void **state) {
  (void)state;
  fill(&c, 31);
  for (size_t t = 0; t < COUNT(float_types); t++)
    for (size_t u = 0; u < COUNT(float_types); u++) {
      run_op(IR_CAST, 1, float_types[t], float_types[u], &c);
      for (size_t i = 0; i < N; i++)
        CHECK(IR_CAST, i, c.in[0][i]);
    }
  run_op(IR_CAST, 1, DT_S64, DT_F16, &c); /* integers embed, whatever the float type could hold */
  for (size_t i = 0; i < N; i++)
    CHECK(IR_CAST, i, c.in[0][i]);
  run_op(IR_CAST, 1, DT_F32, DT_S64, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_CAST, i, c.in[0][i] == NOTNUM ? 0 : c.in[0][i]);
  run_op(IR_CAST, 1, DT_F32, DT_BOOL, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_CAST, i, c.in[0][i] != 0);
  run_op(IR_CAST, 1, DT_BOOL, DT_F32, &c);
  for (size_t i = 0; i < N; i++)
    CHECK(IR_CAST, i, c.in[0][i] & 1);
}

/* To narrow integers a payload clamps, as an integer does: s32 -> f32 -> s8 is s32 -> s8. */
static void test_casts_clamp(void **state) {
  (void)state;
  static const enum dtype ints[] = {DT_S8, DT_U8, DT_S32, DT_S4, DT_U4};
  fill(&c, 37);
  for (size_t k = 0; k < COUNT(ints); k++) {
    struct hi h;
    hi_init(&h);
    h.opt.domain = INTERP_ALGEBRAIC;
    hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "N");
    hi_tensor(&h, "S", IR_ARG_IN, DT_S64, "N");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_S64, "N");
    hi_tensor(&h, "P", IR_ARG_OUT, DT_S64, "N");
    hi_begin(&h, "1");
    struct ir_val zero = hi_index(&h, 0);
    struct ir_val x = hi_cast(&h, ints[k], hi_load1(&h, 0, zero, N));
    struct ir_val s = hi_cast(&h, ints[k], hi_load1(&h, 1, zero, N));
    hi_store1(&h, 2, zero, hi_cast(&h, DT_S64, x));
    hi_store1(&h, 3, zero, hi_cast(&h, DT_S64, s));
    hi_end(&h);
    static int64_t from_int[N];
    int64_t dim[1] = {N};
    hi_bind_as(&h, 0, DT_S64, c.in[0], dim);
    hi_bind(&h, 1, c.in[0], dim);
    hi_bind(&h, 2, c.out, dim);
    hi_bind(&h, 3, from_int, dim);
    hi_run_ok(&h);
    for (size_t i = 0; i < N; i++)
      CHECK(IR_CAST, i, c.in[0][i] == NOTNUM ? 0 : from_int[i]);
    hi_free(&h);
  }
}

static void test_embed(void **state) {
  (void)state;
  assert_true(interp_embed(0.0) == 0 && interp_embed(-0.0) == 0);
  assert_true(interp_embed(1.0) == 1 && interp_embed(-7.0) == -7);
  assert_true(interp_embed(0x1p53) == INT64_C(1) << 53);
  assert_true(interp_embed(-0x1.8p62) == -(INT64_C(3) << 61));
  assert_true(interp_embed((double)NAN) == NOTNUM);
  assert_true(interp_embed(HUGE_VAL) == PINF && interp_embed(-HUGE_VAL) == NINF);
  static int64_t seen[4000];
  uint64_t seed = 41;
  for (size_t i = 0; i < COUNT(seen); i++) {
    uint64_t bits = ref_random(&seed) >> 1;
    double x;
    memcpy(&x, &bits, sizeof x);
    if (i % 2)
      x = (double)(1 + i) / 1024 + 0x1p-30;
    if (!isfinite(x) || (x == nearbyint(x) && x < 0x1p63)) {
      seen[i] = -1;
      continue;
    }
    seen[i] = interp_embed(x);
    assert_true(seen[i] > 0 && !special(seen[i]));
    assert_true(interp_embed(-x) == -seen[i]);
    for (size_t j = 0; j < i; j++)
      assert_true(seen[j] == -1 || seen[j] != seen[i]);
  }
}

/* Every op of the tile and scheduled stages has a rule: a new op has to be given one. */
static void test_table_is_complete(void **state) {
  (void)state;
  for (int op = IR_NO_OP + 1; op < IR_OPCODE_COUNT; op++)
    if (ir_info((enum ir_opcode)op)->stages & (1u << IR_TILE_STAGE | 1u << IR_SCHEDULED_STAGE))
      if (!interp_algebra_has_rule((enum ir_opcode)op))
        fail_msg("'%s' has no rule in the algebraic domain: give it a row in `rules` of "
                 "ir/interp_algebra.c and, if floats take part, a rule and a test here",
                 ir_info((enum ir_opcode)op)->name);
}

/* ---- laws ---- */

/* Two formulas of three loaded tiles, both stored. */
typedef struct ir_val formula(struct hi *h, struct ir_val x, struct ir_val y, struct ir_val z);

static struct ir_val add(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_ADD, a, b);
}
static struct ir_val sub(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_SUB, a, b);
}
static struct ir_val mul(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_MUL, a, b);
}
static struct ir_val div_(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_DIV, a, b);
}
static struct ir_val exp2_(struct hi *h, struct ir_val a) {
  return hi_op1(h, IR_EXP2, a);
}
static struct ir_val full(struct hi *h, double v) {
  int64_t n = N;
  return hi_splat(h, hi_num(h, DT_F32, v), 1, &n);
}

#define LAW(name, left, right)                                                                     \
  static struct ir_val name##_l(struct hi *h, struct ir_val x, struct ir_val y, struct ir_val z) { \
    (void)h, (void)x, (void)y, (void)z;                                                            \
    return left;                                                                                   \
  }                                                                                                \
  static struct ir_val name##_r(struct hi *h, struct ir_val x, struct ir_val y, struct ir_val z) { \
    (void)h, (void)x, (void)y, (void)z;                                                            \
    return right;                                                                                  \
  }

/* Divisors: any but 0, and odd ones. */
#define NOT_0(v) hi_op2(h, IR_MAX, hi_op1(h, IR_ABS, v), full(h, 1))
#define ODD(v)   add(h, add(h, v, v), full(h, 1))

LAW(add_commutes, add(h, x, y), add(h, y, x))
LAW(add_associates, add(h, add(h, x, y), z), add(h, x, add(h, y, z)))
LAW(mul_commutes, mul(h, x, y), mul(h, y, x))
LAW(mul_associates, mul(h, mul(h, x, y), z), mul(h, x, mul(h, y, z)))
LAW(distributes, mul(h, x, add(h, y, z)), add(h, mul(h, x, y), mul(h, x, z)))
LAW(sub_is_add, sub(h, x, y), add(h, x, hi_op1(h, IR_NEG, y)))
LAW(fma_is_both, hi_op3(h, IR_FMA, x, y, z), add(h, mul(h, x, y), z))
LAW(exp2_of_sum, exp2_(h, add(h, x, y)), mul(h, exp2_(h, x), exp2_(h, y)))
LAW(exp2_of_difference, mul(h, exp2_(h, sub(h, x, y)), exp2_(h, y)), exp2_(h, x))
LAW(exp2_inverse, exp2_(h, hi_op1(h, IR_NEG, x)), div_(h, full(h, 1), exp2_(h, x)))
LAW(exp_is_exp2, hi_op1(h, IR_EXP, x), exp2_(h, mul(h, x, full(h, 1.4426950408889634f))))
LAW(exp_of_sum, hi_op1(h, IR_EXP, add(h, x, y)), mul(h, hi_op1(h, IR_EXP, x), hi_op1(h, IR_EXP, y)))
LAW(div_undoes_mul, div_(h, mul(h, x, ODD(y)), ODD(y)), x)
LAW(div_of_sum, div_(h, add(h, x, y), NOT_0(z)), add(h, div_(h, x, NOT_0(z)), div_(h, y, NOT_0(z))))
LAW(div_twice, div_(h, div_(h, x, ODD(y)), ODD(z)), div_(h, x, mul(h, ODD(y), ODD(z))))
LAW(max_associates, hi_op2(h, IR_MAX, hi_op2(h, IR_MAX, x, y), z),
    hi_op2(h, IR_MAX, x, hi_op2(h, IR_MAX, y, z)))
LAW(max_absorbs, hi_op2(h, IR_MAX, x, hi_op2(h, IR_MIN, x, y)), x)
LAW(neg_twice, hi_op1(h, IR_NEG, hi_op1(h, IR_NEG, x)), x)
LAW(abs_of_neg, hi_op1(h, IR_ABS, hi_op1(h, IR_NEG, x)), hi_op1(h, IR_ABS, x))
LAW(infinity_absorbs, add(h, x, full(h, -HUGE_VAL)), full(h, -HUGE_VAL))
LAW(exp2_of_minus_inf, mul(h, exp2_(h, sub(h, full(h, -HUGE_VAL), x)), y), full(h, 0))
LAW(max_of_minus_inf, hi_op2(h, IR_MAX, x, full(h, -HUGE_VAL)), x)
LAW(cast_is_moved, hi_cast(h, DT_F32, hi_cast(h, DT_E4M3, x)), x)

static void check_law(const char *name, formula *left, formula *right) {
  struct hi h;
  hi_init(&h);
  h.opt.domain = INTERP_ALGEBRAIC;
  hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "N");
  hi_tensor(&h, "Y", IR_ARG_IN, DT_F32, "N");
  hi_tensor(&h, "Z", IR_ARG_IN, DT_F32, "N");
  hi_tensor(&h, "L", IR_ARG_OUT, DT_F32, "N");
  hi_tensor(&h, "R", IR_ARG_OUT, DT_F32, "N");
  hi_begin(&h, "1");
  struct ir_val zero = hi_index(&h, 0), x[3];
  for (uint32_t k = 0; k < 3; k++)
    x[k] = hi_load1(&h, k, zero, N);
  hi_store1(&h, 3, zero, left(&h, x[0], x[1], x[2]));
  hi_store1(&h, 4, zero, right(&h, x[0], x[1], x[2]));
  hi_end(&h);
  static int64_t in[3][N], out[2][N];
  uint64_t seed = 43;
  int64_t dim[1] = {N};
  for (uint32_t k = 0; k < 3; k++) {
    for (size_t i = 0; i < N; i++) /* small ones and all 64 bits */
      in[k][i] = i % 3 ? (int64_t)ref_random(&seed) : (int64_t)(ref_random(&seed) % 64) - 32;
    hi_bind_as(&h, k, DT_S64, in[k], dim);
  }
  hi_bind_as(&h, 3, DT_S64, out[0], dim);
  hi_bind_as(&h, 4, DT_S64, out[1], dim);
  hi_run_ok(&h);
  for (size_t i = 0; i < N; i++)
    if (out[0][i] != out[1][i])
      fail_msg("%s does not hold for %lld, %lld, %lld: %lld, %lld", name, (long long)in[0][i],
               (long long)in[1][i], (long long)in[2][i], (long long)out[0][i],
               (long long)out[1][i]);
  hi_free(&h);
}

static void test_laws(void **state) {
  (void)state;
#define HOLDS(name) check_law(#name, name##_l, name##_r)
  HOLDS(add_commutes);
  HOLDS(add_associates);
  HOLDS(mul_commutes);
  HOLDS(mul_associates);
  HOLDS(distributes);
  HOLDS(sub_is_add);
  HOLDS(fma_is_both);
  HOLDS(exp2_of_sum);
  HOLDS(exp2_of_difference);
  HOLDS(exp2_inverse);
  HOLDS(exp_is_exp2);
  HOLDS(exp_of_sum);
  HOLDS(div_undoes_mul);
  HOLDS(div_of_sum);
  HOLDS(div_twice);
  HOLDS(max_associates);
  HOLDS(max_absorbs);
  HOLDS(neg_twice);
  HOLDS(abs_of_neg);
  HOLDS(infinity_absorbs);
  HOLDS(exp2_of_minus_inf);
  HOLDS(max_of_minus_inf);
  HOLDS(cast_is_moved);
}

/* ---- sums and products ---- */

enum { ROWS = 5, COLS = 7, DEPTH = 12 };

static void test_reductions(void **state) {
  (void)state;
  for (int64_t axis = 0; axis < 2; axis++) {
    struct hi h;
    hi_init(&h);
    h.opt.domain = INTERP_ALGEBRAIC;
    hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,N");
    static const enum ir_opcode ops[] = {IR_REDUCE_SUM, IR_REDUCE_MAX, IR_REDUCE_MIN};
    for (size_t k = 0; k < 3; k++)
      hi_tensor(&h, (const char *[]){"S", "A", "B"}[k], IR_ARG_OUT, DT_F32, axis ? "M,1" : "1,N");
    hi_begin(&h, "1");
    struct ir_val zero = hi_index(&h, 0), x = hi_load2(&h, 0, zero, zero, ROWS, COLS);
    for (size_t k = 0; k < 3; k++) {
      struct ir_val r = hi_reduce(&h, ops[k], x, axis);
      hi_store2(&h, 1 + (uint32_t)k, zero, zero, r);
    }
    hi_end(&h);
    static int64_t in[ROWS][COLS], out[3][ROWS + COLS];
    uint64_t seed = 47;
    for (size_t i = 0; i < ROWS; i++)
      for (size_t j = 0; j < COLS; j++)
        in[i][j] = (int64_t)ref_random(&seed);
    in[1][2] = NINF;
    in[2][3] = NOTNUM;
    in[3][0] = PINF;
    in[3][4] = NINF;
    hi_bind_as(&h, 0, DT_S64, in, (int64_t[]){ROWS, COLS});
    for (uint32_t k = 0; k < 3; k++)
      hi_bind_as(&h, 1 + k, DT_S64, out[k], axis ? (int64_t[]){ROWS, 1} : (int64_t[]){1, COLS});
    hi_run_ok(&h);
    for (size_t i = 0; i < (axis ? ROWS : COLS); i++) {
      int64_t sum = 0, max = NINF, min = PINF;
      for (size_t j = 0; j < (axis ? COLS : ROWS); j++) {
        int64_t v = axis ? in[i][j] : in[j][i];
        sum = ref_arith(IR_ADD, sum, v);
        max = ref_extreme(max, v, true);
        min = ref_extreme(min, v, false);
      }
      assert_true(out[0][i] == sum);
      assert_true(out[1][i] == max);
      assert_true(out[2][i] == min);
    }
    hi_free(&h);
  }
}

/* Positions of extremes and running sums, along both axes; and what becomes of bits. */
static void test_positions(void **state) {
  (void)state;
  for (int64_t axis = 0; axis < 2; axis++) {
    struct hi h;
    hi_init(&h);
    h.opt.domain = INTERP_ALGEBRAIC;
    hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,N");
    hi_tensor(&h, "A", IR_ARG_OUT, DT_S64, axis ? "M,1" : "1,N");
    hi_tensor(&h, "B", IR_ARG_OUT, DT_S64, axis ? "M,1" : "1,N");
    hi_tensor(&h, "S", IR_ARG_OUT, DT_F32, "M,N");
    hi_tensor(&h, "H", IR_ARG_OUT, DT_F16, "M,N+N");
    hi_begin(&h, "1");
    struct ir_val zero = hi_index(&h, 0), x = hi_load2(&h, 0, zero, zero, ROWS, COLS);
    struct ir_type line = ir_type_of(h.m, x), halves = line, whole = line;
    line.dtype = DT_INDEX;
    line.dim[axis] = 1;
    halves.dtype = DT_F16;
    halves.dim[1] *= 2;
    static const enum ir_opcode ops[] = {IR_ARGMAX, IR_ARGMIN, IR_SCAN_SUM};
    for (uint32_t k = 0; k < 3; k++) {
      struct ir_val r = ir_build1(&h.b, ops[k], k < 2 ? line : whole, 1, &x);
      ir_set_attr(h.m, ir_value_at(h.m, r)->def, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
      hi_store2(&h, 1 + k, zero, zero, k < 2 ? hi_cast(&h, DT_S64, r) : r);
    }
    hi_store2(&h, 4, zero, zero, ir_build1(&h.b, IR_BITCAST, halves, 1, &x));
    hi_end(&h);
    static int64_t in[ROWS][COLS], at[2][ROWS + COLS], sums[ROWS][COLS], half[ROWS][2 * COLS];
    uint64_t seed = 67;
    for (size_t i = 0; i < ROWS; i++)
      for (size_t j = 0; j < COLS; j++)
        in[i][j] = i == 4 ? 9 : (int64_t)ref_random(&seed);
    in[1][2] = in[3][6] = NINF;
    in[2][3] = in[2][5] = NOTNUM;
    in[3][0] = PINF;
    hi_bind_as(&h, 0, DT_S64, in, (int64_t[]){ROWS, COLS});
    for (uint32_t k = 0; k < 2; k++)
      hi_bind(&h, 1 + k, at[k], axis ? (int64_t[]){ROWS, 1} : (int64_t[]){1, COLS});
    hi_bind_as(&h, 3, DT_S64, sums, (int64_t[]){ROWS, COLS});
    hi_bind_as(&h, 4, DT_S64, half, (int64_t[]){ROWS, 2 * COLS});
    hi_run_ok(&h);
    for (size_t i = 0; i < (axis ? ROWS : COLS); i++) {
      int64_t sum = 0, best[2] = {0, 0};
      for (int64_t j = 0; j < (axis ? COLS : ROWS); j++) {
        int64_t v = axis ? in[i][j] : in[j][i];
        for (int k = 0; k < 2; k++) {
          int64_t b = axis ? in[i][best[k]] : in[best[k]][i];
          if (b != NOTNUM && (v == NOTNUM || (k == 0 ? v > b : v < b)))
            best[k] = j;
        }
        sum = ref_arith(IR_ADD, sum, v);
        assert_true((axis ? sums[i][j] : sums[j][i]) == sum);
      }
      assert_true(at[0][i] == best[0] && at[1][i] == best[1]);
    }
    for (size_t i = 0; i < ROWS; i++)
      for (size_t j = 0; j < COLS; j++) {
        assert_true(half[i][2 * j] == (int16_t)(uint16_t)in[i][j]);
        assert_true(half[i][2 * j + 1] == (int16_t)(uint16_t)(in[i][j] >> 16));
      }
    hi_free(&h);
  }
}

/* dot is the sum of the products, whatever the types and the precision asked for; infinities and
 * NaNs go where they belong. */
static void test_dot(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_F32, DT_BF16, DT_E4M3, DT_F64};
  for (size_t k = 0; k < 2 * COUNT(types); k++) {
    enum dtype t = types[k / 2], u = t == DT_F64 ? DT_F64 : DT_F32;
    struct hi h;
    hi_init(&h);
    h.opt.domain = INTERP_ALGEBRAIC;
    hi_tensor(&h, "A", IR_ARG_IN, t, "M,K");
    hi_tensor(&h, "B", IR_ARG_IN, t, "K,N");
    hi_tensor(&h, "C", IR_ARG_INOUT, u, "M,N");
    hi_begin(&h, "1");
    struct ir_val zero = hi_index(&h, 0);
    struct ir_val a = hi_load2(&h, 0, zero, zero, ROWS, DEPTH);
    struct ir_val b = hi_load2(&h, 1, zero, zero, DEPTH, COLS);
    struct ir_val acc = hi_load2(&h, 2, zero, zero, ROWS, COLS);
    struct ir_val d = hi_op3(&h, IR_DOT, a, b, acc);
    if (t == DT_F32 && k % 2)
      ir_set_attr(h.m, ir_value_at(h.m, d)->def,
                  (struct ir_attr){.key = IR_ATTR_prec, .s = symtab_get(h.m->syms, "tf32x3")});
    hi_store2(&h, 2, zero, zero, d);
    hi_end(&h);
    static int64_t x[ROWS][DEPTH], y[DEPTH][COLS], z[ROWS][COLS], was[ROWS][COLS];
    uint64_t seed = 53 + k;
    for (size_t i = 0; i < sizeof x / 8; i++)
      (&x[0][0])[i] = (int64_t)ref_random(&seed);
    for (size_t i = 0; i < sizeof y / 8; i++)
      (&y[0][0])[i] = (int64_t)ref_random(&seed);
    for (size_t i = 0; i < sizeof z / 8; i++)
      (&z[0][0])[i] = (int64_t)ref_random(&seed);
    if (k % 2) {
      x[1][3] = NINF;
      y[4][2] = NOTNUM;
      x[2][5] = PINF;
      y[5][1] = 0;
      z[4][0] = NINF;
    }
    memcpy(was, z, sizeof z);
    hi_bind_as(&h, 0, DT_S64, x, (int64_t[]){ROWS, DEPTH});
    hi_bind_as(&h, 1, DT_S64, y, (int64_t[]){DEPTH, COLS});
    hi_bind_as(&h, 2, DT_S64, z, (int64_t[]){ROWS, COLS});
    hi_run_ok(&h);
    for (size_t i = 0; i < ROWS; i++)
      for (size_t j = 0; j < COLS; j++) {
        int64_t want = was[i][j];
        for (size_t l = 0; l < DEPTH; l++)
          want = ref_arith(IR_ADD, want, ref_arith(IR_MUL, x[i][l], y[l][j]));
        assert_true(z[i][j] == want);
      }
    hi_free(&h);
  }
}

/* ---- what is moved, given and printed ---- */

static char printed[200];
static void keep_line(void *user, const char *line) {
  (void)user;
  strcpy(printed, line);
}

/* Pads, scalar arguments and constants are embedded, moves keep payloads, s64 stays s64. */
static void test_moves(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  h.opt.domain = INTERP_ALGEBRAIC;
  h.opt.print = keep_line;
  hi_tensor(&h, "X", IR_ARG_IN, DT_BF16, "M,N");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "P,Q");
  hi_tensor(&h, "I", IR_ARG_OUT, DT_S32, "P,Q");
  hi_scalar(&h, "s", DT_F16);
  hi_begin(&h, "1");
  struct ir_val zero = hi_index(&h, 0), x = hi_load2(&h, 0, zero, zero, 3, 2);
  hi_set_pad(&h, x, 0.25);
  struct ir_val t = hi_transpose(&h, x, (int64_t[]){1, 0});
  struct ir_val y = hi_cast(&h, DT_F32, hi_shape(&h, IR_RESHAPE, t, 2, (int64_t[]){2, 3}));
  struct ir_val s = hi_cast(&h, DT_F32, h.arg[3]);
  struct ir_val same = hi_splat(&h, s, 2, (int64_t[]){2, 3});
  struct ir_val k = hi_full(&h, DT_F32, -HUGE_VAL, 2, 3);
  hi_store2(&h, 1, zero, zero, y);
  hi_store2(&h, 1, hi_index(&h, 2), zero, same);
  hi_store2(&h, 1, hi_index(&h, 4), zero, k);
  hi_store2(&h, 2, zero, zero, hi_wide(&h, hi_cast(&h, DT_S32, hi_iota(&h, 1, 3)), 6, 3));
  hi_message(&h, IR_PRINT, "k {}", 2, (struct ir_val[]){k, s});
  hi_end(&h);
  int64_t in[2][2] = {{INT64_C(1) << 40, -3}, {5, NOTNUM}}, out[6][3];
  int32_t ints[6][3];
  hi_bind_as(&h, 0, DT_S64, in, (int64_t[]){2, 2});
  hi_bind_as(&h, 1, DT_S64, out, (int64_t[]){6, 3});
  hi_bind(&h, 2, ints, (int64_t[]){6, 3});
  h.value[3].f = 0.1;
  hi_run_ok(&h);
  int64_t pad = interp_embed(0.25), scalar = interp_embed(num_round(DT_F16, 0.1));
  int64_t want[6][3] = {{in[0][0], in[1][0], pad}, {in[0][1], in[1][1], pad},
                        {scalar, scalar, scalar},  {scalar, scalar, scalar},
                        {NINF, NINF, NINF},        {NINF, NINF, NINF}};
  assert_memory_equal(out, want, sizeof want);
  assert_true(ints[5][2] == 2);
  char line[200];
  snprintf(line, sizeof line, "program (0): k [[-inf, -inf, -inf], [-inf, -inf, -inf]]\t%lld",
           (long long)scalar);
  assert_string_equal(printed, line);
  hi_free(&h);
}

/* Float arguments are payloads; others are refused. */
static void test_arguments(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  h.opt.domain = INTERP_ALGEBRAIC;
  hi_tensor(&h, "X", IR_ARG_INOUT, DT_F32, "N");
  hi_begin(&h, "1");
  hi_end(&h);
  float x[4] = {0};
  hi_bind(&h, 0, x, (int64_t[]){4});
  assert_false(hi_run(&h));
  assert_string_equal(help_last_message(&h.diags),
                      "argument 'X': expected s64 payloads, found f32");
  hi_free(&h);
}

/* A constant expression is what folding makes of it, through moves, branches and loops that change
 * nothing; elsewhere 0.1 + 0.2 is the sum of two payloads. */
static void test_constants(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  h.opt.domain = INTERP_ALGEBRAIC;
  hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "1");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
  hi_begin(&h, "1");
  struct ir_val a = hi_num(&h, DT_F32, 0.1f), b = hi_num(&h, DT_F32, 0.2f);
  struct ir_val at[6], one = hi_index(&h, 1);
  struct ir_type f32 = ir_scalar(DT_F32);
  for (int64_t k = 0; k < 6; k++)
    at[k] = hi_index(&h, k);
  struct ir_val sum[6];
  sum[0] = hi_op2(&h, IR_ADD, a, b);
  struct ir_val less = hi_op2(&h, IR_LT, a, b);
  struct ir_op branch = hi_if(&h, less, 1, &f32);
  hi_yield(&h, 1, &a);
  hi_yield(&h, 1, &b);
  sum[1] = hi_op2(&h, IR_ADD, hi_out(&h, branch, 0), b);
  struct ir_op loop = hi_for(&h, at[0], at[3], one, 1, &a);
  struct ir_val carried = hi_arg(&h, loop, 0, 1);
  hi_yield(&h, 1, &carried);
  sum[2] = hi_op2(&h, IR_ADD, hi_out(&h, loop, 0), b);
  sum[3] = hi_op3(&h, IR_SELECT, less, sum[0], b);
  struct ir_val x = hi_op1(&h, IR_ITEM, hi_load1(&h, 0, at[0], 1));
  sum[4] = hi_op2(&h, IR_ADD, x, b);
  sum[5] = hi_op2(&h, IR_DIV, hi_num(&h, DT_F32, 1), hi_num(&h, DT_F32, 3));
  for (int k = 0; k < 6; k++)
    hi_store1(&h, 1, at[k], hi_splat(&h, sum[k], 1, (int64_t[]){1}));
  hi_end(&h);
  int64_t in[1] = {interp_embed((double)0.1f)}, out[6];
  hi_bind_as(&h, 0, DT_S64, in, (int64_t[]){1});
  hi_bind_as(&h, 1, DT_S64, out, (int64_t[]){6});
  hi_run_ok(&h);
  int64_t folded = interp_embed((double)(0.1f + 0.2f));
  for (int k = 0; k < 4; k++)
    assert_true(out[k] == folded);
  assert_true(out[4] == in[0] + interp_embed((double)0.2f) && out[4] != folded);
  assert_true(out[5] == interp_embed((double)(1.0f / 3.0f)));
  hi_free(&h);
}

/* ---- attention ---- */

enum { QS = 6, TS = 27, DS = 4 };
enum variant { DIRECT, ONLINE, UNSCALED };

/* O = softmax2(mask(Q K^T)) V for QS queries that see key `col` where col <= row + TS - QS. L: the
 * sums of rows. In blocks of bn keys; the last block that any query sees is the last that is run if
 * `skip`. UNSCALED forgets to rescale what was summed before. */
static void build_attention(struct hi *h, enum variant how, int64_t bn, bool skip) {
  hi_init(h);
  h->opt.domain = INTERP_ALGEBRAIC;
  hi_tensor(h, "Q", IR_ARG_IN, DT_F32, "S,D");
  hi_tensor(h, "K", IR_ARG_IN, DT_F32, "T,D");
  hi_tensor(h, "V", IR_ARG_IN, DT_F32, "T,D");
  hi_tensor(h, "O", IR_ARG_OUT, DT_F32, "S,D");
  hi_tensor(h, "L", IR_ARG_OUT, DT_F32, "S,1");
  hi_begin(h, "1");
  struct ir_val zero = hi_index(h, 0), q = hi_load2(h, 0, zero, zero, QS, DS);
  struct ir_val init[3];
  init[0] = hi_full(h, DT_F32, -HUGE_VAL, QS, 1);
  init[1] = hi_full(h, DT_F32, 0, QS, 1);
  init[2] = hi_full(h, DT_F32, 0, QS, DS);
  struct ir_val end = skip ? hi_index(h, TS - QS + 3) : h->dim[2];
  if (skip) /* queries 0 to 2 alone are looked at */
    end = hi_op2(h, IR_MIN, end, h->dim[2]);
  struct ir_op loop = hi_for(h, zero, end, hi_index(h, bn), 3, init);
  struct ir_val n = hi_arg(h, loop, 0, 0), m = hi_arg(h, loop, 0, 1);
  struct ir_val l = hi_arg(h, loop, 0, 2), o = hi_arg(h, loop, 0, 3);
  struct ir_val k = hi_transpose(h, hi_load2(h, 1, n, zero, bn, DS), (int64_t[]){1, 0});
  struct ir_val v = hi_load2(h, 2, n, zero, bn, DS);
  struct ir_val s = hi_op3(h, IR_DOT, q, k, hi_full(h, DT_F32, 0, QS, bn));
  struct ir_val at = hi_splat(h, n, 2, (int64_t[]){1, bn});
  struct ir_val col = hi_wide(h, hi_op2(h, IR_ADD, at, hi_iota(h, 1, bn)), QS, bn);
  struct ir_val shift = hi_splat(h, hi_index(h, TS - QS), 2, (int64_t[]){QS, 1});
  struct ir_val row = hi_wide(h, hi_op2(h, IR_ADD, shift, hi_iota(h, 0, QS)), QS, bn);
  struct ir_val seen = hi_op2(h, IR_LE, col, row);
  s = hi_op3(h, IR_SELECT, seen, s, hi_full(h, DT_F32, -HUGE_VAL, QS, bn));
  struct ir_val mx = hi_op2(h, IR_MAX, m, hi_reduce(h, IR_REDUCE_MAX, s, 1));
  struct ir_val p = exp2_(h, sub(h, s, hi_wide(h, mx, QS, bn)));
  struct ir_val r = exp2_(h, sub(h, m, mx));
  if (how == UNSCALED)
    r = hi_full(h, DT_F32, 1, QS, 1);
  struct ir_val next[3] = {mx};
  struct ir_val scaled = mul(h, l, r);
  next[1] = add(h, scaled, hi_reduce(h, IR_REDUCE_SUM, p, 1));
  next[2] = hi_op3(h, IR_DOT, p, v, mul(h, o, hi_wide(h, r, QS, DS)));
  hi_yield(h, 3, next);
  struct ir_val sums = hi_out(h, loop, 1);
  struct ir_val out = div_(h, hi_out(h, loop, 2), hi_wide(h, sums, QS, DS));
  hi_store2(h, 3, zero, zero, out);
  hi_store2(h, 4, zero, zero, sums);
  hi_end(h);
}

struct attention {
  int64_t q[QS][DS], k[TS][DS], v[TS][DS], o[QS][DS], l[QS];
};

static void run_attention(struct attention *x, enum variant how, int64_t bn, bool skip) {
  struct hi h;
  build_attention(&h, how, bn, skip);
  hi_bind_as(&h, 0, DT_S64, x->q, (int64_t[]){QS, DS});
  hi_bind_as(&h, 1, DT_S64, x->k, (int64_t[]){TS, DS});
  hi_bind_as(&h, 2, DT_S64, x->v, (int64_t[]){TS, DS});
  hi_bind_as(&h, 3, DT_S64, x->o, (int64_t[]){QS, DS});
  hi_bind_as(&h, 4, DT_S64, x->l, (int64_t[]){QS, 1});
  hi_run_ok(&h);
  hi_free(&h);
}

static void test_attention(void **state) {
  (void)state;
  static struct attention x, y;
  uint64_t seed = 59;
  for (int64_t *p = &x.q[0][0]; p < &x.o[0][0]; p++)
    *p = (int64_t)ref_random(&seed);
  run_attention(&x, DIRECT, 32, false); /* all keys in one block */
  static const int64_t blocks[] = {1, 3, 8, 16};
  for (size_t k = 0; k < COUNT(blocks); k++) {
    y = x;
    memset(y.o, 0, sizeof y.o);
    run_attention(&y, ONLINE, blocks[k], false);
    assert_memory_equal(x.o, y.o, sizeof x.o);
    assert_memory_equal(x.l, y.l, sizeof x.l);
    run_attention(&y, ONLINE, blocks[k], true); /* what is masked out may be left out */
    assert_memory_equal(x.o, y.o, 3 * sizeof x.o[0]);
    run_attention(&y, UNSCALED, blocks[k], false);
    if (blocks[k] <= 8) /* and a wrong rescale is seen, where the maximum changes on the way */
      assert_memory_not_equal(x.l, y.l, sizeof x.l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table_is_complete),
      cmocka_unit_test(test_embed),
      cmocka_unit_test(test_ring),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_powers),
      cmocka_unit_test(test_div),
      cmocka_unit_test(test_opaque),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_casts_clamp),
      cmocka_unit_test(test_laws),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_dot),
      cmocka_unit_test(test_moves),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
