/* The pass runner: what happens around a pass, so that no pass does it itself.
 *
 * verify, then for each pass: run, verify, and as the debug text asks: print, print-parse-compare,
 * go on with a clone, time. A pass that leaves an invalid module, or changes it without saying so,
 * is reported as an internal error with the module as text, findings beside the ops. */
#include "ir/passes.h"
#include "ir/verify.h"

#include <string.h>
#include <time.h>

#define MAX_SKIPS 16

struct modes {
  bool print_all, roundtrip, clone, timing;
  const char *print_after; /* a pass's name; with its length: the text is not cut up */
  size_t n_print_after;
  const char *stop_after;
  size_t n_stop_after;
  const char *skip[MAX_SKIPS];
  size_t n_skip[MAX_SKIPS];
  uint32_t skips;
};

struct run {
  struct ir_module *m;
  const struct ir_pass *passes;
  uint32_t n;
  struct diag_sink *diags;
  const struct ir_run_options *opt;
  struct modes modes;
  struct arena *scratch;
  bool ok;
};

static bool value_of(const char *s, size_t n, const char *key, const char **value, size_t *len) {
  size_t k = strlen(key);
  if (n <= k || memcmp(s, key, k) != 0)
    return false;
  *value = s + k;
  *len = n - k;
  return true;
}

static bool is(const char *s, size_t n, const char *name) {
  return s && strlen(name) == n && memcmp(s, name, n) == 0;
}

static bool read_modes(struct run *r) {
  struct modes *o = &r->modes;
  for (const char *s = r->opt && r->opt->debug ? r->opt->debug : ""; *s;) {
    size_t n = strcspn(s, ",");
    const char *value;
    size_t len;
    if (value_of(s, n, "print:after=", &value, &len)) {
      o->print_all = o->print_all || is(value, len, "all");
      o->print_after = value;
      o->n_print_after = len;
    } else if (is(s, n, "roundtrip")) {
      o->roundtrip = true;
    } else if (is(s, n, "clone")) {
      o->clone = true;
    } else if (is(s, n, "timing")) {
      o->timing = true;
    } else if (value_of(s, n, "skip=", &value, &len) && o->skips < MAX_SKIPS) {
      o->skip[o->skips] = value;
      o->n_skip[o->skips++] = len;
    } else if (value_of(s, n, "stop-after=", &value, &len)) {
      o->stop_after = value;
      o->n_stop_after = len;
    } else if (n) {
      diag_report(r->diags, DIAG_ERROR, DIAG_USAGE, DIAG_NOWHERE,
                  "`%.*s` is no IR debug mode; there are print:after=PASS|all, roundtrip, clone, "
                  "skip=PASS (at most %d), stop-after=PASS, timing",
                  (int)(n < 60 ? n : 60), s, MAX_SKIPS);
      return false;
    }
    s += n + (s[n] == ',');
  }
  return true;
}

static void dump(const struct run *r, const char *text) {
  if (r->opt && r->opt->dump)
    r->opt->dump(r->opt->user, text);
}

static uint32_t count_ops(const struct ir_module *m) {
  uint32_t n = 0;
  for (uint32_t i = 1; i < m->ops.n; i++)
    n += m->ops.at[i].block.id != 0;
  return n;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* "pass `x` ...: text", an internal error, with the module below. */
static void blame(const struct run *r, const char *pass, const char *what, const char *why,
                  const struct ir_notes *notes) {
  struct strbuf text = {.arena = r->scratch};
  ir_print_notes(r->m, (struct ir_print_options){0}, notes, &text);
  diag_report(r->diags, DIAG_ERROR, DIAG_INTERNAL, DIAG_NOWHERE, "pass `%s` %s%s%s", pass, what,
              *why ? ": " : "", why);
  diag_note(r->diags, DIAG_NOWHERE, "the module after it:\n%s", sb_str(&text));
}

static bool verify_after(const struct run *r, const char *pass) {
  struct ir_notes notes = {.arena = r->scratch};
  if (ir_verify_notes(r->m, r->diags, &notes))
    return true;
  blame(r, pass, "left an invalid module", "", &notes);
  return false;
}

/* print, parse, compare; print again, compare the texts. */
static bool check_round_trip(const struct run *r, const char *pass) {
  struct strbuf text = {.arena = r->scratch}, again = {.arena = r->scratch};
  struct strbuf why = {.arena = r->scratch};
  ir_print(r->m, (struct ir_print_options){0}, &text);
  struct ir_module *m = ir_parse(r->scratch, r->diags, 0, sb_str(&text), text.n);
  bool same = m && ir_equal(r->m, m, &why);
  if (same) {
    ir_print(m, (struct ir_print_options){0}, &again);
    same = text.n == again.n && memcmp(text.s, again.s, text.n) == 0;
    if (!same)
      sb_puts(&why, "it prints otherwise");
  }
  if (!same)
    blame(r, pass, "left a module whose text does not give it back", sb_str(&why), NULL);
  return same;
}

static bool check_honest(const struct run *r, const char *pass, const struct ir_module *before) {
  struct strbuf why = {.arena = r->scratch};
  if (ir_equal(before, r->m, &why))
    return true;
  blame(r, pass, "changed the module without saying so", sb_str(&why), NULL);
  return false;
}

static bool is_skipped(const struct modes *o, const char *name) {
  for (uint32_t i = 0; i < o->skips; i++)
    if (is(o->skip[i], o->n_skip[i], name))
      return true;
  return false;
}

static bool run_pass(struct run *r, const struct ir_pass *pass) {
  const struct modes *o = &r->modes;
  struct ir_module *m = r->m;
  bool changed = false;
  uint32_t errors = r->diags->n_errors, ops = o->timing ? count_ops(m) : 0;
  const struct ir_module *before = o->roundtrip ? ir_clone(m, r->scratch) : NULL;
  struct ir_pass_ctx ctx = {r->diags, r->scratch};
  double start = o->timing ? now_us() : 0;
  bool ok = pass->fn(m, &ctx, &changed);
  double spent = o->timing ? now_us() - start : 0;
  if (!ok && r->diags->n_errors == errors)
    blame(r, pass->name, "failed without a reason", "", NULL);
  if (!ok)
    return false;
  if (!verify_after(r, pass->name) ||
      (o->roundtrip && !changed && !check_honest(r, pass->name, before)) ||
      (o->roundtrip && !check_round_trip(r, pass->name)))
    return false;
  if (o->clone)
    *m = *ir_clone(m, m->arena);
  if (o->timing) {
    struct strbuf line = {.arena = r->scratch};
    sb_printf(&line, "; %s: %.1f us, %u ops before, %u after\n", pass->name, spent, ops,
              count_ops(m));
    dump(r, sb_str(&line));
  }
  if (o->print_all || is(o->print_after, o->n_print_after, pass->name)) {
    struct strbuf text = {.arena = r->scratch};
    sb_printf(&text, "; after %s\n", pass->name);
    ir_print(m, (struct ir_print_options){.names = true}, &text);
    dump(r, sb_str(&text));
  }
  return true;
}

static void run_all(void *user) {
  struct run *r = user;
  const struct modes *o = &r->modes;
  r->scratch->trap = r->m->arena->trap;
  r->ok = ir_verify(r->m, r->diags);
  for (uint32_t i = 0; r->ok && i < r->n; i++) {
    const struct ir_pass *pass = &r->passes[i];
    struct arena_mark mark = arena_get_mark(r->scratch);
    if (!is_skipped(o, pass->name))
      r->ok = run_pass(r, pass);
    arena_reset(r->scratch, mark);
    if (is(o->stop_after, o->n_stop_after, pass->name))
      break;
  }
}

bool ir_run_passes(struct ir_module *m, const struct ir_pass *passes, uint32_t n,
                   struct diag_sink *diags, const struct ir_run_options *opt) {
  struct arena scratch;
  struct run r = {.m = m, .passes = passes, .n = n, .diags = diags, .opt = opt};
  if (!read_modes(&r))
    return false;
  arena_init(&scratch, m->arena->mem, m->arena->trap);
  r.scratch = &scratch;
  /* If memory runs out the scratch memory must go before the caller's trap is taken. */
  bool had_memory = arena_guard(m->arena, run_all, &r);
  arena_free(&scratch);
  if (!had_memory)
    arena_get(m->arena, SIZE_MAX);
  return r.ok;
}

const struct ir_pass *ir_tile_pipeline(uint32_t *n) {
  static const struct ir_pass passes[] = {
#define PASS(id, text, why) {text, ir_pass_##id, true},
#include "ir/passes.def"
  };
  *n = sizeof passes / sizeof passes[0];
  return passes;
}
