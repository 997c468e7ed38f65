/* Diagnostics: text and JSON forms, carets, notes, limits, files, and memory that runs out. */
#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct failing {
  size_t requests, fail_at, live;
};

static void *failing_fn(void *user, void *p, size_t old_size, size_t new_size) {
  struct failing *f = user;
  if (new_size && ++f->requests == f->fail_at)
    return NULL;
  void *q = mem_libc.fn(mem_libc.user, p, old_size, new_size);
  f->live = f->live - (p ? old_size : 0) + new_size;
  return q;
}

static struct diag_loc at(uint32_t file, uint32_t line, uint32_t col) {
  return (struct diag_loc){file, line, col};
}

/* Renders into memory of the sink: good enough for a test. */
static const char *text_of(struct diag_sink *s, uint32_t i) {
  struct strbuf b = {.arena = &s->arena};
  diag_render_text(s, &s->list.at[i], &b);
  return sb_str(&b);
}

static const char *json_of(struct diag_sink *s, uint32_t i) {
  struct strbuf b = {.arena = &s->arena};
  diag_render_json(s, &s->list.at[i], &b);
  return sb_str(&b);
}

static const char source[] = "local a = 1\n\tlocal b = a +\nreturn b";

static void test_text_with_caret(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  uint32_t f = diag_add_file(&s, "k.lua", source, sizeof source - 1);
  assert_int_equal(f, 1);
  diag_report(&s, DIAG_ERROR, DIAG_SYNTAX, at(f, 2, 14), "expected %s, found %s", "a value",
              "'return'");
  diag_note(&s, at(f, 1, 7), "'a' is declared here");
  diag_note(&s, DIAG_NOWHERE, "a note without a place");
  assert_string_equal(text_of(&s, 0),
                      "k.lua:2:14: error: expected a value, found 'return' [K0101]\n"
                      "   local b = a +\n"
                      "               ^\n"
                      "  k.lua:1:7: note: 'a' is declared here\n"
                      "  note: a note without a place\n");
  diag_free(&s);
}

static void test_places(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  uint32_t f = diag_add_file(&s, "k.lua", source, sizeof source - 1);
  uint32_t g = diag_add_file(&s, "unread.lua", NULL, 0);
  diag_report(&s, DIAG_WARNING, DIAG_ALWAYS_TRUE, at(f, 3, 0), "no column");
  diag_report(&s, DIAG_ERROR, DIAG_FILE, at(g, 5, 6), "no text");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(f, 0, 0), "no line");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "no file");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(f, 99, 1), "past the end");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(f, 3, 9), "end of file");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(f, 3, 500), "past the line");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(77, 3, 5), "no such file");
  assert_string_equal(text_of(&s, 0), "k.lua:3: warning: no column [K0306]\n  return b\n");
  assert_string_equal(text_of(&s, 1), "unread.lua:5:6: error: no text [K1101]\n");
  assert_string_equal(text_of(&s, 2), "k.lua: error: no line [K1199]\n");
  assert_string_equal(text_of(&s, 3), "error: no file [K1199]\n");
  assert_string_equal(text_of(&s, 4), "k.lua:99:1: error: past the end [K1199]\n");
  assert_string_equal(text_of(&s, 5),
                      "k.lua:3:9: error: end of file [K1199]\n  return b\n          ^\n");
  assert_string_equal(text_of(&s, 6), "k.lua:3:500: error: past the line [K1199]\n  return b\n");
  assert_non_null(strstr(text_of(&s, 7), "no such file"));
  assert_int_equal(s.n_errors, 7);
  assert_int_equal(s.n_warnings, 1);
  diag_free(&s);
}

/* A very long line is shown around its caret, and the caret still points at the column. */
static void test_long_line(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  char line[5000];
  memset(line, '.', sizeof line);
  static const uint32_t cols[] = {1, 79, 80, 81, 2500, 4920, 4999, 5000};
  for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
    line[cols[i] - 1] = 'X';
    uint32_t f = diag_add_file(&s, "long.lua", line, sizeof line);
    diag_report(&s, DIAG_ERROR, DIAG_SYNTAX, at(f, 1, cols[i]), "here");
    const char *t = strchr(text_of(&s, s.list.n - 1), '\n') + 1;
    const char *second = strchr(t, '\n') + 1;
    assert_true(second - t < 200);
    assert_int_equal(t[strchr(second, '^') - second], 'X');
    line[cols[i] - 1] = '.';
  }
  diag_free(&s);
}

static void test_json(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  uint32_t f = diag_add_file(&s, "a\"b.lua", source, sizeof source - 1);
  diag_report(&s, DIAG_ERROR, DIAG_TYPE_MISMATCH, at(f, 2, 3), "f32 and\n\"bf16\"");
  diag_note(&s, at(f, 1, 0), "one");
  diag_note(&s, DIAG_NOWHERE, "two");
  s.list.at[0].pass = "trace";
  diag_report(&s, DIAG_WARNING, DIAG_OTHER, DIAG_NOWHERE, "plain");
  assert_string_equal(
      json_of(&s, 0),
      "{\"severity\":\"error\",\"id\":\"K0501\",\"message\":\"f32 and\\n\\\"bf16\\\"\""
      ",\"file\":\"a\\\"b.lua\",\"line\":2,\"column\":3,\"pass\":\"trace\","
      "\"notes\":[{\"message\":\"one\",\"file\":\"a\\\"b.lua\",\"line\":1},"
      "{\"message\":\"two\"}]}");
  assert_string_equal(json_of(&s, 1),
                      "{\"severity\":\"warning\",\"id\":\"K1199\",\"message\":\"plain\"}");
  diag_free(&s);
}

static void test_limit_counts_what_it_drops(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  s.max_errors = 3;
  for (int i = 0; i < 5; i++) {
    diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "error %d", i);
    diag_note(&s, DIAG_NOWHERE, "of error %d", i);
  }
  diag_report(&s, DIAG_WARNING, DIAG_OTHER, DIAG_NOWHERE, "a warning has its own limit");
  diag_note(&s, DIAG_NOWHERE, "and keeps its notes");
  assert_int_equal(s.n_errors, 5);
  assert_int_equal(s.n_dropped, 2);
  assert_int_equal(s.list.n, 4);
  assert_int_equal(s.list.at[3].notes.n, 1);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(s.list.at[i].notes.n, 1); /* a dropped error's note goes with it */
    assert_int_equal(s.list.at[i].notes.at[0].text[9], (char)('0' + i));
  }
  diag_clear(&s);
  assert_int_equal(s.list.n + s.n_errors + s.n_warnings + s.n_dropped, 0);
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "again");
  diag_note(&s, DIAG_NOWHERE, "noted");
  assert_int_equal(s.list.at[0].notes.n, 1);
  diag_free(&s);
}

/* Running out of memory and interruptions are counted even where they cannot be listed. */
static void test_counts_of_what_stops_work(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  s.max_errors = 1;
  for (int i = 0; i < 2; i++) {
    diag_report(&s, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE, "out of memory");
    diag_report(&s, DIAG_ERROR, DIAG_INTERRUPTED, DIAG_NOWHERE, "interrupted");
  }
  assert_int_equal(s.list.n, 1);
  assert_int_equal(s.n_no_memory, 2);
  assert_int_equal(s.n_interrupted, 2);
  diag_clear(&s);
  assert_int_equal(s.n_no_memory + s.n_interrupted, 0);
  diag_free(&s);
}

static void test_truncate(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "kept");
  diag_report(&s, DIAG_WARNING, DIAG_OTHER, DIAG_NOWHERE, "forgotten");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "forgotten, too");
  diag_truncate(&s, 5);
  assert_int_equal(s.list.n, 3);
  diag_truncate(&s, 1);
  assert_int_equal(s.list.n, 1);
  assert_int_equal(s.n_errors, 1);
  assert_int_equal(s.n_warnings, 0);
  assert_string_equal(s.list.at[0].message, "kept");
  diag_free(&s);
}

/* A sink that is cleared now and then does not grow. */
static void test_clear_gives_memory_back(void **state) {
  (void)state;
  struct failing f = {0};
  struct mem_alloc mem = {failing_fn, &f};
  struct diag_sink s;
  assert_true(diag_init(&s, &mem));
  size_t live = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 100; i++) {
      diag_report(&s, DIAG_ERROR, DIAG_OTHER, DIAG_NOWHERE, "%1000d", i);
      diag_note(&s, DIAG_NOWHERE, "%1000d", i);
    }
    diag_clear(&s);
    live = round ? live : f.live;
    assert_int_equal(f.live, live);
  }
  diag_free(&s);
  assert_int_equal(f.live, 0);
}

static void test_note_alone_is_ignored(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  diag_note(&s, DIAG_NOWHERE, "to nothing");
  assert_int_equal(s.list.n, 0);
  diag_free(&s);
}

static void test_files(void **state) {
  (void)state;
  struct diag_sink s;
  assert_true(diag_init(&s, &mem_libc));
  uint32_t a = diag_add_file(&s, "a.lua", "one", 3);
  uint32_t b = diag_add_file(&s, "b.lua", "two", 3);
  assert_int_not_equal(a, b);
  assert_int_equal(diag_add_file(&s, "a.lua", "changed", 7), a);
  assert_int_equal(diag_add_file(&s, "a.lua", NULL, 0), a); /* keeps the text it has */
  assert_string_equal(diag_file_name(&s, a), "a.lua");
  assert_string_equal(diag_file_name(&s, 0), "");
  assert_string_equal(diag_file_name(&s, 1000), "");
  diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(a, 1, 1), "m");
  assert_non_null(strstr(text_of(&s, 0), "\n  changed\n"));
  diag_free(&s);
}

static void test_codes_are_stable_and_unique(void **state) {
  (void)state;
  for (enum diag_id i = 0; i < DIAG_COUNT; i++) {
    const char *code = diag_code(i);
    assert_int_equal(strlen(code), 5);
    assert_int_equal(code[0], 'K');
    assert_int_equal(strspn(code + 1, "0123456789"), 4);
    assert_true(strlen(diag_summary(i)) > 0);
    for (enum diag_id k = 0; k < i; k++)
      assert_string_not_equal(diag_code(k), code);
  }
  assert_string_equal(diag_code(DIAG_INTERNAL), "K0001"); /* published codes do not move */
  assert_string_equal(diag_code(DIAG_SYNTAX), "K0101");
  assert_string_equal(diag_code(DIAG_VERIFY_FAILED), "K1001");
}

/* Whatever allocation fails, every error is counted, kept ones are whole, nothing leaks. */
static void test_out_of_memory_at_every_point(void **state) {
  (void)state;
  char big[3000];
  memset(big, 'x', sizeof big - 1);
  big[sizeof big - 1] = 0;
  size_t n = 0;
  bool failed = true;
  while (failed) {
    struct failing f = {.fail_at = ++n};
    struct mem_alloc mem = {failing_fn, &f};
    struct diag_sink s;
    if (diag_init(&s, &mem)) {
      uint32_t file = diag_add_file(&s, "k.lua", source, sizeof source - 1);
      for (int i = 0; i < 100; i++) {
        diag_report(&s, DIAG_ERROR, DIAG_OTHER, at(file, 1, 1), "%d %s", i, big);
        diag_note(&s, at(file, 2, 1), "%s", big);
      }
      assert_int_equal(s.n_errors, 100);
      assert_int_equal(s.list.n + s.n_dropped, 100);
      for (uint32_t i = 0; i < s.list.n; i++)
        assert_string_equal(strchr(s.list.at[i].message, ' ') + 1, big);
    }
    failed = f.requests >= n;
    diag_free(&s);
    assert_int_equal(f.live, 0);
  }
  assert_true(n > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text_with_caret),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_long_line),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_limit_counts_what_it_drops),
      cmocka_unit_test(test_counts_of_what_stops_work),
      cmocka_unit_test(test_truncate),
      cmocka_unit_test(test_clear_gives_memory_back),
      cmocka_unit_test(test_note_alone_is_ignored),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_codes_are_stable_and_unique),
      cmocka_unit_test(test_out_of_memory_at_every_point),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
