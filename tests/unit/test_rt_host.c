/* The runtime's host-side mathematics: medians and intervals, random inputs, double-precision
 * products. */
#include "help_rt.h"

#include "base/num.h"
#include "runtime/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_median(void **state) {
  (void)state;
  double scratch[101], x[101];
  for (int i = 0; i < 101; i++)
    x[i] = (i * 37) % 101;
  struct rt_interval r = rt_median_interval(x, scratch, 101);
  assert_true(r.median == 50 && r.min == 0);
  /* Binomial: the 95% interval of the median of 101 distinct samples is about ranks 40 to 60. */
  assert_true(r.lo >= 37 && r.lo <= 43 && r.hi >= 57 && r.hi <= 63);
  struct rt_interval again = rt_median_interval(x, scratch, 101);
  assert_true(again.lo == r.lo && again.hi == r.hi);
  double one[1] = {3}, two[2] = {5, 1}, same[7] = {2, 2, 2, 2, 2, 2, 2};
  r = rt_median_interval(one, scratch, 1);
  assert_true(r.median == 3 && r.lo == 3 && r.hi == 3);
  r = rt_median_interval(two, scratch, 2);
  assert_true(r.median == 3 && r.lo == 1 && r.hi == 5 && two[0] == 1);
  r = rt_median_interval(same, scratch, 7);
  assert_true(r.lo == 2 && r.hi == 2);
}

static void test_random(void **state) {
  (void)state;
  /* Pinned: inputs must be the same on every machine and in every version. */
  assert_true(rt_random(RT_FILL_NORMAL, 0, 0) == 0x1.882bp+0);
  assert_true(rt_random(RT_FILL_NORMAL, 42, 1000) == -0x1.cf98p-1);
  assert_true(rt_random(RT_FILL_NORMAL, UINT64_MAX, UINT64_C(1) << 40) == -0x1.a978p-2);
  assert_true(rt_random(RT_FILL_SMALL, 1, 2) == 3);
  double sum = 0, square = 0, fourth = 0, lag = 0, last = 0;
  int n = 100000, counts[5] = {0};
  for (int i = 0; i < n; i++) {
    double x = rt_random(RT_FILL_NORMAL, 42, (uint64_t)i);
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    lag += x * last;
    last = x;
    assert_true(fabs(x) <= 6 && (double)(float)x == x);
    counts[(int)rt_random(RT_FILL_SMALL, 42, (uint64_t)i)]++;
  }
  assert_true(fabs(sum / n) < 0.02);
  assert_true(fabs(square / n - 1) < 0.02);
  assert_true(fabs(lag / n) < 0.02);
  assert_true(fourth / n > 2.7 && fourth / n < 3.1); /* 3 - 6/(5 * 12) = 2.9 */
  for (int i = 0; i < 5; i++)
    assert_true(abs(counts[i] - n / 5) < n / 100);
  assert_true(rt_random(RT_FILL_NORMAL, 1, 5) != rt_random(RT_FILL_NORMAL, 2, 5));
  assert_true(rt_random(RT_FILL_ZERO, 1, 5) == 0);
  /* Filling in pieces gives the same array. */
  uint16_t whole[50], parts[50];
  rt_random_fill(RT_FILL_NORMAL, 9, 0.5, DT_BF16, whole, 0, 50);
  rt_random_fill(RT_FILL_NORMAL, 9, 0.5, DT_BF16, parts, 20, 30);
  rt_random_fill(RT_FILL_NORMAL, 9, 0.5, DT_BF16, parts, 0, 20);
  assert_memory_equal(whole, parts, sizeof whole);
  assert_true(num_bf16_value(whole[7]) ==
              num_round(DT_BF16, 0.5 * rt_random(RT_FILL_NORMAL, 9, 7)));
}

static void check_matmul(struct rt_ctx *ctx, int64_t m, int64_t n, int64_t k, int layout) {
  /* Layout bits: A transposed, B transposed, A with gaps, B with a stride that BLAS cannot take. */
  int64_t ga = layout & 4 ? 3 : 0, sb = layout & 8 ? 2 : 1;
  int64_t as0 = layout & 1 ? 1 : k + ga, as1 = layout & 1 ? m + ga : 1;
  int64_t bs0 = (layout & 2 ? 1 : n) * sb, bs1 = (layout & 2 ? k : 1) * sb;
  size_t na = (size_t)((m + 3) * (k + 3) + 1), nb = (size_t)(2 * (n + 1) * (k + 1) + 1);
  double *a = calloc(na, sizeof *a), *b = calloc(nb, sizeof *b);
  double *c = calloc((size_t)(m * n + 1), sizeof *c);
  for (size_t i = 0; i < na; i++)
    a[i] = rt_random(RT_FILL_SMALL, 1, i) - 2;
  for (size_t i = 0; i < nb; i++)
    b[i] = rt_random(RT_FILL_SMALL, 2, i) - 2;
  c[m * n] = 77;
  assert_int_equal(rt_host_matmul(ctx, m, n, k, a, as0, as1, b, bs0, bs1, c), RT_OK);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++)
        sum += a[i * as0 + l * as1] * b[l * bs0 + j * bs1];
      assert_true(c[i * n + j] == sum);
    }
  assert_true(c[m * n] == 77);
  free(a);
  free(b);
  free(c);
}

static void test_matmul(void **state) {
  (void)state;
  struct diag_sink diags;
  struct help_mem mem;
  struct rt_ctx *ctx;
  help_mem_init(&mem);
  assert_true(diag_init(&diags, &mem_libc));
  static const int64_t shapes[][3] = {{1, 1, 1},    {5, 3, 0},     {0, 4, 2},   {3, 0, 5},
                                      {7, 300, 70}, {64, 65, 129}, {33, 257, 2}};
  for (int plain = 0; plain < 2; plain++) {
    assert_int_equal(rt_ctx_new(&mem.alloc, &diags, NULL, &ctx), RT_OK);
    if (plain)
      ctx->dgemm_tried = true; /* as if there were no OpenBLAS */
    else
      printf("host products by %s\n", rt_host_matmul_name(ctx));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
      for (int layout = 0; layout < 16; layout++)
        check_matmul(ctx, shapes[i][0], shapes[i][1], shapes[i][2], layout);
    rt_ctx_free(ctx);
  }
  assert_int_equal(diags.n_errors, 0);
  assert_int_equal(mem.live_blocks, 0);
  diag_free(&diags);
}

/* A BLAS that multiplies wrongly is found out. */
static int wrong_calls;
static void wrong_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha,
                        const double *a, int lda, const double *b, int ldb, double beta, double *c,
                        int ldc) {
  (void)order, (void)ta, (void)tb, (void)k, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb;
  (void)beta, (void)ldc;
  wrong_calls++;
  for (int i = 0; i < m * n; i++)
    c[i] = 0;
}

static void test_wrong_blas(void **state) {
  (void)state;
  assert_false(rt_dgemm_is_right(wrong_dgemm));
  assert_int_equal(wrong_calls, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_median),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_matmul),
      cmocka_unit_test(test_wrong_blas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
