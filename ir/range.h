/* What is known of launch expressions and index scalars: divisors, signs, and whether a tile lies
 * inside its view. Everything rests on the module's facts, which become launch checks.
 *
 * A divisor of 0 means "0, divisible by everything"; unknown is 1. */
#ifndef KILN_IR_RANGE_H
#define KILN_IR_RANGE_H

#include "ir/ir.h"

/* What a body argument of the tile stages stands for. */
struct ir_entry {
  enum { IR_ENTRY_NONE, IR_ENTRY_ARG, IR_ENTRY_DIM, IR_ENTRY_GRID } kind;
  uint32_t index; /* into module->args, ->dims, ->grid */
};
struct ir_entry ir_entry_of(const struct ir_module *m, struct ir_val v);
/* The body argument of module argument `arg`, which must be present. */
struct ir_val ir_entry_arg(const struct ir_module *m, uint32_t arg);

/* "A.stride0" and the like of an argument. */
struct expr ir_arg_expr(struct ir_module *m, uint32_t arg, const char *property, int dim);
/* Elements between coordinates of a dim, and what divides the address in bytes: of a scratch tensor
 * too, which the launch lays out row-major, aligned to IR_SCRATCH_ALIGN. */
#define IR_SCRATCH_ALIGN 256
struct expr ir_arg_stride(struct ir_module *m, uint32_t arg, uint32_t dim);
int64_t ir_arg_alignment(struct ir_module *m, uint32_t arg);
/* The size of a dim of a view as a launch expression, or {0} where it is none. */
struct expr ir_view_size(struct ir_module *m, struct ir_val view, uint32_t axis);

int64_t ir_gcd(int64_t a, int64_t b);
/* The largest power of two that divides d, at most `most` (a power of two). */
int64_t ir_pow2_divisor(int64_t d, int64_t most);

/* Launch expressions under the module's facts. */
bool ir_expr_value(const struct ir_module *m, struct expr e, int64_t *value);
int64_t ir_sym_divisor(const struct ir_module *m, struct sym s);
int64_t ir_expr_divisor(const struct ir_module *m, struct expr e);

/* Index scalars of a tile-stage body. */
bool ir_val_const(const struct ir_module *m, struct ir_val v, int64_t *value);
/* The value as a launch expression, or {0} where it is none (a loop or grid index enters it). */
struct expr ir_val_expr(struct ir_module *m, struct ir_val v);
int64_t ir_val_divisor(struct ir_module *m, struct ir_val v);
bool ir_val_is_nonneg(struct ir_module *m, struct ir_val v);
/* v = base * scale + plus, where base is a grid or loop index, or 0: nothing; false: not known to
 * be. */
bool ir_val_linear(const struct ir_module *m, struct ir_val v, struct ir_val *base, int64_t *scale,
                   int64_t *plus);
/* Is offset + extent <= dim for every value the offset takes? */
bool ir_val_fits(struct ir_module *m, struct ir_val offset, int64_t extent, struct expr dim);
/* The for op in whose iterations, the last one aside, that holds; 0: not known of any. */
struct ir_op ir_val_fits_but_last(struct ir_module *m, struct ir_val offset, int64_t extent,
                                  struct expr dim);
/* The for op whose index v is, or 0. */
struct ir_op ir_loop_of_index(const struct ir_module *m, struct ir_val v);

#endif
