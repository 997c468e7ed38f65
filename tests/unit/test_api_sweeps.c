/* Every case that the GPU tests run compiles for the targets asked for, with no register spilled
 * and nothing refused but ops without a lowering: what a GPU would only say after the others. Cases
 * that lower to the same kernel are compiled once.
 *
 *   test_api_sweeps [--target T] [--kernel NAME] [FILE...]     all cases, for sm_90a or T
 *
 * In short (no arguments): every SHORT_STRIDE-th case, and those that spilled once; KILN_LONG=1:
 * all of them. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_STRIDE = 101 };

struct sweep {
  struct help_api api;
  const char *target, *kernel; /* NULL: any kernel */
  uint32_t stride, at;         /* every stride-th case; cases seen */
  uint32_t compiled, same, refused, failed;
  bool no_compiler;
  char (*keys)[33];
  uint32_t n_keys, room;
};

static bool is_known(struct sweep *s, const char *key) {
  for (uint32_t i = 0; i < s->n_keys; i++)
    if (strcmp(s->keys[i], key) == 0)
      return true;
  if (s->n_keys == s->room) {
    s->room = s->room ? 2 * s->room : 256;
    s->keys = realloc(s->keys, s->room * sizeof *s->keys);
    assert_non_null(s->keys);
  }
  memcpy(s->keys[s->n_keys++], key, sizeof *s->keys);
  return false;
}

/* Is all that was said that an op has no lowering, at a place in a kernel file? */
static bool is_refused(struct kiln_context *ctx) {
  uint32_t n = kiln_diag_count(ctx);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(kiln_diag_code(ctx, i), "K0701") != 0 ||
        !help_api_matches(kiln_diag_text(ctx, i), "lua:[0-9]+:[0-9]+: error: "))
      return false;
  return n > 0;
}

static void compile(struct sweep *s, struct kiln_file *file, const char *path, const char *kernel,
                    uint32_t i) {
  struct kiln_request req = help_api_request();
  struct kiln_variant *v = NULL;
  struct kiln_compile_info info = {0};
  char key[33];
  req.kernel = kernel;
  req.case_index = (int32_t)i;
  req.target = s->target;
  enum kiln_status st = kiln_specialise(file, &req, &v);
  if (st == KILN_OK)
    st = kiln_variant_key(v, key);
  if (st == KILN_OK && is_known(s, key)) {
    s->same++;
  } else {
    if (st == KILN_OK)
      st = kiln_compile(v, &info);
    if (st == KILN_UNAVAILABLE) {
      s->no_compiler = true;
    } else if (st == KILN_OK && !info.spill_bytes) {
      s->compiled++;
    } else if (st == KILN_INVALID && is_refused(s->api.ctx)) {
      s->refused++;
    } else {
      s->failed++;
      print_message("FAIL %s:%s case %u, %s: %s\n", path, kernel, i, s->target,
                    kiln_diag_count(s->api.ctx) ? kiln_diag_text(s->api.ctx, 0) : "spills");
    }
  }
  kiln_variant_free(v);
  if (!s->no_compiler)
    kiln_diag_clear(s->api.ctx);
}

static void compile_file(struct sweep *s, const char *path) {
  struct kiln_file *file = NULL;
  help_api_start(&s->api, NULL);
  help_api_expect(&s->api, kiln_file_load(s->api.ctx, path, KILN_SRC_DIR, &file), KILN_OK, NULL);
  for (uint32_t k = 0; k < kiln_file_kernel_count(file) && !s->no_compiler; k++) {
    const char *name = kiln_file_kernel_name(file, k);
    if (s->kernel && strcmp(s->kernel, name) != 0)
      continue;
    uint32_t n = kiln_file_case_count(file, name);
    for (uint32_t i = 0; i < n && !s->no_compiler; i++)
      if (s->at++ % s->stride == 0)
        compile(s, file, path, name, i);
  }
  if (s->no_compiler)
    print_message("SKIP: %s\n", kiln_diag_text(s->api.ctx, 0));
  kiln_file_free(file);
  help_api_stop(&s->api);
}

/* Cases that spilled, did not fit or were serialised, as they were lowered once. */
static const struct {
  const char *file, *kernel;
  uint32_t index;
} hard[] = {
    {"dots", "dot_f64", 4},
    {"dots", "dot_f64", 20},
    {"dots", "dot_f64_computed", 12},
    {"dots", "dot_f64_computed", 25},
    {"dots", "dot_tf32x3_computed", 25},
    {"dots", "dot_f32", 24},
    {"folds", "swapped", 7},
    {"folds", "rounded", 15},
    {"folds", "cumsum", 16},
    {"views", "swapped", 18},
    /* wgmma that ptxas serialised: parts of K are stored as f32 */
    {"cases_tails", "case2_k_tails_warpgroups", 7},
    {"cases_grids", "case9_split_k_warpgroups", 4},
};

static void compile_hard(struct sweep *s) {
  for (size_t i = 0; i < sizeof hard / sizeof *hard && !s->no_compiler; i++) {
    char path[512];
    struct kiln_file *file = NULL;
    snprintf(path, sizeof path, KILN_SRC_DIR "/tests/gpu/sweep_%s.lua", hard[i].file);
    help_api_start(&s->api, NULL);
    help_api_expect(&s->api, kiln_file_load(s->api.ctx, path, KILN_SRC_DIR, &file), KILN_OK, NULL);
    assert_true(kiln_file_case_count(file, hard[i].kernel) > hard[i].index);
    compile(s, file, path, hard[i].kernel, hard[i].index);
    kiln_file_free(file);
    help_api_stop(&s->api);
  }
}

/* A kernel that spills as it is asked for is compiled with more to spare, and says so; where the
 * caller gave the knob, it is refused. Its key stays. */
static void more_is_spared(void **state) {
  (void)state;
  static const char *const given[] = {"spare=0"};
  struct help_api t = {0};
  struct kiln_file *file = NULL;
  struct kiln_variant *v;
  struct kiln_compile_info info;
  char before[33], after[33];
  help_api_start(&t, NULL);
  help_api_expect(
      &t, kiln_file_load(t.ctx, KILN_SRC_DIR "/tests/gpu/sweep_folds.lua", KILN_SRC_DIR, &file),
      KILN_OK, NULL);
  for (int open = 0; open < 2; open++) {
    struct kiln_request req = help_api_request();
    req.kernel = "rounded";
    req.case_index = 15;
    req.target = "sm_90a";
    req.set = given;
    req.n_set = open ? 0 : 1;
    v = help_api_specialise(file, &req);
    help_api_expect(&t, kiln_variant_key(v, before), KILN_OK, NULL);
    enum kiln_status st = kiln_compile(v, &info);
    if (!open && (st == KILN_OK || st == KILN_UNAVAILABLE)) {
      print_message("SKIP: %s\n", st == KILN_OK
                                      ? "this NVRTC does not spill registers of the kernel"
                                      : kiln_diag_text(t.ctx, 0));
      kiln_diag_clear(t.ctx);
      open = 2;
    } else if (!open) {
      help_api_expect(&t, st, KILN_FAILED, "rounded_kernel spills registers.*K0802");
      assert_null(strstr(t.log, "schedule.spare"));
    } else {
      help_api_expect(&t, st, KILN_OK, NULL);
      assert_int_equal(info.spill_bytes, 0);
      assert_non_null(strstr(t.log, "rounded: compiled with schedule.spare = 1, as it spilled"));
    }
    help_api_expect(&t, kiln_variant_key(v, after), KILN_OK, NULL);
    assert_string_equal(before, after);
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

static int argc;
static char **argv;

static void cases_compile(void **state) {
  (void)state;
  struct sweep s = {.target = "sm_90a", .stride = 1};
  int first = 1;
  for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
    *(strcmp(argv[first], "--target") == 0 ? &s.target : &s.kernel) = argv[first + 1];
  if (first == argc) {
    if (!getenv("KILN_LONG")) {
      s.stride = SHORT_STRIDE;
      compile_hard(&s);
    }
    glob_t files;
    assert_int_equal(glob(KILN_SRC_DIR "/tests/gpu/*.lua", 0, NULL, &files), 0);
    for (size_t f = 0; f < files.gl_pathc && !s.no_compiler; f++)
      compile_file(&s, files.gl_pathv[f]);
    globfree(&files);
  }
  for (; first < argc && !s.no_compiler; first++)
    compile_file(&s, argv[first]);
  free(s.keys);
  if (s.no_compiler)
    skip();
  print_message("%u compiled, %u as others, %u not lowered, %u failed\n", s.compiled, s.same,
                s.refused, s.failed);
  if (s.refused)
    print_message("SKIP: %u cases have no lowering\n", s.refused);
  assert_int_equal(s.failed, 0);
  assert_true(s.compiled > 0);
}

int main(int n, char **args) {
  argc = n;
  argv = args;
  const struct CMUnitTest tests[] = {cmocka_unit_test(more_is_spared),
                                     cmocka_unit_test(cases_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
