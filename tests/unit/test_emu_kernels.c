/* The emulator on what the lowering makes of kernels: the interpreter's bits on integers, its
 * payloads in the algebraic domain, in every mode; no conflicts in the banks where there are none;
 * how long a GEMM takes. */
#include "help_cg.h"

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

static void gemm(const struct cg_gemm *g, const char *dims, const char *layout, const char *knobs) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  struct cg_test t;
  cg_gemm_text(&b, g);
  for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
    cg_test_begin(&t, sb_str(&b));
    t.what = mode;
    cg_test_args(&t, dims, layout, -2, 3);
    assert_true(cg_test_lower(&t, "sm_90a", knobs));
    cg_test_compare(&t, 0);
    if (mode == 0)
      cg_test_compare_algebra(&t, 6);
    cg_test_end(&t);
  }
  arena_free(&h.arena);
}

static void products_are_the_interpreters(void **state) {
  (void)state;
  struct cg_gemm g = {.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32};
  gemm(&g, "M=64,N=64,K=128", "", "stages=3");
  gemm(&g, "M=65,N=127,K=200", "A=col", "stages=2");
  gemm(&g, "M=33,N=31,K=65", "A=off1,B=pad1", "stages=3");
  g = (struct cg_gemm){.t = DT_F16, .bm = 64, .bn = 32, .bk = 32, .bias = true, .residual = true};
  gemm(&g, "M=128,N=64,K=96", "B=col", "stages=2,store=1,prefetch=1");
  g = (struct cg_gemm){.t = DT_F32, .bm = 32, .bn = 32, .bk = 16};
  gemm(&g, "M=33,N=30,K=40", "", "stages=4");
}

static void rows(int kind) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  struct cg_test t;
  if (kind == 0)
    cg_softmax_text(&b, DT_F32, 2, 512);
  else if (kind == 1)
    cg_rmsnorm_text(&b, DT_BF16, 2, 256);
  else
    cg_add_text(&b, DT_BF16, 1024);
  static const char *const knobs[] = {"", "threads=64", "threads=256"};
  for (uint32_t k = 0; k < 3; k++) {
    cg_test_begin(&t, sb_str(&b));
    t.what = k;
    cg_test_args(&t, kind == 2 ? "N=3000" : kind == 1 ? "M=5,N=256" : "M=3,N=512", "", -3, 3);
    assert_true(cg_test_lower(&t, "sm_90a", knobs[k]));
    /* Sums in another order: some units of f32 below 1; then one of bf16. */
    cg_test_compare(&t, kind == 2 ? 0 : kind == 1 ? 0x1p-7 : 0x1p-22);
    cg_test_compare_algebra(&t, 5);
    cg_test_end(&t);
  }
  arena_free(&h.arena);
}

static void rows_are_the_interpreters(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++)
    rows(kind);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void a_gemm_takes_seconds(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  struct cg_test t;
  struct cg_gemm g = {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 32};
  cg_gemm_text(&b, &g);
  cg_test_begin(&t, sb_str(&b));
  cg_test_args(&t, "M=512,N=512,K=512", "", -2, 3);
  assert_true(cg_test_lower(&t, "sm_90a", ""));
  double start = now();
  struct cg_emulation e = cg_test_emulate(&t, EMU_LATE, 1);
  double took = now() - start;
  assert_string_equal(e.error, "");
  print_message("a GEMM of 512^3: %.2f s, %llu instructions\n", took,
                (unsigned long long)e.stats.steps);
  assert_int_equal(e.stats.blocks, 16);
  assert_true(e.stats.ldmatrix.best > 0 && e.stats.copy.best > 0);
  assert_int_equal(e.stats.ldmatrix.extra, 0);
  assert_int_equal(e.stats.copy.extra, 0);
  cg_test_end(&t);
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_the_interpreters),
      cmocka_unit_test(rows_are_the_interpreters),
      cmocka_unit_test(a_gemm_takes_seconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
