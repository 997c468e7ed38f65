/* Between which numbers every integer value of a module lies, and what divides it: for scalars and,
 * over all elements, tiles of integer, bool and index types.
 *
 * What is said holds whenever the value is computed in a run that keeps the rules: index arithmetic
 * does not overflow 64 bits, steps of loops are positive, facts hold. Computed once, in one walk;
 * loops are walked until nothing changes, with bounds that keep moving given up. */
#ifndef KILN_IR_INTERVAL_H
#define KILN_IR_INTERVAL_H

#include "ir/ir.h"

struct ir_interval {
  int64_t lo, hi; /* INT64_MIN, INT64_MAX: no bound known */
  int64_t div;    /* divides the value; 0: the value is 0 */
};

struct ir_intervals {
  const struct ir_module *m;
  uint32_t n;
  struct ir_interval *of; /* by value; others than integers: no bounds, divisor 1 */
};

struct ir_intervals *ir_find_intervals(const struct ir_module *m, struct arena *a);
static inline struct ir_interval ir_interval_of(const struct ir_intervals *r, struct ir_val v) {
  return r->of[v.id];
}
/* All values of the dtype. */
struct ir_interval ir_interval_all(enum dtype t);
/* A launch expression under the module's facts; dims are not negative. */
struct ir_interval ir_interval_of_expr(const struct ir_module *m, struct expr e);

#endif
