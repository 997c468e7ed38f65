/* Every case of every reference kernel compiles, with no register spilled; a kernel with an op that
 * has no lowering yet is refused with that message alone, and named as skipped. In short: the
 * newest target, of the slow matrix products one kernel; KILN_LONG=1: all of it, and every third
 * case for each target that the NVRTC at hand knows. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"sm_90a", "sm_80",  "sm_86",  "sm_87", "sm_89",
                                      "sm_90",  "sm_100", "sm_120", "sm_121"};
enum { N_TARGETS = sizeof targets / sizeof *targets, EVERY = 3 };

static bool is_slow(const char *path) {
  return strstr(path, "/gemm.lua") != NULL;
}

/* All but what is refused or spills where the matrix unit has no 8-bit floats of its own. */
static bool is_lowered(const char *path) {
  return !strstr(path, "/gemm_fp8.lua") && !strstr(path, "/gemm_s4.lua");
}

/* Whether all that was said is that the target has no lowering for it. */
static bool is_refused(struct kiln_context *ctx) {
  uint32_t n = kiln_diag_count(ctx);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(kiln_diag_code(ctx, i), "K0701") != 0 ||
        !help_api_matches(kiln_diag_text(ctx, i), "lua:[0-9]+:[0-9]+: error: "))
      return false;
  return n > 0;
}

enum outcome { COMPILED, NOT_LOWERED, NO_COMPILER };

/* Does the NVRTC at hand know the target? Without any NVRTC: yes. */
static bool is_known(struct help_api *t, const char *target) {
  struct kiln_file *file = help_api_load(t, "axpy.lua", help_api_axpy);
  struct kiln_request req = help_api_request();
  req.target = target;
  struct kiln_variant *v = help_api_specialise(file, &req);
  enum kiln_status st = kiln_compile(v, NULL);
  bool unknown = st == KILN_FAILED && strstr(kiln_diag_text(t->ctx, 0), "gpu-architecture") != NULL;
  if (st != KILN_OK && st != KILN_UNAVAILABLE && !unknown)
    fail_msg("%s: %s", target, kiln_diag_text(t->ctx, 0));
  kiln_diag_clear(t->ctx);
  kiln_variant_free(v);
  kiln_file_free(file);
  return !unknown;
}

static uint32_t n_failed;

static enum outcome compile(struct help_api *t, struct kiln_file *file, const char *kernel, int i,
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
  bool refused = st == KILN_INVALID && is_refused(t->ctx);
  bool failed = st != KILN_OK && st != KILN_UNAVAILABLE && !refused;
  if (failed || (st == KILN_OK && info.spill_bytes)) {
    print_message("FAIL %s, case %d, %s: %s\n", kernel, i, target,
                  kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : "spills");
    n_failed++;
  }
  kiln_variant_free(v);
  if (refused || failed)
    kiln_diag_clear(t->ctx);
  return st == KILN_OK || failed ? COMPILED : refused ? NOT_LOWERED : NO_COMPILER;
}

/* Compiles all cases of a kernel; how many were compiled and refused. False without a compiler. */
static bool compile_kernel(struct help_api *t, struct kiln_file *file, const char *name,
                           const bool known[N_TARGETS], uint32_t count[2]) {
  uint32_t n = kiln_file_case_count(file, name);
  assert_true(n > 0);
  for (uint32_t i = 0; i < n; i++)
    for (size_t g = 0; g < N_TARGETS; g++) {
      if (!known[g] || (g && i % EVERY))
        continue;
      enum outcome o = compile(t, file, name, (int)i, targets[g]);
      if (o == NO_COMPILER)
        return false;
      count[o]++;
    }
  print_message("%s: %u cases\n", name, n);
  return true;
}

/* The kernels of all files that are lowered, or of all others. */
static void compile_files(bool lowered) {
  bool all = getenv("KILN_LONG") != NULL;
  glob_t files;
  assert_int_equal(glob(KILN_SRC_DIR "/kernels_ref/*.lua", 0, NULL, &files), 0);
  char left[4096] = "";
  bool known[N_TARGETS] = {true};
  for (size_t g = 0; all && g < N_TARGETS; g++) {
    struct help_api t = {0};
    help_api_start(&t, NULL);
    known[g] = is_known(&t, targets[g]);
    if (!known[g])
      print_message("SKIP: the NVRTC at hand does not know %s\n", targets[g]);
    help_api_stop(&t);
  }
  for (size_t f = 0; f < files.gl_pathc; f++) {
    const char *path = files.gl_pathv[f];
    if (is_lowered(path) != lowered)
      continue;
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, path, NULL, &file), KILN_OK, NULL);
    uint32_t n_kernels = kiln_file_kernel_count(file);
    for (uint32_t k = 0; k < (is_slow(path) && !all ? 1 : n_kernels); k++) {
      const char *name = kiln_file_kernel_name(file, k);
      uint32_t count[2] = {0, 0};
      if (!compile_kernel(&t, file, name, known, count)) {
        print_message("SKIP: %s\n", kiln_diag_text(t.ctx, 0));
        skip();
      }
      if (count[NOT_LOWERED] && lowered)
        fail_msg("%s is no longer lowered: %u times refused", name, count[NOT_LOWERED]);
      if (count[NOT_LOWERED] && strlen(left) + strlen(name) + 3 < sizeof left)
        sprintf(left + strlen(left), "%s%s", *left ? ", " : "", name);
    }
    kiln_file_free(file);
    help_api_stop(&t);
  }
  globfree(&files);
  assert_int_equal(n_failed, 0);
  if (*left)
    print_message("SKIP: not lowered to the GPU yet: %s\n", left);
}

static void all_cases_compile(void **state) {
  (void)state;
  compile_files(true);
}

static void others_compile_or_are_refused(void **state) {
  (void)state;
  compile_files(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases_compile),
                                     cmocka_unit_test(others_compile_or_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
