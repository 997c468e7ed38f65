/* The public API: contexts, their options and limits, diagnostics, doctor. */
#include "help_api.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state) {
  (void)state;
  static const char *const names[] = {"ok",     "invalid", "out of memory", "unavailable",
                                      "failed", "wrong",   "interrupted"};
  for (int i = 0; i < 7; i++)
    assert_string_equal(kiln_status_name((enum kiln_status)i), names[i]);
  assert_string_equal(kiln_status_name((enum kiln_status)99), "unknown status");
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", KILN_VERSION_MAJOR, KILN_VERSION_MINOR,
           KILN_VERSION_PATCH);
  assert_string_equal(kiln_version(), version);
}

/* Programs built against another version of the header. */
static void test_sizes_of_options(void **state) {
  (void)state;
  struct kiln_context *ctx;
  assert_int_equal(kiln_context_new(NULL, &ctx), KILN_OK);
  kiln_context_free(ctx);
  kiln_context_free(NULL);
  struct newer {
    struct kiln_context_options o;
    uint64_t more;
  } newer = {.o = {.struct_size = sizeof newer}};
  assert_int_equal(kiln_context_new(&newer.o, &ctx), KILN_INVALID);
  assert_null(ctx);
  struct kiln_context_options o = {.struct_size = 0};
  assert_int_equal(kiln_context_new(&o, &ctx), KILN_INVALID);
  /* An older program has no limits: what lies there is not read. */
  o = (struct kiln_context_options){.struct_size = offsetof(struct kiln_context_options, max_steps),
                                    .max_steps = 1,
                                    .max_ops = 1,
                                    .ir_debug = "frob"};
  assert_int_equal(kiln_context_new(&o, &ctx), KILN_OK);
  struct kiln_file *file;
  assert_int_equal(
      kiln_file_load_text(ctx, "k.lua", help_api_axpy, strlen(help_api_axpy), NULL, &file),
      KILN_OK);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  kiln_variant_free(v);
  kiln_file_free(file);
  kiln_context_free(ctx);
}

static void test_sizes_of_requests(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v;
  const struct kiln_report *report;
  struct newer {
    struct kiln_request r;
    uint64_t more;
  } newer = {.r = {.struct_size = sizeof newer}};
  help_api_expect(&t, kiln_specialise(file, &newer.r, &v), KILN_INVALID, "struct_size");
  assert_null(v);
  help_api_expect(&t, kiln_run_case(file, &newer.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                  "struct_size");
  struct kiln_request r = {0};
  help_api_expect(&t, kiln_specialise(file, &r, &v), KILN_INVALID,
                  "struct_size of the request is 0");
  /* Zeroed but for its size it asks for the first case; an older one lacks the lists at its end. */
  r.struct_size = sizeof r;
  help_api_expect(&t, kiln_run_case(file, &r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report), KILN_OK,
                  NULL);
  assert_non_null(strstr(report->text, "M=5 N=33"));
  r.struct_size = offsetof(struct kiln_request, n_scalars);
  r.n_scalars = 1000;
  help_api_expect(&t, kiln_run_case(file, &r, KILN_ON_INTERP, 0, &report), KILN_OK, NULL);
  kiln_file_free(file);
  help_api_stop(&t);
}

static const char endless[] = "while true do end\n";

static void test_limits(void **state) {
  (void)state;
  static const struct {
    struct kiln_context_options o;
    const char *text, *says;
  } cases[] = {
      {{.max_steps = 1000}, endless, "k.lua:1:[0-9]+: error: .*limit of 1000 steps"},
      /* Memory does not grow with the steps of a plain loop. */
      {{.max_steps = 1000000, .max_memory = 8 << 20}, endless, "limit of 1000000 steps"},
      {{.max_memory = 4 << 20}, "local s = ('x'):rep(1 << 24)\n", "k.lua:1:.*4 MiB"},
      {{.max_seconds = 1, .max_steps = UINT64_MAX}, endless, "k.lua:1:.*1 second"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct help_api t;
    struct kiln_file *file;
    help_api_start(&t, &cases[i].o);
    help_api_expect(&t, help_api_try_load(&t, "k.lua", cases[i].text, &file), KILN_INVALID,
                    cases[i].says);
    assert_null(file);
    if (!cases[i].o.max_seconds)
      help_api_expect(&t, help_api_try_load(&t, "k.lua", "return 1\n", &file), KILN_INVALID,
                      "returns");
    help_api_stop(&t);
  }
  struct kiln_context_options o = {.max_ops = 3};
  struct help_api t;
  struct kiln_variant *v;
  help_api_start(&t, &o);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  help_api_expect(&t, kiln_specialise(file, NULL, &v), KILN_INVALID, "k.lua:1[0-9]:.*3.* ops");
  assert_null(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_limit_on_errors(void **state) {
  (void)state;
  struct kiln_context_options o = {.max_errors = 3};
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, &o);
  const char *text = "return kernel { name = 'k', args = {}, a = 1, b = 2, c = 3, d = 4, e = 5 }\n";
  for (int i = 0; i < 2; i++)
    assert_int_equal(help_api_try_load(&t, "k.lua", text, &file), KILN_INVALID);
  assert_int_equal(kiln_diag_count(t.ctx), 3);
  assert_true(kiln_diag_dropped(t.ctx) > 0);
  /* With a full list an interruption is still told from an error. */
  t.stop_at = 1;
  assert_int_equal(help_api_try_load(&t, "e.lua", endless, &file), KILN_INTERRUPTED);
  assert_int_equal(kiln_diag_count(t.ctx), 3);
  kiln_diag_clear(t.ctx);
  assert_int_equal(kiln_diag_count(t.ctx), 0);
  assert_int_equal(kiln_diag_dropped(t.ctx), 0);
  help_api_stop(&t);
}

static void test_log(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, NULL);
  help_api_expect(&t,
                  help_api_try_load(&t, "k.lua", "print('hello', 1) print() print('a\\nb')", &file),
                  KILN_INVALID, "returns");
  assert_string_equal(t.log, "info: hello\t1\ninfo: \ninfo: a\ninfo: b\n");
  t.n_log = 0;
  help_api_expect(&t, help_api_try_load(&t, "k.lua", "print(('x'):rep(2500))", &file), KILN_INVALID,
                  "returns");
  assert_int_equal(t.n_log, 2500 + 3 * strlen("info: \n"));
  help_api_stop(&t);
}

static void test_interruption(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file;
  t.stop_at = 10;
  help_api_expect(&t, help_api_try_load(&t, "k.lua", endless, &file), KILN_INTERRUPTED,
                  "interrupted");
  assert_null(file);
  assert_int_equal(t.asked, 10);
  t.stop_at = 0;
  file = help_api_load(&t, "k.lua", help_api_axpy);
  /* In the interpreter. */
  const char *shape[] = {"M=4000", "N=4000"};
  struct kiln_request r = help_api_request();
  r.shapes = shape;
  r.n_shapes = 2;
  const struct kiln_report *report;
  t.stop_at = t.asked + 3;
  help_api_expect(&t, kiln_run_case(file, &r, KILN_ON_INTERP, 0, &report), KILN_INTERRUPTED,
                  "interrupted");
  assert_null(report);
  t.stop_at = 0;
  help_api_expect(&t, kiln_run_case(file, NULL, KILN_ON_INTERP, KILN_CASE_VERIFY, &report), KILN_OK,
                  NULL);
  assert_int_equal(report->level, KILN_LEVEL_VERIFIED);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_diagnostics(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, NULL);
  const char *text = "local function f(x)\n  return x + nil\nend\nf(\"a\\\"b\")\n";
  assert_int_equal(help_api_try_load(&t, "dir/a \"b\".lua", text, &file), KILN_INVALID);
  assert_int_equal(kiln_diag_count(t.ctx), 1);
  assert_true(kiln_diag_is_error(t.ctx, 0));
  assert_false(kiln_diag_is_error(t.ctx, 1));
  assert_string_equal(kiln_diag_code(t.ctx, 0), "K0201");
  assert_string_equal(kiln_diag_code(t.ctx, 1), "");
  assert_string_equal(kiln_diag_text(t.ctx, 1), "");
  assert_string_equal(kiln_diag_json(t.ctx, 1), "");
  const char *said = kiln_diag_text(t.ctx, 0);
  assert_true(help_api_matches(said, "^dir/a \"b\"\\.lua:2:12: error: .*\\[K0201\\]\n"
                                     "    return x \\+ nil\n +\\^\n"));
  kiln_diag_clear(t.ctx);
  assert_int_equal(kiln_diag_count(t.ctx), 0);
  assert_string_equal(kiln_diag_text(t.ctx, 0), "");
  help_api_stop(&t);
}

static void test_debug_modes(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_context_options o = {.ir_debug = "print:after=cse,timing,roundtrip"};
  help_api_start(&t, &o);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  assert_true(help_api_matches(t.log, "info: ; cse: [0-9.]+ us"));
  assert_true(help_api_matches(t.log, "info: ; after cse\nkiln-ir 1 tile\n"));
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);

  o.ir_debug = "frob";
  help_api_start(&t, &o);
  file = help_api_load(&t, "k.lua", help_api_axpy);
  help_api_expect(&t, kiln_specialise(file, NULL, &v), KILN_INVALID, "`frob`.*roundtrip");
  kiln_file_free(file);
  help_api_stop(&t);

  /* Stopped half way, there is IR to look at and nothing to compile. */
  o.ir_debug = "stop-after=choose_paths";
  help_api_start(&t, &o);
  file = help_api_load(&t, "k.lua", help_api_axpy);
  v = help_api_specialise(file, NULL);
  const char *text;
  help_api_expect(&t, kiln_show(v, "cuda", NULL, &text), KILN_INVALID, "stop-after");
  help_api_expect(&t, kiln_show(v, NULL, "choose_paths", &text), KILN_OK, NULL);
  assert_non_null(strstr(text, "kiln-ir 1 scheduled"));
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_doctor(void **state) {
  (void)state;
  struct help_api t;
  const char *text;
  help_api_start(&t, NULL);
  help_api_expect(&t, kiln_doctor(t.ctx, false, &text), KILN_OK, NULL);
  assert_true(help_api_matches(text, "^kiln +[0-9]+\\.[0-9]+\\.[0-9]+\n"));
  assert_true(help_api_matches(text, "\nNVRTC +(missing|[0-9]+\\.[0-9]+  /)"));
  assert_true(help_api_matches(text, "\nGPU +(none: .+|.*\\(sm_.*SMs)"));
  assert_true(help_api_matches(text, "\nworker +none: kernels compile in this process\n"));
  help_api_stop(&t);
}

static void test_language(void **state) {
  (void)state;
  struct help_api t;
  const char *text;
  help_api_start(&t, NULL);
  help_api_expect(&t, kiln_describe_language(t.ctx, KILN_LANGUAGE_STUBS, &text), KILN_OK, NULL);
  assert_true(help_api_matches(text, "^---@meta kiln\n.*function exp\\(x\\) end\n"));
  help_api_expect(&t, kiln_describe_language(t.ctx, KILN_LANGUAGE_REFERENCE, &text), KILN_OK, NULL);
  assert_true(help_api_matches(text, "^# Language reference\n.*\n\\| `exp\\(x\\)` "));
  help_api_expect(&t, kiln_describe_language(t.ctx, (enum kiln_language)2, &text), KILN_INVALID,
                  "form 2.*K0003");
  assert_null(text);
  help_api_stop(&t);
}

static void test_contexts_are_independent(void **state) {
  (void)state;
  struct help_api a, b;
  struct kiln_file *file;
  help_api_start(&a, NULL);
  help_api_start(&b, NULL);
  assert_int_equal(help_api_try_load(&a, "k.lua", "return 1\n", &file), KILN_INVALID);
  assert_true(kiln_diag_count(a.ctx) > 0);
  assert_int_equal(kiln_diag_count(b.ctx), 0);
  file = help_api_load(&b, "k.lua", help_api_axpy);
  help_api_stop(&a);
  assert_int_equal(kiln_file_kernel_count(file), 1);
  kiln_file_free(file);
  help_api_stop(&b);
}

static bool set_comma_locale(const char *folder) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "kiln_de.UTF-8"};
  char command[128];
  for (int attempt = 0; attempt < 2; attempt++) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      if (setlocale(LC_ALL, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0)
        return true;
    snprintf(command, sizeof command,
             "localedef -f UTF-8 -i de_DE %s/kiln_de.UTF-8 >/dev/null 2>&1", folder);
    if (attempt == 0 && system(command) >= 0)
      setenv("LOCPATH", folder, 1);
  }
  return false;
}

/* A key, the description and a report, and what the locale makes of 1.5 afterwards. */
static void tell(char *out, size_t size) {
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  const char *const scalars[] = {"alpha=0.75"}, *const shapes[] = {"M=4", "N=7"};
  struct kiln_request r = help_api_request();
  r.n_scalars = 1;
  r.scalars = scalars;
  r.n_shapes = 2;
  r.shapes = shapes;
  struct kiln_variant *v = help_api_specialise(file, &r);
  char key[33];
  const struct kiln_report *report;
  help_api_expect(&t, kiln_variant_key(v, key), KILN_OK, NULL);
  help_api_expect(&t, kiln_run_case(file, &r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report), KILN_OK,
                  NULL);
  snprintf(out, size, "%s\n%s\n%s", key, report->text, report->json);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* The program's locale may have a decimal comma: it changes nothing, and is not changed. */
static void test_locale(void **state) {
  (void)state;
  static char plain[8192], comma[8192];
  char folder[] = "/tmp/kiln-api-XXXXXX", number[16] = "", command[64];
  assert_non_null(mkdtemp(folder));
  tell(plain, sizeof plain);
  bool found = set_comma_locale(folder);
  if (found) {
    tell(comma, sizeof comma);
    snprintf(number, sizeof number, "%g", 1.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(comma, plain);
    assert_string_equal(number, "1,5");
  }
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (!found) {
    print_message("SKIP: no locale with a decimal comma, and none could be made\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_sizes_of_options),
      cmocka_unit_test(test_sizes_of_requests),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_limit_on_errors),
      cmocka_unit_test(test_log),
      cmocka_unit_test(test_interruption),
      cmocka_unit_test(test_diagnostics),
      cmocka_unit_test(test_debug_modes),
      cmocka_unit_test(test_doctor),
      cmocka_unit_test(test_language),
      cmocka_unit_test(test_contexts_are_independent),
      cmocka_unit_test(test_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
