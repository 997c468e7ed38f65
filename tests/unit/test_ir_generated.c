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
#include "help_judge_ir.h"
#include "help_rt.h"

#include "base/num.h"

#include <stdlib.h>

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
  uint64_t seed = setting("KILN_SEED", 1), end = seed + how_many(), runs[HJ_MODES] = {0};
  uint64_t elements = 0, skipped = 0;
  double worst = 0;
  for (; seed < end; seed++) {
    struct help_arena h;
    help_arena_init(&h);
    struct hj_trial t = {.mode = (enum hj_mode)(seed % HJ_MODES), .seed = seed};
    struct gen_ir g = {.seed = seed,
                       .n_ops = 20 + (uint32_t)(seed / HJ_MODES % 60),
                       .max_depth = 3,
                       .plain_dots = t.mode == HJ_BITS,
                       .exact_dots = t.mode == HJ_INTEGERS,
                       .varying = t.mode == HJ_PAYLOADS};
    if (t.mode == HJ_REALS)
      g.smooth = seed / HJ_MODES % 3 ? GEN_SMOOTH_F32 : GEN_SMOOTH_BF16;
    struct ir_module *m = gen_ir(&h.arena, &g);
    const char *what, *why = hj_judge(&t, m, &h.arena, &what);
    if (why)
      hj_show(&t, m, what, why, &h.arena);
    for (uint32_t i = 0; i < IR_OPCODE_COUNT; i++)
      counts[i] += g.count[i];
    runs[t.mode] += t.runs;
    elements += t.elements;
    skipped += t.skipped;
    worst = t.worst > worst ? t.worst : worst;
    arena_free(&h.arena);
  }
  for (uint32_t i = 0; i < HJ_MODES; i++)
    printf("%llu runs on %s, ", (unsigned long long)runs[i], hj_mode_names[i]);
  printf("%llu reals compared, %llu out of range, at most %.0f%% of the bound\n",
         (unsigned long long)elements, (unsigned long long)skipped, 100 * worst);
  assert_true(elements > 10 * skipped && worst > 0);
  for (unsigned o = 1; o < IR_OPCODE_COUNT && how_many() >= 1000; o++)
    if (ir_info((enum ir_opcode)o)->stages >> IR_TILE_STAGE & 1 && counts[o] < 20)
      fail_msg("`%s` was made %u times", ir_info((enum ir_opcode)o)->name, counts[o]);
}

/* Is an output of the module, changed by more than the bound, seen to be? */
static bool is_seen(struct hj_trial *t, const struct ir_module *m, struct arena *a) {
  for (uint32_t i = 0; i < m->args.n; i++)
    for (int64_t k = 0;
         m->args.at[i].kind == IR_ARG_OUT && m->args.at[i].dtype == DT_F32 && k < 4096; k++) {
      double x = num_load(DT_F32, hj_mem.other.bytes[i], k),
             terms = num_load(DT_F64, hj_mem.size.bytes[i], k);
      if (!(terms > 0.1 && terms < 1e20))
        continue;
      num_store(DT_F32, hj_mem.other.bytes[i], k, x + 1e-2 * terms);
      bool seen = hj_within_bound(t, m, a) != NULL;
      num_store(DT_F32, hj_mem.other.bytes[i], k, x);
      if (seen)
        return true;
    }
  return false;
}

/* The a-priori bound is one: of known polynomials the error is within it, and a result that is off
 * by more is seen, if a module has one that is not a cancelled sum: most do. */
static void test_bound(void **state) {
  (void)state;
  unsigned seen = 0;
  for (uint64_t seed = 3; seed < 8; seed++) {
    struct help_arena h;
    help_arena_init(&h);
    struct hj_trial t = {.mode = HJ_REALS, .seed = seed};
    struct gen_ir g = {.seed = seed, .n_ops = 60, .max_depth = 2, .smooth = GEN_SMOOTH_F32};
    struct ir_module *m = gen_ir(&h.arena, &g);
    assert_null(hj_original(&t, m, &h.arena));
    assert_null(hj_variant(&t, m, m, &h.arena));
    assert_true(t.elements > 0);
    seen += is_seen(&t, m, &h.arena);
    assert_null(hj_within_bound(&t, m, &h.arena));
    arena_free(&h.arena);
  }
  assert_true(seen >= 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bound),
      cmocka_unit_test(test_generated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
