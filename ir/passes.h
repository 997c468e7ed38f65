/* The target-independent passes and what they share. */
#ifndef KILN_IR_PASSES_H
#define KILN_IR_PASSES_H

#include "ir/ir.h"

#define PASS(id, text, why)                                                                        \
  bool ir_pass_##id(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed);
#include "ir/passes.def"

/* fold.c: a constant scalar, or the one value of all elements of a tile. */
struct ir_constant {
  enum dtype dtype;
  int64_t i; /* integers and bool */
  double f;  /* floats: a value of the dtype */
};
/* Is v a constant, or a splat of one? */
bool ir_constant_of(const struct ir_module *m, struct ir_val v, struct ir_constant *out);
/* The value of an elementwise op (arith, float_arith, int_arith, bits, compare, select, cast) on
 * constants, as the interpreter's rounded domain defines it. False: not folded, because the op is
 * one whose rounding is not fixed (exp, ...), or because an index would overflow. */
bool ir_fold(enum ir_opcode opcode, enum dtype result, const struct ir_constant in[3],
             struct ir_constant *out);
/* Does a cast from `from` to `to` keep every value, infinities included? */
bool ir_holds_all(enum dtype to, enum dtype from);

/* carry.c: takes results of a for, if or merge away, with their initial values or operands, block
 * arguments and yielded values; drop[k]: result k. */
void ir_drop_carried(struct ir_module *m, struct ir_op o, const bool *drop);

#endif
