/* Casts between all pairs of dtypes, exhaustively: every value of types of 16 bits and fewer; of
 * wider types every value at which the rounding to a narrow type turns, with its neighbours, and
 * the edges. The interpreter, the constant folder and docs/numerics.md's table against help_ref.c,
 * which decodes by formula and rounds by searching. And arithmetic on all pairs of fp8 values. */
#include "base/num.h"
#include "help_interp.h"
#include "help_ref.h"
#include "ir/passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The order of rows and columns in docs/numerics.md. */
static const enum dtype types[] = {DT_F64,   DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_S64,
                                   DT_INDEX, DT_S32, DT_S8,  DT_U8,   DT_S4,   DT_U4,   DT_BOOL};

/* An index is never in memory: there it is s64. */
static enum dtype stored(enum dtype t) {
  return t == DT_INDEX ? DT_S64 : t;
}

/* ---- source values ---- */

enum { MAX = 1 << 20 };
struct values {
  enum dtype t; /* as stored */
  int64_t n;
  unsigned char bytes[MAX * 8];
};
static struct values src, dst;

static void put_bits(uint64_t bits) {
  assert_true(src.n < MAX);
  ref_put_bits(src.t, src.bytes, src.n++, bits);
}

static void put_int(int64_t v) {
  enum dtype t = src.t;
  if (ref_wrap(t, (uint64_t)v) == v)
    put_bits((uint64_t)v);
}

/* A value of the source type, its neighbours, and all with the other sign. */
static void put_float(double x) {
  double near[3] = {x, 0, 0};
  if (src.t == DT_F32) {
    float f = (float)x;
    near[0] = (double)f;
    near[1] = (double)nextafterf(f, HUGE_VALF);
    near[2] = (double)nextafterf(f, -HUGE_VALF);
  } else {
    near[1] = nextafter(x, HUGE_VAL);
    near[2] = nextafter(x, -HUGE_VAL);
  }
  for (int i = 0; i < 3; i++)
    for (int sign = 0; sign < 2; sign++) {
      assert_true(src.n < MAX);
      ref_put(src.t, src.bytes, src.n++, (long double)(sign ? -near[i] : near[i]));
    }
}

/* An integer, its neighbours, and all with the other sign, as far as the source type has them. */
static void put_around(int64_t v) {
  for (int64_t d = -1; d <= 1; d++) {
    int64_t x, y;
    if (!__builtin_add_overflow(v, d, &x)) {
      put_int(x);
      if (!__builtin_sub_overflow((int64_t)0, x, &y))
        put_int(y);
    }
  }
}

static void put_number(long double x) {
  if (dtype_is_float(src.t)) {
    put_float((double)x);
  } else if (x < 0x1p63L) {
    put_around((int64_t)x); /* what is not whole lies between x and x + 1 */
    if (x != floorl(x) && x < 0x1p63L - 1)
      put_around((int64_t)x + 1);
  }
}

/* Every value of a narrow float type and the middle between it and the next. */
static void add_boundaries(enum dtype to) {
  uint32_t half = UINT32_C(1) << (dtype_bits(to) - 1);
  uint64_t cell = 0;
  for (uint32_t b = 0; b < half; b++) {
    long double v, next;
    ref_put_bits(to, &cell, 0, b);
    v = ref_get(to, &cell, 0);
    if (!isfinite(v))
      break;
    ref_put_bits(to, &cell, 0, b + 1);
    next = ref_get(to, &cell, 0);
    if (!isfinite(next)) { /* the last step goes on: where infinity begins, or saturation */
      ref_put_bits(to, &cell, 0, b - 1);
      next = v + (v - ref_get(to, &cell, 0));
    }
    put_number(v);
    put_number((v + next) / 2);
  }
}

/* Multiples of halves around the range of an integer type. */
static void add_halves(enum dtype to) {
  static const double middles[] = {0, 7.5, 15.5, 127.5, 255.5};
  for (size_t i = 0; i < COUNT(middles); i++)
    for (int k = -6; k <= 6; k++)
      put_float(fabs(middles[i] + k * 0.5));
  if (dtype_bits(to) <= 8)
    for (int k = 0; k < 600; k++)
      put_float(k * 0.5);
  for (int e = 0; e <= 64; e++) /* where halves end: 2^23 in f32, 2^52 in f64 */
    for (int k = -4; k <= 4; k++)
      put_float(ldexp(1, e) + k * 0.5);
}

/* Doubles between two neighbours of f32, at every exponent. */
static void add_f32_boundaries(void) {
  uint64_t seed = 5;
  for (uint32_t e = 0; e < 255; e++)
    for (uint32_t k = 0; k < 24; k++) {
      uint32_t man = k < 2   ? k
                     : k < 4 ? 0x7fffff - (k - 2)
                             : (uint32_t)ref_random(&seed) & 0x7fffff;
      uint32_t a = e << 23 | man, b = a + 1;
      float x, y;
      memcpy(&x, &a, sizeof x);
      memcpy(&y, &b, sizeof y);
      double hi = isinf(y) ? 0x1p128 : (double)y;
      put_float((double)x);
      put_float((double)x / 2 + hi / 2);
    }
}

/* For integers to floats of p significant bits: m * 2^k and the middle to the next. */
static void add_long_integers(int p) {
  uint64_t seed = 7;
  for (int k = 0; p + k <= 64; k++)
    for (int i = 0; i < 12; i++) {
      uint64_t top = UINT64_C(1) << (p - 1), m = top;
      m = i == 0 ? top : i == 1 ? top + 1 : i == 2 ? 2 * top - 1 : top + ref_random(&seed) % top;
      uint64_t v = m << k, mid = k ? v + (UINT64_C(1) << (k - 1)) : v;
      if (v <= INT64_MAX)
        put_around((int64_t)v);
      if (mid <= INT64_MAX)
        put_around((int64_t)mid);
    }
}

static void add_edges(void) {
  uint64_t seed = 11;
  bool wide_float = src.t == DT_F32 || src.t == DT_F64;
  if (wide_float) {
    int low = src.t == DT_F32 ? -149 : -1074, high = src.t == DT_F32 ? 127 : 1023;
    for (int e = low; e <= high; e++) {
      put_float(ldexp(1, e));
      put_float(ldexp(1.5, e));
    }
    static const double some[] = {0,     HUGE_VAL, 448,    464,    57344, 61440,
                                  65504, 65520,    0x1p31, 0x1p32, 0x1p63};
    for (size_t i = 0; i < COUNT(some); i++)
      put_float(some[i]);
    ref_put(src.t, src.bytes, src.n++, (long double)NAN);
  } else {
    for (int k = 0; k < 64; k++)
      put_around((int64_t)(UINT64_C(1) << k));
    static const int64_t some[] = {0,   7,     15,    127,   255,   448,       464,
                                   480, 57344, 61440, 65504, 65520, INT32_MAX, INT64_MAX};
    for (size_t i = 0; i < COUNT(some); i++)
      put_around(some[i]);
    put_int(INT32_MIN);
    put_int(INT64_MIN);
  }
  for (int i = 0; i < 4096; i++)
    put_bits(ref_random(&seed));
}

static void make_source(enum dtype from, enum dtype to) {
  static const struct {
    enum dtype t;
    int digits;
  } mantissas[] = {{DT_F64, 53}, {DT_F32, 24}};
  src.t = stored(from);
  src.n = 0;
  if (from == DT_BOOL || dtype_bits(src.t) <= 16) {
    uint32_t n = from == DT_BOOL ? 2 : UINT32_C(1) << dtype_bits(src.t);
    for (uint32_t b = 0; b < n; b++)
      put_bits(b);
    return;
  }
  add_edges();
  bool narrow = dtype_bits(stored(to)) <= 16;
  if (dtype_is_float(to) && narrow)
    add_boundaries(to);
  else if (src.t == DT_F64 && to == DT_F32)
    add_f32_boundaries();
  else if (dtype_is_float(src.t) && !dtype_is_float(to))
    add_halves(to);
  for (size_t i = 0; i < COUNT(mantissas); i++)
    if (mantissas[i].t == to && !dtype_is_float(src.t))
      add_long_integers(mantissas[i].digits);
}

/* ---- the interpreter ---- */

static void interpret(enum dtype from, enum dtype to) {
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, stored(from), "N");
  hi_tensor(&h, "O", IR_ARG_OUT, stored(to), "N");
  hi_begin(&h, "1");
  struct ir_val x = hi_load1(&h, 0, hi_index(&h, 0), src.n);
  if (from != stored(from))
    x = hi_cast(&h, from, x);
  x = hi_cast(&h, to, x);
  if (to != stored(to))
    x = hi_cast(&h, stored(to), x);
  hi_store1(&h, 1, hi_index(&h, 0), x);
  hi_end(&h);
  dst.t = stored(to);
  memset(dst.bytes, 0x5a, (size_t)dtype_bytes(dst.t, src.n));
  hi_bind(&h, 0, src.bytes, &src.n);
  hi_bind(&h, 1, dst.bytes, &src.n);
  hi_run_ok(&h);
  hi_free(&h);
}

/* What the constant folder makes of element i. */
static bool folded(enum dtype from, enum dtype to, int64_t i, long double want) {
  struct ir_constant in[3] = {{.dtype = from}}, out;
  if (dtype_is_float(from))
    in[0].f = (double)ref_get(src.t, src.bytes, i);
  else
    in[0].i = (int64_t)ref_get(src.t, src.bytes, i);
  assert_true(ir_fold(IR_CAST, to, in, &out));
  return ref_same(dtype_is_float(to) ? (long double)out.f : (long double)out.i, want);
}

/* ---- the table ---- */

/* What may happen to a value: r rounded to nearest even, c clamped, i too large and an infinity,
 * n NaN to 0; "=": nothing. */
struct effects {
  bool rounds, clamps, overflows, drops_nan;
};

static void note(struct effects *e, enum dtype to, long double x, long double y) {
  if (isnan(x)) {
    e->drops_nan = e->drops_nan || !isnan(y);
    return;
  }
  if (ref_same(x, y) || (x == 0 && y == 0))
    return;
  long double most = (long double)num_max(to), least = (long double)num_min(to);
  bool has_inf = dtype_is_float(to) && dtype_bits(to) >= 16;
  if (to == DT_S64 || to == DT_INDEX)
    most = 0x1p63L - 1;
  if (isinf(y))
    e->overflows = true;
  else if (!has_inf && (x > most || x < least))
    e->clamps = true;
  else
    e->rounds = true;
}

static const char *text_of(enum dtype from, enum dtype to, struct effects e, char *buf) {
  if (to == DT_BOOL)
    return from == to ? "=" : "b";
  snprintf(buf, 8, "%s%s%s%s", e.rounds ? "r" : "", e.overflows ? "i" : "", e.clamps ? "c" : "",
           e.drops_nan ? "n" : "");
  return buf[0] ? buf : "=";
}

static char page[1 << 16];

/* The cell of a pair in the table under "## Casts". */
static const char *documented(size_t row, size_t column, char *buf) {
  char start[24];
  const char *p = strstr(page, "\n## Casts\n");
  assert_non_null(p);
  snprintf(start, sizeof start, "\n| %s |", dtype_name(types[row]));
  p = strstr(p, start);
  if (!p)
    fail_msg("docs/numerics.md: no row %s in the table of casts", dtype_name(types[row]));
  p += strlen(start);
  for (size_t i = 0; i < column; i++) {
    p = strchr(p, '|');
    assert_non_null(p);
    p++;
  }
  size_t n = strcspn(p, "|\n");
  assert_true(n > 2 && n < 16);
  memcpy(buf, p + 1, n - 2);
  buf[n - 2] = 0;
  return buf;
}

static void read_page(void) {
  FILE *f = fopen(KILN_SRC_DIR "/docs/numerics.md", "r");
  assert_non_null(f);
  page[fread(page, 1, sizeof page - 1, f)] = 0;
  fclose(f);
}

static void test_all_pairs(void **state) {
  (void)state;
  int64_t total = 0;
  unsigned wrong_cells = 0;
  read_page();
  for (size_t k = 0; k < COUNT(types); k++)
    for (size_t j = 0; j < COUNT(types); j++) {
      enum dtype from = types[k], to = types[j];
      struct effects e = {0};
      char buf[2][16];
      make_source(from, to);
      interpret(from, to);
      total += src.n;
      for (int64_t i = 0; i < src.n; i++) {
        long double x = ref_get(src.t, src.bytes, i);
        long double want = from == to ? x : ref_round(dst.t, x);
        long double got = ref_get(dst.t, dst.bytes, i);
        if (!ref_same(got, want))
          fail_msg("cast of %s to %s: %.21Lg gave %.21Lg, not %.21Lg", dtype_name(from),
                   dtype_name(to), x, got, want);
        if (!folded(from, to, i, want))
          fail_msg("cast of %s to %s: %.21Lg is not folded to %.21Lg", dtype_name(from),
                   dtype_name(to), x, want);
        note(&e, to, x, want);
      }
      const char *does = text_of(from, to, e, buf[0]), *said = documented(k, j, buf[1]);
      if (strcmp(does, said) != 0) {
        print_error("docs/numerics.md: cast of %s to %s is `%s`, the table says `%s`\n",
                    dtype_name(from), dtype_name(to), does, said);
        wrong_cells++;
      }
    }
  print_message("%lld casts\n", (long long)total);
  assert_int_equal(wrong_cells, 0);
}

/* ---- fp8 ---- */

static const enum dtype fp8[] = {DT_E4M3, DT_E5M2};

static void all_pairs(enum dtype t, enum dtype u) {
  src.t = t;
  src.n = 1 << 16;
  dst.t = u;
  for (int64_t i = 0; i < src.n; i++) {
    ref_put_bits(t, src.bytes, i, (uint64_t)i & 255);
    ref_put_bits(u, dst.bytes, i, (uint64_t)i >> 8);
  }
}

/* One f32 operation on values of at most 4 bits of mantissa: exact in long double, but for the
 * quotient, which is far from every tie. */
static long double arith(enum ir_opcode op, long double a, long double b) {
  switch ((int)op) {
  case IR_ADD: return a + b;
  case IR_SUB: return a - b;
  case IR_MUL: return a * b;
  case IR_DIV: return a / b;
  default: break;
  }
  bool min = op == IR_MIN;
  if (isnan(a) || isnan(b))
    return (long double)NAN;
  if (a == b)
    return (signbit(a) != 0) == min ? a : b;
  return (a < b) == min ? a : b;
}

static void test_fp8_arithmetic(void **state) {
  (void)state;
  static const enum ir_opcode ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
  static unsigned char out[1 << 16];
  for (size_t k = 0; k < COUNT(fp8); k++)
    for (size_t q = 0; q < COUNT(ops); q++) {
      enum dtype t = fp8[k];
      struct hi h;
      all_pairs(t, t);
      hi_init(&h);
      hi_tensor(&h, "X", IR_ARG_IN, t, "N");
      hi_tensor(&h, "Y", IR_ARG_IN, t, "N");
      hi_tensor(&h, "O", IR_ARG_OUT, t, "N");
      hi_begin(&h, "1");
      struct ir_val x = hi_load1(&h, 0, hi_index(&h, 0), src.n);
      struct ir_val y = hi_load1(&h, 1, hi_index(&h, 0), src.n);
      hi_store1(&h, 2, hi_index(&h, 0), hi_op2(&h, ops[q], x, y));
      hi_end(&h);
      hi_bind(&h, 0, src.bytes, &src.n);
      hi_bind(&h, 1, dst.bytes, &src.n);
      hi_bind(&h, 2, out, &src.n);
      hi_run_ok(&h);
      hi_free(&h);
      for (int64_t i = 0; i < src.n; i++) {
        long double a = ref_get(t, src.bytes, i), b = ref_get(t, dst.bytes, i);
        long double want = ref_round(t, (long double)(float)arith(ops[q], a, b));
        if (!ref_same(ref_get(t, out, i), want))
          fail_msg("%s of %s: %Lg and %Lg gave %Lg, not %Lg", ir_info(ops[q])->name, dtype_name(t),
                   a, b, ref_get(t, out, i), want);
      }
    }
}

/* (256,1) . (1,256): the product of every value of one type with every value of the other. */
static void test_fp8_products(void **state) {
  (void)state;
  static float out[1 << 16];
  const int64_t da[2] = {256, 1}, db[2] = {1, 256}, dc[2] = {256, 256};
  for (size_t k = 0; k < COUNT(fp8); k++)
    for (size_t j = 0; j < COUNT(fp8); j++) {
      struct hi h;
      for (int64_t i = 0; i < 256; i++) {
        ref_put_bits(fp8[k], src.bytes, i, (uint64_t)i);
        ref_put_bits(fp8[j], dst.bytes, i, (uint64_t)i);
      }
      hi_init(&h);
      hi_tensor(&h, "A", IR_ARG_IN, fp8[k], "256,1");
      hi_tensor(&h, "B", IR_ARG_IN, fp8[j], "1,256");
      hi_tensor(&h, "C", IR_ARG_OUT, DT_F32, "256,256");
      hi_begin(&h, "1");
      struct ir_val z = hi_index(&h, 0), a = hi_load2(&h, 0, z, z, 256, 1);
      struct ir_val b = hi_load2(&h, 1, z, z, 1, 256), acc = hi_full(&h, DT_F32, 0, 256, 256);
      hi_store2(&h, 2, z, z, hi_op3(&h, IR_DOT, a, b, acc));
      hi_end(&h);
      hi_bind(&h, 0, src.bytes, da);
      hi_bind(&h, 1, dst.bytes, db);
      hi_bind(&h, 2, out, dc);
      hi_run_ok(&h);
      hi_free(&h);
      for (int64_t i = 0; i < 1 << 16; i++) {
        long double x = ref_get(fp8[k], src.bytes, i / 256),
                    y = ref_get(fp8[j], dst.bytes, i % 256);
        long double want = x * y, got = (long double)out[i];
        if (isnan(want) ? !isnan(got) : got != want) /* the sign of a sum of 0 is open */
          fail_msg("%Lg times %Lg gave %Lg", x, y, got);
      }
    }
}

/* ---- tf32 ---- */

/* Every value of tf32, the middle to the next, and the neighbours in f32 of both. */
static void test_tf32(void **state) {
  (void)state;
  for (uint32_t b = 0; b < UINT32_C(0x7f800000) >> 13; b++)
    for (uint32_t k = 0; k < 6; k++) {
      static const uint32_t near[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff};
      uint32_t bits = b << 13 | near[k], up = (b + 1) << 13, down = b << 13;
      bool to_even = near[k] > 0x1000 || (near[k] == 0x1000 && b & 1), away = near[k] >= 0x1000;
      for (uint32_t sign = 0; sign < 2; sign++) {
        uint32_t in = bits | sign << 31, even = (to_even ? up : down) | sign << 31;
        uint32_t far = (away ? up : down) | sign << 31;
        float x, y, z;
        memcpy(&x, &in, sizeof x);
        y = num_round_tf32(x);
        z = num_round_tf32_away(x);
        if (memcmp(&y, &even, sizeof y) != 0 || memcmp(&z, &far, sizeof z) != 0)
          fail_msg("tf32 of %a is %a, or %a", (double)x, (double)y, (double)z);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_pairs),
      cmocka_unit_test(test_fp8_arithmetic),
      cmocka_unit_test(test_fp8_products),
      cmocka_unit_test(test_tf32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
