/* base/num.c against a method that shares nothing with it: the sorted table of every value of a
 * narrow type, searched for the nearest (ties to the even pattern). Doubles are drawn around every
 * midpoint, so that each rounding decision of each format is taken from both sides. */
#include "help_rt.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct format {
  const char *name;
  enum dtype t;
  int bits, exp_bits, man_bits;
  bool inf;          /* has infinities */
  unsigned max, nan; /* largest finite pattern; the NaN that stores write */
};

static const struct format formats[] = {
    {"f16", DT_F16, 16, 5, 10, true, 0x7bff, 0x7fff},
    {"bf16", DT_BF16, 16, 8, 7, true, 0x7f7f, 0x7fff},
    {"e4m3", DT_E4M3, 8, 4, 3, false, 0x7e, 0x7f},
    {"e5m2", DT_E5M2, 8, 5, 2, false, 0x7b, 0x7f},
};

/* By the definition: sign, exponent, mantissa with pow(). */
static double value_of(const struct format *f, unsigned bits) {
  unsigned man = bits & ((1u << f->man_bits) - 1);
  int e = (int)(bits >> f->man_bits & ((1u << f->exp_bits) - 1));
  int bias = (1 << (f->exp_bits - 1)) - 1;
  double frac = man / pow(2, f->man_bits);
  return e == 0 ? frac * pow(2, 1 - bias) : (1 + frac) * pow(2, e - bias);
}

static unsigned bits_of(const struct format *f, double x) {
  unsigned char cell[8] = {0};
  num_store(f->t, cell, 0, x);
  unsigned v = cell[0];
  return f->bits == 16 ? v | (unsigned)cell[1] << 8 : v;
}

static double load_bits(const struct format *f, unsigned bits) {
  unsigned char cell[2] = {(unsigned char)bits, (unsigned char)(bits >> 8)};
  return num_load(f->t, cell, 0);
}

/* Nearest pattern for x >= 0 by binary search in the (monotone) table of positive values. */
static unsigned nearest(const struct format *f, double x) {
  unsigned lo = 0, hi = f->max;
  if (x >= value_of(f, hi)) {
    /* Above the largest: where an infinity exists it takes everything from half a step up. */
    double step = value_of(f, hi) - value_of(f, hi - 1);
    return f->inf && x >= value_of(f, hi) + step / 2 ? f->max + 1 : f->max;
  }
  while (hi - lo > 1) {
    unsigned mid = (lo + hi) / 2;
    if (value_of(f, mid) <= x)
      lo = mid;
    else
      hi = mid;
  }
  /* Exact: both distances are differences of doubles with few bits near x. */
  long double a = (long double)x - value_of(f, lo), b = value_of(f, hi) - (long double)x;
  return a < b ? lo : b < a ? hi : (lo % 2 == 0 ? lo : hi);
}

static void check(const struct format *f, double x) {
  unsigned want = nearest(f, fabs(x)) | (signbit(x) ? 1u << (f->bits - 1) : 0);
  unsigned got = bits_of(f, x);
  if (got != want)
    fail_msg("%s: %.17g (%a) stored as 0x%x, nearest is 0x%x", f->name, x, x, got, want);
}

static void test_narrow_values(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
    const struct format *f = &formats[k];
    unsigned sign = 1u << (f->bits - 1);
    for (unsigned b = 0; b < 2 * sign; b++) {
      unsigned m = b & (sign - 1);
      double got = load_bits(f, b);
      if (m > f->max) {
        if (f->t != DT_E4M3 && m == f->max + 1)
          assert_true(isinf(got) && (got < 0) == (b >= sign));
        else
          assert_true(isnan(got));
        continue;
      }
      double want = b < sign ? value_of(f, m) : -value_of(f, m);
      assert_true(got == want && signbit(got) == (b >= sign));
      assert_int_equal(bits_of(f, got), b); /* load, store: the same bits, -0 too */
    }
  }
}

static void test_narrow_rounding(void **state) {
  (void)state;
  uint64_t r = 88172645463325252u;
  for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
    const struct format *f = &formats[k];
    for (unsigned m = 0; m <= f->max; m++) {
      double lo = value_of(f, m);
      double hi = m < f->max ? value_of(f, m + 1) : lo + (lo - value_of(f, m - 1));
      double mid = lo + (hi - lo) / 2; /* exact */
      double around[] = {lo,
                         nextafter(lo, 0),
                         nextafter(lo, hi),
                         mid,
                         nextafter(mid, 0),
                         nextafter(mid, hi),
                         (double)(float)mid,
                         (double)nextafterf((float)mid, 0),
                         nextafter(hi, 0)};
      for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
        check(f, around[i]);
        check(f, -around[i]);
      }
      r ^= r << 13, r ^= r >> 7, r ^= r << 17;
      check(f, lo + (hi - lo) * ((double)(r >> 11) / 9007199254740992.0));
    }
    double far[] = {0x1p-1074, 0x1p-1022, 0x1p-200, 1e300,      0x1.fffffffffffffp1023,  470,
                    60000,     65519.99,  65520,    0x1.ffp127, nextafter(0x1.ffp127, 0)};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
      check(f, far[i]), check(f, -far[i]);
    assert_int_equal(bits_of(f, NAN), f->nan);
    unsigned inf = f->inf ? f->max + 1 : f->max, sign = 1u << (f->bits - 1);
    assert_int_equal(bits_of(f, INFINITY), inf);
    assert_int_equal(bits_of(f, -INFINITY), inf | sign);
  }
}

/* A double between a bf16 midpoint and the f32 nearest to it: rounding through f32 gets it
 * wrong. */
static void test_no_double_rounding(void **state) {
  (void)state;
  double x = 1 + 0x1p-8 + 0x1p-40;
  assert_true((float)x == 1 + 0x1p-8f);
  assert_int_equal(num_bf16_bits(x), 0x3f81);
  assert_int_equal(num_bf16_bits((double)(float)x), 0x3f80);
  double h = 1 + 0x1p-11 + 0x1p-45;
  assert_int_equal(num_f16_bits(h), 0x3c01);
  /* Large integers go straight from 64 bits: 2^60 + 2^52 + 1 is just above a bf16 tie. */
  uint16_t cell;
  num_store_int(DT_BF16, &cell, 0, (INT64_C(1) << 60) + (INT64_C(1) << 52) + 1);
  assert_int_equal(cell, num_bf16_bits(0x1p60) + 1);
  num_store_int(DT_BF16, &cell, 0, -((INT64_C(1) << 60) + (INT64_C(1) << 52)));
  assert_int_equal(cell, num_bf16_bits(-0x1p60));
  float f;
  num_store_int(DT_F32, &f, 0, (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1);
  assert_true(f == 0x1p60f + 0x1p37f);
}

static void test_float_path(void **state) {
  (void)state;
  uint64_t r = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 200000; i++) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    uint32_t u = (uint32_t)(r >> 16);
    if (i < 1000)
      u = (u & 0xffff0000) | 0x8000; /* bf16 ties */
    float x;
    memcpy(&x, &u, sizeof x);
    for (int t = 0; t < DT_COUNT; t++) {
      if (!dtype_is_float((enum dtype)t) || t == DT_F64)
        continue;
      float got = num_round_f32((enum dtype)t, x);
      double want = num_round((enum dtype)t, (double)x);
      if (!(isnan(got) && isnan(want)) && (double)got != want)
        fail_msg("%s: %a gives %a, not %a", dtype_name((enum dtype)t), (double)x, (double)got,
                 want);
    }
    if (isnan(x) || isinf(x))
      continue;
    /* tf32 by scaling: 11 significant bits. */
    int e;
    double m = frexp((double)x, &e), q = ldexp(1, (e < -125 ? -125 : e) - 11);
    double n = (double)x / q, even = nearbyint(n), away = copysign(floor(fabs(n) + 0.5), n);
    (void)m;
    assert_true((double)num_round_tf32(x) == (double)(float)(even * q));
    assert_true((double)num_round_tf32_away(x) == (double)(float)(away * q));
  }
}

static void test_integers(void **state) {
  (void)state;
  static const struct {
    enum dtype t;
    double in;
    int64_t want;
  } cases[] = {
      {DT_S8, 126.5, 126},
      {DT_S8, 127.5, 127},
      {DT_S8, 1e30, 127},
      {DT_S8, -128.5, -128},
      {DT_S8, -1e30, -128},
      {DT_S8, 2.5, 2},
      {DT_S8, 3.5, 4},
      {DT_S8, -2.5, -2},
      {DT_S8, NAN, 0},
      {DT_S8, INFINITY, 127},
      {DT_U8, -1, 0},
      {DT_U8, 255.5, 255},
      {DT_U8, 0.5, 0},
      {DT_U8, 1.5, 2},
      {DT_S32, 2147483647.4, 2147483647},
      {DT_S32, 3e9, INT32_MAX},
      {DT_S32, -3e9, INT32_MIN},
      {DT_S64, 1e19, INT64_MAX},
      {DT_S64, -1e19, INT64_MIN},
      {DT_S64, -0x1p63, INT64_MIN},
      {DT_S64, 0x1p62, INT64_C(1) << 62},
      {DT_S4, 7.6, 7},
      {DT_S4, -9, -8},
      {DT_S4, -1, -1},
      {DT_U4, 15.5, 15},
      {DT_U4, -3, 0},
      {DT_BOOL, 0.25, 1},
      {DT_BOOL, -0.0, 0},
      {DT_BOOL, NAN, 1},
      {DT_INDEX, 5.5, 6},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unsigned char cell[8] = {0};
    num_store(cases[i].t, cell, 0, cases[i].in);
    assert_int_equal(num_load_int(cases[i].t, cell, 0), cases[i].want);
    assert_true(num_load(cases[i].t, cell, 0) == (double)cases[i].want);
  }
  int64_t big = (INT64_C(1) << 60) + 1, cell;
  num_store_int(DT_S64, &cell, 0, big);
  assert_int_equal(num_load_int(DT_S64, &cell, 0), big);
  float f = -2.75f;
  assert_int_equal(num_load_int(DT_F32, &f, 0), -2); /* towards zero */
}

static void test_packed(void **state) {
  (void)state;
  unsigned char s[4] = {0}, u[4] = {0};
  for (int i = 0; i < 7; i++) {
    num_store(DT_S4, s, i, i - 4);
    num_store(DT_U4, u, i, 2 * i + 1);
  }
  for (int i = 0; i < 7; i++) {
    assert_true(num_load(DT_S4, s, i) == i - 4);
    assert_true(num_load(DT_U4, u, i) == 2 * i + 1);
  }
  assert_int_equal(s[0], 0xdc);   /* -4 low, -3 high */
  assert_int_equal(s[3] >> 4, 0); /* element 7 was not touched */
  assert_int_equal(dtype_bytes(DT_S4, 7), 4);
}

static void test_wide_and_facts(void **state) {
  (void)state;
  float f;
  uint32_t u;
  num_store(DT_F32, &f, 0, NAN);
  memcpy(&u, &f, sizeof u);
  assert_int_equal(u, 0x7fffffff);
  num_store(DT_F32, &f, 0, 1e39);
  assert_true(isinf(f));
  num_store(DT_F32, &f, 0, 0x1.fffffefffffffp127);
  assert_true(f == 0x1.fffffep127f);
  num_store(DT_F32, &f, 0, -0.0);
  assert_true(f == 0 && signbit(f));
  for (int i = 0; i < DT_COUNT; i++) {
    enum dtype t = (enum dtype)i;
    double unit = num_unit(t);
    if (!dtype_is_float(t)) {
      assert_true(unit == 0);
      continue;
    }
    assert_true(num_round(t, num_max(t)) == num_max(t));
    assert_true(num_round(t, num_tiny(t)) == num_tiny(t));
    assert_true(num_round(t, num_tiny(t) / 2) == 0);
    assert_true(num_round(t, 1 + 2 * unit) == 1 + 2 * unit);
    assert_true(num_round(t, 1 + unit) == 1); /* a tie: to even */
  }
  double in[5] = {1, -2, 0.1, NAN, 70000}, back[5];
  uint16_t h[7] = {0};
  num_store_n(DT_F16, h, 2, 5, in);
  num_load_n(DT_F16, h, 2, 5, back);
  assert_int_equal(h[0] | h[1], 0);
  assert_true(back[1] == -2 && fabs(back[2] - 0.1) < 1e-4 && isnan(back[3]) && isinf(back[4]));
}

static void test_dtypes(void **state) {
  (void)state;
  for (int i = 0; i < DT_COUNT; i++) {
    enum dtype t;
    assert_true(dtype_find(dtype_name((enum dtype)i), &t) && (int)t == i);
  }
  enum dtype t;
  assert_false(dtype_find("fp32", &t));
  assert_int_equal(dtype_bytes(DT_BF16, 3), 6);
  assert_true(dtype_is_int(DT_INDEX) && !dtype_is_int(DT_BOOL) && dtype_is_float(DT_E4M3));
  assert_int_equal(dtype_dl_code(DT_BF16), 4);
  assert_int_equal(dtype_dl_bits(DT_U4), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_narrow_values),      cmocka_unit_test(test_narrow_rounding),
      cmocka_unit_test(test_no_double_rounding), cmocka_unit_test(test_float_path),
      cmocka_unit_test(test_integers),           cmocka_unit_test(test_packed),
      cmocka_unit_test(test_wide_and_facts),     cmocka_unit_test(test_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
