/* kiln_reduce: the error that stays, a test of the caller's, kernel files, refusals, and memory
 * that runs out. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/kiln-test-XXXXXX", path[64];

static void put(const char *name, const char *text) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
  assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, i ? "k.lua" : "k.tir");
    unlink(path);
  }
  return rmdir(folder);
}

#define HEAD                                                                                       \
  "kiln-ir 1 tile\nkernel k {\n  arg Y: out f32 [N]\n  dims N\n  grid 1\n"                         \
  "  body(%y: view f32(?), %n: index, %i: index) {\n    %8 = const 8 : index\n"
#define TAIL "    return\n  }\n}\n"
/* What the interpreter takes and the lowering refuses. */
#define REFUSED                                                                                    \
  "    %two = const 2 : index\n    %m = mul %n, %two : index\n"                                    \
  "    %e = view_every %y {axis = 0, count = 4} : view f32(?)\n"                                   \
  "    %r = view_reshape %e, %m, %two : view f32(?,2)\n"                                           \
  "    %t = load %r, %i, %i : f32(8,2)\n    print %t\n"

/* Each step can be where it fails. */
static void test_codes(void **state) {
  (void)state;
  static const struct {
    const char *text, *left, *gone;
  } cases[] = {
      /* the reader */
      {HEAD "    %a = add %8, %n : index\n    %b = frob %a\n    print %a\n" TAIL, "frob", "print"},
      /* the verifier */
      {HEAD "    %a = add %8, %n : f32\n    print %8\n" TAIL, "add", "print"},
      /* lowering */
      {HEAD REFUSED "    %c = const 1.0 : f32\n    %w = splat %c : f32(8)\n"
                    "    store %y, %8, %w\n" TAIL,
       "view_reshape", "store"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *text;
    put("k.tir", cases[i].text);
    help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, NULL, NULL, &text), KILN_OK, NULL);
    if (!strstr(text, cases[i].left) || strstr(text, cases[i].gone))
      fail_msg("case %zu:\n%s", i, text);
  }
  help_api_stop(&t);
}

struct probe {
  const char *needle;
  unsigned asked, told;
  struct help_api *stop;
};

static bool has(void *user, const char *text, size_t n) {
  struct probe *p = user;
  p->asked++;
  assert_int_equal(strlen(text), n);
  return strstr(text, p->needle) != NULL;
}

/* As `has`, and interrupts at the sixth text. */
static bool stops(void *user, const char *text, size_t n) {
  struct probe *p = user;
  if (!p->stop->stop_at && p->asked >= 5)
    p->stop->stop_at = 1;
  return has(user, text, n);
}

static void tell(void *user, uint32_t before, uint32_t now, uint32_t tried) {
  struct probe *p = user;
  assert_true(now <= before && tried > 0);
  p->told++;
}

static void test_kernel_file(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  put("k.lua", help_api_axpy);
  struct probe p = {.needle = " = mul "};
  struct kiln_reduce_options o = {
      .struct_size = sizeof o, .fails = has, .progress = tell, .user = &p};
  static const char *const consts[] = {"T=bf16"};
  struct kiln_request r = help_api_request();
  r.consts = consts;
  r.n_consts = 1;
  const char *text;
  help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, &r, &o, &text), KILN_OK, NULL);
  assert_non_null(strstr(text, " = mul "));
  assert_null(strstr(text, "store"));
  assert_true(p.asked > 5 && p.told > 2);
  /* stopped: the best so far */
  size_t small = strlen(text);
  o.fails = stops;
  p.asked = 0;
  p.stop = &t;
  enum kiln_status st = kiln_reduce(t.ctx, path, NULL, &r, &o, &text);
  o.fails = has;
  help_api_expect(&t, st, KILN_INTERRUPTED, NULL);
  p.stop = NULL;
  t.stop_at = 0;
  assert_non_null(strstr(text, " = mul "));
  assert_true(strlen(text) > small);
  /* refusals */
  p.needle = "nothing has this";
  help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, &r, &o, &text), KILN_INVALID,
                  "does not fail to begin with");
  assert_null(text);
  help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, &r, NULL, &text), KILN_INVALID,
                  "no error to keep; give a command");
  o.struct_size = 0;
  help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, &r, &o, &text), KILN_INVALID, "struct_size");
  help_api_expect(&t, kiln_reduce(t.ctx, "/nonexistent/x", NULL, NULL, NULL, &text), KILN_FAILED,
                  "cannot read /nonexistent/x");
  put("k.lua", "return 1 +\n");
  o.struct_size = sizeof o;
  help_api_expect(&t, kiln_reduce(t.ctx, path, NULL, NULL, &o, &text), KILN_INVALID, "K0101");
  help_api_stop(&t);
}

static void test_no_memory(void **state) {
  (void)state;
  put("k.tir", HEAD REFUSED TAIL);
  for (int sticky = 0; sticky < 2; sticky++) {
    bool done = false;
    unsigned failed = 0;
    for (uint64_t at = 1; !done; at++) {
      struct help_api t;
      help_api_start(&t, NULL);
      t.fail_at = t.requests + at;
      t.sticky = sticky != 0;
      const char *text;
      enum kiln_status st = kiln_reduce(t.ctx, path, NULL, NULL, NULL, &text);
      done = t.requests < t.fail_at;
      t.fail_at = 0;
      assert_true(st == KILN_OK || st == KILN_NO_MEMORY);
      assert_true(!done || st == KILN_OK);
      failed += st == KILN_NO_MEMORY;
      kiln_diag_clear(t.ctx);
      help_api_stop(&t);
    }
    assert_true(failed > 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_codes),
      cmocka_unit_test(test_kernel_file),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
