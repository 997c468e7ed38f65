/* The public API when memory runs out: in every call, at the n-th allocation, for once or from
 * there on. The call fails cleanly and says so, nothing leaks, and the same objects then give the
 * answer that they gave before. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_ANSWER 65536

struct work {
  struct help_api *t;
  struct kiln_file *file;
  struct kiln_variant *v;
  const char *words;
  char answer[MAX_ANSWER];
};

static void add(struct work *w, const char *text) {
  size_t n = strlen(w->answer);
  snprintf(w->answer + n, sizeof w->answer - n, "%s\n", text);
}

static uint32_t findings(const struct help_api *t) {
  return kiln_diag_count(t->ctx) + kiln_diag_dropped(t->ctx);
}

/* Loads a file, describes it, frees it. */
static enum kiln_status load(struct work *w) {
  struct kiln_file *file;
  enum kiln_status st = help_api_try_load(w->t, "k.lua", w->words, &file);
  assert_true((file != NULL) == (st == KILN_OK));
  if (st != KILN_OK)
    return st;
  uint32_t before = findings(w->t);
  add(w, kiln_file_describe(file, NULL));
  if (findings(w->t) > before) {
    assert_string_equal(w->answer, "{}\n");
    st = KILN_NO_MEMORY;
  }
  kiln_file_free(file);
  return st;
}

/* A syntax error is an error of its own, whatever there is no memory for. */
static enum kiln_status load_wrong(struct work *w) {
  struct kiln_file *file;
  enum kiln_status st = help_api_try_load(w->t, "k.lua", w->words, &file);
  assert_null(file);
  for (uint32_t i = 0; i < kiln_diag_count(w->t->ctx); i++) {
    const char *text = kiln_diag_text(w->t->ctx, i);
    assert_true(text[0] != 0);
    add(w, text);
  }
  return st == KILN_INVALID ? KILN_OK : st;
}

static enum kiln_status specialise(struct work *w) {
  static const char *const set[] = {"BM=8", "stages=2"}, *const consts[] = {"T=bf16"};
  static const char *const shapes[] = {"M=9", "N=40"}, *const strides[] = {"X=64,1"};
  static const char *const absent[] = {"B"}, *const scalars[] = {"alpha=0.5"};
  struct kiln_request r = {.struct_size = sizeof r,
                           .case_index = -1,
                           .n_set = 2,
                           .set = set,
                           .n_consts = 1,
                           .consts = consts,
                           .n_shapes = 2,
                           .shapes = shapes,
                           .n_strides = 1,
                           .strides = strides,
                           .n_scalars = 1,
                           .scalars = scalars,
                           .n_absent = 1,
                           .absent = absent,
                           .lineinfo = true};
  struct kiln_variant *v;
  const char *text;
  char key[33];
  enum kiln_status st = kiln_specialise(w->file, &r, &v);
  assert_true((v != NULL) == (st == KILN_OK));
  if (st == KILN_OK)
    st = kiln_variant_key(v, key);
  if (st == KILN_OK && (st = kiln_show(v, "cuda", NULL, &text)) == KILN_OK) {
    add(w, key);
    add(w, text);
  }
  kiln_variant_free(v);
  return st;
}

static enum kiln_status show(struct work *w) {
  char list[256], *save = NULL;
  enum kiln_status st = KILN_OK;
  snprintf(list, sizeof list, "%s", w->words);
  for (char *s = strtok_r(list, " ", &save); s && st == KILN_OK; s = strtok_r(NULL, " ", &save)) {
    const char *text;
    bool after = s[0] == '+';
    st = kiln_show(w->v, after ? NULL : s, after ? s + 1 : NULL, &text);
    assert_true((text != NULL) == (st == KILN_OK));
    if (text)
      add(w, text);
  }
  return st;
}

static enum kiln_status run(struct work *w) {
  const struct kiln_report *r;
  enum kiln_status st =
      kiln_run_case(w->file, NULL, KILN_ON_INTERP, KILN_CASE_VERIFY | KILN_CASE_EXACT, &r);
  assert_true((r != NULL) == (st == KILN_OK || st == KILN_WRONG));
  if (r) {
    add(w, r->text);
    add(w, r->json);
  }
  return st;
}

static enum kiln_status run_wrong(struct work *w) {
  enum kiln_status st = run(w);
  return st == KILN_WRONG ? KILN_OK : st == KILN_OK ? KILN_FAILED : st;
}

static enum kiln_status diff(struct work *w) {
  const struct kiln_diff_report *r;
  struct kiln_diff_options o = {.struct_size = sizeof o, .sides = 1u << KILN_ON_EMU};
  enum kiln_status st = kiln_diff(w->file, NULL, &o, &r);
  assert_true((r != NULL) == (st == KILN_OK));
  if (r) {
    add(w, r->text);
    add(w, r->json);
  }
  return st;
}

static enum kiln_status interpret(struct work *w) {
  float x[6] = {1, 2, 3, 4, 5, 6}, b[3] = {1, 1, 1}, y[6] = {0};
  int64_t shape[2] = {2, 3};
  struct kiln_tensor tx = {.data = x,
                           .device_type = 1,
                           .ndim = 2,
                           .dtype_code = 2,
                           .dtype_bits = 32,
                           .dtype_lanes = 1,
                           .shape = shape};
  struct kiln_tensor tb = tx, ty = tx;
  tb.data = b;
  tb.ndim = 1;
  tb.shape = shape + 1;
  ty.data = y;
  struct kiln_arg args[4] = {{.tensor = &tx}, {.tensor = &tb}, {.number = 2}, {.tensor = &ty}};
  enum kiln_status st = kiln_interpret(w->v, args, 4, false);
  char text[64];
  snprintf(text, sizeof text, "%g %g %g", (double)y[0], (double)y[3], (double)y[5]);
  if (st == KILN_OK)
    add(w, text);
  return st;
}

static enum kiln_status doctor(struct work *w) {
  const char *text;
  enum kiln_status st = kiln_doctor(w->t->ctx, true, &text);
  assert_true((text != NULL) == (st == KILN_OK));
  /* A library that could not be looked for is not there, for once: that is no other answer. */
  if (text && !strstr(text, "out of memory"))
    add(w, text);
  return st;
}

static enum kiln_status compile(struct work *w) {
  struct kiln_variant *v;
  const void *cubin;
  size_t n;
  char text[32];
  enum kiln_status st = kiln_specialise(w->file, NULL, &v);
  if (st == KILN_OK)
    st = kiln_variant_cubin(v, &cubin, &n);
  if (st == KILN_OK) {
    snprintf(text, sizeof text, "%zu", n);
    add(w, text);
  }
  kiln_variant_free(v);
  return st;
}

/* Runs `step` with the n-th allocation failing, for n up to `dense` one by one and then in strides,
 * until it needs fewer than n. After each failure the same step must work. */
static void loop(struct work *w, enum kiln_status (*step)(struct work *), uint64_t dense,
                 bool sticky) {
  struct help_api *t = w->t;
  static char want[MAX_ANSWER];
  w->answer[0] = 0;
  assert_int_equal(step(w), KILN_OK);
  kiln_diag_clear(t->ctx);
  memcpy(want, w->answer, sizeof want);
  assert_true(strlen(want) > 1);
  uint64_t n = 1, failed = 0;
  for (bool hit = true; hit; n += n < dense ? 1 : n / 8 + 1) {
    w->answer[0] = 0;
    t->requests = 0;
    t->fail_at = n;
    t->sticky = sticky;
    enum kiln_status st = step(w);
    hit = t->requests >= n;
    t->fail_at = 0;
    if (st != KILN_OK && st != KILN_NO_MEMORY) {
      for (uint32_t i = 0; i < kiln_diag_count(t->ctx); i++)
        print_message("%s", kiln_diag_text(t->ctx, i));
      fail_msg("allocation %lu of %s: %s", (unsigned long)n, w->words ? w->words : "it",
               kiln_status_name(st));
    }
    if (st == KILN_OK && w->answer[0])
      assert_string_equal(w->answer, want);
    if (st == KILN_NO_MEMORY) {
      failed++;
      /* Said, or at least counted. */
      bool said = kiln_diag_dropped(t->ctx) > 0;
      for (uint32_t i = 0; i < kiln_diag_count(t->ctx); i++)
        said |= strcmp(kiln_diag_code(t->ctx, i), "K0002") == 0;
      assert_true(said);
    }
    kiln_diag_clear(t->ctx);
    w->answer[0] = 0;
    st = step(w);
    if (st != KILN_OK || strcmp(w->answer, want) != 0)
      fail_msg("after failure of allocation %lu of %s: %s, %s", (unsigned long)n,
               w->words ? w->words : "it", kiln_status_name(st), w->answer);
    kiln_diag_clear(t->ctx);
  }
  print_message("  %lu failures up to allocation %lu, %s\n", (unsigned long)failed,
                (unsigned long)n, sticky ? "all after, too" : "once");
  assert_true(failed > 0);
}

static void loops(struct work *w, enum kiln_status (*step)(struct work *), uint64_t dense) {
  loop(w, step, dense, false);
  loop(w, step, dense, true);
}

static void test_context(void **state) {
  (void)state;
  struct kiln_context_options o = {.worker_path = "/w", .private_dir = "/p", .ir_debug = "clone"};
  struct help_api t;
  help_api_start(&t, &o);
  for (uint64_t n = 1;; n++) {
    help_api_stop(&t);
    t.requests = 0;
    t.fail_at = n;
    enum kiln_status st = help_api_restart(&t, &o);
    if (st == KILN_OK) {
      assert_true(t.requests < n && n > 3);
      break;
    }
    assert_int_equal(st, KILN_NO_MEMORY);
    assert_null(t.ctx);
    assert_int_equal(t.live, 0);
  }
  help_api_stop(&t);
}

static void test_load(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct work *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w->t = &t;
  w->words = help_api_axpy;
  loops(w, load, 120);
  w->words = "local x = { 1,\n 2 }}\n";
  loops(w, load_wrong, 100);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  const char *text;
  assert_int_equal(kiln_show(v, "machine", NULL, &text), KILN_OK);
  char *copy = strdup(text);
  w->words = copy;
  loops(w, load, 120);
  free(copy);
  kiln_variant_free(v);
  kiln_file_free(file);
  free(w);
  help_api_stop(&t);
}

static const char gemm[] =
    "return kernel { name = 'g',\n"
    "  args = { tensor('A', bf16, 'M', 'K'), tensor('B', bf16, 'K', 'N'), out('C', f32, 'M', 'N') },\n"
    "  grid = function(d) return cdiv(d.M, 16), cdiv(d.N, 16) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local acc = zeros(f32, 16, 16)\n"
    "    for k in range(0, d.K, 16) do\n"
    "      acc = acc + dot(a.A:tile({i * 16, k}, {16, 16}), a.B:tile({k, j * 16}, {16, 16}))\n"
    "    end\n"
    "    a.C:store({i * 16, j * 16}, acc)\n"
    "  end,\n"
    "  inputs = function(s, rng) local x = {} for i = 1, s.K * s.N do x[i] = i % 3 end\n"
    "    return {B = x} end,\n"
    "  oracle = function(t) return matmul(t.A, t.B) end,\n"
    "  cases = {{shape = {M = 3, N = 4, K = 5}}} }\n";

static const char wrong[] =
    "return kernel { name = 'w', args = { tensor('X', f32, 'N'), out('Y', f32, 'N') },\n"
    "  grid = function() return 1 end,\n"
    "  body = function(a) a.Y:store({0}, a.X:tile({0}, {8}) * 2) end,\n"
    "  oracle = function(t) return t.X end, cases = {{shape = {N = 4}}} }\n";

/* Every call on a file that is there, and on a variant of it. */
static void with_file(const char *text, const char *words,
                      enum kiln_status (*const *steps)(struct work *)) {
  struct help_api t;
  help_api_start(&t, NULL);
  struct work *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w->t = &t;
  w->words = words;
  w->file = help_api_load(&t, "k.lua", text);
  w->v = help_api_specialise(w->file, NULL);
  for (; *steps; steps++)
    loops(w, *steps, 300);
  kiln_variant_free(w->v);
  kiln_file_free(w->file);
  free(w);
  help_api_stop(&t);
}

#define STEPS(...)                                                                                 \
  (enum kiln_status(*const[])(struct work *)) {                                                    \
    __VA_ARGS__, NULL                                                                              \
  }

static void test_variants(void **state) {
  (void)state;
  with_file(help_api_axpy, "", STEPS(specialise));
  with_file(help_api_axpy, "tile scheduled machine recipe cuda +cse +choose_paths", STEPS(show));
  with_file(help_api_axpy, "", STEPS(interpret));
}

static void test_cases(void **state) {
  (void)state;
  with_file(help_api_axpy, "", STEPS(run));
  with_file(gemm, "", STEPS(run));
  with_file(wrong, "", STEPS(run_wrong));
  with_file(help_api_axpy, "", STEPS(diff));
}

static void test_doctor(void **state) {
  (void)state;
  with_file(help_api_axpy, "", STEPS(doctor));
}

static void test_compile(void **state) {
  (void)state;
  struct help_api t;
  const char *text;
  help_api_start(&t, NULL);
  assert_int_equal(kiln_doctor(t.ctx, false, &text), KILN_OK);
  bool nvrtc = help_api_matches(text, "\nNVRTC +[0-9]");
  help_api_stop(&t);
  if (!nvrtc) {
    print_message("SKIP: compiling needs NVRTC\n");
    skip();
  }
  struct work *w = calloc(1, sizeof *w);
  assert_non_null(w);
  help_api_start(&t, NULL);
  w->t = &t;
  w->file = help_api_load(&t, "k.lua", wrong);
  w->words = "compilation";
  loop(w, compile, 1, true);
  kiln_file_free(w->file);
  free(w);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_context),  cmocka_unit_test(test_load),
      cmocka_unit_test(test_variants), cmocka_unit_test(test_cases),
      cmocka_unit_test(test_doctor),   cmocka_unit_test(test_compile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
