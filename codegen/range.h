/* What is known of launch expressions and index scalars: divisors, signs, and whether a tile lies
 * inside its view. Everything rests on the module's facts, which become launch checks.
 *
 * A divisor of 0 means "0, divisible by everything"; unknown is 1. */
#ifndef KILN_CODEGEN_RANGE_H
#define KILN_CODEGEN_RANGE_H

#include "ir/ir.h"

/* What a body argument of the tile stages stands for. */
struct cg_entry {
  enum { CG_ENTRY_NONE, CG_ENTRY_ARG, CG_ENTRY_DIM, CG_ENTRY_GRID } kind;
  uint32_t index; /* into module->args, ->dims, ->grid */
};
struct cg_entry cg_entry_of(const struct ir_module *m, struct ir_val v);
/* The body argument of module argument `arg`, which must be present. */
struct ir_val cg_entry_arg(const struct ir_module *m, uint32_t arg);

/* "A.stride0" and the like of an argument. */
struct expr cg_arg_expr(struct ir_module *m, uint32_t arg, const char *property, int dim);

int64_t cg_gcd(int64_t a, int64_t b);
/* The largest power of two that divides d, at most `most` (a power of two). */
int64_t cg_pow2_divisor(int64_t d, int64_t most);

/* Launch expressions under the module's facts. */
bool cg_expr_value(const struct ir_module *m, struct expr e, int64_t *value);
int64_t cg_expr_divisor(const struct ir_module *m, struct expr e);

/* Index scalars of a tile-stage body. */
bool cg_val_const(const struct ir_module *m, struct ir_val v, int64_t *value);
/* The value as a launch expression, or {0} where it is none (a loop or grid index enters it). */
struct expr cg_val_expr(struct ir_module *m, struct ir_val v);
int64_t cg_val_divisor(struct ir_module *m, struct ir_val v);
bool cg_val_is_nonneg(struct ir_module *m, struct ir_val v);
/* Is offset + extent <= dim for every value the offset takes? */
bool cg_val_fits(struct ir_module *m, struct ir_val offset, int64_t extent, struct expr dim);

#endif
