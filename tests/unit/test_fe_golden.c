/* Golden files of the frontend, tests/golden/FOLDER/NAME.lua. Those of staging and dsl are each the
 * body of a kernel and, in a comment at their end, what tracing it must give: what it prints, its
 * diagnostics, the IR. Those of describe are whole kernel files; what is expected there are the
 * descriptions of their kernels and the heads of their modules.
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

#define FOLDER    KILN_SRC_DIR "/tests/golden"
#define OPENING   "--[====[ expect\n"
#define CLOSING   "]====]\n"
#define MAX_FILES 400

static const char usual_args[] =
    "tensor(\"A\", bf16, \"K\"), tensor(\"E\", f32, \"M\", \"N\", \"S\", \"T\"), "
    "optional(tensor(\"bias\", bf16, \"N\")), out(\"C\", f32, \"L\")";

static char names[MAX_FILES][128];
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

static void put_value(struct strbuf *out, const char *name, struct fe_value v) {
  sb_printf(out, " %s=", name);
  fe_value_print(v, out);
}

static void put_named(struct strbuf *out, const char *head, const struct fe_named *v, uint32_t n) {
  if (n)
    sb_printf(out, " %s:", head);
  for (uint32_t i = 0; i < n; i++)
    put_value(out, v[i].name, v[i].value);
}

static void put_case(struct strbuf *out, const struct fe_case *c) {
  sb_puts(out, "  case");
  put_named(out, "shape", c->shape, c->n_shape);
  put_named(out, "const", c->consts, c->n_consts);
  put_named(out, "set", c->set, c->n_set);
  put_named(out, "layout", c->layout, c->n_layout);
  put_named(out, "scalar", c->scalars, c->n_scalars);
  for (uint32_t i = 0; i < c->n_stride; i++) {
    sb_printf(out, " stride %s:", c->stride[i].arg);
    for (uint32_t d = 0; d < c->stride[i].n; d++)
      sb_printf(out, " %lld", (long long)c->stride[i].at[d]);
  }
  put_named(out, "offset", c->offset, c->n_offset);
  for (uint32_t i = 0; i < c->n_absent; i++)
    sb_printf(out, " absent %s", c->absent[i]);
  sb_printf(out, " seed %lld\n", (long long)c->seed);
}

static void put_kernel(struct strbuf *out, const struct fe_kernel *k) {
  static const char *const kinds[] = {"in", "out", "inout", "scalar", "scratch"};
  sb_printf(out, "kernel %s%s%s%s\n", k->name, k->has_legal ? " legal" : "",
            k->has_inputs ? " inputs" : "", k->has_oracle ? " oracle" : "");
  for (uint32_t i = 0; i < k->n_args; i++) {
    const struct fe_arg *a = &k->args[i];
    sb_printf(out, "  %s%s%s %s %s", a->optional ? "optional " : "", a->zero ? "zero " : "",
              kinds[a->kind], a->name, a->dtype_const ? a->dtype_const : dtype_name(a->dtype));
    for (uint32_t d = 0; d < a->rank; d++)
      sb_printf(out, " [%s]", a->dim_text[d]);
    sb_puts(out, "\n");
  }
  sb_puts(out, "  dims");
  for (uint32_t i = 0; i < k->n_dims; i++)
    sb_printf(out, " %s", k->dims[i]);
  sb_puts(out, "\n");
  for (uint32_t i = 0; i < k->n_choices; i++) {
    const struct fe_choice *c = &k->choices[i];
    sb_printf(out, "  %s %s:", c->is_const ? "const" : "tune", c->name);
    for (uint32_t j = 0; j < c->n_values; j++) {
      sb_putc(out, ' ');
      fe_value_print(c->values[j], out);
    }
    sb_puts(out, c->open ? " any\n" : "\n");
  }
  if (k->n_schedule) {
    put_named(out, " schedule", k->schedule, k->n_schedule);
    sb_puts(out, "\n");
  }
  for (uint32_t i = 0; i < k->n_cases; i++)
    put_case(out, &k->cases[i]);
}

static const char *description_of(struct hf *h, const char *name, const char *text) {
  struct strbuf out = {.arena = &h->arena};
  if (hf_load(h, name, text))
    for (uint32_t i = 0; i < fe_kernel_count(h->file); i++) {
      const struct fe_kernel *k = fe_kernel_at(h->file, i);
      struct strbuf module = {.arena = &h->arena};
      put_kernel(&out, k);
      struct ir_module *m = hf_trace(h, k->name, 0);
      if (!m)
        continue;
      ir_print(m, (struct ir_print_options){0}, &module);
      const char *body = strstr(sb_str(&module), "\n  body"); /* the head: up to there */
      assert_non_null(body);
      sb_put(&out, sb_str(&module), (size_t)(body + 1 - sb_str(&module)));
    }
  put_lines(&out, "print: ", sb_str(&h->printed));
  put_lines(&out, "", hf_diags(h));
  return sb_str(&out);
}

static const char *result_of(struct hf *h, const char *name, const char *text) {
  struct strbuf out = {.arena = &h->arena};
  struct ir_module *m = NULL;
  h->modules = FOLDER "/staging/modules";
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
  const char *slash = strrchr(name, '/');
  const char *got = str_starts(name, "describe/") ? description_of(&h, slash + 1, text)
                                                  : result_of(&h, slash + 1, compose(&h, text));
  if (getenv("KILN_UPDATE") && !str_eq(got, expect))
    write_file(path, text, got);
  else if (!str_eq(got, expect))
    fail_msg("%s differs from what is expected. It gave:\n%s\nexpected:\n%s", name, got, expect);
  hf_free(&h);
}

static int by_name(const void *a, const void *b) {
  return strcmp(a, b);
}

static bool list_folder(const char *folder, const char *only) {
  char path[512];
  snprintf(path, sizeof path, FOLDER "/%s", folder);
  DIR *dir = opendir(path);
  if (!dir) {
    fprintf(stderr, "cannot read %s\n", path);
    return false;
  }
  for (struct dirent *e; (e = readdir(dir)) && n_names < MAX_FILES;) {
    size_t n = strlen(e->d_name);
    if (n <= 4 || n > 80 || !str_eq(e->d_name + n - 4, ".lua") ||
        (only && !strstr(e->d_name, only)))
      continue;
    snprintf(names[n_names++], sizeof names[0], "%s/%.80s", folder, e->d_name);
  }
  closedir(dir);
  return true;
}

int main(void) {
  static struct CMUnitTest tests[MAX_FILES];
  const char *only = getenv("KILN_ONLY");
  if (!list_folder("staging", only) || !list_folder("dsl", only) ||
      !list_folder("describe", only) || !n_names)
    return 1;
  qsort(names, n_names, sizeof *names, by_name);
  for (size_t i = 0; i < n_names; i++)
    tests[i] = (struct CMUnitTest){names[i], test_golden, NULL, NULL, names[i]};
  return _cmocka_run_group_tests("frontend goldens", tests, n_names, NULL, NULL) != 0;
}
