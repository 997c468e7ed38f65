/* Runs the IR texts of tests/ir. Comments of a text say what is to be seen:
 *
 *   ; RUN: passes=canonicalise,cse     passes to run (none: the text is only printed)
 *   ; CHECK: text                      the output has a line with this text, after the one before
 *   ; CHECK-NOT: text                  no line with it before the next CHECK (or the end)
 *   ; expect-error: text               in *_invalid.tir: an error with this text on the next line
 *                                      (above `kernel`: an error about the module)
 *
 * Every text is also read, printed, read again and compared; a text without comments must print to
 * itself. Every rule of rules.def has a valid and an invalid text. */
#include "help_rt.h"

#include "ir/ir.h"
#include "ir/rules.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 400
#define MAX_MARKS 200

static const char *const rule_names[] = {
#define RULE(id, text) #id,
#include "ir/rules.def"
};

enum mark_kind { CHECK, CHECK_NOT, EXPECT_ERROR };

/* A comment with a meaning. */
struct mark {
  enum mark_kind kind;
  const char *text;
  uint32_t line;     /* expect-error: the line it speaks of */
  bool about_module; /* ... which is that of `kernel`, or nowhere */
  bool met;
};

struct file {
  const char *name, *text;
  size_t n;
  bool has_comments;
  const char *passes; /* NULL: none */
  struct mark marks[MAX_MARKS];
  uint32_t n_marks;
};

static struct help_arena files_arena; /* names and texts of all files */
static const char *names[MAX_FILES];
static uint32_t n_names;
static uint32_t n_failed;
static bool quiet; /* what fails is meant to */

static void wrong(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(const char *name, const char *fmt, ...) {
  va_list ap;
  n_failed++;
  if (quiet)
    return;
  va_start(ap, fmt);
  fprintf(stderr, "%s: ", name);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
}

static bool ends_in(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && str_eq(s + n - k, end);
}

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *s = arena_get(&files_arena.arena, *n + 1);
  size_t got = fread(s, 1, *n, f);
  fclose(f);
  s[got] = 0;
  return got == *n ? s : NULL;
}

static int by_name(const void *x, const void *y) {
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void list_files(void) {
  DIR *d = opendir(KILN_SRC_DIR "/tests/ir");
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));)
    if (ends_in(e->d_name, ".tir")) {
      assert_true(n_names < MAX_FILES);
      names[n_names++] = arena_strdup(&files_arena.arena, e->d_name);
    }
  closedir(d);
  qsort(names, n_names, sizeof names[0], by_name);
  assert_true(n_names > 0);
}

/* "; KEY: value" at s: the value, up to the end of the line, else NULL. */
static const char *value_of(const char *s, const char *end, const char *key) {
  size_t k = strlen(key);
  while (s < end && (*s == ' ' || *s == ';'))
    s++;
  if ((size_t)(end - s) < k || memcmp(s, key, k) != 0)
    return NULL;
  s += k;
  while (s < end && *s == ' ')
    s++;
  return arena_strndup(&files_arena.arena, s, (size_t)(end - s));
}

static void read_marks(struct file *f) {
  static const char *const keys[] = {"CHECK:", "CHECK-NOT:", "expect-error:"};
  uint32_t line = 1, first_open = 0; /* marks from here on wait for their line */
  for (const char *s = f->text; *s; line++) {
    const char *end = s + strcspn(s, "\n"), *p = s + strspn(s, " ");
    bool comment = *p == ';';
    f->has_comments |= memchr(s, ';', (size_t)(end - s)) != NULL;
    for (uint32_t k = 0; k < 3 && comment; k++) {
      const char *v = value_of(p, end, keys[k]);
      if (!v)
        continue;
      assert_true(f->n_marks < MAX_MARKS);
      f->marks[f->n_marks++] = (struct mark){.kind = (enum mark_kind)k, .text = v};
    }
    if (comment && value_of(p, end, "RUN:"))
      f->passes = value_of(p, end, "RUN: passes=");
    if (!comment && p < end) {
      for (; first_open < f->n_marks; first_open++) {
        f->marks[first_open].line = line;
        f->marks[first_open].about_module = str_starts(p, "kernel ");
      }
    }
    s = end + (*end == '\n');
  }
}

static void show_diags(const struct diag_sink *d, struct arena *a) {
  struct strbuf out = {.arena = a};
  for (uint32_t i = 0; i < d->list.n; i++)
    diag_render_text(d, &d->list.at[i], &out);
  fputs(sb_str(&out), stderr);
}

/* ---- invalid texts ---- */

static void check_errors(struct file *f, const struct diag_sink *d) {
  uint32_t expected = 0;
  for (uint32_t i = 0; i < f->n_marks; i++)
    expected += f->marks[i].kind == EXPECT_ERROR;
  if (!expected)
    wrong(f->name, "an invalid text that expects no error");
  for (uint32_t i = 0; i < d->list.n; i++) {
    const struct diag *e = &d->list.at[i];
    bool found = false;
    for (uint32_t k = 0; k < f->n_marks && !found; k++) {
      struct mark *m = &f->marks[k];
      found = m->kind == EXPECT_ERROR && !m->met &&
              (m->line == e->loc.line || (m->about_module && !e->loc.line)) &&
              strstr(e->message, m->text) != NULL;
      m->met = m->met || found;
    }
    if (!found)
      wrong(f->name, "line %u: not expected: %s", e->loc.line, e->message);
  }
  for (uint32_t k = 0; k < f->n_marks; k++)
    if (f->marks[k].kind == EXPECT_ERROR && !f->marks[k].met)
      wrong(f->name, "line %u: expected, but not reported: %s", f->marks[k].line, f->marks[k].text);
}

/* ---- valid texts ---- */

/* One printed line that contains `text`, from s on; NULL if there is none. */
static const char *find_line(const char *s, const char *text, const char **line_end) {
  const char *at = strstr(s, text);
  if (!at)
    return NULL;
  *line_end = at + strcspn(at, "\n");
  return at;
}

static void check_output(struct file *f, const char *out) {
  const char *from = out;
  for (uint32_t i = 0; i < f->n_marks; i++) {
    const struct mark *m = &f->marks[i];
    if (m->kind == EXPECT_ERROR)
      wrong(f->name, "only *_invalid.tir expect errors");
    if (m->kind != CHECK)
      continue;
    const char *end, *at = find_line(from, m->text, &end);
    if (!at) {
      wrong(f->name, "no line, after those before it, has: %s\n%s", m->text, out);
      return;
    }
    from = end;
  }
  /* Each CHECK-NOT holds between the CHECK before and the one after it. */
  from = out;
  for (uint32_t i = 0; i < f->n_marks; i++) {
    const struct mark *m = &f->marks[i];
    const char *end = out + strlen(out), *to = end;
    if (m->kind == CHECK) {
      find_line(from, m->text, &from);
      continue;
    }
    for (uint32_t k = i + 1; k < f->n_marks; k++)
      if (f->marks[k].kind == CHECK) {
        to = find_line(from, f->marks[k].text, &end);
        break;
      }
    const char *bad = find_line(from, m->text, &end);
    if (bad && bad < to)
      wrong(f->name, "a line has: %s\n%s", m->text, out);
  }
}

static bool run_passes(struct file *f, struct ir_module *m, struct diag_sink *d) {
  uint32_t n;
  const struct ir_pass *all = ir_tile_pipeline(&n);
  for (const char *s = f->passes; *s;) {
    size_t k = strcspn(s, ","), i = 0;
    while (i < n && !(strlen(all[i].name) == k && memcmp(all[i].name, s, k) == 0))
      i++;
    if (i == n) {
      wrong(f->name, "RUN: there is no pass `%s`", s);
      return false;
    }
    struct ir_run_options opt = {.debug = "roundtrip,clone"};
    if (!ir_run_passes(m, &all[i], 1, d, &opt))
      return false;
    s += k + (s[k] == ',');
  }
  return true;
}

static void check_round_trip(struct file *f, const struct ir_module *m, struct arena *a,
                             struct diag_sink *d) {
  struct strbuf once = {.arena = a}, twice = {.arena = a}, why = {.arena = a};
  ir_print(m, (struct ir_print_options){0}, &once);
  struct ir_module *again = ir_parse(a, d, 0, sb_str(&once), once.n);
  if (!again) {
    wrong(f->name, "what was printed cannot be read");
    return;
  }
  if (!ir_equal(m, again, &why))
    wrong(f->name, "another module comes back: %s", sb_str(&why));
  ir_print(again, (struct ir_print_options){0}, &twice);
  if (!str_eq(sb_str(&once), sb_str(&twice)))
    wrong(f->name, "the second print differs from the first");
  if (!f->has_comments && !f->passes && !str_eq(sb_str(&once), f->text))
    wrong(f->name, "the text is not as it is printed:\n%s", sb_str(&once));
}

static void run_file(const char *name) {
  struct file f = {.name = name};
  struct help_arena h;
  struct diag_sink d;
  char path[1024];
  snprintf(path, sizeof path, KILN_SRC_DIR "/tests/ir/%s", name);
  f.text = read_file(path, &f.n);
  assert_non_null(f.text);
  help_arena_init(&h);
  assert_true(diag_init(&d, &mem_libc));
  read_marks(&f);
  uint32_t before = n_failed;
  uint32_t file = diag_add_file(&d, name, f.text, f.n);
  struct ir_module *m = ir_parse(&h.arena, &d, file, f.text, f.n);
  if (m)
    check_round_trip(&f, m, &h.arena, &d);
  bool valid = m && ir_verify(m, &d);
  if (ends_in(name, "_invalid.tir")) {
    if (valid)
      wrong(name, "is valid");
    check_errors(&f, &d);
  } else if (!valid) {
    wrong(name, "is not valid");
  } else if (f.passes && !run_passes(&f, m, &d)) {
    wrong(name, "a pass failed");
  } else {
    struct strbuf out = {.arena = &h.arena};
    ir_print(m, (struct ir_print_options){0}, &out);
    check_output(&f, sb_str(&out));
    check_round_trip(&f, m, &h.arena, &d);
  }
  if (n_failed > before)
    show_diags(&d, &h.arena);
  diag_free(&d);
  arena_free(&h.arena);
}

static void test_texts(void **state) {
  (void)state;
  for (uint32_t i = 0; i < n_names; i++)
    run_file(names[i]);
  printf("%u texts\n", n_names);
  assert_int_equal(n_failed, 0);
}

static bool has_name(const char *name) {
  return bsearch(&name, names, n_names, sizeof names[0], by_name) != NULL;
}

/* A rule's valid text has an op of that rule; its invalid text expects an error of one. */
static void test_every_rule_has_texts(void **state) {
  (void)state;
  n_failed = 0;
  for (uint32_t r = 0; r < IR_RULE_COUNT; r++) {
    char valid[100], invalid[100];
    snprintf(valid, sizeof valid, "rule_%s.tir", rule_names[r]);
    snprintf(invalid, sizeof invalid, "rule_%s_invalid.tir", rule_names[r]);
    if (!has_name(valid) || !has_name(invalid)) {
      wrong(valid, "or its invalid twin is missing");
      continue;
    }
    char path[1024];
    struct help_arena h;
    struct diag_sink d;
    help_arena_init(&h);
    assert_true(diag_init(&d, &mem_libc));
    snprintf(path, sizeof path, KILN_SRC_DIR "/tests/ir/%s", valid);
    size_t n;
    const char *text = read_file(path, &n);
    struct ir_module *m = ir_parse(&h.arena, &d, 0, text, n);
    bool used = false;
    for (uint32_t i = 1; m && i < m->ops.n; i++)
      used = used || ir_info(m->ops.at[i].opcode)->rule == r;
    if (!used)
      wrong(valid, "has no op of the rule");
    snprintf(path, sizeof path, KILN_SRC_DIR "/tests/ir/%s", invalid);
    text = read_file(path, &n);
    used = false;
    for (unsigned op = 1; op < IR_OPCODE_COUNT; op++) {
      char want[80];
      snprintf(want, sizeof want, "expect-error: %s: ", ir_info((enum ir_opcode)op)->name);
      used = used || (ir_info((enum ir_opcode)op)->rule == r && strstr(text, want));
    }
    if (!used)
      wrong(invalid, "expects no error of an op of the rule");
    diag_free(&d);
    arena_free(&h.arena);
  }
  assert_int_equal(n_failed, 0);
}

/* The runner itself fails where it must: on each kind of mark that does not hold. */
static void test_runner_can_fail(void **state) {
  (void)state;
  struct file f = {.name = "(meant to fail)"};
  const char *out = "one\ntwo\nthree\n";
  quiet = true;
  struct {
    const char *text;
    bool fails;
  } cases[] = {{"; CHECK: two\n; CHECK: three\n", false},
               {"; CHECK: three\n; CHECK: two\n", true},
               {"; CHECK: four\n", true},
               {"; CHECK: two\n; CHECK: two\n", true},
               {"; CHECK-NOT: one\n", true},
               {"; CHECK: one\n; CHECK-NOT: one\n", false},
               {"; CHECK-NOT: two\n; CHECK: three\n", true},
               {"; CHECK-NOT: three\n; CHECK: two\n", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    f.n_marks = 0;
    f.text = cases[i].text;
    read_marks(&f);
    n_failed = 0;
    check_output(&f, out);
    assert_int_equal(n_failed > 0, cases[i].fails);
  }
  n_failed = 0;
  quiet = false;
}

static int set_up(void **state) {
  (void)state;
  help_arena_init(&files_arena);
  list_files();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_free(&files_arena.arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_every_rule_has_texts),
      cmocka_unit_test(test_runner_can_fail),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
