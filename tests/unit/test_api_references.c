/* Every case of every reference kernel compiles, with no register spilled. In short: the newest
 * target, of the slow matrix products one kernel; KILN_LONG=1: all of it, for targets of every
 * generation. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[] = {"elementwise", "gemm", "rmsnorm", "softmax"};
static const char *const targets[] = {"sm_90a", "sm_80", "sm_86", "sm_100", "sm_120"};

static bool is_slow(const char *file) {
  return !strcmp(file, "gemm");
}

/* False where there is no compiler. */
static bool compile(struct help_api *t, struct kiln_file *file, const char *kernel, int i,
                    const char *target) {
  struct kiln_request req = help_api_request();
  struct kiln_variant *v = NULL;
  struct kiln_compile_info info;
  req.kernel = kernel;
  req.case_index = i;
  req.target = target;
  enum kiln_status st = kiln_specialise(file, &req, &v);
  if (st == KILN_OK)
    st = kiln_compile(v, &info);
  if (st != KILN_OK && st != KILN_UNAVAILABLE)
    fail_msg("%s, case %d, %s: %s", kernel, i, target,
             kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : "no reason given");
  if (st == KILN_OK && info.spill_bytes)
    fail_msg("%s, case %d, %s: %u bytes spilled", kernel, i, target, info.spill_bytes);
  kiln_variant_free(v);
  return st == KILN_OK;
}

static void all_cases_compile(void **state) {
  (void)state;
  bool all = getenv("KILN_LONG") != NULL;
  for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/kernels_ref/%s.lua", KILN_SRC_DIR, files[f]);
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, path, NULL, &file), KILN_OK, NULL);
    uint32_t n_kernels = kiln_file_kernel_count(file);
    uint32_t kernels = is_slow(files[f]) && !all ? 1 : n_kernels;
    for (uint32_t k = 0; k < kernels; k++) {
      const char *name = kiln_file_kernel_name(file, k);
      uint32_t n = kiln_file_case_count(file, name);
      assert_true(n > 0);
      for (uint32_t i = 0; i < n; i++)
        for (size_t g = 0; g < (all ? sizeof targets / sizeof targets[0] : 1); g++)
          if (!compile(&t, file, name, (int)i, targets[g])) {
            print_message("SKIP: %s\n", kiln_diag_text(t.ctx, 0));
            skip();
          }
      print_message("%s: %u cases\n", name, n);
    }
    kiln_file_free(file);
    help_api_stop(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
