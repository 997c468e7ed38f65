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

/* The instruction for these dtypes, or NULL. */
const struct ir_mma *ir_mma_find(enum dtype acc, enum dtype a, enum dtype b);
/* Elements that a lane holds of an operand (0: a, 1: b) or of the accumulator (2). */
uint32_t ir_mma_elems(const struct ir_mma *x, int operand);

#endif
