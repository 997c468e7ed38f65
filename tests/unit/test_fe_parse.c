/* Lexer and parser against stock Lua: what is accepted, and how errors are worded. Fixed cases,
 * mutations of a valid program, and what only Kiln refuses. Positions to the column are checked by
 * value. */
#include "help_lua.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <lua.h>

/* Other releases word some messages otherwise; then only acceptance is compared. */
#define EXACT (strcmp(LUA_VERSION_RELEASE, "4") == 0)

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

/* Kiln places an unfinished string or comment at its start. */
static bool same_message(const char *stock, const char *kiln) {
  if (strstr(stock, "unfinished") && strchr(kiln, ' '))
    return str_eq(strchr(stock, ' '), strchr(kiln, ' '));
  return str_eq(stock, kiln);
}

static void check_same_n(const char *text, size_t n) {
  const char *stock = hl_stock_syntax(&arena, "t.lua", text, n);
  const char *kiln = hl_kiln_syntax(&arena, "t.lua", text, n);
  if (!stock != !kiln || (stock && EXACT && !same_message(stock, kiln)))
    fail_msg("for\n%.*s\nstock: %s\nkiln:  %s", (int)n, text, stock ? stock : "accepted",
             kiln ? kiln : "accepted");
}

static void test_accepted(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      ";",
      ";;;",
      "return",
      "return;",
      "return 1,2,3;",
      "do end",

      "x=1",
      "x,y=1",
      "x,y=1,2,3",
      "x.y.z=1",
      "x[1][2]=3",
      "f()",
      "f{}",
      "f'x'",
      "f[[x]]",
      "a.b:c()",
      "a.b:c'x'{}[[y]]",
      "(f)()",
      "(a).b=1",
      "('x'):rep(3)",
      "local x <const> = 1",
      "local x <close> = nil",
      "local a <const>, b <close> = 1, nil",
      "local function f(...) return ... end",
      "function a.b.c:d(e, ...) end",
      "for i=1,2 do end",
      "for i=1,2,3 do break end",
      "for a,b,c in d,e,f do end",
      "while true do break end",
      "repeat local x until x",
      "if a then elseif b then else end",
      "goto a ::a::",
      "::a:: goto a",
      "do goto a end ::a::",
      "for i=1,2 do goto continue local x ::continue:: end",
      "::a:: ::b:: ::c::",
      "do ::a:: end ::a::",
      "goto e local x ::e:: ; ::f::",
      "repeat goto c local x ::c:: until true",
      "return -2^-3, not not a, #-~x, a..b..c, 2^3^4",
      "return a<b == c>d",
      "return 0x.8p-3, 3., .5",
      "return function() return ... end == nil or ...",
      "return {1,2;3,x=4,[5]=6,...}",
      "--[==[ ]] ]==] return '\\z  \n x'",
      "-- comment",
      "--[[x]]",
      "--[=x\nreturn 1",
      "return [==[\r\nx\r\ny\n\rz]==]",
      "return '\\\r\n'",
      "x = y --[[]] = nil or 1",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    check_same_n(texts[i], strlen(texts[i]));
}

static void test_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "x",
      "x.y",
      "x:y",
      "x = ",
      "x = = 3",
      "local",
      "local 1",
      "local x <foo> = 1",
      "local x <close>, y <close> = 1",
      "local x <const> = 1 x = 2",
      "local x <const> = 1 local function f() x = 2 end",
      "local x <close> = nil x = 1",
      "local x <const> = 1 function x() end",
      "f(",
      "f(1",
      "f(1,",
      "f(1,)",
      "f{1",
      "f{1=2}",
      "f{[1}",
      "f{[1]}",
      "return return",
      "return 1 2",
      "return 1,",
      "break",
      "while 1 do",
      "while 1 do\nx()\n\n",
      "if x",
      "if x then",
      "if x then else elseif y then end",
      "if x then\n\nelse\n",
      "for",
      "for i",
      "for i=1",
      "for i=1 do end",
      "for i=1,2,3,4 do end",
      "for i,j=1,2 do end",
      "for i in",
      "for i in x",
      "for i,",
      "for i, 3 in x do end",
      "repeat",
      "repeat x() until",
      "repeat\n\nx()\n",
      "function",
      "function f",
      "function f(",
      "function f(x",
      "function f(x,",
      "function f(1)",
      "function f(..., x) end",
      "function f() ",
      "function f.1() end",
      "function f:g.h() end",
      "function (x) end",
      "goto",
      "goto 1",
      "goto x",
      "do goto x end",
      "::x:: ::x::",
      "::x:: do ::x:: end",
      "goto x local y ::x:: y()",
      "do goto x end local y ::x:: y()",
      "repeat goto c local x ::c:: until x",
      "::x",
      "::1::",
      "function f() return ... end",
      "return function() return ... end",
      "(a)",
      "(a) = 1",
      "a, (b) = 1",
      "a() = 1",
      "a, b() = 1",
      "a:b() = 1",
      "'x' = 1",
      "'x':rep()",
      "1()",
      "{}()",
      "return 3x",
      "return 0x",
      "return 0xg",
      "return 1e",
      "return 1e+",
      "return 3..2",
      "return 0x1p",
      "return 1..2",
      "return 08a",
      "return 'abc",
      "return \"abc\ndef\"",
      "return 'abc\\",
      "return '\\q'",
      "return '\\x1'",
      "return '\\xg1'",
      "return '\\300'",
      "return '\\u{'",
      "return '\\u{zz}'",
      "return '\\u{80000000}'",
      "return '\\u41'",
      "return '\\u{41'",
      "return [[abc",
      "return [==[abc]=]",
      "return [=abc",
      "--[[ abc",
      "--[==[ abc ]=]",
      "x = @",
      "x = $y",
      "x = !y",
      "x = a ? b : c",
      "x = a && b",
      "x != y",
      "x += 1",
      "x = \\",
      "x = `y`",
      "x = 1 )",
      "end",
      "else",
      "until x",
      "}",
      "]",
      "x = }",
      "and",
      "x = and",
      "x = a and",
      "x = not",
      "x = #",
      "x = a .. ",
      "x = a or or b",
      "local function",
      "local function 1",
      "local function f.g() end",
      "x = function",
      "x = function(",
      "x = {",
      "x = {1,2",
      "x = {\n1,\n2\n",
      "x[1",
      "x[1\n= 2",
      "x.1 = 2",
      "x.end = 1",
      "x.",
      "x:",
      "\x80 = 1",
      "x = '\x80' \x01",
      "return 'a' 'b'",
      "f 'a' 1",
      "local x = 1 = 2",
      "x y",
      "x = y z",
      "return ::",
      "return ..x",
      "~x",
      "- 1",
      "x = - ",
      "goto continue",
      "local a.b = 1",
      "for x.y in z do end",
      "if x then end end",
      "do end end",
      "return\nx()\nx()",
      "f\n(\n",
      "x = '\\1234567",
      "x = [==",
      "x = [=",
      "x = ]]",
      "--[[\n\n\n",
      "x = \"\n",
      "x = \"\\\n",
      "return 1e400 1",
      "local x <const>",
      "local x <",
      "local x < const",
      "local x <const = 1",
      "local <const> x = 1",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    check_same_n(texts[i], strlen(texts[i]));
  check_same_n("x = 'a\0b' y", 11);
}

/* ---- mutations ---- */

static uint64_t next_random(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  *x ^= *x << 17;
  return *x;
}

static const char *const seed_program =
    "local a , b <const> = 1 , { x = 2 , [ 3 ] = 'four' , f ( ) ; ... }\n"
    "function m . n : o ( p , q , ... ) local r = ... return p + q * - r , # q .. 's' end\n"
    "for i = 1 , 10 , 2 do if i > 5 and a then goto continue end print ( i ) ::continue:: end\n"
    "for k , v in pairs ( b ) do while not v do break end repeat local z = k until z == 1 end\n"
    "do local function g ( ) return g end a = g ( ) ( ) . x [ 1 ] : y ( 'z' ) end\n"
    "if a then elseif b then x , y . z = 1 // 2 , ~ 3 ~ 4 << 5 else return a or b end\n";

/* Breaks the program into tokens at blanks; deletes, doubles, swaps or replaces some. */
static const char *mutate(uint64_t *rng) {
  static const char *const extra[] = {
      "end",  "do",       "(",     ")",      "local", "=",   ",",   "goto x", "{",  "}",  "if",
      "then", "until",    "::x::", "return", "1",     "'s'", "...", "a",      ".",  ":",  "[",
      "]",    "function", "and",   "break",  ";",     "<",   "..",  "-",      "\n", "for"};
  const char *tokens[400];
  size_t lengths[400], n = 0;
  for (const char *p = seed_program; *p;) {
    size_t len = *p == '\n' ? 1 : strcspn(p, " \n");
    if (len) {
      tokens[n] = p;
      lengths[n++] = len;
    }
    p += len + (p[len] == ' ');
  }
  uint64_t changes = 1 + next_random(rng) % 3;
  for (uint64_t i = 0; i < changes; i++) {
    size_t at = next_random(rng) % n, other = next_random(rng) % n;
    switch (next_random(rng) % 4) {
    case 0: lengths[at] = 0; break;
    case 1:
      tokens[at] = tokens[other];
      lengths[at] = lengths[other];
      break;
    case 2: {
      const char *t = tokens[at];
      size_t len = lengths[at];
      tokens[at] = tokens[other];
      lengths[at] = lengths[other];
      tokens[other] = t;
      lengths[other] = len;
      break;
    }
    default:
      tokens[at] = extra[next_random(rng) % (sizeof extra / sizeof *extra)];
      lengths[at] = strlen(tokens[at]);
      break;
    }
  }
  struct strbuf out = {.arena = &arena};
  for (size_t i = 0; i < n; i++) {
    sb_put(&out, tokens[i], lengths[i]);
    sb_putc(&out, ' ');
  }
  return sb_str(&out);
}

/* Where stock Lua finds an error only at the end of a function (a goto with no label, a break
 * outside of loops), Kiln says it at once; a different first error is then right. */
static bool is_late(const char *message) {
  return message && (strstr(message, "no visible label") || strstr(message, "outside loop"));
}

static void test_mutations(void **state) {
  (void)state;
  uint64_t rng = 88172645463325252u;
  unsigned refused = 0;
  const unsigned runs = getenv("KILN_LONG") ? 40000 : 2000;
  for (unsigned i = 0; i < runs; i++) {
    struct arena_mark mark = arena_get_mark(&arena);
    const char *text = mutate(&rng);
    size_t n = strlen(text);
    const char *stock = hl_stock_syntax(&arena, "t.lua", text, n);
    const char *kiln = hl_kiln_syntax(&arena, "t.lua", text, n);
    refused += stock != NULL;
    if (!stock != !kiln ||
        (stock && EXACT && !is_late(kiln) && !is_late(stock) && !same_message(stock, kiln)))
      fail_msg("for\n%s\nstock: %s\nkiln:  %s", text, stock ? stock : "accepted",
               kiln ? kiln : "accepted");
    arena_reset(&arena, mark);
  }
  assert_in_range(refused, runs / 2, runs - runs / 50); /* both kinds are there */
}

/* ---- columns, and what only Kiln refuses ---- */

static void check_diag(const char *text, const char *expect) {
  assert_string_equal(hl_diags(&arena, "k.lua", text, NULL), expect);
}

static void test_columns(void **state) {
  (void)state;
  check_diag("local x = = 3", "k.lua:1:11: error: unexpected symbol near '=' [K0101]\n");
  check_diag("x = 1\n  y = 'abc\n", "k.lua:2:7: error: unfinished string near ''abc' [K0101]\n");
  check_diag("if x then\n  f(\n", "k.lua:3:1: error: unexpected symbol near <eof> [K0101]\n");
  check_diag("while x do\n", "k.lua:2:1: error: 'end' expected (to close 'while' at line 1) near "
                             "<eof> [K0101]\n");
  check_diag("local x <const> = 5 x = 6",
             "k.lua:1:21: error: attempt to assign to const variable 'x' [K0101]\n");
  check_diag("do goto x end",
             "k.lua:1:4: error: no visible label 'x' for <goto> at line 1 [K0101]\n");
  check_diag("\tbreak", "k.lua:1:2: error: break outside loop at line 1 [K0101]\n");
  check_diag("x = [[\nabc", "k.lua:1:5: error: unfinished long string (starting at line 1) near "
                            "<eof> [K0101]\n");
}

static void test_refused_by_kiln(void **state) {
  (void)state;
  static const char env[] = ": error: `_ENV` is not available in kernels [K0206]\n";
  static const char *const texts[] = {"k.lua:1:1",       "_ENV = {}",           "k.lua:1:7",
                                      "local _ENV = {}", "k.lua:1:8",           "return _ENV.x",
                                      "k.lua:1:12",      "function f(_ENV) end"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i += 2)
    check_diag(texts[i + 1], arena_printf(&arena, "%s%s", texts[i], env));
  check_diag("return ({}).x, {_ENV = 1}", "");
}

/* A first line for the shell and a byte order mark, as luaL_loadfile takes them. */
static void test_file_heads(void **state) {
  (void)state;
  check_diag("#!/bin/lua\rx = =\r\nx = =",
             "k.lua:2:5: error: unexpected symbol near '=' [K0101]\n");
  check_diag("#!/usr/bin/lua\nx = =", "k.lua:2:5: error: unexpected symbol near '=' [K0101]\n");
  check_diag("\xEF\xBB\xBFx = =", "k.lua:1:5: error: unexpected symbol near '=' [K0101]\n");
  check_diag("\xEF\xBB\xBF# x\nreturn 1", "");
}

static void test_many_variables(void **state) {
  (void)state;
  struct strbuf b = {.arena = &arena};
  for (int i = 0; i < 300; i++)
    sb_printf(&b, "local v%d = %d\n", i, i);
  sb_puts(&b, "return function() return 0");
  struct strbuf good = {.arena = &arena}, bad = {.arena = &arena};
  sb_puts(&good, sb_str(&b));
  sb_puts(&bad, sb_str(&b));
  for (int i = 0; i < 255; i++) {
    if (i < 254)
      sb_printf(&good, "+ v%d", i);
    sb_printf(&bad, "+ v%d", i);
  }
  sb_puts(&good, " end");
  sb_puts(&bad, " end");
  check_diag(sb_str(&good), "");
  assert_non_null(strstr(hl_diags(&arena, "k.lua", sb_str(&bad), NULL),
                         "the function at line 301 uses more than 254 variables"));
}

static const char *repeat(const char *head, const char *unit, const char *middle,
                          const char *unit_after, const char *tail, int n) {
  struct strbuf b = {.arena = &arena};
  sb_puts(&b, head);
  for (int i = 0; i < n; i++)
    sb_puts(&b, unit);
  sb_puts(&b, middle);
  for (int i = 0; i < n; i++)
    sb_puts(&b, unit_after);
  sb_puts(&b, tail);
  return sb_str(&b);
}

/* Nesting that stock Lua takes (up to 200 levels) is taken; deeper nesting ends in a message, never
 * in the C stack. */
static void test_nesting(void **state) {
  (void)state;
  const struct {
    const char *head, *unit, *middle, *after, *tail;
  } shapes[] = {
      {"x = ", "(", "1", ")", ""},
      {"x = ", "{", "1", "}", ""},
      {"x = ", "- ", "1", "", ""},
      {"x = ", "f(", "1", ")", ""},
      {"", "do ", "", " end", ""},
      {"", "if x then ", "", " end", ""},
      {"x = ", "1 .. ", "1", "", ""},
      {"x = ", "2 ^ ", "1", "", ""},
      {"", "while x do ", "", " end", ""},
      {"x = ", "function() return ", "1", " end", ""},
      {"x = ", "a[", "1", "]", ""},
      {"", "for i = 1, 0 do ", "", " end", ""},
      {"", "repeat ", "", " until 1", ""},
      {"x = ", "1 and ", "1", "", ""},
      {"", "local function f() ", "", " end", ""},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const char *deep = repeat(shapes[i].head, shapes[i].unit, shapes[i].middle, shapes[i].after,
                              shapes[i].tail, 150);
    const char *kiln = hl_kiln_syntax(&arena, "t.lua", deep, strlen(deep));
    assert_null(kiln);
    const char *deeper = repeat(shapes[i].head, shapes[i].unit, shapes[i].middle, shapes[i].after,
                                shapes[i].tail, 100000);
    kiln = hl_kiln_syntax(&arena, "t.lua", deeper, strlen(deeper));
    if (kiln)
      assert_non_null(strstr(kiln, "nesting deeper than the C stack"));
  }
  struct strbuf b = {.arena = &arena};
  for (int i = 0; i < 100000; i++)
    sb_printf(&b, "::a%d:: ", i);
  const char *kiln = hl_kiln_syntax(&arena, "t.lua", sb_str(&b), b.n);
  assert_true(!kiln || strstr(kiln, "nesting deeper") || strstr(kiln, "more memory"));
  /* chains that nest nothing have no limit */
  const char *chain = repeat("x = 1", " + 1", "", "", "", 100000);
  assert_null(hl_kiln_syntax(&arena, "t.lua", chain, strlen(chain)));
  chain = repeat("if x then ", "elseif x then ", "", "", "end", 3000);
  assert_null(hl_kiln_syntax(&arena, "t.lua", chain, strlen(chain)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_accepted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_mutations, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_columns, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_refused_by_kiln, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_file_heads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_many_variables, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_nesting, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
