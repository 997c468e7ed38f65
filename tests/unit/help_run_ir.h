/* Runs generated modules (help_gen_ir.h) in the interpreter and compares what they leave in memory.
 */
#ifndef KILN_TESTS_HELP_RUN_IR_H
#define KILN_TESTS_HELP_RUN_IR_H

#include "ir/interp.h"

enum { HM_MAX_ARGS = 16, HM_MAX_BYTES = 512 * 8 * 8 };

struct hm_memory {
  struct interp_arg args[HM_MAX_ARGS];
  unsigned char bytes[HM_MAX_ARGS][HM_MAX_BYTES];
};

void hm_print_diags(const struct diag_sink *d);
const char *hm_text(const struct ir_module *m, struct arena *a);
/* What float tensors of the arguments hold, and as what. */
enum hm_fill {
  HM_INTEGERS, /* small, so that sums are exact whatever their order */
  HM_BITS,     /* any bits, special values among them */
  HM_PAYLOADS, /* for the algebraic domain: random s64 */
  HM_REALS,    /* between -2 and 2, rounded to the dtype */
  HM_SIZES,    /* the absolute values of those, float outputs as f64 */
  HM_WIDE,     /* those, float outputs as f64 */
  HM_ZEROS     /* zeros, float outputs as f64; integers as in the three before */
};

/* Arguments: M = 7, N = 9. */
void hm_fill(const struct ir_module *m, struct hm_memory *x, uint64_t seed, enum hm_fill how);
bool hm_run(const struct ir_module *m, struct hm_memory *x, enum interp_domain domain,
            struct diag_sink *diags);
/* Equal bits, or both NaN: which NaN is not promised. */
bool hm_same_elem(enum dtype t, const void *x, const void *y, int64_t i);
/* Where the memories differ first: a line of text in `a`, or NULL. */
const char *hm_difference(const struct ir_module *m, const struct hm_memory *x,
                          const struct hm_memory *y, struct arena *a);

/* Of a smooth module (help_gen_ir.h). Its absolute values: the same with every float term positive;
 * run on HM_SIZES in DOUBLE its outputs bound the terms that were added up. Its roundings: outputs,
 * on HM_ZEROS in DOUBLE, count how many roundings a term can have gone through. Together they give
 * the a-priori bound on |rounded - exact|, roundings * unit * size. */
struct ir_module *hm_absolute(const struct ir_module *m, struct arena *a);
struct ir_module *hm_roundings(const struct ir_module *m, struct arena *a);

#endif
