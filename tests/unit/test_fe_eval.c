/* The evaluator on plain values: programs of tests/lua and random ones give what stock Lua gives;
 * errors name their place to the column; limits, protected calls and failing allocations end
 * cleanly.
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

/* ---- errors and their places ---- */

static void check_diags(const char *text, const char *expect) {
  assert_string_equal(hl_diags(&arena, "k.lua", text, NULL), expect);
}

static void test_places(void **state) {
  (void)state;
  check_diags("local s = 1\nlocal t = {}\nprint(s + t.a.b)",
              "k.lua:3:13: error: attempt to index a nil value (field 'a') [K0201]\n");
  check_diags("local function f(x) return x + nil end\nf(1)",
              "k.lua:1:30: error: attempt to perform arithmetic on a nil value [K0201]\n"
              "  2:1: called from here\n");
  check_diags("local o = {}\no:go(1)",
              "k.lua:2:3: error: attempt to call a nil value (method 'go') [K0201]\n");
  check_diags("x.y.z()", "k.lua:1:1: error: attempt to index a nil value (global 'x') [K0201]\n");
  check_diags("local t = {}\nt[nil] = 1", "k.lua:2:2: error: table index is nil [K0201]\n");
  check_diags("return ('x'):rep({})",
              "k.lua:1:14: error: bad argument #1 to 'rep' (number expected, got table) [K0201]\n");
  check_diags("local a = 1\n  error('mine')", "k.lua:2:3: error: mine [K0201]\n");
  check_diags("local function chk(x)\n  error('bad', 2)\nend\nchk(1)",
              "k.lua:4:1: error: bad [K0201]\n  4:1: called from here\n");
  check_diags("error('no place', 0)", "k.lua:1:1: error: no place [K0201]\n");
  check_diags("error({})", "k.lua:1:1: error: error object is a table value [K0201]\n");
  check_diags("error(setmetatable({}, {__tostring = function() return 'text' end}))",
              "k.lua:1:1: error: text [K0201]\n");
  check_diags("for i = 1, 'x' do end",
              "k.lua:1:1: error: bad 'for' limit (number expected, got string) [K0201]\n");
  check_diags("local x <close> = 5",
              "k.lua:1:1: error: variable 'x' got a non-closable value [K0201]\n");
  check_diags(
      "for k in nil do end",
      "k.lua:1:1: error: attempt to call a nil value (for iterator 'for iterator') [K0201]\n");
  check_diags(
      "coroutine.create(print)",
      "k.lua:1:11: error: coroutines are not available in kernels (coroutine.create) [K0206]\n");
  check_diags("local function g() return f() end function f() return h() end\n"
              "function h() local x = nil .. 'a' end g()",
              "k.lua:2:28: error: attempt to concatenate a nil value [K0201]\n"
              "  1:55: called from here\n  1:27: called from here\n  2:39: called from here\n");
}

/* pcall gives positions with columns, and the levels that error() asks for. */
static void test_protected(void **state) {
  (void)state;
  static const struct {
    const char *text, *out;
  } cases[] = {
      {"print(pcall(function() local q q.x = 1 end))",
       "false\tk.lua:1: attempt to index a nil value (local 'q')\n"},
      {"print(pcall(error, 'plain'))", "false\tplain\n"},
      {"print(pcall(pcall, error, 'x'))", "true\tfalse\tx\n"},
      {"print(select('#', pcall(error)))", "2\n"},
      {"print(xpcall(function() error('a') end, function(m) return 'h ' .. m end))",
       "false\th k.lua:1: a\n"},
      {"local function f() error('l2', 2) end print(pcall(function() f() end))",
       "false\tk.lua:1: l2\n"},
      {"print(pcall(function() local x <close> = setmetatable({}, {__close = function(_, e) "
       "print('closing', e) end}) error('in') end))",
       "closing\tk.lua:1: in\nfalse\tk.lua:1: in\n"},
      {"local t = setmetatable({}, {__index = function(t, k) error('idx', 2) end})\n"
       "print(pcall(function()\n return t.x end))",
       "false\tk.lua:3: idx\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(hl_kiln(&arena, "k.lua", cases[i].text, NULL), cases[i].out);
    assert_string_equal(hl_stock(&arena, "k.lua", cases[i].text, NULL), cases[i].out);
  }
}

/* ---- limits ---- */

static const char *limited(const char *text, struct fe_limits limits) {
  if (limits.seconds == 0)
    limits.seconds = 120;
  return hl_diags(&arena, "k.lua", text, &limits);
}

static void has(const char *text, const char *part) {
  if (!strstr(text, part))
    fail_msg("expected \"%s\" in\n%s", part, text);
}

static void test_step_limit(void **state) {
  (void)state;
  const struct fe_limits l = {.steps = 10000};
  static const char *const endless[] = {
      "while true do end",
      "repeat until false",
      "::a:: goto a",
      "for i = 1, math.huge do end",
      "for i = 1, 1e18 do end",

      "pcall(function() while true do end end) print('never')",
      "for k in function() return 1 end do end",
      "table.sort({3, 2, 1}, function() while true do end end)",
      "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
      "table.move({}, 1, 1 << 62, 2)",
      "(('a'):rep(30)):match('.-.-.-.-.-.-.-.-.-.-.-.-b')",
      "local x <close> = setmetatable({}, {__close = function() while true do end end})",
  };
  for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
    has(limited(endless[i], l),
        "error: the kernel file ran for more than its limit of 10000 steps");
  assert_string_equal(limited("for i = 1, 2000 do local x = i end", l), "");
  /* the count is exact: the same on every machine */
  assert_string_equal(limited("local x = 1 x = 2 x = 3", (struct fe_limits){.steps = 6}), "");
  has(limited("local x = 1 x = 2 x = 3 x = 4", (struct fe_limits){.steps = 6}), "limit of 6 steps");
}

static void test_depth_limit(void **state) {
  (void)state;
  static const char *const deep[] = {
      "local function f(n) return 1 + f(n + 1) end f(1)",
      "local function f() f() end f()",
      "local function f() return f() end f()",
      "local t = {} function t:f() return self:f() end t:f()",
      "local function f() return pcall(f) end f()",
      "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end "
      "return t.x",
      "local t = setmetatable({}, {}) getmetatable(t).__add = function(a, b) return a + b end "
      "return t + t",
      "local t = setmetatable({}, {}) getmetatable(t).__lt = function(a, b) return a < b end "
      "return t < t",
      "local function f() return ('x'):gsub('x', f) end f()",
      "local function f() table.sort({1, 2}, f) end f()",
      "local function f() for x in f do end end f()",
      "local function f() local x <close> = setmetatable({}, {__close = f}) end f()",
  };
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
    has(limited(deep[i], (struct fe_limits){.steps = 10000000}), "[K0205]");
  assert_string_equal(
      hl_kiln(
          &arena, "k.lua",
          "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end print(f(190))",
          NULL),
      "190\n");
  /* a wider C stack takes more */
  has(limited(
          "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(3000)",
          (struct fe_limits){.c_stack = 64 << 10}),
      "recursion deeper than");
  assert_string_equal(
      limited(
          "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(3000)",
          (struct fe_limits){.c_stack = 6 << 20}),
      "");
  /* chains that the parser reads in a loop nest for the evaluator */
  static const char *const units[][2] = {
      {"return x", ".y"},     {"return x", "[1]"},  {"return x", "()"}, {"return 1", "+1"},
      {"return 1", " and 1"}, {"return x", ":y()"}, {"return 1", "==1"}};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    struct strbuf b = {.arena = &arena};
    sb_puts(&b, units[i][0]);
    for (int k = 0; k < 100000; k++)
      sb_puts(&b, units[i][1]);
    has(limited(sb_str(&b), (struct fe_limits){0}), "nested deeper than the C stack limit allows");
  }
  has(limited("local t = setmetatable({}, {}) getmetatable(t).__call = t t()",
              (struct fe_limits){0}),
      "__call");
}

static void test_memory_limit(void **state) {
  (void)state;
  const struct fe_limits l = {.memory = 4 << 20};
  static const char *const hungry[] = {
      "local t = {} for i = 1, 1e9 do t[i] = i end",
      "local s = 'x' while true do s = s .. s end",
      "local s = ('x'):rep(100 << 20)",
      "print(pcall(function() local t = {} while true do t[#t + 1] = {} end end)) print('never')",
      "local function f(...) return f(1, ...) end f()",
      "return table.concat({('x'):rep(3 << 20), ('y'):rep(3 << 20)})",
  };
  for (size_t i = 0; i < sizeof hungry / sizeof *hungry; i++) {
    const char *got = limited(hungry[i], l);
    if (!strstr(got, "[K0205]")) /* the fifth: arguments also take stack */
      has(got, "error: the kernel file needs more memory than its limit of 4 MiB [K0203]");
  }
}

/* An error that ends the run passes __close metamethods: kernel code among them does not run, and
 * functions of the library meet the error as an unknown value. */
static void test_close_after_fatal(void **state) {
  (void)state;
  static const char *const ends[][2] = {
      {"while true do end", "[K0202]"},
      {"local function f(n) return 1 + f(n + 1) end f(1)", "[K0205]"},
      {"local s = 'x' while true do s = s .. s end", "[K0203]"},
      {"io.open('x')", "[K0206]"},
  };
  enum { MEMORY = 2 };
  static const char *const closers[] = {
      "function(o, e) print('never', type(e), tostring(e)) end",
      "function(o, e) for i = 1, 10 do local t = {e, e .. e} end end",
      "function(o, e) if e == nil or type(e) == 'table' then print('never') end error(e, 0) end",
      "function(o, e) local y <close> = setmetatable({}, {__close = print}) print('never') end",
      "print",
      "type",
      "tostring",
      "assert",
      "error",
      "pcall",
      "rawequal",
      "rawget",
      "next",
      "select",
      "setmetatable",
      "string.format",
      "math.max",
      "table.insert",
      "table.concat",
  };
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
    for (size_t i = 0; i < sizeof closers / sizeof *closers; i++) {
      const char *text = arena_printf(
          &arena, "local x <close> = setmetatable({}, {__close = %s})\n%s", closers[i], ends[k][0]);
      const char *got =
          limited(text, (struct fe_limits){.steps = 50000, .memory = (size_t)4 << 20});
      if (k != MEMORY) /* an error like others, as in Lua: what closes may replace it */
        has(got, ends[k][1]);
      const char *first = strstr(got, "error:");
      if (!first || strstr(first + 1, "error:"))
        fail_msg("one error expected for\n%s\ngot\n%s", text, got);
    }
}

/* What the parser does for each name is counted. */
static void test_many_names(void **state) {
  (void)state;
  struct strbuf b = {.arena = &arena};
#ifdef KILN_STRESS /* arrays move on every growth: memory is quadratic */
  const int names = 3000, steps = 40000;
#else
  const int names = 20000, steps = 1000000;
#endif
  for (int i = 0; i < names; i++)
    sb_printf(&b, "local v%d = g%d ::l%d::\n", i, i, i);
  has(limited(sb_str(&b), (struct fe_limits){.steps = steps}), "[K0202]");
  assert_string_equal(limited(sb_str(&b), (struct fe_limits){0}), "");
}

static bool interrupted(void *user) {
  return ++*(int *)user > 3;
}

static void run_endless(struct fe_state *fe, void *user) {
  const char *text = user;
  fe_load_text(fe, "k.lua", text, strlen(text));
  fe_call(fe, 0, 0);
}

static void test_time_and_interrupts(void **state) {
  (void)state;
  has(limited("while true do end", (struct fe_limits){.seconds = 0.02}),
      "error: the kernel file ran for longer than its limit of 0.02 seconds [K0204]");
  has(limited("while pcall(function() while true do end end) do end",
              (struct fe_limits){.seconds = 0.02}),
      "[K0204]");
  struct diag_sink diags;
  int polls = 0;
  char text[] = "while true do end";
  assert_true(diag_init(&diags, &mem_libc));
  struct fe_host host = {
      .mem = &mem_libc, .diags = &diags, .interrupted = interrupted, .user = &polls};
  struct fe_state *fe = fe_state_new(&host);
  assert_int_equal(fe_protect(fe, run_endless, text), FE_ERRORS);
  assert_int_equal(diags.list.at[0].id, DIAG_INTERRUPTED);
  fe_state_free(fe);
  diag_free(&diags);
}

/* ---- life ---- */

struct memory {
  long n, fail_at, alive;
  bool sticky;
  bool large; /* what fails next is as large as what failed first, or larger */
  size_t size;
};

static void *failing_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct memory *m = user;
  if (new_size == 0) {
    m->alive -= p != NULL;
    free(p);
    return NULL;
  }
  if (new_size > old_size || !p) {
    m->n++;
    if (m->n == m->fail_at)
      m->size = new_size;
    if (m->fail_at && (m->n == m->fail_at || (m->sticky && m->n > m->fail_at) ||
                       (m->large && m->n > m->fail_at && new_size >= m->size)))
      return NULL;
  }
  void *q = realloc(p, new_size);
  m->alive += !p;
  return q;
}

static void print_nothing(void *user, const char *text, size_t n) {
  (void)user;
  (void)text;
  (void)n;
}

/* Whatever allocation fails, the program ends with a status, nothing leaks, and the state still
 * works. */
static void test_failing_allocations(void **state) {
  (void)state;
  const char *text = hl_generate(&arena, 77);
  for (int sticky = 0; sticky < 2; sticky++) {
    bool whole = false;
    unsigned failures = 0;
    for (long n = 1; !whole; n += n < 200 ? 1 : 13) {
      struct memory m = {.fail_at = n, .sticky = sticky};
      const struct mem_alloc mem = {failing_alloc, &m};
      struct diag_sink diags;
      assert_true(diag_init(&diags, &mem_libc));
      struct fe_host host = {.mem = &mem, .diags = &diags, .print = print_nothing};
      host.limits.seconds = 120;
      struct fe_state *fe = fe_state_new(&host);
      if (fe) {
        enum fe_status s = fe_protect(fe, run_endless, (void *)(uintptr_t)text);
        whole = m.n < n;
        m.fail_at = 0;
        failures += s == FE_NO_MEMORY;
        if (s == FE_NO_MEMORY) {
          assert_int_equal(diags.list.at[0].id, DIAG_NO_MEMORY);
          s = fe_protect(fe, run_endless, (void *)(uintptr_t)text);
        }
        assert_int_equal(s, FE_DONE);
      }
      fe_state_free(fe);
      assert_int_equal(m.alive, 0);
      diag_free(&diags);
    }
    /* a single failure Lua mends by a collection */
    assert_true(!sticky || failures > 20);
  }
}

/* The same where Lua's stack has to grow, whose failure Lua calls an overflow. */
static void test_failing_stack(void **state) {
  (void)state;
  static const char *const texts[] = {
      "local t = {} for i = 1, 3000 do t[i] = i end return select('#', table.unpack(t))",
      "local t = {} for i = 1, 3000 do t[i] = i end return {table.unpack(t)}",
      "return ('x'):rep(3000):byte(1, -1)",
      "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end return f(150)",
  };
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    bool whole = false;
    unsigned failures = 0;
    for (long n = 1; !whole; n++) {
      struct memory m = {.fail_at = n, .large = true};
      const struct mem_alloc mem = {failing_alloc, &m};
      struct diag_sink diags;
      assert_true(diag_init(&diags, &mem_libc));
      struct fe_host host = {.mem = &mem, .diags = &diags, .print = print_nothing};
      struct fe_state *fe = fe_state_new(&host);
      if (fe) {
        enum fe_status s = fe_protect(fe, run_endless, (void *)(uintptr_t)texts[k]);
        whole = m.n < n;
        if (s == FE_ERRORS)
          fail_msg("text %zu, allocation %ld: %s", k, n, diags.list.at[0].message);
        if (s != FE_DONE) { /* what only shrinks or grows a little earlier can do without */
          assert_int_equal(s, FE_NO_MEMORY);
          assert_int_equal(diags.list.at[0].id, DIAG_NO_MEMORY);
        }
        failures += s != FE_DONE;
        assert_true(!whole || s == FE_DONE);
      }
      fe_state_free(fe);
      assert_int_equal(m.alive, 0);
      diag_free(&diags);
    }
    assert_true(failures > 5);
  }
}

/* Files are parsed once, states are independent, errors of one call do not outlive it. */
static void test_calls(void **state) {
  (void)state;
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct fe_host host = {.mem = &mem_libc, .diags = &diags};
  struct fe_state *fe = fe_state_new(&host), *other = fe_state_new(&host);
  char good[] = "n = (n or 0) + 1 assert(n < 4)", bad[] = "local function f() error('x') end f()";
  for (int i = 0; i < 3; i++) {
    assert_int_equal(fe_protect(fe, run_endless, good), FE_DONE);
    assert_int_equal(fe_protect(fe, run_endless, bad), FE_ERRORS);
  }
  assert_int_equal(fe_protect(fe, run_endless, good), FE_ERRORS);
  assert_int_equal(fe_protect(other, run_endless, good), FE_DONE);
  assert_int_equal(diags.n_errors, 4);
  fe_state_free(fe);
  fe_state_free(other);
  diag_free(&diags);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_programs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_random_programs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_protected, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_step_limit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_depth_limit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_memory_limit, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_close_after_fatal, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_many_names, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_time_and_interrupts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_failing_allocations, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_failing_stack, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_calls, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
