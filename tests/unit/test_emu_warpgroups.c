/* Kernels for warpgroups (the files below) on the emulator: each case verified on
 * integers to the bit in five interleavings, or compared in the algebraic domain, taking turns. In
 * short one case of four; KILN_LONG=1: all, both ways. And what is refused, with its reason. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[] = {
    KILN_SRC_DIR "/tests/gpu/sweep_warpgroups.lua",
    KILN_SRC_DIR "/tests/gpu/sweep_registers.lua",
    KILN_SRC_DIR "/tests/gpu/sweep_bytes.lua",
    KILN_SRC_DIR "/tests/gpu/sweep_programs.lua",
};
enum { N_FILES = sizeof files / sizeof files[0] };

static uint32_t run_kernel(struct help_api *t, struct kiln_file *file, uint32_t k, uint32_t flags) {
  bool all = getenv("KILN_LONG") != NULL;
  const char *name = kiln_file_kernel_name(file, k);
  uint32_t n = kiln_file_case_count(file, name), ran = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!all && (i + k + (flags == KILN_CASE_ALGEBRAIC ? 2 : 0)) % 4)
      continue;
    struct kiln_request req = help_api_request();
    const struct kiln_report *report = NULL;
    req.kernel = name;
    req.case_index = (int32_t)i;
    req.target = "sm_90a";
    enum kiln_status st = kiln_run_case(file, &req, KILN_ON_EMU, flags, &report);
    if (st != KILN_OK)
      fail_msg("%s, case %u: %s", name, i,
               kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : kiln_status_name(st));
    ran++;
  }
  return ran;
}

static void run_all(uint32_t flags) {
  uint32_t ran = 0;
  for (uint32_t i = 0; i < N_FILES; i++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, files[i], KILN_SRC_DIR, &file), KILN_OK, NULL);
    for (uint32_t k = 0; k < kiln_file_kernel_count(file); k++)
      ran += run_kernel(&t, file, k, flags);
    kiln_file_free(file);
    help_api_stop(&t);
  }
  print_message("%u cases\n", ran);
  assert_true(ran > 40);
}

static void cases_are_verified(void **state) {
  (void)state;
  run_all(KILN_CASE_VERIFY | KILN_CASE_EXACT);
}

static void cases_agree_in_the_algebraic_domain(void **state) {
  (void)state;
  run_all(KILN_CASE_ALGEBRAIC);
}

/* What does not qualify is refused where it is asked for, and else takes the other path. */
static void refusals_say_why(void **state) {
  (void)state;
  static const struct {
    const char *set[5], *shapes[4], *consts[2], *target, *why;
    const char *file, *kernel; /* NULL: gemm of kernels_ref */
    const char *layout;
  } refused[] = {
      {.set = {"warpgroups=2", "BM=128"}, .target = "sm_80", .why = "has no matrix unit"},
      {.set = {"warpgroups=2"}, .consts = {"T=f32"}, .why = "not of bf16, f16, tf32 or 8-bit"},
      {.set = {"warpgroups=3", "BM=128", "BN=128"}, .why = "128 x 128 is not cut into"},
      {.set = {"warpgroups=1", "BM=256", "BN=128"}, .why = "256 x 128 is not cut into"},
      {.set = {"warpgroups=2"}, .shapes = {"M=64", "N=64", "K=33"}, .why = "multiples of 16 bytes"},
      {.set = {"cluster=2", "BM=128"}, .target = "sm_90", .why = "`cluster` = 2: sm_90 has no"},
      {.set = {"cluster=2", "warpgroups=0"}, .why = "its warps all do the same"},
      {.set = {"cluster=2", "threads=128"}, .why = "its warps all do the same"},
      {.set = {"cluster=2", "BM=128", "BN=128"}, .consts = {"T=f32"}, .why = "not of bf16"},
      {.set = {"cluster=2", "cluster_axis=2"}, .why = "`cluster_axis` is 2, and its grid has 2"},
      {.set = {"split_cluster=1", "split_k=2", "warpgroups=0"}, .why = "`split_cluster` = 1: its"},
      {.set = {"split_cluster=1", "split_k=2", "cluster=2"}, .why = "`cluster` = 1 goes with it"},
      {.set = {"split_cluster=1", "split_k=9", "BM=64"}, .why = "at most 8, a cluster's blocks"},
      {.set = {"split_cluster=1", "split_k=2"}, .consts = {"T=f32"}, .why = "not of bf16"},
      {.set = {"stream_axis=2"}, .why = "`stream_axis` = 2: its grid has no such axis"},
      {.set = {"stream_axis=0", "warpgroups=0"}, .why = "`stream_axis` = 0: its warps all do"},
      {.set = {"cluster=3", "BM=64", "BN=64"}, .why = "load the same tile, in shares of"},
      {.set = {"cluster=3", "cluster_axis=1", "BM=64"}, .why = "along axis 1 of its grid load no"},
      {.set = {"warpgroups=2"}, .shapes = {"M=64", "N=64", "K=0"}, .why = "has no elements"},
      {.set = {"warpgroups=2", "BM=64", "BN=64"},
       .layout = "B=col",
       .why = "multiples of 64 columns"},
      {.set = {"warpgroups=2", "BM=64", "BN=320"},
       .layout = "B=col",
       .why = "multiples of 64 columns"},
      {.set = {"warpgroups=1", "BM=64", "BN=32"},
       .why = "a multiple of 64 columns",
       .file = "tests/gpu/sweep_programs.lua",
       .kernel = "weights"},
      {.set = {"warpgroups=1", "BM=64", "BN=40"},
       .why = "8, 16, 24, 32, 48, 64, ... columns",
       .file = "tests/gpu/sweep_bytes.lua",
       .kernel = "integers"},
      {.set = {"warpgroups=1", "BM=64", "BN=64", "BK=48"},
       .why = "no multiple of 32",
       .file = "tests/gpu/sweep_bytes.lua",
       .kernel = "integers"},
      {.set = {"warpgroups=2", "BM=128", "BN=64", "BK=160"},
       .why = "above 128 and no multiple",
       .file = "tests/gpu/sweep_bytes.lua",
       .kernel = "promoted"},
      {.set = {"warpgroups=2"},
       .shapes = {"M=256", "N=256", "K=256"},
       .why = "`prec` of the dot may allow it",
       .file = "kernels_ref/gemm_fp8.lua",
       .kernel = "gemm_fp8"},
      {.set = {"warpgroups=2"},
       .layout = "A=col",
       .why = "has its rows or columns adjacent, and not k",
       .file = "kernels_ref/gemm_mixed.lua",
       .kernel = "gemm_tf32"},
      {.set = {"cluster=2"},
       .why = "has yet to be measured",
       .file = "kernels_ref/gemm_mixed.lua",
       .kernel = "gemm_tf32"},
      {.set = {"warpgroups=1"},
       .why = "an operand of tf32 has other readers",
       .file = "tests/gpu/sweep_warpgroups.lua",
       .kernel = "tf32_reused"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    const struct kiln_report *report = NULL;
    help_api_start(&t, NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/%s", KILN_SRC_DIR,
             refused[i].file ? refused[i].file : "kernels_ref/gemm.lua");
    help_api_expect(&t, kiln_file_load(t.ctx, path, KILN_SRC_DIR, &file), KILN_OK, NULL);
    struct kiln_request req = help_api_request();
    static const char *const plain[] = {"M=256", "N=256", "K=256"};
    req.kernel = refused[i].kernel ? refused[i].kernel : "gemm";
    req.target = refused[i].target ? refused[i].target : "sm_90a";
    req.set = refused[i].set;
    while (req.n_set < 5 && req.set[req.n_set])
      req.n_set++;
    req.shapes = refused[i].shapes[0] ? refused[i].shapes : plain;
    req.n_shapes = 3;
    req.consts = refused[i].consts;
    req.n_consts = refused[i].consts[0] != NULL;
    req.layouts = &refused[i].layout;
    req.n_layouts = refused[i].layout != NULL;
    assert_int_equal(kiln_run_case(file, &req, KILN_ON_EMU, KILN_CASE_VERIFY, &report),
                     KILN_INVALID);
    assert_true(kiln_diag_count(t.ctx) > 0);
    if (!strstr(kiln_diag_text(t.ctx, 0), refused[i].why))
      fail_msg("refusal %zu: %s", i, kiln_diag_text(t.ctx, 0));
    kiln_diag_clear(t.ctx);
    /* Not asked for: another path, the same result. */
    req.set++;
    req.n_set--;
    help_api_expect(&t, kiln_run_case(file, &req, KILN_ON_EMU, KILN_CASE_VERIFY, &report), KILN_OK,
                    NULL);
    kiln_file_free(file);
    help_api_stop(&t);
  }
}

/* Occurrences of `word` in the text of a stage of kernel `name`'s first case, after a pass. */
static uint32_t count_words(const char *name, const char *set, const char *stage, const char *after,
                            const char *word) {
  struct help_api t = {0};
  struct kiln_file *file = NULL;
  struct kiln_variant *v = NULL;
  const char *text;
  uint32_t n = 0;
  help_api_start(&t, NULL);
  help_api_expect(
      &t, kiln_file_load(t.ctx, KILN_SRC_DIR "/tests/gpu/sweep_programs.lua", KILN_SRC_DIR, &file),
      KILN_OK, NULL);
  struct kiln_request req = help_api_request();
  req.kernel = name;
  req.case_index = 0;
  req.target = "sm_90a";
  req.set = &set;
  req.n_set = set != NULL;
  help_api_expect(&t, kiln_specialise(file, &req, &v), KILN_OK, NULL);
  help_api_expect(&t, kiln_show(v, stage, after, &text), KILN_OK, NULL);
  for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
    n++;
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
  return n;
}

/* A loop whose loads are the tensor memory unit's stays one: what its mask selects is a branch. */
static void masks_become_branches(void **state) {
  (void)state;
  static const char *const kernels[] = {"sigmoid", "two_terms"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(count_words(kernels[i], NULL, "scheduled", "peel_loops", " = if "), 1);
    assert_int_equal(count_words(kernels[i], NULL, "scheduled", "peel_loops", " = for "), 1);
    assert_int_equal(count_words(kernels[i], "peel=0", "scheduled", "peel_loops", " = if "), 0);
  }
}

/* Exponentials are computed once, in the place of what they are computed from, although the sum and
 * the next product both read them. */
static void exponentials_are_computed_once(void **state) {
  (void)state;
  /* Of the tile; of the ratio of maxima. */
  assert_int_equal(count_words("two_terms", "BN=128", "machine", NULL, " = ex2 "), 0);
  assert_int_equal(count_words("two_terms", "BN=128", "machine", NULL, " = exp "), 2);
}

/* Where loops are longer for some programs than for others, every other round of a grid that stays
 * walks them backwards: two rounds of attention, each program once; and only where that is so. */
static void rounds_take_turns(void **state) {
  (void)state;
  static const char *const shapes[] = {"B=1", "H=66", "G=1", "M=256", "N=256", "D=64"};
  static const char *const sets[] = {"BM=64", "BN=64"};
  int turns[2] = {0};
  for (int causal = 0; causal < 2; causal++) {
    const char *const consts[] = {causal ? "causal=true" : "causal=false"};
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    struct kiln_variant *v = NULL;
    const struct kiln_report *report = NULL;
    const char *text;
    help_api_start(&t, NULL);
    help_api_expect(
        &t, kiln_file_load(t.ctx, KILN_SRC_DIR "/kernels_ref/attention.lua", KILN_SRC_DIR, &file),
        KILN_OK, NULL);
    struct kiln_request req = help_api_request();
    req.kernel = "attention";
    req.target = "sm_90a";
    req.shapes = shapes;
    req.n_shapes = 6;
    req.set = sets;
    req.n_set = 2;
    req.consts = consts;
    req.n_consts = 1;
    help_api_expect(&t, kiln_specialise(file, &req, &v), KILN_OK, NULL);
    help_api_expect(&t, kiln_show(v, "machine", NULL, &text), KILN_OK, NULL);
    for (const char *p = text; (p = strstr(p, " = xor ")) != NULL; p++)
      turns[causal]++;
    kiln_variant_free(v);
    if (causal)
      help_api_expect(&t, kiln_run_case(file, &req, KILN_ON_EMU, KILN_CASE_VERIFY, &report),
                      KILN_OK, NULL);
    kiln_file_free(file);
    help_api_stop(&t);
  }
  assert_int_equal(turns[1], turns[0] + 2); /* one in each role */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cases_are_verified),
      cmocka_unit_test(cases_agree_in_the_algebraic_domain),
      cmocka_unit_test(refusals_say_why),
      cmocka_unit_test(masks_become_branches),
      cmocka_unit_test(exponentials_are_computed_once),
      cmocka_unit_test(rounds_take_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
