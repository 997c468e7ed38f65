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

enum { SHORT_STRIDE = 61 };

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

static int argc;
static char **argv;

static void cases_compile(void **state) {
  (void)state;
  struct sweep s = {.target = "sm_90a", .stride = 1};
  int first = 1;
  for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
    *(strcmp(argv[first], "--target") == 0 ? &s.target : &s.kernel) = argv[first + 1];
  if (first == argc) {
    if (!getenv("KILN_LONG"))
      s.stride = SHORT_STRIDE;
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
