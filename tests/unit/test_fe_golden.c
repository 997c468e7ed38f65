/* Golden files of staging, tests/golden/staging/NAME.lua, each the body of a kernel and, in a comment at
 * its end, what tracing it must give: what it prints, its diagnostics, the IR.
 *
 *   -- title                     (line 1; the head of the kernel takes its place)
 *   body ...
 *   -- args: tensor("X", f32, "M"), ...     (optional: instead of the usual ones)
 *   --[====[ expect
 *   print: ...
 *   error: ...
 *   ir ...
 *   ]====]
 *
 * KILN_UPDATE=1 writes the expectations anew; review them as a diff. KILN_ONLY=NAME runs one. */
#include "help_fe.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define FOLDER    KILN_SRC_DIR "/tests/golden/staging"
#define OPENING   "--[====[ expect\n"
#define CLOSING   "]====]\n"
#define MAX_FILES 400

static const char usual_args[] =
    "tensor(\"A\", bf16, \"K\"), tensor(\"E\", f32, \"M\", \"N\", \"S\", \"T\"), "
    "optional(tensor(\"bias\", bf16, \"N\")), out(\"C\", f32, \"L\")";

static char names[MAX_FILES][100];
static size_t n_names;

/* The kernel file that a golden body stands for: line and column numbers stay. */
static const char *compose(struct hf *h, const char *body) {
  struct strbuf out = {.arena = &h->arena};
  const char *args = strstr(body, "\n-- args: ");
  const char *line_1 = strchr(body, '\n');
  assert_non_null(line_1);
  sb_puts(&out, "return kernel { name = \"k\", const = {D = {128}, causal = {true}}, "
                "tune = {BM = {64}, BN = {64}, BK = {32}}, args = { ");
  if (args) {
    args += strlen("\n-- args: ");
    sb_put(&out, args, strcspn(args, "\n"));
  } else {
    sb_puts(&out, usual_args);
  }
  sb_puts(&out, " }, grid = function(d, c) return 7, 5 end, body = function(a, d, c, i, j)");
  sb_puts(&out, line_1);
  sb_puts(&out, "end }\n");
  return sb_str(&out);
}

static void put_lines(struct strbuf *out, const char *head, const char *text) {
  while (*text) {
    size_t n = strcspn(text, "\n");
    sb_puts(out, head);
    sb_put(out, text, n);
    sb_putc(out, '\n');
    text += n + (text[n] == '\n');
  }
}

/* The module without what all goldens share: from the body on. */
static const char *body_text(struct hf *h, const struct ir_module *m) {
  struct strbuf text = {.arena = &h->arena};
  ir_print(m, (struct ir_print_options){.names = true}, &text);
  const char *body = strstr(sb_str(&text), "\n  body");
  assert_non_null(body);
  return body + 1;
}

static const char *result_of(struct hf *h, const char *name, const char *text) {
  struct strbuf out = {.arena = &h->arena};
  struct ir_module *m = NULL;
  h->modules = FOLDER "/modules";
  if (hf_load(h, name, text)) {
    const struct fe_kernel *k = fe_kernel_at(h->file, 0);
    uint64_t absent = 0;
    for (uint32_t i = 0; i < k->n_args; i++)
      if (k->args[i].optional)
        absent |= (uint64_t)1 << i;
    m = hf_trace(h, NULL, absent);
  }
  put_lines(&out, "print: ", sb_str(&h->printed));
  put_lines(&out, "", hf_diags(h));
  if (m)
    sb_puts(&out, body_text(h, m));
  assert_true(m || h->diags.n_errors > 0);
  return sb_str(&out);
}

static void write_file(const char *path, const char *body, const char *expect) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_true(fprintf(f, "%s%s%s%s", body, OPENING, expect, CLOSING) > 0);
  assert_int_equal(fclose(f), 0);
}

static void test_golden(void **state) {
  const char *name = *state;
  struct hf h;
  hf_init(&h);
  char path[512];
  size_t n;
  snprintf(path, sizeof path, FOLDER "/%s", name);
  char *text = hf_read(&h, path, &n);
  assert_non_null(text);
  char *opening = strstr(text, OPENING);
  const char *expect = "";
  if (opening) {
    char *closing = strstr(opening, CLOSING);
    assert_non_null(closing);
    *closing = 0;
    *opening = 0;
    expect = opening + strlen(OPENING);
  }
  const char *got = result_of(&h, name, compose(&h, text));
  if (getenv("KILN_UPDATE") && !str_eq(got, expect))
    write_file(path, text, got);
  else if (!str_eq(got, expect))
    fail_msg("%s differs from what is expected. It gave:\n%s\nexpected:\n%s", name, got, expect);
  hf_free(&h);
}

static int by_name(const void *a, const void *b) {
  return strcmp(a, b);
}

int main(void) {
  static struct CMUnitTest tests[MAX_FILES];
  const char *only = getenv("KILN_ONLY");
  DIR *dir = opendir(FOLDER);
  if (!dir) {
    fprintf(stderr, "cannot read %s\n", FOLDER);
    return 1;
  }
  for (struct dirent *e; (e = readdir(dir)) && n_names < MAX_FILES;) {
    size_t n = strlen(e->d_name);
    if (n > 4 && n < sizeof names[0] && str_eq(e->d_name + n - 4, ".lua") &&
        (!only || strstr(e->d_name, only)))
      memcpy(names[n_names++], e->d_name, n + 1);
  }
  closedir(dir);
  qsort(names, n_names, sizeof *names, by_name);
  for (size_t i = 0; i < n_names; i++)
    tests[i] = (struct CMUnitTest){names[i], test_golden, NULL, NULL, names[i]};
  int failed = n_names == 0;
  failed |= _cmocka_run_group_tests("staging", tests, n_names, NULL, NULL);
  return failed;
}
