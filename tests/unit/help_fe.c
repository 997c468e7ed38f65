/* See help_fe.h. Modules are read from a folder of the test; what print writes is kept. */
#include "help_fe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool read_module(void *user, const char *path, struct strbuf *text, const char **error) {
  struct hf *h = user;
  char full[512];
  *error = NULL;
  if (!h->modules)
    return false;
  snprintf(full, sizeof full, "%s/%s", h->modules, path);
  FILE *f = fopen(full, "rb");
  if (!f)
    return false;
  char part[4096];
  size_t n;
  while ((n = fread(part, 1, sizeof part, f)) > 0)
    sb_put(text, part, n);
  fclose(f);
  return true;
}

static void print_text(void *user, const char *text, size_t n) {
  struct hf *h = user;
  sb_put(&h->printed, text, n);
}

void hf_init(struct hf *h) {
  *h = (struct hf){0};
  assert_true(diag_init(&h->diags, &mem_libc));
  arena_init(&h->arena, &mem_libc, &h->trap);
  if (setjmp(h->trap.env))
    fail_msg("out of memory");
  h->printed.arena = &h->arena;
  h->host = (struct fe_host){.mem = &mem_libc,
                             .diags = &h->diags,
                             .root = "",
                             .read_module = read_module,
                             .print = print_text,
                             .user = h};
}

void hf_free(struct hf *h) {
  fe_free(h->file);
  arena_free(&h->arena);
  diag_free(&h->diags);
}

static void put_place(struct hf *h, struct strbuf *out, struct diag_loc loc) {
  if (loc.file)
    sb_printf(out, "%s:%u:%u: ", diag_file_name(&h->diags, loc.file), loc.line, loc.col);
}

const char *hf_diags(struct hf *h) {
  static const char *const severity[] = {"error", "warning", "note"};
  struct strbuf out = {.arena = &h->arena};
  for (uint32_t i = 0; i < h->diags.list.n; i++) {
    const struct diag *d = &h->diags.list.at[i];
    put_place(h, &out, d->loc);
    sb_printf(&out, "%s: %s [%s]\n", severity[d->severity], d->message, diag_code(d->id));
    for (uint32_t j = 0; j < d->notes.n; j++) {
      sb_puts(&out, "  ");
      put_place(h, &out, d->notes.at[j].loc);
      sb_printf(&out, "%s\n", d->notes.at[j].text);
    }
  }
  return sb_str(&out);
}

bool hf_load(struct hf *h, const char *name, const char *text) {
  fe_free(h->file);
  h->file = fe_load(&h->host, name, text, strlen(text));
  return h->file != NULL;
}

static void check_module(struct hf *h, const struct ir_module *m) {
  struct strbuf text = {.arena = &h->arena}, again = {.arena = &h->arena};
  ir_print(m, (struct ir_print_options){0}, &text);
  if (!ir_verify(m, &h->diags))
    fail_msg("the traced module breaks a rule:\n%s\n%s", hf_diags(h), sb_str(&text));
  uint32_t file = diag_add_file(&h->diags, "round trip", sb_str(&text), text.n);
  struct ir_module *parsed = ir_parse(&h->arena, &h->diags, file, sb_str(&text), text.n);
  if (!parsed)
    fail_msg("the printed module does not parse:\n%s\n%s", hf_diags(h), sb_str(&text));
  ir_print(parsed, (struct ir_print_options){0}, &again);
  assert_string_equal(sb_str(&text), sb_str(&again));
}

struct ir_module *hf_trace(struct hf *h, const char *name, uint64_t absent) {
  const struct fe_kernel *k = fe_find_kernel(h->file, name);
  struct fe_config config;
  if (!k || !fe_default_config(h->file, k, &h->arena, NULL, &config))
    return NULL;
  struct fe_trace_options opt = {.config = &config, .absent = absent};
  struct ir_module *m = fe_trace(h->file, k, &opt, &h->arena);
  if (m)
    check_module(h, m);
  return m;
}

char *hf_read(struct hf *h, const char *path, size_t *n) {
  struct strbuf text = {.arena = &h->arena};
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  char part[4096];
  size_t got;
  while ((got = fread(part, 1, sizeof part, f)) > 0)
    sb_put(&text, part, got);
  fclose(f);
  *n = text.n;
  return arena_strndup(&h->arena, sb_str(&text), text.n);
}
