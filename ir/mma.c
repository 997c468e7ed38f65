/* See mma.h. */
#include "ir/mma.h"

#include <stddef.h>

static const struct ir_mma rows[] = {
#define MMA(id, m, k, acc, a, b) {IR_MMA_##id, "m" #m "n8k" #k, m, k, DT_##acc, DT_##a, DT_##b},
#include "ir/mma.def"
};

const struct ir_mma *ir_mma_find(enum dtype acc, enum dtype a, enum dtype b) {
  for (uint32_t i = 0; i < IR_MMA_COUNT; i++)
    if (rows[i].acc == acc && rows[i].a == a && rows[i].b == b)
      return &rows[i];
  return NULL;
}

uint32_t ir_mma_elems(const struct ir_mma *x, int operand) {
  return (operand == 0 ? x->m * x->k : operand == 1 ? 8 * x->k : 8 * x->m) / 32;
}
