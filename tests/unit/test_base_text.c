/* Strings, interned names and hashes. */
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

#include <math.h>
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

static struct strbuf new_buf(void) {
  return (struct strbuf){.arena = &arena};
}

static void test_strbuf_grows(void **state) {
  (void)state;
  struct strbuf b = new_buf();
  assert_string_equal(sb_str(&b), "");
  char model[5000];
  size_t n = 0;
  for (int i = 0; n + 20 < sizeof model; i++) {
    if (i % 3 == 0)
      sb_putc(&b, (char)('a' + i % 26)), model[n++] = (char)('a' + i % 26);
    else if (i % 3 == 1)
      sb_printf(&b, "[%d]", i), n += (size_t)snprintf(model + n, 20, "[%d]", i);
    else
      sb_puts(&b, "--"), memcpy(model + n, "--", 2), n += 2;
    model[n] = 0;
    assert_int_equal(b.n, n);
    assert_string_equal(sb_str(&b), model);
  }
}

/* A formatted text of every length around the buffer's capacity. */
static void test_strbuf_printf_at_the_edge(void **state) {
  (void)state;
  char text[400];
  for (size_t len = 0; len < sizeof text; len++) {
    struct strbuf b = new_buf();
    memset(text, 'x', len);
    text[len] = 0;
    sb_putc(&b, '<');
    sb_printf(&b, "%s", text);
    sb_putc(&b, '>');
    assert_int_equal(b.n, len + 2);
    assert_int_equal(strlen(sb_str(&b)), len + 2);
    assert_int_equal(sb_str(&b)[len + 1], '>');
  }
}

static void test_strbuf_empty_puts(void **state) {
  (void)state;
  struct strbuf b = new_buf();
  sb_put(&b, NULL, 0);
  sb_puts(&b, "");
  sb_printf(&b, "%s", "");
  assert_int_equal(b.n, 0);
  assert_string_equal(sb_str(&b), "");
}

static void check_double(double x, const char *text) {
  struct strbuf b = new_buf();
  sb_put_double(&b, x);
  if (text)
    assert_string_equal(sb_str(&b), text);
  double y = strtod(sb_str(&b), NULL);
  assert_memory_equal(&x, &y, sizeof x);
}

static void test_doubles_read_back(void **state) {
  (void)state;
  check_double(0.0, "0.0");
  check_double(-0.0, "-0.0");
  check_double(1, "1.0");
  check_double(-3, "-3.0");
  check_double(0.1, "0.1");
  check_double(1.0 / 3, NULL);
  check_double(5e-324, NULL);
  check_double(1.7976931348623157e308, NULL);
  check_double(9007199254740993.0, NULL);
  check_double(1e22, NULL);
  check_double((double)INFINITY, "inf");
  check_double(-(double)INFINITY, "-inf");
  uint64_t seed = 7;
  for (int i = 0; i < 20000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t bits = seed ^ seed >> 29;
    double x;
    memcpy(&x, &bits, sizeof x);
    if (isfinite(x))
      check_double(x, NULL);
  }
  struct strbuf b = new_buf();
  sb_put_double(&b, (double)NAN);
  assert_string_equal(sb_str(&b), "nan");
}

static void check_json(const char *bytes, size_t n, const char *expect) {
  struct strbuf b = new_buf();
  sb_put_json(&b, bytes, n);
  assert_string_equal(sb_str(&b), expect);
}
#define JSON(literal, expect) check_json(literal, sizeof(literal) - 1, expect)
#define BAD                   "\xef\xbf\xbd" /* U+FFFD */

static void test_json_strings(void **state) {
  (void)state;
  JSON("", "\"\"");
  JSON("plain", "\"plain\"");
  JSON("q\"b\\n\nt\tz", "\"q\\\"b\\\\n\\nt\\u0009z\"");
  JSON("\0\x1f\x7f", "\"\\u0000\\u001f\\u007f\"");
  JSON("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  JSON("\xc3", "\"" BAD "\"");                         /* cut short */
  JSON("a\x80z", "\"a" BAD "z\"");                     /* a continuation alone */
  JSON("\xc0\xaf", "\"" BAD BAD "\"");                 /* overlong */
  JSON("\xed\xa0\x80", "\"" BAD BAD BAD "\"");         /* surrogate */
  JSON("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* above U+10FFFF */
  JSON("\xff", "\"" BAD "\"");
}

/* Nothing that a terminal would obey is left, nothing else is touched. */
static void test_shown(void **state) {
  (void)state;
  static const char given[] = "a\tb\n\033[31m\r\177\302\233\302\240\303\251\377\303";
  for (int lines = 0; lines < 2; lines++) {
    struct strbuf b = new_buf();
    sb_put_shown(&b, given, sizeof given - 1, lines);
    char expect[80];
    snprintf(expect, sizeof expect, "a\tb%s\\x1b[31m\\x0d\\x7f\\xc2\\x9b\302\240\303\251\\xff\\xc3",
             lines ? "\n" : "\\x0a");
    assert_string_equal(sb_str(&b), expect);
  }
  for (unsigned c = 0; c < 256; c++) {
    struct strbuf b = new_buf();
    char byte = (char)c;
    sb_put_shown(&b, &byte, 1, false);
    bool plain = c == '\t' || (c >= 0x20 && c < 0x7f);
    assert_int_equal(b.n, plain ? 1 : 4);
  }
}

static void test_symbols(void **state) {
  (void)state;
  struct symtab *t = symtab_new(&arena);
  assert_int_equal(symtab_get(t, "").id, 0);
  char name[20];
  struct sym ids[2000];
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, "name%d", i);
    struct sym unknown;
    assert_false(symtab_find(t, name, strlen(name), &unknown));
    ids[i] = symtab_get(t, name);
    for (int k = i - 3; k >= 0 && k < i; k++)
      assert_int_not_equal(ids[k].id, ids[i].id);
  }
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, "name%d", i);
    assert_int_equal(symtab_get(t, name).id, ids[i].id);
    assert_string_equal(symtab_str(t, ids[i]), name);
    struct sym found;
    assert_true(symtab_find(t, name, strlen(name), &found));
    assert_int_equal(found.id, ids[i].id);
  }
  /* A prefix is another name, and so is a name with a NUL in it. */
  struct sym ab = symtab_intern(t, "abc", 2), abc = symtab_intern(t, "abc", 3);
  struct sym nul = symtab_intern(t, "ab\0", 3);
  assert_int_not_equal(ab.id, abc.id);
  assert_int_not_equal(ab.id, nul.id);
  assert_int_not_equal(abc.id, nul.id);
  assert_string_equal(symtab_str(t, ab), "ab");
}

static bool same(struct hash128 a, struct hash128 b) {
  return a.hi == b.hi && a.lo == b.lo;
}

/* Field lists whose bytes would run together without types and lengths. */
static void test_hash_fields_are_delimited(void **state) {
  (void)state;
  struct hash128 h[16];
  size_t n = 0;
  struct hasher s;
#define CASE(...)                                                                                  \
  do {                                                                                             \
    hash_begin(&s);                                                                                \
    __VA_ARGS__;                                                                                   \
    h[n++] = hash_end(&s);                                                                         \
  } while (0)
  CASE((void)0);
  CASE(hash_field_str(&s, "a", "bc"));
  CASE(hash_field_str(&s, "ab", "c"));
  CASE(hash_field_str(&s, "", "abc"));
  CASE(hash_field_str(&s, "a", "b"); hash_field_str(&s, "c", ""));
  CASE(hash_field_str(&s, "a", ""); hash_field_str(&s, "c", "b"));
  CASE(hash_field_bytes(&s, "a", "bc", 2));
  CASE(hash_field_str(&s, "a", ""));
  CASE(hash_field_str(&s, "", "a"));
  CASE(hash_field_int(&s, "n", 0));
  CASE(hash_field_int(&s, "n", 1));
  CASE(hash_field_int(&s, "n", -1));
  CASE(hash_field_double(&s, "n", 0.0));
  CASE(hash_field_double(&s, "n", -0.0));
  CASE(hash_field_bytes(&s, "n", "\0\0\0\0\0\0\0\0", 8));
  CASE(hash_field_int(&s, "n", 0); hash_field_int(&s, "n", 0));
#undef CASE
  assert_int_equal(n, 16);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      assert_false(same(h[i], h[k]));
}

/* Keys must be the same on every machine and with every later version: these are XXH3-128's own. */
static void test_hash_is_stable(void **state) {
  (void)state;
  char hex[33];
  hash_hex(hash_bytes("", 0), hex);
  assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
  struct hasher a, b;
  hash_begin(&a);
  hash_field_str(&a, "kernel", "gemm");
  hash_field_int(&a, "BM", 128);
  struct hash128 once = hash_end(&a);
  assert_true(same(once, hash_end(&a))); /* ending changes nothing */
  b = a;                                 /* the state is a value */
  hash_field_int(&a, "BN", 64);
  hash_field_int(&b, "BN", 64);
  assert_true(same(hash_end(&a), hash_end(&b)));
  assert_false(same(once, hash_end(&a)));
  hash_hex((struct hash128){1, UINT64_C(0xfedcba9876543210)}, hex);
  assert_string_equal(hex, "0000000000000001fedcba9876543210");
}

static void all_kinds_of_text(void *user) {
  (void)user;
  struct strbuf b = new_buf();
  struct symtab *t = symtab_new(&arena);
  for (int i = 0; i < 300; i++) {
    sb_printf(&b, "%d ", i);
    sb_put_double(&b, i / 7.0);
    sb_put_json(&b, "\"text\"\n", 7);
    symtab_get(t, arena_printf(&arena, "symbol %d", i));
  }
}

struct failing {
  size_t requests, fail_at;
};

static void *failing_fn(void *user, void *p, size_t old_size, size_t new_size) {
  struct failing *f = user;
  if (new_size && ++f->requests == f->fail_at)
    return NULL;
  return mem_libc.fn(mem_libc.user, p, old_size, new_size);
}

static void test_out_of_memory_at_every_point(void **state) {
  (void)state;
  bool ok = false;
  size_t n = 0;
  while (!ok) {
    struct failing f = {.fail_at = ++n};
    struct mem_alloc mem = {failing_fn, &f};
    struct arena outer = arena;
    arena_init(&arena, &mem, &trap);
    ok = arena_guard(&arena, all_kinds_of_text, NULL);
    assert_int_equal(ok, f.requests < n);
    arena_free(&arena);
    arena = outer;
  }
  assert_true(n > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_strbuf_grows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_strbuf_printf_at_the_edge, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_strbuf_empty_puts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_doubles_read_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_json_strings, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_shown, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_symbols, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_hash_fields_are_delimited, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_hash_is_stable, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_out_of_memory_at_every_point, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
