/* Elementwise ops and casts of the interpreter, for every dtype, against long double and 128-bit
 * integers, over all pairs of special values and over random bit patterns. Inputs and outputs go
 * through load and store. */
#include "help_interp.h"
#include "help_ref.h"
#include "ir/interp_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Exact enough that rounding its results to f64 once more is innocuous (113 >= 2 * 53 + 2). */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 quad_bits;

enum { N = 2048, MAX_BYTES = N * 8 };

struct columns {
  unsigned char in[3][MAX_BYTES];
  unsigned char out[MAX_BYTES];
};

static const enum dtype float_types[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2};
static const enum dtype int_types[] = {DT_S4, DT_U4, DT_S8, DT_U8, DT_S32, DT_S64};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *op_name(enum ir_opcode op) {
  return ir_info(op)->name;
}

/* out = op(in...), elementwise over N elements of dtypes t (operands), u (result). `as`: the dtype
 * of the output array. A first operand of `mask` type is bool. */
static void run_op(enum ir_opcode op, uint32_t n_in, enum dtype t, enum dtype u, bool mask,
                   enum interp_domain domain, enum dtype as, struct columns *c) {
  struct hi h;
  hi_init(&h);
  h.opt.domain = domain;
  static const char *const names[] = {"X", "Y", "Z"};
  for (uint32_t k = 0; k < n_in; k++)
    hi_tensor(&h, names[k], IR_ARG_IN, mask && k == 0 ? DT_BOOL : t, "N");
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
  for (uint32_t k = 0; k < n_in; k++)
    hi_bind(&h, k, c->in[k], dim);
  memset(c->out, 0x5a, sizeof c->out);
  hi_bind_as(&h, n_in, as, c->out, dim);
  hi_run_ok(&h);
  hi_free(&h);
}

static void check(enum ir_opcode op, enum dtype t, enum dtype out_type, const struct columns *c,
                  uint32_t n_in, int64_t i, long double want) {
  long double got = ref_get(out_type, c->out, i);
  if (ref_same(got, want))
    return;
  print_error("%s on %s:", op_name(op), dtype_name(t));
  for (uint32_t k = 0; k < n_in; k++)
    print_error(" %.20Lg", ref_get(t, c->in[k], i));
  fail_msg(" gave %.20Lg, expected %.20Lg", got, want);
}

/* ---- floats ---- */

static const double specials[] = {
    0.0,       -0.0,    1.0,      -1.0,    0.5,      -1.5,       2.0,       3.0,
    -7.0,      0.1,     -0.3,     1e-3,    100.0,    -448.0,     460.0,     57344.0,
    -61440.0,  65504.0, 65519.9,  65520.0, 1e30,     -3e38,      3.4e38,    1e300,
    0x1p-9,    0x1p-14, -0x1p-16, 0x1p-24, 0x1p-25,  0x1.8p-133, -0x1p-126, 0x1p-149,
    0x1p-1074, 88.7,    -103.9,   NAN,     HUGE_VAL, -HUGE_VAL,  11.5,      -20.25};

/* All pairs of specials in columns 0 and 1 (column 2 runs at another pace), then random bits. */
static void fill_floats(enum dtype t, struct columns *c, uint64_t seed) {
  enum { S = COUNT(specials) };
  for (int64_t i = 0; i < N; i++)
    for (int k = 0; k < 3; k++) {
      int64_t pick = k == 0 ? i % S : k == 1 ? i / S : (i * 7 + i / S) % S;
      if (i < (int64_t)S * S)
        ref_put(t, c->in[k], i, (long double)specials[pick]);
      else
        ref_put_bits(t, c->in[k], i, ref_random(&seed));
    }
}

/* a + b to odd: the last bit stands for all that lies below, so that one more rounding to f64 or
 * f32 is the rounding of the exact sum. */
static quad add_to_odd(quad a, quad b) {
  quad s = a + b, part = s - a, error = (a - (s - part)) + (b - part);
  quad_bits bits;
  if (error == 0 || s - s != 0) /* exact, infinite or NaN */
    return s;
  memcpy(&bits, &s, sizeof bits);
  if (bits & 1)
    return s;
  bits = (s > 0) == (error > 0) ? bits + 1 : bits - 1;
  memcpy(&s, &bits, sizeof s);
  return s;
}

static long double least(long double a, long double b) {
  if (isnan(a) || isnan(b))
    return (long double)NAN;
  if (a == b) /* only zeros have two signs */
    return signbit(a) ? a : b;
  return a < b ? a : b;
}

/* One f32 or f64 operation, rounded once. f: whether to f32. */
static long double arith_ref(enum ir_opcode op, bool f, long double a, long double b,
                             long double c) {
  quad x = (quad)a, y = (quad)b, r = 0;
  switch ((int)op) {
  case IR_ADD: r = x + y; break;
  case IR_SUB: r = x - y; break;
  case IR_MUL: r = x * y; break;
  case IR_DIV: r = x / y; break;
  case IR_FMA: r = add_to_odd(x * y, (quad)c); break;
  case IR_NEG: return -a;
  case IR_ABS: return fabsl(a);
  case IR_MIN: return least(a, b);
  case IR_MAX: return -least(-a, -b);
  default: fail();
  }
  return f ? (long double)(float)r : (long double)(double)r;
}

static long double sigmoid_ref(long double x) {
  return 1 / (1 + expl(-x));
}

static long double rsqrt_ref(long double x) {
  return 1 / sqrtl(x);
}

struct math_op {
  enum ir_opcode op;
  long double (*ref)(long double);
};
static const struct math_op math_ops[] = {
    {IR_EXP, expl},   {IR_EXP2, exp2l},          {IR_LOG, logl},   {IR_LOG2, log2l},
    {IR_SQRT, sqrtl}, {IR_RSQRT, rsqrt_ref},     {IR_TANH, tanhl}, {IR_ERF, erfl},
    {IR_SIN, sinl},   {IR_SIGMOID, sigmoid_ref}, {IR_COS, cosl}};

static const struct {
  enum ir_opcode op;
  uint32_t n_in;
} arith_ops[] = {{IR_ADD, 2}, {IR_SUB, 2}, {IR_MUL, 2}, {IR_DIV, 2}, {IR_MIN, 2},
                 {IR_MAX, 2}, {IR_NEG, 1}, {IR_ABS, 1}, {IR_FMA, 3}};

static void test_float_arith_rounded(void **state) {
  (void)state;
  static struct columns c;
  for (size_t k = 0; k < COUNT(arith_ops); k++)
    for (size_t j = 0; j < COUNT(float_types); j++) {
      enum dtype t = float_types[j];
      enum ir_opcode op = arith_ops[k].op;
      fill_floats(t, &c, 1 + k);
      run_op(op, arith_ops[k].n_in, t, t, false, INTERP_ROUNDED, t, &c);
      for (int64_t i = 0; i < N; i++) {
        long double r = arith_ref(op, t != DT_F64, ref_get(t, c.in[0], i), ref_get(t, c.in[1], i),
                                  ref_get(t, c.in[2], i));
        check(op, t, t, &c, arith_ops[k].n_in, i, ref_round(t, r));
      }
    }
}

/* In DOUBLE nothing is rounded to the dtype: f16 65504 * 2 is 131008. */
static void test_float_arith_double(void **state) {
  (void)state;
  static struct columns c;
  for (size_t k = 0; k < COUNT(arith_ops); k++)
    for (size_t j = 0; j < COUNT(float_types); j++) {
      enum dtype t = float_types[j];
      enum ir_opcode op = arith_ops[k].op;
      fill_floats(t, &c, 77 + k);
      run_op(op, arith_ops[k].n_in, t, t, false, INTERP_DOUBLE, DT_F64, &c);
      for (int64_t i = 0; i < N; i++)
        check(op, t, DT_F64, &c, arith_ops[k].n_in, i,
              arith_ref(op, false, ref_get(t, c.in[0], i), ref_get(t, c.in[1], i),
                        ref_get(t, c.in[2], i)));
    }
}

/* a * b is a tie of the format; c, far below, decides. Rounding the product first loses it. */
static void test_fma_rounds_once(void **state) {
  (void)state;
  static struct columns c;
  const struct {
    enum dtype t;
    double a, b, c, want;
  } cases[] = {
      {DT_F64, 1 + 0x1p-26, 1 + 0x1p-27, 0x1p-120, 1 + 0x1p-26 + 0x1p-27 + 0x1p-52},
      {DT_F64, 1 + 0x1p-26, 1 + 0x1p-27, -0x1p-120, 1 + 0x1p-26 + 0x1p-27},
      {DT_F32, 1 + 0x1p-12, 1 + 0x1p-12, 0x1p-60, 1 + 0x1p-11 + 0x1p-23},
      {DT_F32, 1 + 0x1p-12, 1 + 0x1p-12, -0x1p-60, 1 + 0x1p-11},
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    enum dtype t = cases[k].t;
    memset(&c, 0, sizeof c);
    ref_put(t, c.in[0], 0, (long double)cases[k].a);
    ref_put(t, c.in[1], 0, (long double)cases[k].b);
    ref_put(t, c.in[2], 0, (long double)cases[k].c);
    run_op(IR_FMA, 3, t, t, false, INTERP_ROUNDED, t, &c);
    check(IR_FMA, t, t, &c, 3, 0, (long double)cases[k].want);
  }
}

static void test_math_rounded(void **state) {
  (void)state;
  static struct columns c;
  for (size_t k = 0; k < COUNT(math_ops); k++)
    for (size_t j = 0; j < COUNT(float_types); j++) {
      enum dtype t = float_types[j];
      if (t == DT_F64)
        continue; /* libm's own accuracy: test_math_double */
      fill_floats(t, &c, 5 + k);
      run_op(math_ops[k].op, 1, t, t, false, INTERP_ROUNDED, t, &c);
      for (int64_t i = 0; i < N; i++) {
        long double r = (long double)(float)math_ops[k].ref(ref_get(t, c.in[0], i));
        check(math_ops[k].op, t, t, &c, 1, i, ref_round(t, r));
      }
    }
}

static void test_math_double(void **state) {
  (void)state;
  static struct columns c;
  for (size_t k = 0; k < COUNT(math_ops); k++)
    for (int rounded = 0; rounded < 2; rounded++) {
      enum dtype t = rounded ? DT_F64 : DT_F16;
      fill_floats(t, &c, 9 + k);
      run_op(math_ops[k].op, 1, t, t, false, rounded ? INTERP_ROUNDED : INTERP_DOUBLE, DT_F64, &c);
      for (int64_t i = 0; i < N; i++) {
        long double want = math_ops[k].ref(ref_get(t, c.in[0], i));
        long double got = ref_get(DT_F64, c.out, i);
        long double nearest = (long double)(double)want;
        if (ref_same(got, nearest))
          continue;
        /* libm is within 1 ulp, two of them compose; subnormal results have a fixed step. */
        if (isnan(got) || isnan(want) || isinf(nearest) ||
            fabsl(got - want) > 4 * 0x1p-53L * fabsl(want) + 2 * 0x1p-1074L)
          check(math_ops[k].op, t, DT_F64, &c, 1, i, nearest);
      }
    }
}

/* ---- integers ---- */

static void fill_ints(enum dtype t, struct columns *c, uint64_t seed) {
  static const int64_t some[] = {0, 1, -1, 2, -2, 3, -3, 5, -7, 8, 31, 32, 33, 63, 64, 65, 100};
  int64_t pool[32];
  size_t n = 0;
  for (size_t k = 0; k < COUNT(some); k++)
    pool[n++] = ref_wrap(t, (uint64_t)some[k]);
  unsigned bits = dtype_bits(t);
  for (int64_t d = -2; d <= 2; d++) { /* around the ends of the range */
    pool[n++] = ref_wrap(t, (UINT64_C(1) << (bits - 1)) + (uint64_t)d);
    pool[n++] = ref_wrap(t, (uint64_t)d);
  }
  for (int64_t i = 0; i < N; i++)
    for (int k = 0; k < 3; k++) {
      size_t pick = (size_t)(k == 0 ? i % (int64_t)n : i / (int64_t)n);
      uint64_t v = pick < n ? (uint64_t)pool[pick] : ref_random(&seed);
      ref_put_bits(t, c->in[k], i, v);
    }
}

static wide floor_div(wide a, wide b) {
  wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t int_ref(enum ir_opcode op, enum dtype t, int64_t a, int64_t b) {
  wide x = a, y = b, r = 0;
  int width = (int)dtype_bits(t);
  bool in_width = y >= 0 && y < width;
  switch ((int)op) {
  case IR_ADD: r = x + y; break;
  case IR_SUB: r = x - y; break;
  case IR_MUL: r = x * y; break;
  case IR_FLOORDIV: r = y ? floor_div(x, y) : 0; break;
  case IR_MOD: r = y ? x - y * floor_div(x, y) : 0; break;
  case IR_MIN: r = x < y ? x : y; break;
  case IR_MAX: r = x > y ? x : y; break;
  case IR_NEG: r = -x; break;
  case IR_ABS: r = x < 0 ? -x : x; break;
  case IR_AND: r = a & b; break;
  case IR_OR: r = a | b; break;
  case IR_XOR: r = a ^ b; break;
  case IR_NOT: r = -x - 1; break;
  case IR_SHL: r = in_width ? x * ((wide)1 << (int)y) : 0; break;
  case IR_SHR: r = in_width ? floor_div(x, (wide)1 << (int)y) : x < 0 ? -1 : 0; break;
  default: fail();
  }
  return ref_wrap(t, (uint64_t)r);
}

static const struct {
  enum ir_opcode op;
  uint32_t n_in;
} int_ops[] = {{IR_ADD, 2}, {IR_SUB, 2}, {IR_MUL, 2}, {IR_FLOORDIV, 2}, {IR_MOD, 2},
               {IR_MIN, 2}, {IR_MAX, 2}, {IR_NEG, 1}, {IR_ABS, 1},      {IR_AND, 2},
               {IR_OR, 2},  {IR_XOR, 2}, {IR_NOT, 1}, {IR_SHL, 2},      {IR_SHR, 2}};

static void test_int_ops(void **state) {
  (void)state;
  static struct columns c;
  for (size_t k = 0; k < COUNT(int_ops); k++)
    for (size_t j = 0; j < COUNT(int_types); j++)
      for (int domain = 0; domain < 2; domain++) {
        enum dtype t = int_types[j];
        fill_ints(t, &c, 3 + k);
        run_op(int_ops[k].op, int_ops[k].n_in, t, t, false, (enum interp_domain)domain, t, &c);
        for (int64_t i = 0; i < N; i++)
          check(int_ops[k].op, t, t, &c, int_ops[k].n_in, i,
                (long double)int_ref(int_ops[k].op, t, (int64_t)ref_get(t, c.in[0], i),
                                     (int64_t)ref_get(t, c.in[1], i)));
      }
}

static void test_bool_ops(void **state) {
  (void)state;
  static struct columns c;
  for (int i = 0; i < N; i++) {
    c.in[0][i] = (unsigned char)(i % 2 ? i : 0); /* any non-zero byte is true */
    c.in[1][i] = (unsigned char)(i / 2 % 2);
  }
  const struct {
    enum ir_opcode op;
    uint32_t n_in;
    unsigned want; /* bit 2a + b */
  } ops[] = {{IR_AND, 2, 8}, {IR_OR, 2, 14}, {IR_XOR, 2, 6},
             {IR_NOT, 1, 3}, {IR_EQ, 2, 9},  {IR_NE, 2, 6}};
  for (size_t k = 0; k < COUNT(ops); k++) {
    run_op(ops[k].op, ops[k].n_in, DT_BOOL, DT_BOOL, false, INTERP_ROUNDED, DT_BOOL, &c);
    for (int i = 0; i < N; i++) {
      unsigned which = (c.in[0][i] ? 2u : 0u) + c.in[1][i];
      assert_int_equal(c.out[i], ops[k].want >> which & 1);
    }
  }
}

/* ---- comparisons, select ---- */

static bool compare_ref(enum ir_opcode op, long double a, long double b) {
  switch ((int)op) {
  case IR_EQ: return a == b;
  case IR_NE: return a != b;
  case IR_LT: return a < b;
  case IR_LE: return a <= b;
  case IR_GT: return a > b;
  case IR_GE: return a >= b;
  default: fail(); return false;
  }
}

static void fill(enum dtype t, struct columns *c, uint64_t seed) {
  if (dtype_is_float(t)) {
    fill_floats(t, c, seed);
  } else if (t == DT_BOOL) {
    for (int i = 0; i < N; i++)
      for (int k = 0; k < 3; k++)
        c->in[k][i] = (unsigned char)(ref_random(&seed) & 1);
  } else {
    fill_ints(t, c, seed);
  }
}

static void test_compare(void **state) {
  (void)state;
  static struct columns c;
  for (int op = IR_EQ; op <= IR_GE; op++)
    for (int t = 0; t < DT_COUNT; t++)
      for (int domain = 0; domain < 2; domain++) {
        if (t == DT_INDEX || (t == DT_BOOL && op > IR_NE))
          continue;
        fill((enum dtype)t, &c, 11);
        run_op((enum ir_opcode)op, 2, (enum dtype)t, DT_BOOL, false, (enum interp_domain)domain,
               DT_BOOL, &c);
        for (int64_t i = 0; i < N; i++)
          check((enum ir_opcode)op, (enum dtype)t, DT_BOOL, &c, 2, i,
                compare_ref((enum ir_opcode)op, ref_get((enum dtype)t, c.in[0], i),
                            ref_get((enum dtype)t, c.in[1], i)));
      }
}

static void test_select(void **state) {
  (void)state;
  static struct columns c;
  for (int t = 0; t < DT_COUNT; t++) {
    if (t == DT_INDEX)
      continue;
    fill((enum dtype)t, &c, 13);
    for (int i = 0; i < N; i++)
      c.in[0][i] = (unsigned char)(i % 3 == 0);
    run_op(IR_SELECT, 3, (enum dtype)t, (enum dtype)t, true, INTERP_ROUNDED, (enum dtype)t, &c);
    for (int64_t i = 0; i < N; i++)
      check(IR_SELECT, (enum dtype)t, (enum dtype)t, &c, 0, i,
            ref_get((enum dtype)t, c.in[i % 3 == 0 ? 1 : 2], i));
  }
}

/* ---- casts ---- */

static void test_cast_rounded(void **state) {
  (void)state;
  static struct columns c;
  for (int t = 0; t < DT_COUNT; t++)
    for (int u = 0; u < DT_COUNT; u++) {
      if (t == DT_INDEX || u == DT_INDEX)
        continue;
      fill((enum dtype)t, &c, 17);
      run_op(IR_CAST, 1, (enum dtype)t, (enum dtype)u, false, INTERP_ROUNDED, (enum dtype)u, &c);
      for (int64_t i = 0; i < N; i++)
        check(IR_CAST, (enum dtype)t, (enum dtype)u, &c, 1, i,
              t == u ? ref_get((enum dtype)t, c.in[0], i)
                     : ref_round((enum dtype)u, ref_get((enum dtype)t, c.in[0], i)));
    }
}

/* Integers round and saturate as ever; floats keep their value, but for what fp8 clamps. */
static void test_cast_double(void **state) {
  (void)state;
  static struct columns c;
  for (int t = 0; t < DT_COUNT; t++)
    for (int u = 0; u < DT_COUNT; u++) {
      if (t == DT_INDEX || u == DT_INDEX)
        continue;
      bool to_float = dtype_is_float((enum dtype)u);
      enum dtype as = to_float ? DT_F64 : (enum dtype)u;
      fill((enum dtype)t, &c, 19);
      run_op(IR_CAST, 1, (enum dtype)t, (enum dtype)u, false, INTERP_DOUBLE, as, &c);
      long double max = u == DT_E4M3 ? 448 : u == DT_E5M2 ? 57344 : (long double)INFINITY;
      for (int64_t i = 0; i < N; i++) {
        long double x = ref_get((enum dtype)t, c.in[0], i);
        if (to_float)
          x = t == u ? x : (long double)(double)(x > max ? max : x < -max ? -max : x);
        else
          x = ref_round((enum dtype)u, x);
        check(IR_CAST, (enum dtype)t, as, &c, 1, i, x);
      }
    }
}

/* The vectorised rounding loops, against the list of values, near every tie of f16 and bf16. */
static void test_round_cells(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_F16, DT_BF16};
  uint64_t seed = 23;
  for (size_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < 40000; i++) {
      uint32_t bits = (uint32_t)ref_random(&seed);
      if (i % 2) { /* at, just below and just above a tie */
        uint32_t tie = types[k] == DT_F16 ? 0x1000 : 0x8000;
        bits = (bits & ~(2 * tie - 1)) + tie + i / 2 % 3 - 1;
      }
      if (i % 3 == 0 && types[k] == DT_F16) /* where f16 is subnormal */
        bits = (bits & 0x87ffffff) | 0x30000000;
      float x, y;
      memcpy(&x, &bits, sizeof x);
      y = x;
      interp_round_cells(types[k], 1, &y);
      if (!ref_same((long double)y, ref_round(types[k], (long double)x)))
        fail_msg("%s: %.9g gave %.9g", dtype_name(types[k]), (double)x, (double)y);
    }
}

/* Every op that may stand in tile IR can be interpreted. */
static void test_table_is_complete(void **state) {
  (void)state;
  for (int op = IR_NO_OP + 1; op < IR_OPCODE_COUNT; op++)
    if (ir_info((enum ir_opcode)op)->stages & (1u << IR_TILE_STAGE | 1u << IR_SCHEDULED_STAGE))
      if (!interp_has_op((enum ir_opcode)op))
        fail_msg("the interpreter lacks '%s'", op_name((enum ir_opcode)op));
}

/* docs/numerics.md says something of every tile op that computes or moves values. */
static void test_numerics_page(void **state) {
  (void)state;
  FILE *f = fopen(KILN_SRC_DIR "/docs/numerics.md", "r");
  assert_non_null(f);
  static char text[1 << 16];
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  const char *table = strstr(text, "\n## Ops\n");
  assert_non_null(table);
  for (int op = IR_NO_OP + 1; op < IR_OPCODE_COUNT; op++) {
    const struct ir_opinfo *info = ir_info((enum ir_opcode)op);
    bool computes = info->traits & (IR_PURE | IR_READS | IR_WRITES);
    if (!computes || !(info->stages & 1u << IR_TILE_STAGE))
      continue;
    /* In the first column of some row: after "| " or ", ", before ", " or " |". */
    bool found = false;
    size_t n = strlen(info->name);
    for (const char *s = table; (s = strstr(s, info->name)); s++)
      found = found || (s[-1] == ' ' && (s[-2] == '|' || s[-2] == ',') &&
                        (s[n] == ',' || (s[n] == ' ' && (s[n + 1] == '|' || op == IR_CAST))));
    if (!found)
      fail_msg("docs/numerics.md says nothing of '%s'", info->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table_is_complete),
      cmocka_unit_test(test_numerics_page),
      cmocka_unit_test(test_float_arith_rounded),
      cmocka_unit_test(test_float_arith_double),
      cmocka_unit_test(test_fma_rounds_once),
      cmocka_unit_test(test_math_rounded),
      cmocka_unit_test(test_math_double),
      cmocka_unit_test(test_int_ops),
      cmocka_unit_test(test_bool_ops),
      cmocka_unit_test(test_compare),
      cmocka_unit_test(test_select),
      cmocka_unit_test(test_cast_rounded),
      cmocka_unit_test(test_cast_double),
      cmocka_unit_test(test_round_cells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
