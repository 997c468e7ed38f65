/* 10^4 generated programs (10^5 with KILN_LONG=1; KILN_SEEDS, KILN_SEED: how many, from which),
 * each as it is and changed in every way that must not matter: printed and read again, each pass
 * alone, the pipeline, the pipeline with each pass skipped. What is compared is, by the seed,
 *   - on any bits in memory, every bit, in the rounded domain;
 *   - on small integers the same, with dots that are merged;
 *   - on payloads every bit, in the algebraic domain;
 *   - on reals, of programs that are polynomials, the rounded domain with the double one, within
 *     the a-priori bound (roundings times unit times the size of what is added up).
 * A program that fails is reduced before it is shown. */
#include "help_gen_ir.h"
#include "help_rt.h"
#include "help_run_ir.h"

#include "base/num.h"
#include "ir/passes.h"
#include "ir/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum mode { BITS, INTEGERS, PAYLOADS, REALS, MODES };
static const char *const mode_names[] = {"any bits", "integers", "payloads", "reals"};
static const enum hm_fill fills[] = {HM_BITS, HM_INTEGERS, HM_PAYLOADS, HM_REALS};

struct trial {
  enum mode mode;
  uint64_t seed;
  uint64_t runs, elements, skipped; /* done so far; REALS: elements compared, out of range */
  double worst;                     /* share of the bound */
};

static struct hm_memory first, other, size, steps;

/* ---- one program ---- */

/* Runs m; NULL, or what went wrong. */
static const char *run(struct trial *t, const struct ir_module *m, struct hm_memory *x,
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

/* Compares `other`, of a rounded run, with `first`, `size` and `steps`. */
static const char *within_bound(struct trial *t, const struct ir_module *m, struct arena *a) {
  double u = unit(m);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *arg = &m->args.at[i];
    const struct interp_tensor *x = &other.args[i].tensor;
    int64_t n = 1;
    for (uint32_t k = 0; k < x->rank; k++)
      n *= x->dim[k];
    for (int64_t k = 0; arg->kind == IR_ARG_OUT && k < n; k++) {
      if (!dtype_is_float(arg->dtype)) {
        if (!hm_same_elem(arg->dtype, first.bytes[i], other.bytes[i], k))
          return arena_printf(a, "integers differ: argument %s, element %lld", ir_sym(m, arg->name),
                              (long long)k);
        continue;
      }
      double exact = num_load(DT_F64, first.bytes[i], k),
             got = num_load(x->dtype, other.bytes[i], k);
      double terms = num_load(DT_F64, size.bytes[i], k);
      double rounded = num_load(DT_F64, steps.bytes[i], k) * u;
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
static const char *run_original(struct trial *t, const struct ir_module *m, struct arena *a) {
  enum interp_domain domain = t->mode == PAYLOADS ? INTERP_ALGEBRAIC : INTERP_ROUNDED;
  if (t->mode != REALS)
    return run(t, m, &first, fills[t->mode], domain, a);
  const char *why = run(t, m, &first, HM_WIDE, INTERP_DOUBLE, a);
  if (!why)
    why = run(t, hm_absolute(m, a), &size, HM_SIZES, INTERP_DOUBLE, a);
  return why ? why : run(t, hm_roundings(m, a), &steps, HM_ZEROS, INTERP_DOUBLE, a);
}

static const char *run_variant(struct trial *t, const struct ir_module *m,
                               const struct ir_module *variant, struct arena *a) {
  enum interp_domain domain = t->mode == PAYLOADS ? INTERP_ALGEBRAIC : INTERP_ROUNDED;
  const char *why = run(t, variant, &other, fills[t->mode], domain, a);
  if (why)
    return why;
  return t->mode == REALS ? within_bound(t, m, a) : hm_difference(m, &first, &other, a);
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

/* NULL, or what is wrong with a program; *what: which variant it is. */
static const char *judge(struct trial *t, const struct ir_module *m, struct arena *a,
                         const char **what) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  bool valid = ir_verify(m, &diags);
  const char *why = valid ? NULL : arena_strdup(a, help_last_message(&diags));
  diag_free(&diags);
  *what = "as it is";
  if (why || (why = run_original(t, m, a)))
    return why;
  *what = "printed and read";
  struct ir_module *again = round_trip(m, a, &why);
  if (why || (why = run_variant(t, m, again, a)))
    return why;
  uint32_t n;
  const struct ir_pass *all = ir_tile_pipeline(&n);
  for (uint32_t k = 0; k <= 2 * n; k++) { /* one alone, one skipped, none skipped */
    struct ir_module *v = passed(m, k < n ? k : 0, k < n ? k + 1 : n, k - n, a, &why);
    *what = k < n       ? arena_printf(a, "%s alone", all[k].name)
            : k < 2 * n ? arena_printf(a, "without %s", all[k - n].name)
                        : "the pipeline";
    struct strbuf how = {.arena = a};
    if (why || (!ir_equal(m, v, &how) && (why = run_variant(t, m, v, a))))
      return why;
  }
  return NULL;
}

/* ---- a find, made smaller ---- */

struct find {
  struct trial trial;
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
  bool same = m && judge(&f->trial, m, &h.arena, &what) && strcmp(what, f->what) == 0;
  diag_free(&diags);
  arena_free(&h.arena);
  return same;
}

static void show(const struct trial *t, const struct ir_module *m, const char *what,
                 const char *why, struct arena *a) {
  struct find f = {*t, what};
  struct ir_reduce_options opt = {.fails = fails_alike, .user = &f};
  size_t n;
  const char *text = hm_text(m, a), *small = ir_reduce(a, text, strlen(text), &opt, &n);
  fail_msg("seed %llu, on %s, %s: %s\nreduced:\n%.*s", (unsigned long long)t->seed,
           mode_names[t->mode], what, why, (int)n, small);
}

/* ---- all ---- */

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *s = getenv(name);
  return s ? strtoull(s, NULL, 0) : otherwise;
}

static uint64_t how_many(void) {
  const char *longer = getenv("KILN_LONG");
  uint64_t n = longer && strcmp(longer, "1") == 0 ? 100000 : 10000;
#if defined KILN_STRESS || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
  n /= 10; /* they make it slow: the other builds run all */
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  n /= 10;
#endif
#endif
  return setting("KILN_SEEDS", n);
}

static void test_generated(void **state) {
  (void)state;
  static uint32_t counts[IR_OPCODE_COUNT];
  uint64_t seed = setting("KILN_SEED", 1), end = seed + how_many(), runs[MODES] = {0};
  uint64_t elements = 0, skipped = 0;
  double worst = 0;
  for (; seed < end; seed++) {
    struct help_arena h;
    help_arena_init(&h);
    struct trial t = {.mode = (enum mode)(seed % MODES), .seed = seed};
    struct gen_ir g = {.seed = seed,
                       .n_ops = 20 + (uint32_t)(seed / MODES % 60),
                       .max_depth = 3,
                       .plain_dots = t.mode == BITS,
                       .exact_dots = t.mode == INTEGERS};
    if (t.mode == REALS)
      g.smooth = seed / MODES % 3 ? GEN_SMOOTH_F32 : GEN_SMOOTH_BF16;
    struct ir_module *m = gen_ir(&h.arena, &g);
    const char *what, *why = judge(&t, m, &h.arena, &what);
    if (why)
      show(&t, m, what, why, &h.arena);
    for (uint32_t i = 0; i < IR_OPCODE_COUNT; i++)
      counts[i] += g.count[i];
    runs[t.mode] += t.runs;
    elements += t.elements;
    skipped += t.skipped;
    worst = t.worst > worst ? t.worst : worst;
    arena_free(&h.arena);
  }
  for (uint32_t i = 0; i < MODES; i++)
    printf("%llu runs on %s, ", (unsigned long long)runs[i], mode_names[i]);
  printf("%llu reals compared, %llu out of range, at most %.0f%% of the bound\n",
         (unsigned long long)elements, (unsigned long long)skipped, 100 * worst);
  assert_true(elements > 10 * skipped && worst > 0);
  for (unsigned o = 1; o < IR_OPCODE_COUNT && how_many() >= 1000; o++)
    if (ir_info((enum ir_opcode)o)->stages >> IR_TILE_STAGE & 1 && counts[o] < 20)
      fail_msg("`%s` was made %u times", ir_info((enum ir_opcode)o)->name, counts[o]);
}

/* The a-priori bound is one: of known polynomials the error is within it, and a result that is off
 * by more is seen. */
static void test_bound(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  struct trial t = {.mode = REALS, .seed = 3};
  struct gen_ir g = {.seed = 3, .n_ops = 60, .max_depth = 2, .smooth = GEN_SMOOTH_F32};
  struct ir_module *m = gen_ir(&h.arena, &g);
  assert_null(run_original(&t, m, &h.arena));
  assert_null(run_variant(&t, m, m, &h.arena));
  assert_true(t.elements > 0);
  bool seen = false;
  for (uint32_t i = 0; i < m->args.n && !seen; i++)
    for (int64_t k = 0;
         m->args.at[i].kind == IR_ARG_OUT && m->args.at[i].dtype == DT_F32 && k < 4096 && !seen;
         k++) {
      double x = num_load(DT_F32, other.bytes[i], k), terms = num_load(DT_F64, size.bytes[i], k);
      if (!(terms > 0.1 && terms < 1e20))
        continue;
      num_store(DT_F32, other.bytes[i], k, x + 1e-2 * terms);
      seen = within_bound(&t, m, &h.arena) != NULL;
      num_store(DT_F32, other.bytes[i], k, x);
    }
  assert_true(seen);
  assert_null(within_bound(&t, m, &h.arena));
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bound),
      cmocka_unit_test(test_generated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
