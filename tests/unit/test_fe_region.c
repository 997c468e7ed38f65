/* Regions, journal and passes of the staging evaluator, seen by a tracer that only writes down what
 * it is asked to do (help_record.h). What real kernels trace to is in tests/golden/staging. */
#include "help_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const char *text, const char *expect) {
  struct hr t;
  const char *got = hr_run(&t, text);
  if (!str_eq(got, expect))
    fail_msg("for\n%s\ngot:\n%s\nexpected:\n%s", text, got, expect);
  hr_done(&t);
}

static void check_passes(const char *text, unsigned expect) {
  struct hr t;
  hr_run(&t, text);
  assert_int_equal(t.diags.n_errors, 0);
  assert_int_equal(t.n_passes, expect);
  hr_done(&t);
}

/* ---- truth, and, or ---- */

static void test_truth(void **state) {
  (void)state;
  check("if t then print('t') end if idx ~= nil and f then print('f') end print(not t, t == nil)",
        "t\nf\nfalse\tfalse\n");
  check("local x = not m", "%1 = not m\n");
  check("local x = t or 5 print(peek(x)) x = nil or t print(peek(x)) print(peek(false or m))",
        "f32(4)\nf32(4)\nbool\n");
  check("if idx then end",
        "1:4: warning: the condition is index, which is always true; compare with "
        "0 or nil\n");
  check("while idx do break end",
        "1:7: warning: the condition is index, which is always true; compare with 0 or nil\n");
  check("if tm then end", "1:1: `if` on a tile bool(4); use where(cond, x, y)\n");
  check("while tm do end", "1:1: `while` on a tile bool(4); use where(cond, x, y)\n");
}

static void test_logic(void **state) {
  (void)state;
  check("local x = m and tm", "%1 = m and tm\n");
  check("local x = m or not tm", "%1 = not tm\n%2 = m or %1\n");
  check("print(peek(m and true), peek(m and false), peek(m and nil), peek(m or true), peek(m or "
        "nil))",
        "bool\tfalse\tfalse\ttrue\tbool\n");
  check("local x = m and t or f", "%1 = where m t f\n");
  check("local x = m and 3 or 4", "%1 = where m 3 4\n");
  check("local x = (m and t) or f", "%1 = where m t f\n");
  check("local x = m and tm and t or f", "%1 = m and tm\n%2 = where %1 t f\n");
  check("local x = m and (tm and t) or f", "%1 = m and tm\n%2 = where %1 t f\n");
  check("local x = true and m and t or f", "%1 = where m t f\n");
  check("local x = m and t or tm and f or 1",
        "%1 = m or tm\n%2 = where m t f\n%3 = where %1 %2 1\n");
  check("local x = m and t",
        "1:13: `mask and value` has no value where the mask is false; write `mask "
        "and x or y` or where(...)\n");
  check("if m and t then end", "1:6: `mask and value` has no value where the mask is false; write "
                               "`mask and x or y` or where(...)\n");
  check("local x = m or 5",
        "1:13: `mask or value` has no value where the mask is true; write `mask and "
        "x or y` or where(...)\n");
  check("local x = m == true", "1:13: comparing bool with true: use the mask itself or `not`\n");
  check("local x = idx == 'a'", "1:15: cannot compare index with a string\n");
  check("local x = {} < f", "1:14: cannot compare a table with f32\n");
}

static void test_short_circuit_effects(void **state) {
  (void)state;
  check(
      "local n = 0 local function g() n = n + 1 return m end local x = m and g() print(n)",
      "1\n1:67: the right side of `and` has an effect (changes `n`), but its left side is a device "
      "value: both sides always run\n");
  check("local q = {} local function g() q.n = 1 return m end local x = m or g()",
        "1:66: the right side of `or` has an effect (changes field 'n'), but its left side is a "
        "device "
        "value: both sides always run\n");
  check(
      "local function g() op('store') return m end local x = m and g()",
      "1:57: the right side of `and` has an effect (op), but its left side is a device value: both "
      "sides always run\n");
  /* no effect: what it changes was born there, or is as before */
  check("local q = {n = 1} local function g() local r = {} r.n = 1 q.n = 2 q.n = 1 return m end "
        "local x = m and g()",
        "%1 = m and m\n");
  /* a table born there belongs to the region around it: it may change */
  check(
      "local function g() local r = {} return function() r.n = (r.n or 0) + 1 return r.n end end\n"
      "local h local function mask() h = nil return m end\n"
      "for k in range() do local list = {} local x = m and mask() op('x', #list) end",
      "loop {\n index %2\n %3 = m and m\n x! 0\n}\nfor\n");
}

/* ---- if ---- */

static void test_if_merge(void **state) {
  (void)state;
  check("local x = t if m then x = x + 1 end use = x",
        "then {\n %1 = t + 1\n}\nelse {\n}\nif m\n%2 `x`: f32(4) = %1, t\n");
  check(
      "local x, y = t, 1 if m then x, y = x + 1, 2 else y = 3 end print(peek(y))",
      "index\nthen {\n %1 = t + 1\n}\nelse {\n}\nif m\n%2 `x`: f32(4) = %1, t\n%3 `y`: index = 2, "
      "3\n");
  check("local n = 0 if m then n = 1 else n = 1 end print(n)", "1\nthen {\n}\nelse {\n}\nif m\n");
  check("local b = true if m then b = false end print(peek(b))",
        "bool\nthen {\n}\nelse {\n}\nif m\n%1 `b`: bool = false, true\n");
  check("local s = f if m then s = 1 end print(peek(s))",
        "f32\nthen {\n}\nelse {\n}\nif m\n%1 `s`: f32 = 1, f\n");
  check("if m then print('a') elseif m then print('b') else print('c') end",
        "a\nb\nc\nthen {\n}\nelse {\n then {\n }\n else {\n }\n if m\n}\nif m\n");
  check("local q = {n = 1} if m then q.n = 2 end print(peek(q.n))",
        "index\nthen {\n}\nelse {\n}\nif m\n%1 `field 'n'`: index = 2, 1\n");
  check("g = 1 if m then g = 2 end", "then {\n}\nelse {\n}\nif m\n%1 `global 'g'`: index = 2, 1\n");
  check("local x = 1 local function set() x = 2 end if m then set() end print(peek(x))",
        "index\nthen {\n}\nelse {\n}\nif m\n%1 `x` captured: index = 2, 1\n");
}

static void test_if_order(void **state) {
  (void)state;
  /* outer function first, then declaration; fields last */
  check("local q, c = {}, 1\n"
        "local a, b = 1, 2\n"
        "local function g()\n"
        " local d, e = 1, 2\n"
        " if m then q.z, q.y, e, d, b, a, c = 9, 8, 7, 6, 5, 4, 3 else q.z, q.y = 1, 1 end\n"
        "end\n"
        "g()",
        "then {\n}\nelse {\n}\nif m\n%1 `c` captured: index = 3, 1\n%2 `a` captured: index = 4, "
        "1\n%3 "
        "`b` captured: index = 5, 2\n%4 `d`: index = 6, 1\n%5 `e`: index = 7, 2\n%6 `field 'y'`: "
        "index = 8, 1\n%7 `field 'z'`: index = 9, 1\n");
}

static void test_if_undefined(void **state) {
  (void)state;
  check("local x if m then x = t end local y = x",
        "1:39: `x` has a value only in one branch of the `if` at k.lua:1:9; assign it before the "
        "if or "
        "in both branches\n");
  check("local x if m then x = t end", "then {\n}\nelse {\n}\nif m\n");
  check("local x if m then x = t else x = 'a' end print(x)",
        "1:48: `x` is f32(4) in one branch and a string in the other (if at k.lua:1:9)\n");
  check("local x if m then x = t else x = f end print(x)",
        "1:46: `x` is f32(4) in one branch and f32 in the other (if at k.lua:1:9)\n");
  check("local x if m then x = 0.5 else x = 1 end print(x)",
        "1:48: `x` is number 0.5 in one branch and number 1 in the other (if at k.lua:1:9), and "
        "neither "
        "has a dtype: write f32(0.5)\n");
  /* every read traps, once per undefined value; later errors still come out */
  check(
      "local x if m then x = t end local y = x == nil local z = not x print(#x) local w = tm and t",
      "1:39: `x` has a value only in one branch of the `if` at k.lua:1:9; assign it before the "
      "if or "
      "in both branches\n"
      "1:87: `mask and value` has no value where the mask is false; write `mask and x or y` or "
      "where(...)\n");
  check("local q = {} if m then q.n = t end for k, v in pairs(q) do end",
        "1:36: field 'n' has a value only in one branch of the `if` at k.lua:1:14; assign it "
        "before the "
        "if or in both branches\n");
  check("local q = {} if m then q.n = t end next(q)",
        "1:36: field 'n' has a value only in one branch of the `if` at k.lua:1:14; assign it "
        "before the "
        "if or in both branches\n");
  check("local q = {} if m then q[1] = t end print(#q)",
        "1:43: field '1' has a value only in one branch of the `if` at k.lua:1:14; assign it "
        "before the "
        "if or in both branches\n");
  check("local q = {} if m then setmetatable(q, {}) end",
        "1:24: the metatable of a table is changed in a branch of the device `if` at k.lua:1:14: "
        "set it "
        "before the if\n");
}

static void test_if_return(void **state) {
  (void)state;
  check("local function g(x) if m then return x + 1, 1 else return x, 2 end end\n"
        "local a, b = g(t) print(peek(a), peek(b))",
        "f32(4)\tindex\nthen {\n %1 = t + 1\n}\nelse {\n}\nif m\n%2 `return value 1`: f32(4) = %1, "
        "t\n%3 `return value 2`: index = 1, 2\n");
  check("local function g(x) if m then return x elseif tm == nil then return 5 else return f end "
        "end\n"
        "print(peek(g(f)))",
        "f32\nthen {\n}\nelse {\n}\nif m\n");
  check(
      "local n = 0 local function g() if m then n = 1 return 1 else return 2 end end g()",
      "then {\n}\nelse {\n}\nif m\n%1 `n` captured: index = 1, 0\n%2 `return value 1`: index = 1, "
      "2\n");
  check("local function g() if m then return 1 end return 2 end g()",
        "1:30: `return` out of a device if (opened at k.lua:1:20); return as many values in both "
        "branches, or assign to a local and return it after the if\n");
  check("local function g() if m then return 1 else return 1, 2 end end g()",
        "1:44: `return` of 2 values here and of 1 in the other branch of the device if (opened at "
        "k.lua:1:20)\n");
  check("local function g() if m then return t else return nil end end local x = g() + 1",
        "1:77: return value 1 has a value only in one branch of the `if` at k.lua:1:20; assign it "
        "before "
        "the if or in both branches\n");
}

static void test_leaving(void **state) {
  (void)state;
  check("for i = 1, 3 do if m then break end end",
        "1:27: `break` out of a device if (opened at k.lua:1:17)\n");
  check("for i = 1, 3 do if m then goto continue end ::continue:: end",
        "1:27: `goto` out of a device if (opened at k.lua:1:17); invert the condition\n");
  check("for k in range() do break end",
        "1:21: `break` out of a device loop (opened at k.lua:1:1)\n");
  check("local function g() for k in range() do return k end end g()",
        "1:40: `return` out of a device loop (opened at k.lua:1:20)\n");
  check("for k in range() do goto out end ::out:: print(1)",
        "1\n1:21: `goto` out of a device loop (opened at k.lua:1:1)\n");
  check("for k in range() do for i = 1, 3 do if i == 2 then break end op('x', i) end end",
        "loop {\n index %2\n x! 1\n}\nfor\n");
  check("repeat local x = m until x", "1:1: `repeat ... until` on a device condition; use while\n");
  check("for i = 1, idx do end", "1:12: a plain `for` needs numbers, got index; write `for i in "
                                 "range(lo, hi, step)`\n");
  check("for i in t do end", "1:1: `for ... in` over f32(4); write range(...)\n");
}

/* ---- loops ---- */

static void test_for_carry(void **state) {
  (void)state;
  check("local s = t for k in range() do s = s + 1 end op('store', s)",
        "loop {\n index %4\n arg %5 `s`: f32(4) from t\n %6 = %5 + 1\n}\nfor\n%7 `s`: f32(4) = t, "
        "%6\nstore! %7\n");
  check(
      "local n = 0 for k in range() do n = n + 1 end print(peek(n))",
      "index\nloop {\n index %3\n arg %4 `n`: index from 0\n %5 = %4 + 1\n}\nfor\n%6 `n`: index = "
      "0, %5\n");
  check("local s = 0 for k in range() do s = s + f end print(peek(s))",
        "f32\nloop {\n index %4\n arg %5 `s`: f32 from 0\n %6 = %5 + f\n}\nfor\n%7 `s`: f32 = 0, "
        "%6\n");
  check("local x, y = t, make(3) for k in range() do x, y = y, x end",
        "%1 = make f32(4)\nloop {\n index %4\n arg %5 `x`: f32(4) from t\n arg %6 `y`: f32(4) from "
        "%1\n}\nfor\n%7 `x`: f32(4) = t, %6\n%8 `y`: f32(4) = %1, %5\n");
  check("for k in range() do op('x', k) end", "loop {\n index %2\n x! %2\n}\nfor\n");
  check(
      "local first = true for k in range() do if first then op('a') end first = false end",
      "loop {\n index %3\n arg %4 `first`: bool from true\n then {\n  a!\n }\n else {\n }\n if %4\n"
      "}\nfor\n%5 `first`: bool = true, false\n");
  /* an invariant stays plain, so it is run in one pass */
  check("local w = 4 for k in range() do if false then w = 8 end op('x', w) end",
        "loop {\n index %2\n x! 4\n}\nfor\n");
  check(
      "local function mk() local n = 0 return function() n = n + 1 return n end end\n"
      "local g, h = mk(), mk() for k in range() do h() op('x', g()) end",
      "loop {\n index %3\n arg %4 `n` captured: index from 0\n arg %5 `n` captured: index from 0\n "
      "%6 = %5 + 1\n %7 = %4 + 1\n x! %7\n}\nfor\n%8 `n` captured: index = 0, %7\n%9 `n` "
      "captured: index = 0, %6\n");
  /* extra loop variables are nil */
  check("for k, x in range() do print(peek(x)) end", "nil\nloop {\n index %2\n}\nfor\n");
}

static void test_for_refused(void **state) {
  (void)state;
  check("local s for k in range() do s = (s or 0) + 1 end",
        "1:34: `s` is nil before the loop at k.lua:1:9 and set in it (at k.lua:1:42): here it "
        "would be "
        "the value of the iteration before; initialise it before the loop\n");
  check(
      "local s for k in range() do s = t end print(s)",
      "1:45: `s` is set only in the device loop at k.lua:1:9: it has no value after it if the loop "
      "runs zero times\n");
  check("local s for k in range() do s = t op('x', s) end", "loop {\n index %3\n x! t\n}\nfor\n");
  check("local s = 0.5 for k in range() do s = s * 2 end",
        "1:39: `s` changes in the device loop at k.lua:1:15 (set at k.lua:1:41) but has no dtype: "
        "start "
        "it with f32(0.5)\n");
  check("local s = 0 for k in range() do s = s + t end",
        "1:37: `s` is number 0 before the loop at k.lua:1:13 and f32(4) after an iteration (set at "
        "k.lua:1:39): start it with full(f32, ...)\n");
  check("local s = t for k in range() do s = s + 1 s = f end",
        "1:37: `s` is f32(4) at the start of the loop at k.lua:1:13 and f32 at the end of an "
        "iteration (set at k.lua:1:39)\n");
  check("local g = print for k in range() do g('a') g = nil end",
        "1:37: `g` (a function) changes in the device loop at k.lua:1:17 (set at k.lua:1:44): only "
        "device values, numbers and booleans can be carried\n");
  check("local q = {s = t} for k in range() do q.s = q.s + 1 end",
        "1:47: field 's' set at k.lua:1:41 in the device loop at k.lua:1:19 is read in the next "
        "iteration or after the loop: only locals are carried\n");
  check("local q = {} for k in range() do q.s = t end local x = q.s",
        "1:58: field 's' set at k.lua:1:36 in the device loop at k.lua:1:14 is read in the next "
        "iteration or after the loop: only locals are carried\n");
  check("local q = {} for k in range() do q.s = t op('x', q.s) end",
        "loop {\n index %3\n x! t\n}\nfor\n");
  check("local q = {} for k in range() do q[#q + 1] = k end",
        "1:36: the loop at k.lua:1:14 never settles: a table grows in it (field '1' at "
        "k.lua:1:35)\n");
  check("local q, n = {}, {} for k in range() do table.insert(q, k) end",
        "1:41: the loop at k.lua:1:21 never settles: a table grows in it (field '1' at "
        "k.lua:1:41)\n");
  check(
      "local q = {} for k in range() do setmetatable(q, {}) end",
      "1:34: the metatable of a table changes in the device loop at k.lua:1:14: set it before the "
      "loop\n");
  check(
      "local c = 0 local function key() c = c + 1 return c end\n"
      "local seen, q = {}, {} for k in range() do local x = #seen q[k == nil and 0 or 'a'] = 1 end",
      "loop {\n index %3\n}\nfor\n");
}

static void test_while(void **state) {
  (void)state;
  check("local n = 0 while n < 3 do n = n + 1 end print(n)", "3\n");
  check("local x = idx while x > 0 do x = x - 1 end op('x', x)",
        "loop {\n arg %4 `x`: index from idx\n %5 = %4 > 0\n condition %5\n body %6 from %4\n %7 = "
        "%6 - "
        "1\n}\nwhile\n%8 `x`: index = idx, %7\nx! %8\n");
  check(
      "local x, n = 2, 0 while x > 0 do n = n + 1 x = x - idx end",
      "1:19: warning: the condition of this `while` became a device value after 1 iteration, "
      "which was "
      "unrolled\n"
      "%1 = 2 - idx\nloop {\n arg %5 `x`: index from %1\n arg %6 `n`: index from 1\n %7 = %5 > 0\n "
      "condition %7\n body %8 from %5\n body %9 from %6\n %10 = %9 + 1\n %11 = %8 - idx\n}\nwhile\n"
      "%12 `x`: index = %1, %11\n%13 `n`: index = 1, %10\n");
  /* the probe of a plain condition keeps what it changed */
  check("local n = 0 local function g() n = n + 1 return n < 3 end while g() do end print(n)",
        "3\n");
  check("local n, x = 0, idx local function g() n = n + 1 return x > 0 end while g() do x = x - 1 "
        "end",
        "1:67: the condition of a device `while` has an effect (changes `n`): move it into the "
        "loop\n");
  check("local x = idx while x > 0 do break end",
        "1:30: `break` out of a device loop (opened at k.lua:1:15)\n");
}

/* Settled sets are handed on: a nested loop is discovered once. */
static void test_passes(void **state) {
  (void)state;
  check_passes("for a in range() do op('x', a) end", 1);
  check_passes("local s = t for a in range() do s = s + 1 end", 2);
  check_passes("local s = t for a in range() do for b in range() do s = s + 1 end end", 5);
  check_passes(
      "local s = t for a in range() do for b in range() do for c in range() do s = s + 1 end end "
      "end",
      9);
  check_passes(
      "local s = t for a in range() do for b in range() do for c in range() do for d in range() "
      "do s = s + 1 end end end end",
      14);
  /* locals of the body, captured ones too, are found again in the next pass of the outer loop */
  check_passes(
      "local s = t for a in range() do local q = t local function add() q = q + 1 end for b in "
      "range() do add() end s = s + q end",
      5);
  check_passes(
      "local s = t for a in range() do if m then for b in range() do s = s + 1 end end end", 5);
  /* a chain of variables is found one by one, up to the limit */
  check_passes("local a, b, c, d = 0, 0, 0, 0 for k in range() do d = c c = b b = a a = a + 1 end",
               5);
}

static void test_never_settles(void **state) {
  (void)state;
  check("local a, b, c, d, e, g, h = 0, 0, 0, 0, 0, 0, 0\n"
        "for k in range() do h = g g = e e = d d = c c = b b = a a = a + 1 end",
        "2:1: the loop at k.lua:2:1 never settles: a variable changes in every pass (`g` at "
        "k.lua:2:27)\n");
}

/* ---- journal ---- */

static void test_births(void **state) {
  (void)state;
  /* a table made in the body may grow there; one made outside must not */
  check("for k in range() do local q = {} for i = 1, 3 do q[#q + 1] = i end op('x', #q) end",
        "loop {\n index %2\n x! 3\n}\nfor\n");
  check("for k in range() do local q = {} if m then q[1] = 1 else q[1] = 1 end op('x', #q) end",
        "loop {\n index %2\n then {\n }\n else {\n }\n if m\n x! 1\n}\nfor\n");
  check("for k in range() do local q = table.pack(1, 2) table.insert(q, 3) table.sort(q) op('x', "
        "#q) end",
        "loop {\n index %2\n x! 3\n}\nfor\n");
  check(
      "for k in range() do local n = 0 local function up() n = n + 1 end up() up() op('x', n) end",
      "loop {\n index %2\n x! 2\n}\nfor\n");
}

static void test_discarded_pass_is_invisible(void **state) {
  (void)state;
  check("local log = {} local s = t\n"
        "for k in range() do print('pass') s = s + 1 end\n"
        "print(#log)",
        "pass\n0\nloop {\n index %4\n arg %5 `s`: f32(4) from t\n %6 = %5 + 1\n}\nfor\n%7 `s`: "
        "f32(4) = t, %6\n");
  check("local q = {1, 2, 3} if m then table.remove(q) else q[3] = nil end print(#q, q[3])",
        "2\tnil\nthen {\n}\nelse {\n}\nif m\n");
  check("local q = {3, 1, 2} if m then table.sort(q) else table.sort(q) end print(table.concat(q))",
        "123\nthen {\n}\nelse {\n}\nif m\n");
  check("local q = {} if m then rawset(q, 'a', 1) else rawset(q, 'a', 1) end print(q.a)",
        "1\nthen {\n}\nelse {\n}\nif m\n");
  check("local q = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end})\n"
        "if m then q.x = 4 else q.x = 4 end print(q.x)",
        "8\nthen {\n}\nelse {\n}\nif m\n");
}

/* One trace leaves nothing behind for the next. */
static void run_twice(struct fe_state *fe, void *user) {
  struct hr *t = user;
  static const char text[] =
      "local n, q = 0, {} count = 0\n"
      "return function() n = n + 1 q[#q + 1] = n count = count + 1 print(n, #q, count) end";
  fe_load_text(fe, "k.lua", text, strlen(text));
  fe_call(fe, 0, 1);
  for (int i = 0; i < 3; i++) {
    fe_trace_begin(fe);
    lua_pushvalue(t->L, -1);
    fe_call(fe, 0, 0);
    fe_trace_end(fe, true);
  }
}

static void test_traces_are_pure(void **state) {
  (void)state;
  struct hr t;
  hr_init(&t);
  assert_true(hr_make_state(&t));
  assert_int_equal(fe_protect(t.fe, run_twice, &t), FE_DONE);
  assert_string_equal(sb_str(&t.out), "1\t1\t1\n1\t1\t1\n1\t1\t1\n");
  hr_done(&t);
}

static void test_pcall(void **state) {
  (void)state;
  check(
      "local s, q, n = t, {}, 0 local function up() n = n + 1 end\n"
      "print(pcall(function() for k in range() do s = s + 1 q.x = 1 up() error('no', 0) end end))\n"
      "print(n, q.x) op('x', s)",
      "false\tno\n0\tnil\nx! t\n");
  check(
      "local n = 0 print(pcall(function() n = 1 if m then n = 2 error('no', 0) end end)) print(n)",
      "false\tno\n1\n");
  /* diagnostics pass through */
  check("print(pcall(function() return t .. 'x' end))",
        "1:33: cannot concatenate f32(4) and a string\n");
  check("print(pcall(function() local x = m or 1 if tm then end error('late') end)) error('later')",
        "false\tk.lua:1:56: late\n1:36: `mask or value` has no value where the mask is true; write "
        "`mask "
        "and x or y` or where(...)\n1:41: `if` on a tile bool(4); use where(cond, x, y)\n1:76: "
        "later\n");
}

static void test_safety_net(void **state) {
  (void)state;
  check("local g for k in range() do g = function() return k end op('x', k) end",
        "loop {\n index %3\n "
        "x! %3\n}\nfor\n");
  check("local q = {} local function keep(v) rawset(q, 1, v) end\n"
        "local ok = pcall(function() for k in range() do q.f = function() return k end end end)\n"
        "print(ok)",
        "true\nloop {\n index %3\n}\nfor\n");
  check(
      "local h = {} local co\n"
      "if m then local k = make(3) h[1] = function() return k end else h[1] = nil end print(h[1])",
      "2:87: field '1' has a value only in one branch of the `if` at k.lua:2:1; assign it before "
      "the if "
      "or in both branches\n");
}

/* ---- what is refused in plain places ---- */

static void test_operands(void **state) {
  (void)state;
  check("local q = {1} local x = q[idx] q[idx] = 1 local y = {[idx] = 1}",
        "1:26: a Lua table cannot be indexed by index; use a plain loop or where\n"
        "1:33: a Lua table cannot be indexed by index; use a plain loop or where\n"
        "1:54: a Lua table cannot be indexed by index; use a plain loop or where\n");
  check("local x = 'a' .. t .. 'b'", "1:20: cannot concatenate f32(4) and a string\n");
  check("local x = #t local y = t + 'a' local z = t + true local w = -{}",
        "1:11: cannot take the length of f32(4)\n1:26: cannot apply '+' to f32(4) and a "
        "string\n1:44: "
        "cannot apply '+' to f32(4) and true\n1:61: attempt to perform arithmetic on a table "
        "value\n");
  check("t.x = 1 t()",
        "1:3: cannot assign to a field of f32(4): it never changes\n1:9: attempt to call "
        "f32(4)\n");
  check("local x = t + y", "1:13: attempt to perform arithmetic on a nil value (global 'y')\n");
  check(
      "local V = setmetatable({}, {__add = function(a, b) return 'added' end}) print(V + t, t + V)",
      "added\tadded\n");
  check("table.sort({2, 1}, function() return m end)",
        "1:1: table.sort: the comparison gave bool\n");
  check("local V = {} V.__lt = function() return m end local x = setmetatable({}, V) < "
        "setmetatable({}, "
        "V)",
        "1:77: __lt: the comparison gave bool\n");
  check("assert(m) print(t)", "assert! m\nprint! t\n");
  check("print(math.max(t, 1))", "1:7: math.max of f32(4): use max\n");
  check("local x = t:nope() + 1 x = x.y.z(x)[x] if x then x = 1 end for k in x do end",
        "1:13: t has no 'nope'\n");
}

/* ---- memory ---- */

static const char memory_program[] =
    "local s, n, q = t, 0, {a = 1}\n"
    "local function add(v) s = s + v n = n + 1 return s end\n"
    "for k in range() do\n"
    "  local list = {}\n"
    "  for i = 1, 5 do list[#list + 1] = k + i end\n"
    "  for j in range() do add(1) q.x = t end\n"
    "  if m then s = s * 2 q.y = 1 else s = s - 1 q.y = 2 end\n"
    "  local w = m and s or t\n"
    "  while n > 0 do n = n - 1 end\n"
    "  print(('x'):rep(10) .. #list, pcall(error, 'e'))\n"
    "end\n"
    "local c <close> = setmetatable({}, {__close = function() print('closed') end})\n"
    "op('store', s, n)\n";

static void test_memory(void **state) {
  (void)state;
  struct hr t;
  const char *expect = NULL;
  struct arena keep;
  struct oom_trap trap;
  arena_init(&keep, &mem_libc, &trap);
  for (int sticky = 0; sticky < 2; sticky++) {
    bool whole = false;
    for (long n = 0; !whole; n += n < 300 ? 1 : 7) {
      hr_init(&t);
      t.fail_at = n;
      t.sticky = sticky;
      t.text = memory_program;
      enum fe_status s = FE_NO_MEMORY;
      if (hr_make_state(&t)) {
        s = fe_protect(t.fe, hr_trace_text, &t);
        t.fail_at = 0;
        if (s == FE_NO_MEMORY) { /* the next call works */
          assert_true(t.diags.n_errors > 0);
          assert_int_equal(t.diags.list.at[0].id, DIAG_NO_MEMORY);
          t.n_open = 0;
          diag_clear(&t.diags);
          t.lines = t.out = (struct strbuf){.arena = &t.arena};
          t.n_values = 0;
          s = fe_protect(t.fe, hr_trace_text, &t);
        } else {
          whole = n > t.n_allocs || (n > 0 && n >= t.n_allocs);
        }
        assert_int_equal(s, FE_DONE);
        const char *got = hr_result(&t);
        if (!expect)
          expect = arena_strdup(&keep, got);
        assert_string_equal(got, expect);
      } else {
        assert_true(n > 0);
      }
      hr_done(&t);
    }
  }
  assert_non_null(strstr(expect, "store!"));
  assert_non_null(strstr(expect, "closed"));
  arena_free(&keep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_truth),
      cmocka_unit_test(test_logic),
      cmocka_unit_test(test_short_circuit_effects),
      cmocka_unit_test(test_if_merge),
      cmocka_unit_test(test_if_order),
      cmocka_unit_test(test_if_undefined),
      cmocka_unit_test(test_if_return),
      cmocka_unit_test(test_leaving),
      cmocka_unit_test(test_for_carry),
      cmocka_unit_test(test_for_refused),
      cmocka_unit_test(test_while),
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_never_settles),
      cmocka_unit_test(test_births),
      cmocka_unit_test(test_discarded_pass_is_invisible),
      cmocka_unit_test(test_traces_are_pure),
      cmocka_unit_test(test_pcall),
      cmocka_unit_test(test_safety_net),
      cmocka_unit_test(test_operands),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
