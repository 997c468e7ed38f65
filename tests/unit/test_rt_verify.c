/* The error policy on host arrays, with planted errors: each rule alone must catch its own, at the
 * right element, and must let pass what is just within. */
#include "help_rt.h"

#include "base/num.h"
#include "runtime/rt.h"
#include "runtime/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 300, COLS = 200, LD = 216, SIZE = ROWS * COLS };

/* A bf16 output with padded rows, its reference, a baseline that is the rounded reference, and an
 * a-priori bound far above it. */
struct scene {
  uint16_t out[ROWS * LD];
  double ref[SIZE], base[SIZE], bound[SIZE];
  struct rt_verify v;
  struct rt_verdict verdict;
};
static struct scene s;

static void fresh(void) {
  memset(&s, 0, sizeof s);
  for (int i = 0; i < SIZE; i++) {
    s.ref[i] = rt_random(RT_FILL_NORMAL, 7, (uint64_t)i);
    s.base[i] = num_round(DT_BF16, s.ref[i]);
    s.bound[i] = 0.01;
    num_store(DT_BF16, s.out, i / COLS * LD + i % COLS, s.ref[i]);
  }
  s.v = (struct rt_verify){.dtype = DT_BF16,
                           .rows = ROWS,
                           .cols = COLS,
                           .out = s.out,
                           .out_stride = {LD, 1},
                           .ref = s.ref,
                           .base = s.base,
                           .bound = s.bound};
}

static void set(int i, int j, double x) {
  num_store(DT_BF16, s.out, i * LD + j, x);
}

static void judge(void) {
  rt_verify(&s.v, &s.verdict);
}

static void expect(enum rt_rule rule, int row, int col) {
  judge();
  if (s.verdict.rule != rule || (row >= 0 && (s.verdict.row != row || s.verdict.col != col)))
    fail_msg("rule %d at [%lld, %lld], expected %d at [%d, %d]", s.verdict.rule,
             (long long)s.verdict.row, (long long)s.verdict.col, rule, row, col);
  assert_true(s.verdict.passed == (rule == RT_RULE_NONE));
}

static void test_right(void **state) {
  (void)state;
  fresh();
  expect(RT_RULE_NONE, -1, -1);
  assert_true(s.verdict.tolerance_used > 0.1 && s.verdict.tolerance_used <= 1);
  assert_true(s.verdict.ratio > 0.99 && s.verdict.ratio < 1.01);
  assert_true(s.verdict.max_error > 0 && s.verdict.max_error == s.verdict.base_max_error);
  assert_int_equal(s.verdict.n_first, 4);
  assert_true(s.verdict.first_want[1] == s.ref[1]);
  assert_true(s.verdict.first_got[3] == s.base[3]);
  printf("first %g %g, max error %g, %.0f%% of the tolerance used\n", s.verdict.first_got[0],
         s.verdict.first_want[0], s.verdict.max_error, 100 * s.verdict.tolerance_used);
  /* Empty outputs are right. */
  s.v.rows = 0;
  expect(RT_RULE_NONE, -1, -1);
}

static void test_wrong_element(void **state) {
  (void)state;
  fresh();
  s.v.bound = NULL;
  set(257, 131, s.ref[257 * COLS + 131] + 0.5);
  expect(RT_RULE_RATIO, 257, 131);
  assert_int_equal(s.verdict.n_wrong, 1); /* one block */
  assert_true(fabs(s.verdict.got - s.verdict.want - 0.5) < 0.01);
  /* A swapped pair in another block as well: two blocks. */
  uint16_t t = s.out[0];
  s.out[0] = s.out[5];
  s.out[5] = t;
  judge();
  assert_int_equal(s.verdict.n_wrong, 2);
  /* The ceiling alone finds it too. */
  fresh();
  s.v.base = NULL;
  set(3, 199, s.ref[3 * COLS + 199] + 0.5);
  expect(RT_RULE_CEILING, 3, 199);
  assert_true(s.verdict.n_wrong == 1 && s.verdict.tolerance_used > 10);
}

/* Blocks are judged one by one: an error that the worst block would allow is caught in a quiet
 * one. */
static void test_blocks_are_local(void **state) {
  (void)state;
  fresh();
  s.v.bound = NULL;
  for (int i = 0; i < 128; i++)
    for (int j = 0; j < 128; j++) {
      s.base[i * COLS + j] += 0.25; /* a noisy baseline in the first block */
      set(i, j, s.ref[i * COLS + j] + 0.25);
    }
  expect(RT_RULE_NONE, -1, -1);
  set(130, 3, s.ref[130 * COLS + 3] + 0.25);
  expect(RT_RULE_RATIO, 130, 3);
  /* As row blocks the quiet columns of the same rows are in the noisy block. */
  fresh();
  s.v.bound = NULL;
  s.base[0] += 1;
  set(5, 190, s.ref[5 * COLS + 190] + 0.9);
  expect(RT_RULE_RATIO, 5, 190);
  s.v.row_blocks = true;
  expect(RT_RULE_NONE, -1, -1);
}

static void test_mean(void **state) {
  (void)state;
  fresh();
  s.v.bound = NULL;
  /* Every element off by what the ratio rule just allows where the baseline is worst. */
  for (int i = 0; i < SIZE; i++)
    set(i / COLS, i % COLS, s.ref[i] + 0.012);
  expect(RT_RULE_MEAN, -1, -1);
}

static void test_unwritten(void **state) {
  (void)state;
  fresh();
  memset(&s.out[128 * LD + 130], RT_POISON_FLOAT, 2);
  expect(RT_RULE_UNWRITTEN, 128, 130);
  assert_int_equal(s.verdict.n_unwritten, 1);
  memset(s.out, RT_POISON_FLOAT, sizeof s.out);
  judge();
  assert_int_equal(s.verdict.n_unwritten, SIZE);
}

/* Integers of 32 bits and more: the poison is a number, that may be right. */
static void test_unwritten_integers(void **state) {
  (void)state;
  int32_t poison, out[3] = {1, 0, 3};
  memset(&poison, RT_POISON_INT, sizeof poison);
  out[1] = poison;
  double ref[3] = {1, poison, 3};
  struct rt_verify v = {.dtype = DT_S32,
                        .rows = 1,
                        .cols = 3,
                        .out = out,
                        .out_stride = {3, 1},
                        .ref = ref,
                        .base = ref};
  struct rt_verdict verdict;
  rt_verify(&v, &verdict);
  assert_true(verdict.passed);
  ref[1] = 2;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_UNWRITTEN);
  assert_int_equal(verdict.col, 1);
}

static void test_special(void **state) {
  (void)state;
  fresh();
  set(7, 9, (double)NAN);
  expect(RT_RULE_SPECIAL, 7, 9);
  s.ref[7 * COLS + 9] = (double)NAN; /* meant to be */
  expect(RT_RULE_NONE, -1, -1);
  set(7, 9, 1);
  expect(RT_RULE_SPECIAL, 7, 9);
  fresh();
  set(0, 0, (double)INFINITY);
  expect(RT_RULE_SPECIAL, 0, 0);
  s.ref[0] = s.base[0] = (double)INFINITY;
  expect(RT_RULE_NONE, -1, -1);
  set(0, 0, -(double)INFINITY);
  expect(RT_RULE_SPECIAL, 0, 0);
  /* Overflow of the output type: infinity is right, and so is the largest value next to it. */
  fresh();
  s.ref[0] = 3.4e38;
  s.base[0] = (double)INFINITY;
  set(0, 0, (double)INFINITY);
  expect(RT_RULE_NONE, -1, -1);
  s.ref[0] = 1e38;
  expect(RT_RULE_SPECIAL, 0, 0);
  /* fp8 saturates: 1000 is right as 448. */
  double ref[2] = {1000, -2}, bound[2] = {0, 0};
  uint8_t out[2] = {num_e4m3_bits(448), num_e4m3_bits(-2)};
  struct rt_verify v = {.dtype = DT_E4M3,
                        .rows = 1,
                        .cols = 2,
                        .out = out,
                        .out_stride = {2, 1},
                        .ref = ref,
                        .bound = bound};
  struct rt_verdict verdict;
  rt_verify(&v, &verdict);
  assert_true(verdict.passed);
  out[0] = num_e4m3_bits(416);
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_CEILING);
}

static void test_exact(void **state) {
  (void)state;
  fresh();
  s.v.exact = true;
  s.v.base = s.v.bound = NULL;
  for (int i = 0; i < SIZE; i++) {
    s.ref[i] = rt_random(RT_FILL_SMALL, 3, (uint64_t)i) * 100;
    set(i / COLS, i % COLS, s.ref[i]);
  }
  expect(RT_RULE_NONE, -1, -1);
  assert_true(s.verdict.tolerance_used == 0);
  s.out[299 * LD + 199] ^= 1; /* the last bit of the last element */
  expect(RT_RULE_EXACT, 299, 199);
  assert_int_equal(s.verdict.n_wrong, 1);
  /* Reference is rounded once to the output type before it is compared. */
  fresh();
  s.v.exact = true;
  expect(RT_RULE_NONE, -1, -1);
}

/* Just inside and just outside each tolerance. */
static void test_edges(void **state) {
  (void)state;
  double ref[4] = {1, 1, 1, 1}, base[4] = {1, 1 + 0x1p-10, 1, 1}, bound[4] = {0x1p-9, 0, 0, 0};
  float out[4] = {1, 1, 1, 1};
  struct rt_verify v = {.dtype = DT_F32,
                        .rows = 2,
                        .cols = 2,
                        .out = out,
                        .out_stride = {2, 1},
                        .ref = ref,
                        .base = base};
  struct rt_verdict verdict;
  /* Ratio: 2 * 2^-10 + 2^-24 * 1. */
  out[2] = 1 + 0x1p-9f;
  rt_verify(&v, &verdict);
  assert_true(verdict.passed && verdict.tolerance_used > 0.9999);
  out[2] = 1 + 0x1p-9f + 0x1p-23f;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_RATIO);
  /* Ceiling: 2^-9 + 2^-24 * (1 + 2^-9). */
  v.base = NULL;
  v.bound = bound;
  out[2] = 1;
  out[0] = 1 + 0x1p-9f;
  rt_verify(&v, &verdict);
  assert_true(verdict.passed);
  out[0] = 1 + 0x1p-9f + 0x1p-23f;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_CEILING);
  /* One half ulp is always allowed, one ulp is not. */
  out[0] = 1;
  ref[3] = 1 + 0x1p-24;
  rt_verify(&v, &verdict);
  assert_true(verdict.passed);
  ref[3] = 1 + 0x1.8p-24;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_CEILING);
  assert_true(verdict.row == 1 && verdict.col == 1);
  /* A broken baseline is not a yardstick. */
  ref[3] = 1;
  v.base = base;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_BASELINE);
  /* And with nothing to judge by nothing passes. */
  v.base = v.bound = NULL;
  rt_verify(&v, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_NOTHING);
  assert_false(verdict.passed);
  /* Integers: half a unit of rounding. */
  int8_t ints[2] = {3, 127};
  double iref[2] = {2.5, 300}, ibound[2] = {0, 0};
  struct rt_verify iv = {.dtype = DT_S8,
                         .rows = 1,
                         .cols = 2,
                         .out = ints,
                         .out_stride = {2, 1},
                         .ref = iref,
                         .bound = ibound};
  rt_verify(&iv, &verdict);
  assert_true(verdict.passed);
  ints[0] = 4;
  rt_verify(&iv, &verdict);
  assert_int_equal(verdict.rule, RT_RULE_CEILING);
  assert_true(rt_gamma(1024, DT_F32) > 1024 * 0x1p-24 && rt_gamma(1024, DT_F32) < 1025 * 0x1p-24);
  assert_true(isinf(rt_gamma(INT64_C(1) << 25, DT_F32)));
}

static void test_text(void **state) {
  (void)state;
  struct help_arena mem;
  help_arena_init(&mem);
  fresh();
  judge();
  struct strbuf b = {.arena = &mem.arena};
  rt_verdict_text(&s.verdict, &b);
  assert_non_null(strstr(b.s, "right; max error"));
  assert_non_null(strstr(b.s, "% of the tolerance used"));
  set(1, 2, 99);
  judge();
  b.n = 0;
  rt_verdict_text(&s.verdict, &b);
  assert_non_null(strstr(b.s, "at [1, 2]: got 99, reference"));
  arena_free(&mem.arena);
}

/* Elements that fill their buffer leave no pads, in any order of strides; one byte more does, and
 * so does a dim that is longer than the step over it says. */
static void test_dense_pads(void **state) {
  (void)state;
  static const struct {
    struct rt_tensor t;
    size_t bytes;
    int64_t found;
  } rows[] = {
      {{.dtype = DT_F32, .rank = 2, .dim = {4, 6}, .stride = {6, 1}}, 96, -1},
      {{.dtype = DT_F32, .rank = 2, .dim = {4, 6}, .stride = {1, 4}}, 96, -1},
      {{.dtype = DT_F32, .rank = 3, .dim = {2, 3, 4}, .stride = {4, 8, 1}}, 96, -1},
      {{.dtype = DT_F32, .rank = 3, .dim = {4, 1, 6}, .stride = {6, 999, 1}}, 96, -1},
      {{.dtype = DT_F32, .rank = 2, .dim = {4, 6}, .stride = {6, 1}}, 97, 96},
      {{.dtype = DT_F32, .rank = 2, .dim = {4, 5}, .stride = {6, 1}}, 96, 20},
      {{.dtype = DT_F32, .rank = 2, .dim = {4, 6}, .stride = {0, 1}}, 96, 24},
      {{.dtype = DT_F32, .rank = 2, .dim = {2, 11}, .stride = {2, 2}}, 96, 4},
      {{.dtype = DT_F32, .rank = 1, .dim = {0}, .stride = {1}}, 8, 0},
      {{.dtype = DT_F32, .rank = 0}, 4, -1},
      {{.dtype = DT_F32, .rank = 0}, 8, 4},
  };
  unsigned char buffer[97] = {0}; /* no byte is poison: every pad is found */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rt_check_pads(&mem_libc, &rows[i].t, buffer, rows[i].bytes, 0, RT_POISON_FLOAT) !=
        rows[i].found)
      fail_msg("row %zu", i);
}

static void test_pads(void **state) {
  (void)state;
  unsigned char buffer[4 * 24];
  memset(buffer, RT_POISON_FLOAT, sizeof buffer);
  /* bf16 [4, 10], rows 12 elements apart: 4 bytes of pad a row. */
  struct rt_tensor t = {.dtype = DT_BF16, .rank = 2, .dim = {4, 10}, .stride = {12, 1}};
  for (int i = 0; i < 4; i++)
    memset(buffer + 24 * i, 0, 20);
  assert_int_equal(rt_check_pads(&mem_libc, &t, buffer, sizeof buffer, 0, RT_POISON_FLOAT), -1);
  buffer[2 * 24 + 21] = 0;
  assert_int_equal(rt_check_pads(&mem_libc, &t, buffer, sizeof buffer, 0, RT_POISON_FLOAT), 69);
  /* The same as columns, backwards, and with an offset. */
  memset(buffer, RT_POISON_FLOAT, sizeof buffer);
  buffer[50] = buffer[51] = 7;
  t = (struct rt_tensor){.dtype = DT_BF16, .rank = 1, .dim = {1}, .stride = {-5}};
  assert_int_equal(rt_check_pads(&mem_libc, &t, buffer, sizeof buffer, 50, RT_POISON_FLOAT), -1);
  assert_int_equal(rt_check_pads(&mem_libc, &t, buffer, sizeof buffer, 52, RT_POISON_FLOAT), 50);
  t.dim[0] = 0;
  assert_int_equal(rt_check_pads(&mem_libc, &t, buffer, sizeof buffer, 50, RT_POISON_FLOAT), 50);
  struct help_mem m;
  help_mem_init(&m);
  m.fail_at = 1;
  assert_int_equal(rt_check_pads(&m.alloc, &t, buffer, sizeof buffer, 0, RT_POISON_FLOAT), -2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_right),
      cmocka_unit_test(test_wrong_element),
      cmocka_unit_test(test_blocks_are_local),
      cmocka_unit_test(test_mean),
      cmocka_unit_test(test_unwritten),
      cmocka_unit_test(test_unwritten_integers),
      cmocka_unit_test(test_special),
      cmocka_unit_test(test_exact),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_pads),
      cmocka_unit_test(test_dense_pads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
