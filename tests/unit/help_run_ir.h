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
/* Arguments: M = 7, N = 9; small integers, so that sums are exact whatever their order, or any
 * bits. */
void hm_fill(const struct ir_module *m, struct hm_memory *x, uint64_t seed, bool integers);
bool hm_run(const struct ir_module *m, struct hm_memory *x, struct diag_sink *diags);
/* Equal bits, or both NaN: which NaN is not promised. */
bool hm_same_elem(enum dtype t, const void *x, const void *y, int64_t i);
/* Fails, with both texts, where the memories differ. */
void hm_compare(const struct ir_module *before, const struct ir_module *after,
                const struct hm_memory *x, const struct hm_memory *y, uint64_t seed,
                struct arena *a);

#endif
