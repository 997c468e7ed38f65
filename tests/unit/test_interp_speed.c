/* How long the interpreter takes, printed: a bf16 GEMM of 1024^3 and one head of attention with
 * S = 1024, D = 64, on one thread and on two. In release builds (NDEBUG, no sanitizer) the bar of
 * three seconds on two cores is asserted with a factor of three: machines differ and are shared.
 * Other builds run smaller problems. */
#include "help_interp.h"
#include "help_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define IS_RELEASE true
enum { SIZE = 1024 };
#else
#define IS_RELEASE false
enum { SIZE = 256 };
#endif

#define BAR_SECONDS 3.0
#define BAR_FACTOR  3

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(enum dtype t, void *data, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    double x = (double)(int64_t)ref_random(&seed) * 0x1p-63;
    ref_put(t, data, i, (long double)x);
  }
}

/* Runs on 1 and 2 threads; the results must be the same bytes. */
static void measure(struct hi *h, const char *what, void *result, size_t bytes) {
  void *first = malloc(bytes);
  assert_non_null(first);
  for (uint32_t threads = 1; threads <= 2; threads++) {
    memset(result, 0x5a, bytes);
    h->opt.threads = threads;
    double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    hi_run_ok(h);
    double seconds = now(CLOCK_MONOTONIC) - start;
    print_message("%s, %u thread%s: %.3f s, %.3f s of CPU time\n", what, threads,
                  threads > 1 ? "s" : "", seconds, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    if (threads == 1)
      memcpy(first, result, bytes);
    else
      assert_memory_equal(first, result, bytes);
    if (IS_RELEASE && threads == 2 && sysconf(_SC_NPROCESSORS_ONLN) >= 2 &&
        seconds > BAR_SECONDS * BAR_FACTOR)
      fail_msg("%s took %.3f s; the bar is %g s", what, seconds, BAR_SECONDS);
  }
  free(first);
}

static struct ir_val times(struct hi *h, struct ir_val x, int64_t n) {
  return hi_op2(h, IR_MUL, x, hi_index(h, n));
}

static void test_gemm(void **state) {
  (void)state;
  enum { BM = 128, BN = 128, BK = 64 };
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "A", IR_ARG_IN, DT_BF16, "M,K");
  hi_tensor(&h, "B", IR_ARG_IN, DT_BF16, "N,K");
  hi_tensor(&h, "C", IR_ARG_OUT, DT_BF16, "M,N");
  hi_begin(&h, "cdiv(M, 128),cdiv(N, 128)");
  struct ir_val i = times(&h, h.grid[0], BM), j = times(&h, h.grid[1], BN);
  struct ir_val init = hi_full(&h, DT_F32, 0, BM, BN), zero = hi_index(&h, 0);
  struct ir_op loop = hi_for(&h, zero, h.dim[1], hi_index(&h, BK), 1, &init);
  struct ir_val k = hi_arg(&h, loop, 0, 0), acc = hi_arg(&h, loop, 0, 1);
  struct ir_val a = hi_load2(&h, 0, i, k, BM, BK), b = hi_load2(&h, 1, j, k, BN, BK);
  b = hi_transpose(&h, b, (int64_t[]){1, 0});
  acc = hi_op3(&h, IR_DOT, a, b, acc);
  hi_yield(&h, 1, &acc);
  hi_store2(&h, 2, i, j, hi_cast(&h, DT_BF16, hi_out(&h, loop, 0)));
  hi_end(&h);
  size_t n = (size_t)SIZE * SIZE;
  uint16_t *x = malloc(2 * n), *y = malloc(2 * n), *z = malloc(2 * n);
  assert_true(x && y && z);
  fill(DT_BF16, x, (int64_t)n, 1);
  fill(DT_BF16, y, (int64_t)n, 2);
  hi_bind(&h, 0, x, (int64_t[]){SIZE, SIZE});
  hi_bind(&h, 1, y, (int64_t[]){SIZE, SIZE});
  hi_bind(&h, 2, z, (int64_t[]){SIZE, SIZE});
  char what[64];
  snprintf(what, sizeof what, "bf16 GEMM %d^3", SIZE);
  measure(&h, what, z, 2 * n);
  free(x);
  free(y);
  free(z);
  hi_free(&h);
}

/* One head: O = softmax(Q K^T / 8) V, in blocks of 64 queries and 64 keys, with a causal mask. */
static void test_attention(void **state) {
  (void)state;
  enum { BM = 64, BN = 64, D = 64 };
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "Q", IR_ARG_IN, DT_BF16, "S,64");
  hi_tensor(&h, "K", IR_ARG_IN, DT_BF16, "T,64");
  hi_tensor(&h, "V", IR_ARG_IN, DT_BF16, "T,64");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_BF16, "S,64");
  hi_begin(&h, "cdiv(S, 64)");
  struct ir_val i = times(&h, h.grid[0], BM), zero = hi_index(&h, 0), init[3];
  struct ir_val q = hi_load2(&h, 0, i, zero, BM, D);
  init[0] = hi_full(&h, DT_F32, -HUGE_VAL, BM, 1);
  init[1] = hi_full(&h, DT_F32, 0, BM, 1);
  init[2] = hi_full(&h, DT_F32, 0, BM, D);
  struct ir_op loop = hi_for(&h, zero, h.dim[1], hi_index(&h, BN), 3, init);
  struct ir_val n = hi_arg(&h, loop, 0, 0), m = hi_arg(&h, loop, 0, 1);
  struct ir_val l = hi_arg(&h, loop, 0, 2), o = hi_arg(&h, loop, 0, 3);
  struct ir_val k = hi_transpose(&h, hi_load2(&h, 1, n, zero, BN, D), (int64_t[]){1, 0});
  struct ir_val v = hi_load2(&h, 2, n, zero, BN, D);
  struct ir_val s = hi_op3(&h, IR_DOT, q, k, hi_full(&h, DT_F32, 0, BM, BN));
  s = hi_op2(&h, IR_MUL, s, hi_full(&h, DT_F32, 0.125f * 1.44269504f, BM, BN));
  struct ir_val row = hi_splat(&h, i, 2, (int64_t[]){BM, 1});
  row = hi_wide(&h, hi_op2(&h, IR_ADD, row, hi_iota(&h, 0, BM)), BM, BN);
  struct ir_val col = hi_splat(&h, n, 2, (int64_t[]){1, BN});
  col = hi_wide(&h, hi_op2(&h, IR_ADD, col, hi_iota(&h, 1, BN)), BM, BN);
  struct ir_val seen = hi_op2(&h, IR_LE, col, row);
  s = hi_op3(&h, IR_SELECT, seen, s, hi_full(&h, DT_F32, -HUGE_VAL, BM, BN));
  struct ir_val mx = hi_op2(&h, IR_MAX, m, hi_reduce(&h, IR_REDUCE_MAX, s, 1));
  struct ir_val p = hi_op1(&h, IR_EXP2, hi_op2(&h, IR_SUB, s, hi_wide(&h, mx, BM, BN)));
  struct ir_val r = hi_op1(&h, IR_EXP2, hi_op2(&h, IR_SUB, m, mx));
  struct ir_val next[3] = {mx};
  struct ir_val kept = hi_op2(&h, IR_MUL, l, r);
  next[1] = hi_op2(&h, IR_ADD, kept, hi_reduce(&h, IR_REDUCE_SUM, p, 1));
  struct ir_val scaled = hi_op2(&h, IR_MUL, o, hi_wide(&h, r, BM, D));
  next[2] = hi_op3(&h, IR_DOT, hi_cast(&h, DT_BF16, p), v, scaled);
  hi_yield(&h, 3, next);
  struct ir_val sums = hi_wide(&h, hi_out(&h, loop, 1), BM, D);
  struct ir_val out = hi_op2(&h, IR_DIV, hi_out(&h, loop, 2), sums);
  hi_store2(&h, 3, i, zero, hi_cast(&h, DT_BF16, out));
  hi_end(&h);
  size_t each = (size_t)SIZE * D;
  uint16_t *data = malloc(4 * 2 * each);
  assert_non_null(data);
  fill(DT_BF16, data, (int64_t)(3 * each), 3);
  for (uint32_t a = 0; a < 4; a++)
    hi_bind(&h, a, data + a * each, (int64_t[]){SIZE, D});
  char what[64];
  snprintf(what, sizeof what, "attention S = %d, D = %d", SIZE, D);
  measure(&h, what, data + 3 * each, 2 * each);
  free(data);
  hi_free(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
