/* Plain Lua programs (tests/lua) print under the evaluator what they print under stock Lua. */
#include "frontend/stage.h"
#include "help_stock.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct oom_trap trap;

struct program {
  const char *name, *text;
  size_t n;
  struct strbuf out;
};

static bool read_module(void *user, const char *path, struct strbuf *text, const char **error) {
  (void)user;
  return fe_read_module(HS_FOLDER, path, text, error);
}

static void print_text(void *user, const char *text, size_t n) {
  struct program *p = user;
  sb_put(&p->out, text, n);
}

static void run(struct fe_state *fe, void *user) {
  struct program *p = user;
  lua_State *L = fe_lua(fe);
  lua_pushboolean(L, hs_is_exact());
  lua_setglobal(L, "exact");
  fe_load_text(fe, p->name, p->text, p->n);
  fe_call(fe, 0, 0);
}

/* Runs a program under the evaluator; diagnostics go to the output too. */
static enum fe_status run_ours(struct program *p) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct fe_host host = {.mem = &mem_libc,
                         .diags = &diags,
                         .root = "",
                         .read_module = read_module,
                         .print = print_text,
                         .user = p,
                         .limits.seconds = 120}; /* sanitizers are slow */
  struct fe_state *fe = fe_state_new(&host);
  assert_non_null(fe);
  p->out = (struct strbuf){.arena = &arena};
  enum fe_status status = fe_protect(fe, run, p);
  for (uint32_t i = 0; i < diags.list.n; i++)
    diag_render_text(&diags, &diags.list.at[i], &p->out);
  fe_state_free(fe);
  diag_free(&diags);
  return status;
}

static void compare(struct program *p) {
  struct strbuf stock = {.arena = &arena};
  hs_run_stock(p->name, p->text, p->n, hs_is_exact(), &stock);
  run_ours(p);
  hs_compare(p->name, &stock, &p->out);
}

static void test_program(void **state) {
  struct program p = {.name = *state};
  p.text = hs_read(&arena, p.name, &p.n);
  if (!hs_is_exact())
    print_message("messages are not compared: this Lua is not 5.4.4\n");
  compare(&p);
}

/* Random programs. KILN_LONG=1 runs thousands; KILN_SEED=n runs the one of that seed and prints
 * it. */
static void test_random(void **state) {
  (void)state;
  uint32_t first = 1, last = getenv("KILN_LONG") ? 20000 : 400;
  if (getenv("KILN_SEED"))
    first = last = (uint32_t)strtoul(getenv("KILN_SEED"), NULL, 10);
  lua_State *L = hs_generator();
  for (uint32_t seed = first; seed <= last; seed++) {
    struct arena_mark mark = arena_get_mark(&arena);
    char name[40];
    snprintf(name, sizeof name, "random_%u.lua", seed);
    struct program p = {.name = name};
    p.text = hs_generate(L, seed, &arena, &p.n);
    if (first == last)
      printf("%s", p.text);
    compare(&p);
    arena_reset(&arena, mark);
  }
  print_message("%u random programs\n", last - first + 1);
  lua_close(L);
}

/* Makes a locale with a decimal comma, or finds one; false if this system has none. `folder` is
 * where localedef may write. */
static bool set_comma_locale(const char *folder) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "kiln_de.UTF-8"};
  char command[300];
  for (int attempt = 0; attempt < 2; attempt++) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      if (setlocale(LC_ALL, names[i]) && str_eq(localeconv()->decimal_point, ","))
        return true;
    snprintf(command, sizeof command,
             "localedef -f UTF-8 -i de_DE '%s/kiln_de.UTF-8' >/dev/null 2>&1", folder);
    if (attempt == 0 && system(command) >= 0)
      setenv("LOCPATH", folder, 1);
  }
  return false;
}

/* The program around may have set any locale: numbers are written and read as ever. */
static void test_locale(void **state) {
  (void)state;
  char folder[] = "/tmp/kiln_locale_XXXXXX";
  assert_non_null(mkdtemp(folder));
  bool found = set_comma_locale(folder);
  if (found) {
    char before[40], after[40];
    struct program p = {.name = "locale.lua"};
    p.text =
        "print(1.5, 0x.8, '2.5' * 2, tonumber('1,5'), ('%.2f %g'):format(0.25, 1e-3), 1e100 .. '')\n"
        "print(('x' < 'Y'), ('\\xe4'):upper() == '\\xe4', ('\\xe4'):find('%a'))\n";
    p.n = strlen(p.text);
    snprintf(before, sizeof before, "%g", 1.5);
    run_ours(&p);
    snprintf(after, sizeof after, "%g", 1.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(sb_str(&p.out),
                        "1.5\t0.5\t5.0\tnil\t0.25 0.001\t1e+100\nfalse\ttrue\tnil\n");
    assert_string_equal(before, "1,5");
    assert_string_equal(after, "1,5"); /* the caller's is back */
  }
  unsetenv("LOCPATH");
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (!found) {
    print_message("SKIP: no locale with a decimal comma, and none could be made\n");
    skip();
  }
}

int main(void) {
  arena_init(&arena, &mem_libc, &trap);
  const char *const *names;
  uint32_t n = hs_list(&arena, &names);
  struct CMUnitTest *tests = ARENA_ARRAY(&arena, struct CMUnitTest, n + 2);
  for (uint32_t i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){
        .name = names[i], .test_func = test_program, .initial_state = (void *)(uintptr_t)names[i]};
  tests[n] = (struct CMUnitTest)cmocka_unit_test(test_random);
  tests[n + 1] = (struct CMUnitTest)cmocka_unit_test(test_locale);
  int failed = _cmocka_run_group_tests("programs", tests, n + 2, NULL, NULL);
  arena_free(&arena);
  return failed;
}
