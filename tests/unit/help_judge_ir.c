/* See help_judge_ir.h. */
#include "help_judge_ir.h"

#include "help_rt.h"

#include "base/num.h"
#include "ir/passes.h"
#include "ir/reduce.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

const char *const hj_mode_names[] = {"any bits", "integers", "payloads", "reals"};
static const enum hm_fill fills[] = {HM_BITS, HM_INTEGERS, HM_PAYLOADS, HM_REALS};

struct hj_memories hj_mem;

/* ---- one program ---- */

/* Runs m; NULL, or what went wrong. */
static const char *run(struct hj_trial *t, const struct ir_module *m, struct hm_memory *x,
                       enum hm_fill fill, enum interp_domain domain, struct arena *a) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  hm_fill(m, x, t->seed, fill);
  const char *why = NULL;
  if (!hm_run(m, x, domain, &diags))
    why = arena_strdup(a, help_last_message(&diags));
  diag_free(&diags);
  t->runs++;
  return why;
}

/* The larger of the units of what m computes in. */
static double unit(const struct ir_module *m) {
  double u = 0x1p-53;
  for (uint32_t i = 1; i < m->values.n; i++) {
    enum dtype d = (enum dtype)m->values.at[i].type.dtype;
    double x = d == DT_BF16 ? 0x1.02p-8 : d == DT_F32 ? 0x1p-24 : 0;
    u = x > u ? x : u;
  }
  return u;
}

const char *hj_within_bound(struct hj_trial *t, const struct ir_module *m, struct arena *a) {
  double u = unit(m);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *arg = &m->args.at[i];
    const struct interp_tensor *x = &hj_mem.other.args[i].tensor;
    int64_t n = 1;
    for (uint32_t k = 0; k < x->rank; k++)
      n *= x->dim[k];
    for (int64_t k = 0; arg->kind == IR_ARG_OUT && k < n; k++) {
      if (!dtype_is_float(arg->dtype)) {
        if (!hm_same_elem(arg->dtype, hj_mem.first.bytes[i], hj_mem.other.bytes[i], k))
          return arena_printf(a, "integers differ: argument %s, element %lld", ir_sym(m, arg->name),
                              (long long)k);
        continue;
      }
      double exact = num_load(DT_F64, hj_mem.first.bytes[i], k),
             got = num_load(x->dtype, hj_mem.other.bytes[i], k);
      double terms = num_load(DT_F64, hj_mem.size.bytes[i], k);
      double rounded = num_load(DT_F64, hj_mem.steps.bytes[i], k) * u;
      if (rounded == 0 && exact == 0 && terms == 0)
        continue; /* not written, or nothing there */
      if (!(terms < 1e30) || rounded > 0.1) {
        t->skipped++;
        continue;
      }
      double bound = rounded / (1 - rounded) * terms + 1e-36, error = fabs(got - exact);
      t->elements++;
      t->worst = error / bound > t->worst ? error / bound : t->worst;
      if (!(error <= bound))
        return arena_printf(a,
                            "argument %s, element %lld: %.17g rounded, %.17g exact; the bound is "
                            "%g",
                            ir_sym(m, arg->name), (long long)k, got, exact, bound);
    }
  }
  return NULL;
}

/* What m must agree with, into `first` (and `size`, `steps`). */
const char *hj_original(struct hj_trial *t, const struct ir_module *m, struct arena *a) {
  enum interp_domain domain = t->mode == HJ_PAYLOADS ? INTERP_ALGEBRAIC : INTERP_ROUNDED;
  if (t->mode != HJ_REALS)
    return run(t, m, &hj_mem.first, fills[t->mode], domain, a);
  const char *why = run(t, m, &hj_mem.first, HM_WIDE, INTERP_DOUBLE, a);
  if (!why)
    why = run(t, hm_absolute(m, a), &hj_mem.size, HM_SIZES, INTERP_DOUBLE, a);
  return why ? why : run(t, hm_roundings(m, a), &hj_mem.steps, HM_ZEROS, INTERP_DOUBLE, a);
}

const char *hj_variant(struct hj_trial *t, const struct ir_module *m,
                       const struct ir_module *variant, struct arena *a) {
  enum interp_domain domain = t->mode == HJ_PAYLOADS ? INTERP_ALGEBRAIC : INTERP_ROUNDED;
  const char *why = run(t, variant, &hj_mem.other, fills[t->mode], domain, a);
  if (why)
    return why;
  return t->mode == HJ_REALS ? hj_within_bound(t, m, a)
                             : hm_difference(m, &hj_mem.first, &hj_mem.other, a);
}

/* The module read from its text, equal and printing the same; NULL: not so, *why says how. */
static struct ir_module *round_trip(const struct ir_module *m, struct arena *a, const char **why) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  const char *text = hm_text(m, a);
  struct ir_module *again = ir_parse(a, &diags, 0, text, strlen(text));
  struct strbuf how = {.arena = a};
  *why = NULL;
  if (!again)
    *why = arena_printf(a, "its text is not read: %s", help_last_message(&diags));
  else if (!ir_equal(m, again, &how))
    *why = arena_printf(a, "its text gives another module: %s", sb_str(&how));
  else if (strcmp(text, hm_text(again, a)) != 0)
    *why = "its text, read and printed, is another";
  diag_free(&diags);
  return *why ? NULL : again;
}

/* After passes [from, to) of the pipeline without number `skip`. */
static struct ir_module *passed(const struct ir_module *m, uint32_t from, uint32_t to,
                                uint32_t skip, struct arena *a, const char **why) {
  uint32_t n, k = 0;
  const struct ir_pass *all = ir_tile_pipeline(&n);
  struct ir_pass some[16];
  for (uint32_t i = from; i < to; i++)
    if (i != skip)
      some[k++] = all[i];
  struct diag_sink diags;
  assert_true(n <= COUNT(some) && diag_init(&diags, &mem_libc));
  struct ir_module *copy = ir_clone(m, a);
  *why = NULL;
  if (!ir_run_passes(copy, some, k, &diags, NULL))
    *why = arena_strdup(a, help_last_message(&diags));
  diag_free(&diags);
  return copy;
}

const char *hj_judge(struct hj_trial *t, const struct ir_module *m, struct arena *a,
                     const char **what) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  bool valid = ir_verify(m, &diags);
  const char *why = valid ? NULL : arena_strdup(a, help_last_message(&diags));
  diag_free(&diags);
  *what = "as it is";
  if (why || (why = hj_original(t, m, a)))
    return why;
  *what = "printed and read";
  struct ir_module *again = round_trip(m, a, &why);
  if (why || (why = hj_variant(t, m, again, a)))
    return why;
  uint32_t n;
  const struct ir_pass *all = ir_tile_pipeline(&n);
  for (uint32_t k = 0; k <= 2 * n; k++) { /* one alone, one skipped, none skipped */
    struct ir_module *v = passed(m, k < n ? k : 0, k < n ? k + 1 : n, k - n, a, &why);
    *what = k < n       ? arena_printf(a, "%s alone", all[k].name)
            : k < 2 * n ? arena_printf(a, "without %s", all[k - n].name)
                        : "the pipeline";
    struct strbuf how = {.arena = a};
    if (why || (!ir_equal(m, v, &how) && (why = hj_variant(t, m, v, a))))
      return why;
  }
  return NULL;
}

/* ---- a find, made smaller ---- */

struct find {
  struct hj_trial trial;
  const char *what;
};

static bool fails_alike(void *user, const char *text, size_t n) {
  struct find *f = user;
  struct help_arena h;
  help_arena_init(&h);
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  const char *what = "";
  struct ir_module *m = ir_parse(&h.arena, &diags, 0, text, n);
  bool same = m && hj_judge(&f->trial, m, &h.arena, &what) && strcmp(what, f->what) == 0;
  diag_free(&diags);
  arena_free(&h.arena);
  return same;
}

void hj_show(const struct hj_trial *t, const struct ir_module *m, const char *what, const char *why,
             struct arena *a) {
  struct find f = {*t, what};
  struct ir_reduce_options opt = {.fails = fails_alike, .user = &f};
  size_t n;
  const char *text = hm_text(m, a), *small = ir_reduce(a, text, strlen(text), &opt, &n);
  fail_msg("seed %llu, on %s, %s: %s\nreduced:\n%.*s", (unsigned long long)t->seed,
           hj_mode_names[t->mode], what, why, (int)n, small);
}
