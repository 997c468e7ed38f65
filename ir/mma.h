/* Instructions of a warp's matrix unit, from mma.def. */
#ifndef KILN_IR_MMA_H
#define KILN_IR_MMA_H

#include "base/dtype.h"

enum ir_mma_id {
#define MMA(id, m, k, acc, a, b) IR_MMA_##id,
#include "ir/mma.def"
  IR_MMA_COUNT
};

struct ir_mma {
  enum ir_mma_id id;
  const char *shape; /* "m16n8k16" */
  uint32_t m, k;     /* n is 8 */
  enum dtype acc, a, b;
};

enum ir_prec {
#define PREC(id, text, operands) IR_PREC_##id,
#include "ir/precs.def"
  IR_PREC_COUNT
};
/* Of k, what `promoted` lets the matrix unit sum in its own way at most. */
#define IR_PROMOTED_K 128
/* IR_PREC_COUNT: there is no such word. */
enum ir_prec ir_prec_find(const char *text);
/* Is it for operands of this dtype? */
bool ir_prec_takes(enum ir_prec p, enum dtype operand);
/* Of what it is for: "f32 operands". */
const char *ir_prec_operands(enum ir_prec p);
/* "ieee, tf32, ... or fast" */
extern const char ir_prec_words[];

/* The instruction for these dtypes, or NULL. */
const struct ir_mma *ir_mma_find(enum dtype acc, enum dtype a, enum dtype b);
/* Elements that a lane holds of an operand (0: a, 1: b) or of the accumulator (2). */
uint32_t ir_mma_elems(const struct ir_mma *x, int operand);

#endif
