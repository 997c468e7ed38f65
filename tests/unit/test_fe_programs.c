/* Plain Lua programs (tests/lua) print under the evaluator what they print under stock Lua. */
#include "frontend/stage.h"
#include "help_stock.h"

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
  return fe_lib_read_file(HS_FOLDER, path, text, error);
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
                         .user = p};
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

/* Random programs. KILN_LONG=1 runs thousands; KILN_SEED=n runs the one of that seed, and prints it. */
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

int main(void) {
  arena_init(&arena, &mem_libc, &trap);
  const char *const *names;
  uint32_t n = hs_list(&arena, &names);
  struct CMUnitTest *tests = ARENA_ARRAY(&arena, struct CMUnitTest, n + 1);
  for (uint32_t i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){
        .name = names[i], .test_func = test_program, .initial_state = (void *)(uintptr_t)names[i]};
  tests[n] = (struct CMUnitTest)cmocka_unit_test(test_random);
  int failed = _cmocka_run_group_tests("programs", tests, n + 1, NULL, NULL);
  arena_free(&arena);
  return failed;
}
