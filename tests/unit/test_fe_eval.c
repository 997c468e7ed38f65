/* The evaluator on plain values: programs of tests/lua and random ones give what stock Lua gives; errors
 * name their place to the column; limits, protected calls and failing allocations end cleanly.
 *
 * KILN_LONG=1 runs more random programs; KILN_SEED=n runs the one of that seed and prints it. */
#include "help_lua.h"

#include "frontend/stage.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LUA_FOLDER KILN_SRC_DIR "/tests/lua"

static struct arena arena;
static struct oom_trap trap;

static int set_up(void **state) {
  (void)state;
  arena_init(&arena, &mem_libc, &trap);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_free(&arena);
  return 0;
}

/* ---- against stock Lua ---- */

static const char *read_file(const char *path) {
  struct strbuf b = {.arena = &arena};
  char buf[4096];
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
    sb_put(&b, buf, n);
  fclose(f);
  return sb_str(&b);
}

static void test_programs(void **state) {
  (void)state;
  DIR *dir = opendir(LUA_FOLDER);
  assert_non_null(dir);
  unsigned n = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t len = strlen(e->d_name);
    if (len < 5 || !str_eq(e->d_name + len - 4, ".lua"))
      continue;
    const char *text = read_file(arena_printf(&arena, LUA_FOLDER "/%s", e->d_name));
    const char *stock = hl_stock(&arena, e->d_name, text, LUA_FOLDER);
    hl_same(e->d_name, NULL, stock, hl_kiln(&arena, e->d_name, text, LUA_FOLDER));
    n++;
  }
  closedir(dir);
  assert_true(n >= 6);
}

static void test_random_programs(void **state) {
  (void)state;
  const char *only = getenv("KILN_SEED");
  uint64_t first = only ? strtoull(only, NULL, 10) : 1;
  uint64_t last = only ? first : getenv("KILN_LONG") ? 20000 : 600;
  for (uint64_t seed = first; seed <= last; seed++) {
    struct arena_mark mark = arena_get_mark(&arena);
    const char *text = hl_generate(&arena, seed);
    if (only)
      printf("%s\n", text);
    const char *stock = hl_stock(&arena, "r.lua", text, NULL);
    const char *kiln = hl_kiln(&arena, "r.lua", text, NULL);
    if (strstr(stock, "error: r.lua") && strstr(stock, " near "))
      fail_msg("seed %llu is no valid program: %s", (unsigned long long)seed, stock);
    hl_same(arena_printf(&arena, "seed %llu", (unsigned long long)seed), text, stock, kiln);
    arena_reset(&arena, mark);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_programs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_random_programs, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
