/* Contexts for tests of the public API; see help_api.h. */
#include "help_api.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char help_api_axpy[] =
    "return kernel {\n"
    "  name = 'axpy',\n"
    "  const = { T = {f32, bf16, f16} },\n"
    "  args = { tensor('X', 'T', 'M', 'N'), optional(tensor('B', 'T', 'N')),\n"
    "           scalar('alpha', f32), out('Y', 'T', 'M', 'N') },\n"
    "  tune = { BM = {4, 8, 16}, BN = {16, 32} },\n"
    "  legal = function(c) return c.BM * c.BN <= 256 end,\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local at = {i * c.BM, j * c.BN}\n"
    "    local y = cast(a.X:tile(at, {c.BM, c.BN}), f32) * a.alpha\n"
    "    if a.B then y = y + cast(a.B:tile({j * c.BN}, {c.BN}):row(), f32) end\n"
    "    a.Y:store(at, cast(y, c.T))\n"
    "  end,\n"
    "  oracle = function(t)\n"
    "    local y = t.X * t.alpha\n"
    "    if t.B then y = y + t.B:row() end\n"
    "    return y\n"
    "  end,\n"
    "  cases = {\n"
    "    {shape = {M = 5, N = 33}, scalar = {alpha = 2}},\n"
    "    {shape = {M = 4, N = 16}, const = {T = bf16}, set = {BM = 8}, layout = {X = 'col'},\n"
    "     absent = {'B'}, seed = 7},\n"
    "  },\n"
    "}\n";

/* A block's size is kept before it: what the library says of it must be true. */
struct block {
  size_t size;
  size_t pad;
};

static void *alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct help_api *t = user;
  struct block *b = p ? (struct block *)p - 1 : NULL;
  assert_true(b ? b->size == old_size : old_size == 0);
  if (new_size == 0) {
    t->live -= old_size;
    free(b);
    return NULL;
  }
  t->requests++;
  if (t->fail_at && (t->sticky ? t->requests >= t->fail_at : t->requests == t->fail_at))
    return NULL;
  if (new_size > SIZE_MAX / 2)
    return NULL;
  b = realloc(b, sizeof *b + new_size);
  if (!b)
    return NULL;
  b->size = new_size;
  t->live = t->live - old_size + new_size;
  return b + 1;
}

static void log_text(void *user, enum kiln_log_level level, const char *text) {
  static const char *const names[] = {"info", "warning", "error"};
  struct help_api *t = user;
  int n = snprintf(t->log + t->n_log, sizeof t->log - t->n_log, "%s: %s\n", names[level], text);
  if (n > 0)
    t->n_log = t->n_log + (size_t)n < sizeof t->log ? t->n_log + (size_t)n : sizeof t->log - 1;
}

static bool interrupted(void *user) {
  struct help_api *t = user;
  t->asked++;
  return t->stop_at && t->asked >= t->stop_at;
}

enum kiln_status help_api_restart(struct help_api *t, const struct kiln_context_options *options) {
  struct kiln_context_options o = options ? *options : (struct kiln_context_options){0};
  o.struct_size = sizeof o;
  o.alloc = alloc;
  o.log = log_text;
  o.interrupted = interrupted;
  o.alloc_user = o.log_user = o.interrupted_user = t;
  return kiln_context_new(&o, &t->ctx);
}

void help_api_start(struct help_api *t, const struct kiln_context_options *options) {
  memset(t, 0, sizeof *t);
  assert_int_equal(help_api_restart(t, options), KILN_OK);
}

void help_api_stop(struct help_api *t) {
  kiln_context_free(t->ctx);
  assert_int_equal(t->live, 0);
}

enum kiln_status help_api_try_load(struct help_api *t, const char *name, const char *text,
                                   struct kiln_file **out) {
  return kiln_file_load_text(t->ctx, name, text, strlen(text), NULL, out);
}

struct kiln_file *help_api_load(struct help_api *t, const char *name, const char *text) {
  struct kiln_file *file;
  help_api_expect(t, help_api_try_load(t, name, text, &file), KILN_OK, NULL);
  assert_non_null(file);
  return file;
}

struct kiln_request help_api_request(void) {
  return (struct kiln_request){.struct_size = sizeof(struct kiln_request), .case_index = -1};
}

struct kiln_variant *help_api_specialise(struct kiln_file *file, const struct kiln_request *req) {
  struct kiln_variant *v;
  assert_int_equal(kiln_specialise(file, req, &v), KILN_OK);
  return v;
}

bool help_api_matches(const char *text, const char *pattern) {
  regex_t re;
  assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
  bool found = regexec(&re, text, 0, NULL, 0) == 0;
  regfree(&re);
  return found;
}

void help_api_expect_at(struct help_api *t, enum kiln_status got, enum kiln_status want,
                        const char *says, const char *file, int line) {
  char text[16384];
  size_t n = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < kiln_diag_count(t->ctx) && n < sizeof text; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", kiln_diag_text(t->ctx, i));
  bool fits = says ? help_api_matches(text, says) : n == 0;
  if (got != want || !fits) {
    print_message("%s:%d: status %s, expected %s, with /%s/; diagnostics:\n%s", file, line,
                  kiln_status_name(got), kiln_status_name(want), says ? says : "nothing", text);
    _fail(file, line);
  }
  kiln_diag_clear(t->ctx);
}
