/* What no pass and no printing may change of a module, checked by running it: as it is, printed and
 * read again, each pass alone, the pipeline, the pipeline with each pass skipped. What is compared:
 *   BITS      any bits in memory; every bit, in the rounded domain
 *   INTEGERS  small integers; the same
 *   PAYLOADS  every bit, in the algebraic domain
 *   REALS     of smooth modules (help_gen_ir.h): the rounded domain with the double one, within the
 *             a-priori bound, roundings times unit times the size of what is added up */
#ifndef KILN_TESTS_HELP_JUDGE_IR_H
#define KILN_TESTS_HELP_JUDGE_IR_H

#include "help_run_ir.h"

enum hj_mode { HJ_BITS, HJ_INTEGERS, HJ_PAYLOADS, HJ_REALS, HJ_MODES };
extern const char *const hj_mode_names[HJ_MODES];

struct hj_trial {
  enum hj_mode mode;
  uint64_t seed;                    /* of what is in memory */
  uint64_t runs, elements, skipped; /* done so far; REALS: elements compared, out of range */
  double worst;                     /* share of the bound */
};

/* NULL, or what is wrong; *what: with which variant. */
const char *hj_judge(struct hj_trial *t, const struct ir_module *m, struct arena *a,
                     const char **what);
/* Reduces a module that hj_judge finds at fault, and fails with it. */
void hj_show(const struct hj_trial *t, const struct ir_module *m, const char *what, const char *why,
             struct arena *a);

/* REALS: where `got` of a run leaves the bound around what the original's runs gave; for tests of
 * the bound itself. hj_original runs the module. */
struct hj_memories {
  struct hm_memory first, other, size, steps;
};
extern struct hj_memories hj_mem;
const char *hj_original(struct hj_trial *t, const struct ir_module *m, struct arena *a);
const char *hj_variant(struct hj_trial *t, const struct ir_module *m,
                       const struct ir_module *variant, struct arena *a);
const char *hj_within_bound(struct hj_trial *t, const struct ir_module *m, struct arena *a);

#endif
