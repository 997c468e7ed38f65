/* Kinds of problems that broke other systems (docs/cases.md), as tests/gpu/sweep_cases_*.lua sweep
 * them for a GPU: here in the interpreter and on the emulator, in five interleavings, on integers
 * to the bit, and in the algebraic domain. In short a selection of each kernel's cases;
 * KILN_LONG=1: all of them. Those whose elements lie gigabytes apart are left to the GPU. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* In short: one case of so many. */
enum { INTERP_STRIDE = 7, EMU_STRIDE = 37 };

/* Cases for which the emulator takes long: the largest grids. */
static bool is_large(const char *kernel, uint32_t i) {
  return (strcmp(kernel, "case7_products") == 0 || strcmp(kernel, "case7_persistent") == 0) &&
         i % 5 == 4;
}

static uint32_t run_kernel(struct help_api *t, struct kiln_file *file, uint32_t k, enum kiln_on on,
                           uint32_t flags) {
  bool all = getenv("KILN_LONG") != NULL;
  uint32_t stride = all ? 1 : on == KILN_ON_EMU ? EMU_STRIDE : INTERP_STRIDE, ran = 0;
  const char *name = kiln_file_kernel_name(file, k);
  uint32_t n = kiln_file_case_count(file, name);
  assert_true(n > 0);
  uint32_t first = flags & KILN_CASE_ALGEBRAIC ? 3 * k + 1 : k;
  for (uint32_t i = first % stride % n; i < n; i += stride) {
    if (!all && on == KILN_ON_EMU && is_large(name, i))
      continue;
    struct kiln_request req = help_api_request();
    const struct kiln_report *report = NULL;
    req.kernel = name;
    req.case_index = (int32_t)i;
    req.target = "sm_90a";
    enum kiln_status st = kiln_run_case(file, &req, on, flags, &report);
    if (st != KILN_OK)
      fail_msg("%s, case %u, %s: %s", name, i, on == KILN_ON_EMU ? "emulator" : "interpreter",
               kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : kiln_status_name(st));
    ran++;
  }
  return ran;
}

/* What rows of the table a run has come to, by the kernels' names. */
static void run_files(enum kiln_on on, uint32_t flags) {
  static const int rows[] = {2, 3, 4, 5, 7, 9, 16};
  uint32_t count[20] = {0};
  glob_t files;
  assert_int_equal(glob(KILN_SRC_DIR "/tests/gpu/sweep_cases_*.lua", 0, NULL, &files), 0);
  for (size_t f = 0; f < files.gl_pathc; f++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    if (strstr(files.gl_pathv[f], "_far.lua"))
      continue;
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, files.gl_pathv[f], KILN_SRC_DIR, &file), KILN_OK,
                    NULL);
    for (uint32_t k = 0; k < kiln_file_kernel_count(file); k++) {
      int row = atoi(kiln_file_kernel_name(file, k) + strlen("case"));
      assert_true(row > 0 && row < 20);
      count[row] += run_kernel(&t, file, k, on, flags);
    }
    kiln_file_free(file);
    help_api_stop(&t);
  }
  globfree(&files);
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    print_message("case %d: %u runs\n", rows[r], count[rows[r]]);
    assert_true(count[rows[r]] > 0);
  }
}

static void in_the_interpreter(void **state) {
  (void)state;
  run_files(KILN_ON_INTERP, KILN_CASE_VERIFY | KILN_CASE_EXACT);
}

static void on_the_emulator(void **state) {
  (void)state;
  run_files(KILN_ON_EMU, KILN_CASE_VERIFY | KILN_CASE_EXACT);
}

static void in_the_algebraic_domain(void **state) {
  (void)state;
  run_files(KILN_ON_EMU, KILN_CASE_ALGEBRAIC);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_the_interpreter),
      cmocka_unit_test(on_the_emulator),
      cmocka_unit_test(in_the_algebraic_domain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
