/* base/expr.c: exact round trip of random expressions, values against 128-bit arithmetic done while
 * the expression is built, the folds one by one, bad texts. */
#include "help_rt.h"

#include "base/expr.h"

#include <string.h>

struct fixture {
  struct help_arena mem;
  struct expr_pool pool;
};

static void start(struct fixture *f) {
  help_arena_init(&f->mem);
  expr_pool_init(&f->pool, &f->mem.arena, symtab_new(&f->mem.arena));
}

static struct expr parse(struct expr_pool *p, const char *text) {
  const char *error, *at;
  struct expr e = expr_parse(p, text, text + strlen(text), &error, &at);
  if (!e.id)
    fail_msg("`%s`: %s at `%s`", text, error, at);
  return e;
}

static const char *print(struct expr_pool *p, struct expr e) {
  struct strbuf b = {.arena = p->arena};
  expr_print(p, e, &b);
  return sb_str(&b);
}

struct value {
  const char *name;
  int64_t value;
};
static bool lookup(void *user, const char *name, int64_t *out) {
  for (const struct value *v = user; v->name; v++)
    if (strcmp(v->name, name) == 0) {
      *out = v->value;
      return true;
    }
  return false;
}

static uint64_t rng_state;
static uint64_t rng(void) {
  rng_state ^= rng_state << 13, rng_state ^= rng_state >> 7, rng_state ^= rng_state << 17;
  return rng_state;
}

__extension__ typedef __int128 wide;

/* What the expression must give: `ok` false where evaluation has to refuse. */
struct want {
  bool ok;
  int64_t value;
};

static wide floor_div(wide a, wide b) {
  wide q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static struct want compute(enum expr_op op, struct want a, struct want b, struct want c) {
  struct want bad = {false, 0};
  if (op == EXPR_SELECT)
    return !a.ok ? bad : a.value ? b : c;
  if (op == EXPR_AND || op == EXPR_OR) {
    if (!a.ok)
      return bad;
    if ((op == EXPR_AND) == (a.value == 0))
      return (struct want){true, op == EXPR_OR};
    return b.ok ? (struct want){true, b.value != 0} : bad;
  }
  if (!a.ok || (op != EXPR_NOT && !b.ok))
    return bad;
  wide x = a.value, y = b.value, r;
  if ((op == EXPR_DIV || op == EXPR_MOD || op == EXPR_CDIV) && y == 0)
    return bad;
  switch (op) {
  case EXPR_ADD: r = x + y; break;
  case EXPR_SUB: r = x - y; break;
  case EXPR_MUL: r = x * y; break;
  case EXPR_DIV: r = floor_div(x, y); break;
  case EXPR_MOD: r = x - floor_div(x, y) * y; break;
  case EXPR_CDIV: r = -floor_div(-x, y); break;
  case EXPR_MIN: r = x < y ? x : y; break;
  case EXPR_MAX: r = x < y ? y : x; break;
  case EXPR_EQ: r = x == y; break;
  case EXPR_NE: r = x != y; break;
  case EXPR_LT: r = x < y; break;
  case EXPR_LE: r = x <= y; break;
  case EXPR_NOT: r = x == 0; break;
  case EXPR_CONST:
  case EXPR_SYM:
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_SELECT:
  default: fail(); return bad;
  }
  if (r < INT64_MIN || r > INT64_MAX)
    return bad;
  return (struct want){true, (int64_t)r};
}

static const struct value values[] = {{"M", 4096}, {"N", 0},           {"A.stride0", -7},
                                      {"x_1", 3},  {"big", INT64_MAX}, {"low", INT64_MIN},
                                      {NULL, 0}};

static struct expr random_expr(struct expr_pool *p, int depth, struct want *w) {
  if (depth == 0 || rng() % 8 == 0) {
    if (rng() % 2) {
      static const int64_t consts[] = {0, 1, -1, 2, 3, 128, INT64_MAX, INT64_MIN, -5, 64};
      int64_t c = consts[rng() % 10];
      *w = (struct want){true, c};
      return expr_const(p, c);
    }
    const struct value *v = &values[rng() % 6];
    *w = (struct want){true, v->value};
    return expr_sym(p, v->name);
  }
  enum expr_op op = (enum expr_op)(EXPR_ADD + rng() % (EXPR_SELECT - EXPR_ADD + 1));
  struct want wa, wb = {false, 0}, wc = {false, 0};
  struct expr a = random_expr(p, depth - 1, &wa), b, c;
  if (op == EXPR_NOT) {
    *w = compute(op, wa, wb, wc);
    return expr_op1(p, op, a);
  }
  b = random_expr(p, depth - 1, &wb);
  if (op != EXPR_SELECT) {
    *w = compute(op, wa, wb, wc);
    return expr_op2(p, op, a, b);
  }
  c = random_expr(p, depth - 1, &wc);
  *w = compute(op, wa, wb, wc);
  return expr_op3(p, op, a, b, c);
}

/* One random expression through print, parse, import and evaluation; true if it had a value. */
static bool check_random(struct expr_pool *pool, struct expr_pool *other, int depth) {
  struct want w;
  struct expr e = random_expr(pool, depth, &w);
  const char *text = print(pool, e);
  struct expr back = parse(pool, text);
  if (back.id != e.id)
    fail_msg("`%s` reads back as `%s`", text, print(pool, back));
  struct expr far = expr_import(other, pool, e);
  assert_string_equal(print(other, far), text);
  int64_t v;
  const char *why;
  bool ok = expr_eval(pool, e, lookup, (void *)(uintptr_t)values, &v, &why);
  /* Folding may only remove a failure (0 * x, and, or), never add one or change a value. */
  if (w.ok && (!ok || v != w.value))
    fail_msg("`%s`: %s %lld, expected %lld", text, ok ? "value" : why, (long long)v,
             (long long)w.value);
  if (!ok)
    assert_non_null(why);
  return w.ok;
}

static void test_random(void **state) {
  (void)state;
  rng_state = 20261130;
  int valued = 0;
  for (int round = 0; round < 200; round++) { /* short pools: arenas do not shrink */
    struct fixture f;
    start(&f);
    struct expr_pool other;
    expr_pool_init(&other, &f.mem.arena, symtab_new(&f.mem.arena));
    for (int i = 0; i < 100; i++)
      valued += check_random(&f.pool, &other, 1 + i % 5);
    arena_free(&f.mem.arena);
  }
  assert_true(valued > 10000);
}

static void test_texts(void **state) {
  (void)state;
  static const char *const canonical[] = {"M",
                                          "0",
                                          "-9223372036854775808",
                                          "9223372036854775807",
                                          "M + 1",
                                          "M - (N - 1)",
                                          "M - N - 1",
                                          "(M + 1) * N",
                                          "M + 2 * N",
                                          "cdiv(M, 128) * cdiv(N, 64)",
                                          "M % 8 == 0 and N <= 4",
                                          "not (M < N) or N == 3",
                                          "not M * N",
                                          "(M or N) and K",
                                          "M // (N // 2)",
                                          "M // N // 2",
                                          "select(M < N, min(M, 4), max(N, -3))",
                                          "A.addr % 16 == 0",
                                          "M - -3",
                                          "1 // 0",
                                          "M < N < 3",
                                          "M < (N < 3)",
                                          "M == N == 1"};
  struct fixture f;
  start(&f);
  for (size_t i = 0; i < sizeof canonical / sizeof canonical[0]; i++)
    assert_string_equal(print(&f.pool, parse(&f.pool, canonical[i])), canonical[i]);
  static const char *const other[][2] = {{"((M))", "M"},           {" M+1 ", "M + 1"},
                                         {"(M*N)+3", "M * N + 3"}, {"(M < N) == N", "M < N == N"},
                                         {"minx", "minx"},         {"min (M,N)", "min(M, N)"},
                                         {"2 + 3 * 4", "14"},      {"7 // -2", "-4"},
                                         {"-7 % 4", "1"},          {"cdiv(-7, 4)", "-1"}};
  for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
    assert_string_equal(print(&f.pool, parse(&f.pool, other[i][0])), other[i][1]);
  arena_free(&f.mem.arena);
}

static void test_folds(void **state) {
  (void)state;
  static const char *const folds[][2] = {{"M + 0", "M"},
                                         {"0 + M", "M"},
                                         {"M - 0", "M"},
                                         {"M * 1", "M"},
                                         {"1 * M", "M"},
                                         {"M * 0", "0"},
                                         {"M // 1", "M"},
                                         {"M % 1", "0"},
                                         {"cdiv(M, 1)", "M"},
                                         {"M - M", "0"},
                                         {"M == M", "1"},
                                         {"M < M", "0"},
                                         {"min(M, M)", "M"},
                                         {"select(1, M, N)", "M"},
                                         {"select(0, M, N)", "N"},
                                         {"select(M, N, N)", "N"},
                                         {"not not (M < N)", "M < N"},
                                         {"not not M", "not not M"},
                                         {"M and 1", "M and 1"},
                                         {"M < N and 1", "M < N"},
                                         {"M or 0", "M or 0"},
                                         {"0 or M == 2", "M == 2"},
                                         {"M and 0", "0"},
                                         {"3 or M", "1"},
                                         {"0 - M", "0 - M"},
                                         {"1 // M", "1 // M"}};
  struct fixture f;
  start(&f);
  for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++)
    assert_string_equal(print(&f.pool, parse(&f.pool, folds[i][0])), folds[i][1]);
  /* Equal expressions are one node. */
  assert_int_equal(parse(&f.pool, "cdiv(M, 64) + 1").id, parse(&f.pool, "cdiv(M,64)+1").id);
  int64_t v;
  assert_true(expr_is_const(&f.pool, parse(&f.pool, "2 * 3"), &v) && v == 6);
  assert_false(expr_is_const(&f.pool, parse(&f.pool, "M"), &v));
  arena_free(&f.mem.arena);
}

static void test_bad_texts(void **state) {
  (void)state;
  static const struct {
    const char *text, *error;
    size_t at;
  } bad[] = {{"", "expected an expression", 0},
             {"M +", "expected an expression", 3},
             {"M N", "expected the end", 2},
             {"(M", "expected `)`", 2},
             {"min(M)", "too few", 5},
             {"min(M, N, 3)", "expected `)`", 8},
             {"- M", "number after `-`", 0},
             {"9223372036854775808", "64 bits", 0},
             {"-9223372036854775809", "64 bits", 0},
             {"12ab", "run into a name", 2},
             {"M and and N", "expected an operand", 6},
             {"or", "expected an operand", 0},
             {"M / N", "expected the end", 2},
             {"M ~ N", "expected the end", 2},
             {"#", "expected a number, a name", 0}};
  struct fixture f;
  start(&f);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const char *error = NULL, *at = NULL;
    struct expr e =
        expr_parse(&f.pool, bad[i].text, bad[i].text + strlen(bad[i].text), &error, &at);
    assert_int_equal(e.id, 0);
    if (!strstr(error, bad[i].error) || (size_t)(at - bad[i].text) != bad[i].at)
      fail_msg("`%s`: got \"%s\" at %d", bad[i].text, error, (int)(at - bad[i].text));
  }
  /* Depth and size are limited, whichever way they come. */
  char deep[1001];
  memset(deep, '(', 1000);
  deep[1000] = 0;
  const char *error, *at;
  assert_int_equal(expr_parse(&f.pool, deep, deep + 1000, &error, &at).id, 0);
  assert_non_null(strstr(error, "too deep"));
  struct expr e = expr_sym(&f.pool, "M");
  for (int i = 0; i < 60; i++)
    e = expr_op2(&f.pool, EXPR_ADD, e, e);
  int64_t v;
  assert_false(expr_eval(&f.pool, e, lookup, (void *)(uintptr_t)values, &v, &error));
  assert_non_null(strstr(error, "too large"));
  assert_string_equal(print(&f.pool, e), "<too large>");
  assert_int_equal(expr_size(&f.pool, e), UINT32_MAX);
  struct strbuf long_text = {.arena = &f.mem.arena};
  sb_puts(&long_text, "M");
  for (int i = 0; i < 5000; i++)
    sb_puts(&long_text, " + M");
  assert_int_equal(expr_parse(&f.pool, long_text.s, long_text.s + long_text.n, &error, &at).id, 0);
  assert_non_null(strstr(error, "too large"));
  arena_free(&f.mem.arena);
}

static void test_eval_errors(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  static const char *const bad[][2] = {
      {"M + Q", "Q"},          {"big + M", "overflow"},   {"big * 2", "overflow"},
      {"low - 1", "overflow"}, {"low // -1", "overflow"}, {"cdiv(low, -1)", "overflow"},
      {"M // N", "zero"},      {"M % N", "zero"},         {"cdiv(M, N)", "zero"}};
  int64_t v;
  const char *why;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct expr e = parse(&f.pool, bad[i][0]);
    assert_false(expr_eval(&f.pool, e, lookup, (void *)(uintptr_t)values, &v, &why));
    assert_non_null(strstr(why, bad[i][1]));
  }
  /* Guards protect what they guard. */
  struct expr e = parse(&f.pool, "select(N == 0, 5, M // N)");
  assert_true(expr_eval(&f.pool, e, lookup, (void *)(uintptr_t)values, &v, &why) && v == 5);
  e = parse(&f.pool, "N ~= 0 and M // N == 2");
  assert_true(expr_eval(&f.pool, e, lookup, (void *)(uintptr_t)values, &v, &why) && v == 0);
  e = parse(&f.pool, "low % -1");
  assert_true(expr_eval(&f.pool, e, lookup, (void *)(uintptr_t)values, &v, &why) && v == 0);
  arena_free(&f.mem.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_folds),       cmocka_unit_test(test_bad_texts),
      cmocka_unit_test(test_eval_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
